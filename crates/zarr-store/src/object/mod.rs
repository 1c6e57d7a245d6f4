//! Any `object_store::ObjectStore` as an async store.

mod errors;
mod ranges;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use futures::future::try_join;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutOptions, PutPayload};
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, ByteRange, Bytes, Destination, Listing, StoreError,
    StoreErrorKind, StoreKey, StorePrefix, StoredValue, Version, async_trait,
};

use crate::bytes_of;
use errors::{from_object_store, is_not_partial, is_unsupported};

/// Values larger than this are uploaded in parts: of a slow line, each request must end before the server is given up for its silence.
const LARGEST_SINGLE_PUT: usize = 64 << 20;
/// The size of such parts.
const PART: usize = 16 << 20;
/// S3 takes so many of them at most.
const MOST_PARTS: usize = 10_000;
/// Parts of a value that are on their way at once.
const PARTS_AT_ONCE: usize = 4;
/// Requests under way at once for one call.
const CONCURRENCY: usize = 16;
/// Values longer than this are read in pieces that are under way at once: a server gives each connection some 50 to 100 MB a second.
const LARGEST_SINGLE_GET: u64 = 8 << 20;
/// The size of such pieces.
const PIECE: usize = 4 << 20;
/// Pieces of a value that are on their way at once.
const PIECES_AT_ONCE: usize = 8;
/// How often pieces are tried of a value that is replaced each time meanwhile.
const ATTEMPTS: usize = 3;
/// Memory that is made ready for an answer before it comes, at most.
const LARGEST_RESERVED: usize = 64 << 20;
/// The largest offset that is sent to a server.
const LARGEST_OFFSET: u64 = i64::MAX as u64;
/// Ranges of one call that lie this close together are asked for as one. Small, as whoever plans
/// a read has joined ranges already as far as it pays.
const GAP: u64 = 16 << 10;

/// An `object_store::ObjectStore` (S3, GCS, Azure, HTTP, memory, ...), or the part of it below a
/// prefix, as a Zarr store.
///
/// * Keys are used as they are, without escaping. Control characters in keys are refused.
/// * Ranges of one value that lie close together are asked for as one, and several requests are
///   under way at once.
/// * Values of more than 8 MiB are read in pieces of 4 MiB, up to eight at once, all of one version of the value, where the backend has entity tags.
/// * Several reads of one version of a value (`get_versioned`) are conditional on its entity tag, where the backend has strong ones.
/// * Backends that cannot answer suffix ranges (Azure) are asked for the size first. From servers
///   that ignore ranges the value is read from its beginning up to the end of the range.
/// * Writes are atomic, as object stores promise; large values are uploaded in parts and appear
///   when the last one is there. If the future of such a write is dropped, parts may be left
///   behind, unseen, until the bucket's rules remove them.
/// * Futures must be polled within the tokio runtime that the network clients of `object_store`
///   need; `OnRuntime` brings one.
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// use std::sync::Arc;
/// use object_store::memory::InMemory;
/// use zarr_store::{AsyncToBlocking, ObjectStoreAdapter};
/// use zarr_store_api::{ByteRange, ReadableStore, StoreKey, WritableStore};
///
/// let store = ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://");
/// let store = AsyncToBlocking::new(store)?;
/// let key = StoreKey::new("a/c/0")?;
/// store.set(&key, "hello".into())?;
/// assert_eq!(store.get(&key, ByteRange::Suffix(2))?.as_deref(), Some(&b"lo"[..]));
/// # }
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Debug)]
pub struct ObjectStoreAdapter {
    store: Arc<dyn ObjectStore>,
    name: String,
    prefix: Path,
    writable: bool,
    listable: bool,
    gap: u64,
    largest_put: usize,
    part: usize,
    largest_get: u64,
    piece: usize,
    /// Set once the backend has refused a suffix range.
    no_suffixes: AtomicBool,
    /// Set once the backend has shown that it ignores ranges.
    no_ranges: AtomicBool,
    /// Set once there was a value that is read in pieces: from then on, the first piece of what may be one is asked for.
    large: AtomicBool,
    /// Set once pieces never fitted together.
    no_pieces: AtomicBool,
}

/// Part of a value as it arrives.
struct Part {
    result: GetResult,
    /// Bytes that arrive before the ones that were asked for.
    skip: u64,
    /// Where the bytes that were asked for begin.
    start: u64,
    /// Bytes that were asked for and are there.
    length: u64,
    /// How many of them are taken from this answer. The others are asked for in pieces.
    here: u64,
}

impl ObjectStoreAdapter {
    /// Adapts an object store. The name is for messages and must hold no credentials.
    pub fn new(store: Arc<dyn ObjectStore>, name: impl Into<String>) -> Self {
        Self {
            store,
            name: name.into(),
            prefix: Path::default(),
            writable: true,
            listable: true,
            gap: GAP,
            largest_put: LARGEST_SINGLE_PUT,
            part: PART,
            largest_get: LARGEST_SINGLE_GET,
            piece: PIECE,
            no_suffixes: AtomicBool::new(false),
            no_ranges: AtomicBool::new(false),
            large: AtomicBool::new(false),
            no_pieces: AtomicBool::new(false),
        }
    }

    /// Takes keys relative to this prefix of the object store. The name is not changed.
    #[must_use]
    pub fn with_prefix(mut self, prefix: Path) -> Self {
        self.prefix = prefix;
        self
    }

    /// Says that the backend cannot be written to, as plain web servers cannot.
    #[must_use]
    pub fn without_writes(mut self) -> Self {
        self.writable = false;
        self
    }

    /// Says that the backend cannot be listed, as plain web servers cannot.
    #[must_use]
    pub fn without_listing(mut self) -> Self {
        self.listable = false;
        self
    }

    /// Sets how many bytes may lie between two ranges that are asked for as one.
    #[must_use]
    pub fn with_gap(mut self, bytes: u64) -> Self {
        self.gap = bytes;
        self
    }

    /// Sets above which size values are uploaded in parts, and of which size parts are, in bytes.
    /// (By default 64 MiB and 16 MiB; S3 takes parts of 5 MiB and more, and 10 000 of them: those of very large values are larger.)
    #[must_use]
    pub fn with_upload_parts(mut self, largest_single: usize, part: usize) -> Self {
        self.largest_put = largest_single;
        self.part = part.max(1);
        self
    }

    /// Sets above which size values are read in pieces, and of which size pieces are, in bytes. (By default 8 MiB and 4 MiB; pieces have 64 MiB at most.)
    #[must_use]
    pub fn with_read_pieces(mut self, largest_single: u64, piece: usize) -> Self {
        self.piece = piece.clamp(1, LARGEST_RESERVED);
        self.largest_get = largest_single.max(self.piece as u64);
        self
    }

    fn path(&self, key: &StoreKey) -> Result<Path, StoreError> {
        self.path_of(key.as_str()).map_err(|error| error.with_key(key))
    }

    fn path_of(&self, below: &str) -> Result<Path, StoreError> {
        let joined = match (self.prefix.is_root(), below.is_empty()) {
            (true, _) => below.to_owned(),
            (false, true) => self.prefix.to_string(),
            (false, false) => format!("{}/{below}", self.prefix),
        };
        Path::parse(joined)
            .map_err(|error| StoreError::new(StoreErrorKind::InvalidKey, format!("object stores cannot hold this key: {error}")))
    }

    /// The key of an object; `None` for objects whose names cannot be keys.
    fn key(&self, path: &Path) -> Option<StoreKey> {
        StoreKey::new(self.below(path)?).ok()
    }

    fn below<'p>(&self, path: &'p Path) -> Option<&'p str> {
        match self.prefix.is_root() {
            true => Some(path.as_ref()),
            false => path.as_ref().strip_prefix(self.prefix.as_ref())?.strip_prefix('/'),
        }
    }

    async fn head(&self, path: &Path) -> Result<Option<ObjectMeta>, StoreError> {
        match self.store.head(path).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(from_object_store(error, "cannot ask for the size")),
        }
    }

    /// The bounds of a range of one version of the value, or of any, and which version that is; `None` if there is no such key.
    async fn bounds(&self, path: &Path, range: ByteRange, tag: Option<&str>) -> Result<Option<(ByteRange, Option<String>)>, Unread> {
        let Some(meta) = self.head(path).await? else { return Ok(None) };
        let found = strong_tag(&meta);
        if is_other(found, tag) {
            return Err(Unread::Replaced);
        }
        Ok(Some((range.resolve(meta.size)?.into(), tag.or(found).map(str::to_owned))))
    }

    /// Begins to read a range of one version of the value, or of any, as one answer or the first piece of several; `None` if there is no such key.
    async fn begin(&self, path: &Path, range: ByteRange, tag: Option<&str>, pieces: bool) -> Result<Option<Part>, Unread> {
        let (mut range, mut tag) = (range, tag.map(str::to_owned));
        // Backends refuse empty ranges, which are right at the end of a value at the latest.
        let suffix = matches!(range, ByteRange::Suffix(_));
        if range.len_hint() == Some(0) || (suffix && self.no_suffixes.load(Ordering::Relaxed)) {
            match self.bounds(path, range, tag.as_deref()).await? {
                Some(found) => (range, tag) = found,
                None => return Ok(None),
            }
        }
        if range.len_hint() == Some(0) {
            return Ok(Some(Part::empty(path, tag)));
        }
        let tag = tag.as_deref();
        let ranges = !self.no_ranges.load(Ordering::Relaxed);
        let pieces = pieces && ranges && !self.no_pieces.load(Ordering::Relaxed);
        let piece = pieces && self.large.load(Ordering::Relaxed) && range.len_hint().is_none_or(|length| length > self.largest_get);
        let first = |start: u64| GetRange::Bounded(start..start + self.piece as u64);
        let wanted = match range {
            ByteRange::All if piece => Some(first(0)),
            ByteRange::From(start) | ByteRange::Bounded { start, .. } if piece && start <= LARGEST_OFFSET / 2 => Some(first(start)),
            ByteRange::All | ByteRange::From(0) => None,
            _ if !ranges => None,
            // Servers take offsets for signed integers. Nothing stored is that long.
            ByteRange::Suffix(length) if length > LARGEST_OFFSET => None,
            ByteRange::Bounded { start, end } if end > LARGEST_OFFSET => Some(GetRange::Offset(start.min(LARGEST_OFFSET))),
            ByteRange::Bounded { start, end } => Some(GetRange::Bounded(start..end)),
            ByteRange::From(start) => Some(GetRange::Offset(start.min(LARGEST_OFFSET))),
            ByteRange::Suffix(length) => Some(GetRange::Suffix(length)),
        };
        let partial = wanted.is_some();
        match self.request(path, wanted, tag).await {
            // Other pieces could be of another version.
            Ok(result) if piece && strong_tag(&result.meta).is_none() => {
                self.large.store(false, Ordering::Relaxed);
                Box::pin(self.begin(path, range, tag, pieces)).await
            }
            // A server may pass over the condition.
            Ok(result) if is_other(strong_tag(&result.meta), tag) => Err(Unread::Replaced),
            Ok(result) => {
                let part = Part::of(result, range, pieces.then_some((self.largest_get, self.piece as u64)))?;
                if part.here < part.length {
                    self.large.store(true, Ordering::Relaxed);
                }
                Ok(Some(part))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(object_store::Error::Precondition { .. }) if tag.is_some() => Err(Unread::Replaced),
            Err(error) if suffix && is_unsupported(&error) => {
                self.no_suffixes.store(true, Ordering::Relaxed);
                Box::pin(self.begin(path, range, tag, pieces)).await
            }
            // Some servers do so for empty values alone.
            Err(error) if piece && is_refused(&error) => {
                self.large.store(false, Ordering::Relaxed);
                Box::pin(self.begin(path, range, tag, false)).await
            }
            Err(error) if partial && is_refused(&error) => {
                self.no_ranges.store(true, Ordering::Relaxed);
                Box::pin(self.begin(path, range, tag, pieces)).await
            }
            Err(error) if partial && matches!(error, object_store::Error::Generic { .. }) => {
                // Backends differ in how they refuse ranges that begin at the end, or past it, and
                // suffixes longer than the value.
                let Some((bounds, tag)) = self.bounds(path, range, tag).await? else { return Ok(None) };
                match bounds.len_hint() {
                    Some(0) => Ok(Some(Part::empty(path, tag))),
                    _ if suffix => Box::pin(self.begin(path, bounds, tag.as_deref(), pieces)).await,
                    _ => Err(from_object_store(error, "cannot read").into()),
                }
            }
            Err(error) => Err(from_object_store(error, "cannot read").into()),
        }
    }

    async fn request(&self, path: &Path, range: Option<GetRange>, tag: Option<&str>) -> Result<GetResult, object_store::Error> {
        self.store.get_opts(path, GetOptions { range, if_match: tag.map(str::to_owned), ..GetOptions::default() }).await
    }

    /// Reads a range of one version of the value, or of any, and says which one that is.
    async fn read(&self, path: &Path, range: ByteRange, tag: Option<&str>) -> Result<Option<(Bytes, Option<String>)>, StoreError> {
        let mut attempts = 0..ATTEMPTS;
        loop {
            let pieces = attempts.next().is_some();
            let part = match self.begin(path, range, tag, pieces).await {
                Ok(Some(part)) => part,
                Ok(None) if tag.is_none() => return Ok(None),
                // Since the size was asked for.
                Err(Unread::Replaced) if pieces && tag.is_none() => continue,
                Ok(None) => return Err(Unread::Replaced.into_error()),
                Err(unread) => return Err(unread.into_error()),
            };
            let found = part.tag();
            match self.bytes(path, part).await {
                Err(Unread::Replaced) if pieces => self.gave_up(attempts.len()),
                read => return read.map(|bytes| Some((bytes, found))).map_err(Unread::into_error),
            }
        }
    }

    /// Reads several ranges, each of one version of the value, or of any, with the tags of the answers.
    async fn read_ranges(&self, path: &Path, ranges: &[ByteRange], tag: Option<&str>) -> Result<Option<(Vec<Bytes>, Tags)>, StoreError> {
        if ranges.is_empty() {
            return match self.bounds(path, ByteRange::All, tag).await {
                Ok(None) if tag.is_some() => Err(Unread::Replaced.into_error()),
                Ok(found) => Ok(found.map(|(_, found)| (Vec::new(), vec![found]))),
                Err(unread) => Err(unread.into_error()),
            };
        }
        if self.no_ranges.load(Ordering::Relaxed) && ranges.len() > 1 {
            let Some((whole, found)) = self.read(path, ByteRange::All, tag).await? else { return Ok(None) };
            let parts = ranges.iter().map(|range| bytes_of(&whole, *range)).collect::<Result<_, _>>()?;
            return Ok(Some((parts, vec![found])));
        }
        let plan = ranges::join(ranges, self.gap);
        let requests = plan.requests.iter().copied();
        let mut answers = futures::stream::iter(
            requests.map(|range| async move { self.read(path, range, tag).await.map_err(|error| error.with_range(range)) }),
        )
        .buffered(CONCURRENCY);
        let (mut fetched, mut tags) = (Vec::with_capacity(plan.requests.len()), Vec::with_capacity(plan.requests.len()));
        while let Some(answer) = answers.next().await {
            match answer? {
                Some((bytes, found)) => {
                    fetched.push(bytes);
                    tags.push(found);
                }
                None => return Ok(None),
            }
        }
        let parts = (0..ranges.len()).map(|index| plan.part(index, ranges[index], &fetched)).collect::<Result<_, _>>()?;
        Ok(Some((parts, tags)))
    }

    async fn read_into(&self, path: &Path, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let (capacity, mut attempts) = (dst.len(), 0..ATTEMPTS);
        loop {
            let pieces = attempts.next().is_some();
            let part = match self.begin(path, range, None, pieces).await {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(None),
                Err(Unread::Replaced) if pieces => continue,
                Err(unread) => return Err(unread.into_error()),
            };
            let front = usize::try_from(part.length).ok().and_then(|length| dst.get_mut(..length));
            let front = front.ok_or_else(|| StoreError::destination_too_short(part.length, capacity))?;
            let length = front.len();
            match self.copy(path, part, front).await {
                Err(Unread::Replaced) if pieces => self.gave_up(attempts.len()),
                copied => return copied.map(|()| Some(length)).map_err(Unread::into_error),
            }
        }
    }

    /// Notes that pieces did not fit together, with so many attempts left.
    fn gave_up(&self, left: usize) {
        if left == 0 {
            self.no_pieces.store(true, Ordering::Relaxed);
        }
    }

    async fn bytes(&self, path: &Path, part: Part) -> Result<Bytes, Unread> {
        if part.here == part.length {
            return Ok(part.bytes().await?);
        }
        let (tag, start, length) = (part.tag(), part.start, part.length);
        let no_room = || StoreError::new(StoreErrorKind::Limit, format!("no room for {length} bytes"));
        let length = usize::try_from(length).map_err(|_| no_room())?;
        // A server may claim any length. Zeros that the system provides are not written twice.
        let mut bytes = vec![0; length.min(LARGEST_RESERVED)];
        bytes.try_reserve_exact(length - bytes.len()).map_err(|error| no_room().with_source(error))?;
        self.copy(path, part, &mut bytes).await?;
        while bytes.len() < length {
            let have = bytes.len();
            bytes.resize(length.min(have + LARGEST_RESERVED), 0);
            self.copy_pieces(path, tag.as_deref(), start + have as u64, bytes.get_mut(have..).unwrap_or_default()).await?;
        }
        Ok(bytes.into())
    }

    /// Copies the front of a part, as far as `dst` goes.
    async fn copy(&self, path: &Path, part: Part, dst: &mut [u8]) -> Result<(), Unread> {
        let (tag, start) = (part.tag(), part.start + part.here);
        let (front, rest) = dst.split_at_mut(usize::try_from(part.here).unwrap_or(usize::MAX).min(dst.len()));
        try_join(part.copy_to(front), self.copy_pieces(path, tag.as_deref(), start, rest)).await.map(drop)
    }

    /// Copies what a value has from `start` on, in pieces.
    async fn copy_pieces(&self, path: &Path, tag: Option<&str>, start: u64, dst: &mut [u8]) -> Result<(), Unread> {
        let starts = (start..).step_by(self.piece);
        let pieces = dst.chunks_mut(self.piece).zip(starts).map(|(dst, start)| {
            let copy = async move {
                let end = start + dst.len() as u64;
                match self.begin(path, (start..end).into(), tag, false).await? {
                    // A server that ignores ranges sends all that comes before, too.
                    Some(part) if !self.no_ranges.load(Ordering::Relaxed) => part.copy_to(dst).await,
                    _ => Err(Unread::Replaced),
                }
            };
            copy.boxed()
        });
        futures::stream::iter(pieces.map(Ok)).try_for_each_concurrent(PIECES_AT_ONCE - 1, |copy| copy).await
    }

    async fn put(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let length: usize = parts.iter().map(Bytes::len).sum();
        let payload: PutPayload = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if length > self.largest_put {
            return self.put_in_parts(&path, payload, length).await.map_err(|error| error.with_key(key));
        }
        match self.store.put_opts(&path, payload, PutOptions::default()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = from_object_store(error, "cannot write").with_key(key);
                // Whoever refuses a request has not carried it out; otherwise who knows.
                let stored = match error.kind() {
                    StoreErrorKind::Permission | StoreErrorKind::Unsupported => StoredValue::Old,
                    _ => StoredValue::OldOrNew,
                };
                Err(error.with_stored(stored))
            }
        }
    }

    async fn put_in_parts(&self, path: &Path, payload: PutPayload, length: usize) -> Result<(), StoreError> {
        let failed = |error| from_object_store(error, "cannot write in parts");
        let mut upload = self.store.put_multipart(path).await.map_err(failed)?;
        let mut uploads = Vec::new();
        let mut part = Vec::new();
        let size = self.part.max(length.div_ceil(MOST_PARTS));
        let mut room = size;
        for mut piece in payload {
            while piece.len() > room {
                part.push(piece.split_to(room));
                uploads.push(upload.put_part(part.drain(..).collect()));
                room = size;
            }
            room -= piece.len();
            part.push(piece);
        }
        uploads.push(upload.put_part(part.into_iter().collect()));
        let mut uploads = futures::stream::iter(uploads).buffer_unordered(PARTS_AT_ONCE);
        while let Some(result) = uploads.next().await {
            if let Err(error) = result {
                drop(uploads);
                // The parts stay unseen in any case; removing them is a courtesy.
                let _ = upload.abort().await;
                return Err(failed(error).with_stored(StoredValue::Old));
            }
        }
        match upload.complete().await {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(error).with_stored(StoredValue::OldOrNew)),
        }
    }
}

/// Why a part of a value could not be read.
enum Unread {
    /// It is of another version of the value than the parts before, or nobody knows.
    Replaced,
    Failed(StoreError),
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl Unread {
    fn into_error(self) -> StoreError {
        match self {
            Self::Replaced => StoreError::new(StoreErrorKind::Replaced, "the value was replaced while it was read"),
            Self::Failed(error) => error,
        }
    }
}

/// Whether a server does not answer a range.
fn is_refused(error: &object_store::Error) -> bool {
    is_not_partial(error) || is_unsupported(error)
}

/// The entity tags of several answers.
type Tags = Vec<Option<String>>;

/// The entity tag of an answer, if it is one that requests can be made conditional on (RFC 9110, 8.8.1).
fn strong_tag(meta: &ObjectMeta) -> Option<&str> {
    meta.e_tag.as_deref().filter(|tag| !tag.starts_with("W/"))
}

/// Whether an answer is known to be of another version than was asked for.
fn is_other(found: Option<&str>, tag: Option<&str>) -> bool {
    found.zip(tag).is_some_and(|(found, tag)| found != tag)
}

impl Part {
    fn empty(path: &Path, e_tag: Option<String>) -> Self {
        let meta = ObjectMeta { location: path.clone(), last_modified: Default::default(), size: 0, e_tag, version: None };
        let result = GetResult {
            payload: object_store::GetResultPayload::Stream(futures::stream::empty().boxed()),
            meta,
            range: 0..0,
            attributes: Default::default(),
            extensions: Default::default(),
        };
        Self { result, skip: 0, start: 0, length: 0, here: 0 }
    }

    /// What of an answer was asked for. `pieces`: from which length on it may be read in pieces, and how long those are.
    fn of(result: GetResult, wanted: ByteRange, pieces: Option<(u64, u64)>) -> Result<Self, StoreError> {
        let bounds = wanted.resolve(result.meta.size)?;
        let length = bounds.end - bounds.start;
        let here = match pieces {
            Some((largest, piece)) if length > largest && strong_tag(&result.meta).is_some() => piece,
            // The first piece was asked for, of a value that would do without.
            Some((_, piece)) if length > piece && bounds.start + piece == result.range.end => piece,
            _ => length,
        };
        match bounds.start.checked_sub(result.range.start) {
            Some(skip) if bounds.start + here <= result.range.end => Ok(Self { result, skip, start: bounds.start, length, here }),
            _ => Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!("the server answered with bytes {}..{} instead", result.range.start, result.range.end),
            )
            .with_range(wanted)),
        }
    }

    /// The version of the value.
    fn tag(&self) -> Option<String> {
        strong_tag(&self.result.meta).map(str::to_owned)
    }

    /// Passes the bytes on as they arrive.
    async fn for_each(self, mut take: impl FnMut(Bytes) + Send) -> Result<(), StoreError> {
        let (mut skip, mut left) = (self.skip, self.here);
        let mut stream = self.result.into_stream();
        while left > 0 {
            let mut piece = match stream.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(from_object_store(error, "cannot read")),
                None => {
                    let message = "the answer ended early";
                    return Err(StoreError::new(StoreErrorKind::Transient, message));
                }
            };
            let skipped = piece.len().min(usize::try_from(skip).unwrap_or(usize::MAX));
            skip -= skipped as u64;
            piece = piece.slice(skipped..);
            piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= piece.len() as u64;
            take(piece);
        }
        Ok(())
    }

    async fn bytes(self) -> Result<Bytes, StoreError> {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let (mut first, mut bytes) = (None, BytesMut::new());
        self.for_each(|piece| match (&first, piece.len() == length) {
            // All of it came at once.
            (None, true) => first = Some(piece),
            _ => {
                // A server may claim any length.
                if bytes.is_empty() {
                    bytes.reserve(length.min(LARGEST_RESERVED));
                }
                bytes.extend_from_slice(&piece);
            }
        })
        .await?;
        Ok(first.unwrap_or_else(|| bytes.freeze()))
    }

    /// Copies what this answer brings to memory that is as long.
    async fn copy_to(self, dst: &mut [u8]) -> Result<(), Unread> {
        if self.here != dst.len() as u64 {
            return Err(Unread::Replaced);
        }
        let mut rest = dst;
        let copied = self.for_each(|piece| {
            // Never more than `here` bytes in all.
            let (front, behind) = std::mem::take(&mut rest).split_at_mut(piece.len());
            front.copy_from_slice(&piece);
            rest = behind;
        });
        Ok(copied.await?)
    }
}

#[async_trait]
impl AsyncReadableStore for ObjectStoreAdapter {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let read = self.read(&self.path(key)?, range, None).await;
        Ok(read.map_err(|error| error.with_key(key).with_range(range))?.map(|(bytes, _)| bytes))
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.head(&self.path(key)?).await.map_err(|error| error.with_key(key))?.map(|meta| meta.size))
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let read = self.read_ranges(&self.path(key)?, ranges, None).await;
        Ok(read.map_err(|error| error.with_key(key))?.map(|(parts, _)| parts))
    }

    /// Versions are strong entity tags. A backend may pass over conditions, so that the tag of each answer is looked at, too.
    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let read = self.read_ranges(&self.path(key)?, ranges, version.and_then(Version::as_str)).await;
        let Some((parts, tags)) = read.map_err(|error| error.with_key(key))? else { return Ok(None) };
        let first = tags.iter().flatten().next();
        if tags.iter().any(|tag| is_other(tag.as_deref(), first.map(String::as_str))) {
            return Err(Unread::Replaced.into_error().with_key(key));
        }
        Ok(Some((parts, version.cloned().or_else(|| first.map(|tag| Version::new(tag))))))
    }

    /// The pieces of the answer are copied to the destination as they arrive.
    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let path = match self.path(key) {
            Ok(path) => path,
            Err(error) => return (dst, Err(error)),
        };
        let result = self.read_into(&path, range, (*dst).bytes_mut()).await;
        (dst, result.map_err(|error| error.with_key(key).with_range(range)))
    }
}

#[async_trait]
impl AsyncWritableStore for ObjectStoreAdapter {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.put(key, vec![value]).await
    }

    /// The pieces are sent as they are.
    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        self.put(key, parts).await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(from_object_store(error, "cannot erase").with_key(key).with_stored(StoredValue::OldOrNew)),
        }
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let keys = self.list(prefix).await?;
        let paths: Vec<_> = keys.iter().map(|key| self.path(key)).collect::<Result<_, _>>()?;
        let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut erased = self.store.delete_stream(paths);
        while let Some(result) = erased.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(from_object_store(error, "cannot erase")),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl AsyncListableStore for ObjectStoreAdapter {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let path = self.path_of(prefix.as_str())?;
        let mut objects = self.store.list(Some(&path).filter(|path| !path.is_root()));
        let mut keys = Vec::new();
        while let Some(object) = objects.next().await {
            let object = object.map_err(|error| from_object_store(error, "cannot list"))?;
            keys.extend(self.key(&object.location).filter(|key| prefix.contains(key)));
        }
        keys.sort_unstable();
        Ok(keys)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let path = self.path_of(prefix.as_str())?;
        let found = self
            .store
            .list_with_delimiter(Some(&path).filter(|path| !path.is_root()))
            .await
            .map_err(|error| from_object_store(error, "cannot list"))?;
        let mut listing = Listing::default();
        let keys = found.objects.iter().filter_map(|object| self.key(&object.location));
        listing.keys.extend(keys.filter(|key| prefix.contains(key)));
        let prefixes = found.common_prefixes.iter().filter_map(|path| self.below(path));
        listing.prefixes.extend(prefixes.filter_map(|path| StorePrefix::new(path).ok()));
        listing.sort();
        Ok(listing)
    }
}

impl AsyncStore for ObjectStoreAdapter {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        match self.writable {
            true => Some(self),
            false => None,
        }
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        match self.listable {
            true => Some(self),
            false => None,
        }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl From<ObjectStoreAdapter> for AnyStore {
    fn from(store: ObjectStoreAdapter) -> Self {
        AnyStore::asynchronous(store)
    }
}
