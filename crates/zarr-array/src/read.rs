//! Fetch and decode on the host: drivers of a plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::future::{BoxFuture, try_join, try_join_all};
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt, stream};
use rayon::prelude::*;
use zarr_buffer_api::{Offsets, OwnedTiles, TileMut, TileWriter};
use zarr_codec_api::{CodecError, Scratch};
use zarr_store_api::{AnyStore, ByteRange, Store, StoreError, StoreErrorKind, StoreKey, ValueReader};

use crate::ArrayError;
use crate::gate::{Enter, Gate, Pass};
use crate::pieces::InPieces;
use crate::plan::{ChunkNode, ChunkPart, Fetch, Plan, Steps, Then, bytes_of, covers_in_order, index_of};
use crate::pool::{Pool, with_scratch};
use crate::storage::Storage;

/// A plan and where its result goes.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) store: &'a dyn Store,
    pub(crate) sink: &'a dyn Sink,
}

/// Where decoded chunks go. Called from many threads.
pub(crate) trait Sink: Send + Sync {
    /// Takes a chunk that is there.
    fn chunk(&self, plan: &Plan, part: &ChunkPart, encoded: &[u8], scratch: &mut Scratch) -> Result<(), ArrayError>;

    /// Takes a chunk that is absent.
    fn absent(&self, plan: &Plan, node: &ChunkNode) -> Result<(), ArrayError>;

    /// The tiles that bytes may be read straight into.
    fn tiles(&self) -> Option<&TileWriter<'_>> {
        None
    }
}

impl Sink for TileWriter<'_> {
    fn chunk(&self, plan: &Plan, part: &ChunkPart, encoded: &[u8], scratch: &mut Scratch) -> Result<(), ArrayError> {
        for leaf in plan.leaves(&part.node) {
            plan.decode(part, encoded, &leaf, &mut self.claim(&leaf.tile)?, scratch)?;
        }
        Ok(())
    }

    fn absent(&self, plan: &Plan, node: &ChunkNode) -> Result<(), ArrayError> {
        for leaf in plan.leaves(node) {
            self.claim(&leaf.tile)?.fill(plan.chunks.fill_bytes())?;
        }
        Ok(())
    }

    fn tiles(&self) -> Option<&TileWriter<'_>> {
        Some(self)
    }
}

/// Gives the tiles back: a shard that is replaced while it is read is read again.
impl Sink for OwnedTiles {
    fn chunk(&self, plan: &Plan, part: &ChunkPart, encoded: &[u8], scratch: &mut Scratch) -> Result<(), ArrayError> {
        for leaf in plan.leaves(&part.node) {
            let mut tile = self.writer().claim(&leaf.tile)?;
            plan.decode(part, encoded, &leaf, &mut tile, scratch)?;
            self.writer().give_back(tile)?;
        }
        Ok(())
    }

    fn absent(&self, plan: &Plan, node: &ChunkNode) -> Result<(), ArrayError> {
        for leaf in plan.leaves(node) {
            let mut tile = self.writer().claim(&leaf.tile)?;
            tile.fill(plan.chunks.fill_bytes())?;
            self.writer().give_back(tile)?;
        }
        Ok(())
    }

    fn tiles(&self) -> Option<&TileWriter<'_>> {
        Some(self.writer())
    }
}

/// Encoded bytes that a thread reads at once of a value that several threads read, and a bound on what is copied to memory that is kept.
pub(crate) const PIECE: usize = 512 << 10;

fn len_of(ranges: &[ByteRange]) -> usize {
    let len = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.len_hint().unwrap_or(0)));
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Decoded bytes from which on the chunks of one request are shared out over the threads.
const SHARE: usize = 256 << 10;

/// Reads with a blocking store: each thread fetches a chunk and decodes it while it is in its caches.
pub(crate) fn read_blocking(jobs: &[Job<'_>], pool: &Pool) -> Result<(), ArrayError> {
    read_until(jobs, pool, &AtomicBool::new(false))
}

/// As [`read_blocking`], until somebody else sets `failed`: then the result is of no interest.
pub(crate) fn read_until(jobs: &[Job<'_>], pool: &Pool, failed: &AtomicBool) -> Result<(), ArrayError> {
    let work: Vec<(usize, usize)> = jobs.iter().enumerate().map(|(job, of)| (job, of.plan.chunk_count())).collect();
    let run = |job: usize, chunk: usize| -> Result<(), ArrayError> {
        let Some(job) = jobs.get(job) else { return Ok(()) };
        let result = read_chunk(job, chunk, failed, pool);
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        result
    };
    match work.as_slice() {
        [] => Ok(()),
        // Handing one chunk to another thread costs more than it brings.
        [(job, 0 | 1)] => (0..jobs.get(*job).map_or(0, |job| job.plan.chunk_count())).try_for_each(|chunk| run(*job, chunk)),
        _ => pool.run(|| {
            work.into_par_iter()
                .try_for_each(|(job, chunks)| (0..chunks).into_par_iter().with_max_len(1).try_for_each(|chunk| run(job, chunk)))
        }),
    }
}

/// Reads what is wanted of one chunk of the grid.
fn read_chunk(job: &Job<'_>, chunk: usize, failed: &AtomicBool, pool: &Pool) -> Result<(), ArrayError> {
    // A shard's index and its inner chunks from one value, which is looked up once.
    let mut value = None;
    let steps = job.plan.start(chunk, |key| Ok(value.insert(job.store.reader(key)?).version()))?;
    Blocking { job, value: value.as_deref(), failed, pool }.steps(steps)
}

/// Reads what is wanted of the one chunk of the grid that a plan touches, a shard, of a value that was opened.
pub(crate) fn read_value(job: &Job<'_>, value: &dyn ValueReader, failed: &AtomicBool, pool: &Pool) -> Result<(), ArrayError> {
    let steps = job.plan.start(0, |_| Ok(value.version()))?;
    Blocking { job, value: Some(value), failed, pool }.steps(steps)
}

struct Blocking<'a> {
    job: &'a Job<'a>,
    /// The value that all steps are about; `None`: the store is asked by key.
    value: Option<&'a dyn ValueReader>,
    failed: &'a AtomicBool,
    pool: &'a Pool,
}

impl Blocking<'_> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.value.map_or_else(|| self.job.store.get(key, range), |value| value.get(range))
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.value.map_or_else(|| self.job.store.get_ranges(key, ranges), |value| value.get_ranges(ranges))
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        match self.value {
            Some(value) => value.get_into(range, dst),
            None => self.job.store.get_into(key, range, dst),
        }
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        match self.value {
            Some(value) => value.get_pieces(range, piece, each),
            None => self.job.store.get_pieces(key, range, piece, each),
        }
    }

    fn steps(&self, steps: Steps) -> Result<(), ArrayError> {
        for node in &steps.absent {
            self.job.sink.absent(self.job.plan, node)?;
        }
        match steps.fetches.len() {
            0 | 1 => steps.fetches.into_iter().try_for_each(|fetch| self.fetch(fetch)),
            _ => self.pool.run(|| steps.fetches.into_par_iter().with_max_len(1).try_for_each(|fetch| self.fetch(fetch))),
        }
    }

    fn fetch(&self, fetch: Fetch) -> Result<(), ArrayError> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Fetch { key, ranges, then, .. } = fetch;
        match then {
            Then::Index(node) => {
                let range = ranges.first().copied().unwrap_or(ByteRange::All);
                let bound = range.len_hint().unwrap_or(0);
                let next = with_scratch(|scratch| {
                    let encoded = self.fetch_one(&key, range, bound, scratch)?;
                    let next = self.job.plan.supply_index(&node, encoded.as_deref(), scratch);
                    if let Some(Fetched::Scratch(bytes, _)) = encoded {
                        scratch.give(bytes);
                    }
                    next
                })?;
                self.steps(next)
            }
            // Threads that each read a part of the value, and decode it while it is in their caches.
            Then::Chunks(parts) if parts.len() > 1 && len_of(&ranges) > PIECE && self.value.is_some_and(ValueReader::is_parallel) => {
                let pieces = Plan::pieces(&key, &ranges, parts, PIECE);
                let fetch = |piece: Fetch| match piece.then {
                    Then::Chunks(parts) => self.fetch_ranges(&piece.key, &piece.ranges, parts),
                    Then::Index(_) => Ok(()),
                };
                self.pool.run(|| pieces.into_par_iter().with_max_len(1).try_for_each(fetch))
            }
            Then::Chunks(parts) => self.fetch_ranges(&key, &ranges, parts),
        }
    }

    fn fetch_ranges(&self, key: &StoreKey, ranges: &[ByteRange], parts: Vec<ChunkPart>) -> Result<(), ArrayError> {
        if self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        match ranges {
            // What is large need not be copied out of a store that has it in memory.
            [range] if parts.len() == 1 || len_of(ranges) <= PIECE => self.fetch_chunks(key, *range, parts),
            _ => {
                let bytes = self.get_ranges(key, ranges)?;
                let bytes = bytes.ok_or_else(|| vanished(self.job.plan, &parts))?;
                self.decode_all(&parts, |part| bytes_of(part, &bytes))
            }
        }
    }

    fn fetch_chunks(&self, key: &StoreKey, range: ByteRange, parts: Vec<ChunkPart>) -> Result<(), ArrayError> {
        let plan = self.job.plan;
        if let [part] = parts.as_slice()
            && (self.fetch_in_place(key, range, part)? || self.fetch_in_pieces(key, range, part)?)
        {
            return Ok(());
        }
        let bound = match (range.len_hint(), parts.first()) {
            (Some(len), _) => len,
            (None, Some(part)) => plan.bound(&part.node)?.encoded_len.upper(),
            (None, None) => 0,
        };
        let mut fetched = with_scratch(|scratch| self.fetch_one(key, range, bound, scratch))?;
        let result = match &fetched {
            Some(bytes) => self.decode_all(&parts, |part| part.within.clone().map_or(Some(&**bytes), |within| bytes.get(within))),
            // Inner chunks lie in a shard that was there a moment ago; other chunks may be absent.
            None if parts.iter().any(|part| part.within.is_some()) => Err(vanished(plan, &parts)),
            None => parts.iter().try_for_each(|part| self.job.sink.absent(plan, &part.node)),
        };
        if let Some(Fetched::Scratch(bytes, _)) = fetched.take() {
            with_scratch(|scratch| scratch.give(bytes));
        }
        result
    }

    /// Reads a chunk that is stored as it is straight to where it belongs. `false` when it is not such a chunk.
    fn fetch_in_place(&self, key: &StoreKey, range: ByteRange, part: &ChunkPart) -> Result<bool, ArrayError> {
        let plan = self.job.plan;
        let Some(tiles) = self.job.sink.tiles() else { return Ok(false) };
        let bound = plan.bound(&part.node)?;
        if !bound.verbatim || part.partial {
            return Ok(false);
        }
        let leaves = plan.leaves(&part.node);
        let [leaf] = leaves.as_slice() else { return Ok(false) };
        if !covers_in_order(&bound, leaf) {
            return Ok(false);
        }
        if part.within.as_ref().is_some_and(|within| within.len() != bound.byte_len) {
            return Ok(false);
        }
        let mut tile = tiles.claim(&leaf.tile)?;
        let Some(contiguous) = tile.as_contiguous().filter(|bytes| bytes.len() == bound.byte_len) else {
            // The tile is claimed now, so that the chunk is copied from here.
            return self.fetch_rows(key, range, part, &mut tile).map(|()| true);
        };
        let expected = contiguous.len();
        match self.get_into(key, range, contiguous) {
            Ok(Some(len)) if len == expected => {}
            Ok(Some(len)) => return Err(plan.error(&part.node, CodecError::size("bytes", expected, len))),
            Ok(None) if part.within.is_some() => return Err(vanished(plan, std::slice::from_ref(part))),
            Ok(None) => tile.fill(plan.chunks.fill_bytes())?,
            Err(error) if error.kind() == StoreErrorKind::Parameter => {
                let found = self.job.store.size(key)?.unwrap_or(0);
                let found = usize::try_from(found).unwrap_or(usize::MAX);
                return Err(plan.error(&part.node, CodecError::size("bytes", expected, found)));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Reads a whole chunk that is stored as it is, some rows at a time: a large one would not stay in caches between the read and the copy.
    fn fetch_rows(&self, key: &StoreKey, range: ByteRange, part: &ChunkPart, tile: &mut TileMut<'_>) -> Result<(), ArrayError> {
        let plan = self.job.plan;
        let bound = plan.bound(&part.node)?;
        let steps: Vec<Offsets<'_>> = bound.layout.strides.iter().map(|&stride| Offsets::Stride(stride)).collect();
        // Not the stride: that of an axis of one element may be any.
        let row = (bound.byte_len / bound.layout.shape.first().map_or(1, |&rows| rows.max(1))).max(1);
        let piece = (PIECE / row).max(1).saturating_mul(row).min(bound.byte_len);
        let mut copied = Ok(());
        let mut copy = |at: u64, bytes: &[u8]| {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            if copied.is_ok() {
                let rows = tile.rows(at / row..at.saturating_add(bytes.len()) / row);
                copied = rows.and_then(|mut rows| rows.copy_from(bytes, 0, &steps));
            }
        };
        let read = with_scratch(|scratch| {
            let mut piece = scratch.take_len(piece);
            let read = self.get_pieces(key, range, &mut piece, &mut copy);
            scratch.give(piece);
            read
        });
        match read? {
            // Rows behind the last one are an error by the length of the chunk.
            Some(len) if len == bound.byte_len as u64 => Ok(copied?),
            Some(len) => Err(plan.error(&part.node, CodecError::size("bytes", bound.byte_len, usize::try_from(len).unwrap_or(usize::MAX)))),
            None if part.within.is_some() => Err(vanished(plan, std::slice::from_ref(part))),
            None => Ok(tile.fill(plan.chunks.fill_bytes())?),
        }
    }

    /// Reads a chunk that is decoded in pieces to where it belongs. `false` when it is not such a chunk.
    fn fetch_in_pieces(&self, key: &StoreKey, range: ByteRange, part: &ChunkPart) -> Result<bool, ArrayError> {
        let plan = self.job.plan;
        let Some(tiles) = self.job.sink.tiles() else { return Ok(false) };
        let bound = plan.bound(&part.node)?;
        let leaves = plan.leaves(&part.node);
        let [leaf] = leaves.as_slice() else { return Ok(false) };
        let Some(pieces) = InPieces::of_read(&bound, leaf).filter(|_| !part.partial) else { return Ok(false) };
        let mut tile = tiles.claim(&leaf.tile)?;
        let in_place = covers_in_order(&bound, leaf) && tile.as_contiguous().is_some();
        if !in_place {
            let opened;
            let value = match self.value {
                Some(value) => value,
                None => {
                    opened = self.job.store.reader(key)?;
                    &*opened
                }
            };
            if value.is_parallel() && with_scratch(|scratch| pieces.read(value, range, &mut tile, scratch))? {
                return Ok(true);
            }
        }
        // The tile is claimed now, so that the chunk is decoded from here.
        let bound = range.len_hint().unwrap_or(bound.encoded_len.upper());
        let fetched = with_scratch(|scratch| self.fetch_one(key, range, bound, scratch))?;
        match &fetched {
            Some(bytes) => {
                let encoded = part.within.clone().map_or(Some(&**bytes), |within| bytes.get(within));
                let encoded = encoded.ok_or_else(|| short(plan, &part.node))?;
                with_scratch(|scratch| plan.decode(part, encoded, leaf, &mut tile, scratch))?;
            }
            None if part.within.is_some() => return Err(vanished(plan, std::slice::from_ref(part))),
            None => tile.fill(plan.chunks.fill_bytes())?,
        }
        if let Some(Fetched::Scratch(bytes, _)) = fetched {
            with_scratch(|scratch| scratch.give(bytes));
        }
        Ok(true)
    }

    fn fetch_one(&self, key: &StoreKey, range: ByteRange, bound: u64, scratch: &mut Scratch) -> Result<Option<Fetched>, ArrayError> {
        fetch_bounded(bound, scratch, |bytes| self.get_into(key, range, bytes), || self.get(key, range))
    }

    fn decode_all<'b>(&self, parts: &[ChunkPart], bytes: impl Fn(&ChunkPart) -> Option<&'b [u8]> + Sync) -> Result<(), ArrayError> {
        let plan = self.job.plan;
        let decode = |part: &ChunkPart| {
            let encoded = bytes(part).ok_or_else(|| short(plan, &part.node))?;
            with_scratch(|scratch| self.job.sink.chunk(plan, part, encoded, scratch))
        };
        let share = match parts {
            [] | [_] => false,
            [first, ..] => plan.bound(&first.node)?.byte_len.saturating_mul(parts.len()) >= SHARE,
        };
        if share { self.pool.run(|| parts.par_iter().with_max_len(1).try_for_each(decode)) } else { parts.iter().try_for_each(decode) }
    }
}

/// Reads into memory that this thread reuses, where a bound on the size is known.
pub(crate) fn fetch_bounded(
    bound: u64,
    scratch: &mut Scratch,
    get_into: impl FnOnce(&mut [u8]) -> Result<Option<usize>, StoreError>,
    get: impl FnOnce() -> Result<Option<Bytes>, StoreError>,
) -> Result<Option<Fetched>, ArrayError> {
    /// A value whose bound is larger is asked for as it is.
    const LARGEST: u64 = 256 << 20;
    if let Ok(len) = usize::try_from(bound)
        && (1..=LARGEST).contains(&bound)
    {
        let mut bytes = scratch.take_len(len);
        match get_into(&mut bytes) {
            Ok(Some(len)) => return Ok(Some(Fetched::Scratch(bytes, len))),
            Ok(None) => {
                scratch.give(bytes);
                return Ok(None);
            }
            // An encoder may have made more of a chunk than the bound expects.
            Err(error) if error.kind() == StoreErrorKind::Parameter => scratch.give(bytes),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(get()?.map(Fetched::Bytes))
}

/// Bytes of a value, in memory that is to be given back, or as the store had them.
pub(crate) enum Fetched {
    Scratch(Vec<u8>, usize),
    Bytes(Bytes),
}

impl std::ops::Deref for Fetched {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Scratch(bytes, len) => bytes.get(..*len).unwrap_or(bytes),
            Self::Bytes(bytes) => bytes,
        }
    }
}

pub(crate) fn vanished(plan: &Plan, parts: &[ChunkPart]) -> ArrayError {
    let error = || CodecError::format("sharding_indexed", "the shard was removed while it was read");
    match parts.first() {
        Some(part) => plan.error(&part.node, error()),
        None => ArrayError::parameter("an empty request"),
    }
}

pub(crate) fn short(plan: &Plan, node: &ChunkNode) -> ArrayError {
    plan.error(node, CodecError::format("sharding_indexed", "the shard ends before an inner chunk that its index names"))
}

/// Reads with either kind of store, for an async caller. The result is owned until the last thread is done with it, so that dropping the
/// future leaves nothing behind.
pub(crate) async fn read_async(
    plan: Arc<Plan>,
    storage: Storage,
    sink: Arc<dyn Sink>,
    pool: Pool,
    gate: Arc<Gate>,
) -> Result<(), ArrayError> {
    if let AnyStore::Blocking(store) = &storage.0 {
        // The native path: all of it on the pool.
        let (store, of_pool) = (Arc::clone(store), pool.clone());
        let read = move |unwanted: &AtomicBool| read_until(&[Job { plan: &plan, store: &*store, sink: &*sink }], &of_pool, unwanted);
        return pool.compute_while_wanted(read).await;
    }
    // Chunks that are asked for or decoded: as many as keep the gate busy while others are decoded.
    let at_once = gate.requests().saturating_add(2 * pool.threads());
    let read = Remote { plan, storage, sink, pool, gate };
    let chunks = stream::iter(0..read.plan.chunk_count()).map(|chunk| read.chunk(chunk));
    chunks.buffer_unordered(at_once).try_collect().await
}

/// A read of an async store.
#[derive(Clone)]
struct Remote {
    plan: Arc<Plan>,
    storage: Storage,
    sink: Arc<dyn Sink>,
    pool: Pool,
    gate: Arc<Gate>,
}

/// How often a shard is read that is replaced each time meanwhile.
const ATTEMPTS: usize = 3;

/// Whether a value was replaced between reads that belong together.
pub(crate) fn is_replaced(error: &ArrayError) -> bool {
    matches!(error, ArrayError::Store(error) if error.kind() == StoreErrorKind::Replaced)
}

/// Says that a chunk of the grid that was replaced while it was read is to be read again, from its index, after so many attempts.
///
/// # Errors
/// When there were enough.
pub(crate) fn read_again(plan: &Plan, chunk: usize, attempts: usize) -> Result<(), ArrayError> {
    let key = plan.keys.key(&plan.cut.chunk(chunk).0)?;
    if let Some(indexes) = &plan.indexes {
        indexes.forget(&key);
    }
    if attempts < ATTEMPTS {
        return Ok(());
    }
    let message =
        format!("the value was replaced each of the {attempts} times that it was read, or the server gives one value several entity tags");
    Err(StoreError::new(StoreErrorKind::Replaced, message).with_key(&key).into())
}

impl Remote {
    async fn chunk(&self, chunk: usize) -> Result<(), ArrayError> {
        for attempts in 1.. {
            let replaced = AtomicBool::new(false);
            self.steps(self.plan.start_kept(chunk)?, &replaced).await?;
            if !replaced.into_inner() {
                break;
            }
            read_again(&self.plan, chunk, attempts)?;
        }
        Ok(())
    }

    /// Ends well where the value was `replaced` meanwhile: then when all that was begun is done, so that nothing of it comes behind what is read instead.
    fn steps<'a>(&'a self, Steps { fetches, absent }: Steps, replaced: &'a AtomicBool) -> BoxFuture<'a, Result<(), ArrayError>> {
        let fill = async {
            if absent.is_empty() {
                return Ok(());
            }
            let read = self.clone();
            let fill = move || absent.iter().try_for_each(|node| read.sink.absent(&read.plan, node));
            self.pool.compute(fill).await
        };
        let fetches = fetches.into_iter().flat_map(in_groups).map(|fetch| async {
            let next = self.fetch(fetch, replaced).await?;
            if next.fetches.is_empty() && next.absent.is_empty() { Ok(()) } else { self.steps(next, replaced).await }
        });
        try_join(fill, try_join_all(fetches)).map_ok(drop).boxed()
    }

    async fn fetch(&self, mut fetch: Fetch, replaced: &AtomicBool) -> Result<Steps, ArrayError> {
        let pass = enter(&self.plan, &self.gate, &fetch)?.await;
        if replaced.load(Ordering::Relaxed) {
            return Ok(Steps::default());
        }
        let (bytes, pass) = match ask(&self.plan, &self.storage, &mut fetch, pass).await {
            Err(error) if is_replaced(&error) => {
                replaced.store(true, Ordering::Relaxed);
                return Ok(Steps::default());
            }
            answer => answer?,
        };
        let read = self.clone();
        let work = move || {
            let steps = read.take(fetch.then, bytes);
            drop(pass);
            steps
        };
        self.pool.compute(work).await
    }

    /// Decodes an answer, on the pool.
    fn take(&self, then: Then, bytes: Option<Vec<Bytes>>) -> Result<Steps, ArrayError> {
        let (plan, sink) = (&self.plan, &self.sink);
        match then {
            Then::Index(node) => with_scratch(|scratch| plan.supply_index(&node, index_of(bytes.as_deref()), scratch)),
            Then::Chunks(parts) => {
                let decode = |part: &ChunkPart| match &bytes {
                    Some(bytes) => {
                        let encoded = bytes_of(part, bytes).ok_or_else(|| short(plan, &part.node))?;
                        with_scratch(|scratch| sink.chunk(plan, part, encoded, scratch))
                    }
                    None if part.within.is_some() => Err(vanished(plan, std::slice::from_ref(part))),
                    None => sink.absent(plan, &part.node),
                };
                match parts.as_slice() {
                    [] => Ok(Steps::default()),
                    [part] => decode(part).map(|()| Steps::default()),
                    parts => parts.par_iter().with_max_len(1).try_for_each(decode).map(|()| Steps::default()),
                }
            }
        }
    }
}

/// Cuts a fetch of many ranges into some of a few each: the store may join those of one, and the gate lets one through while others are under way.
fn in_groups(fetch: Fetch) -> Vec<Fetch> {
    const RANGES: usize = 16;
    let Fetch { key, ranges, version, then } = fetch;
    let parts = match then {
        Then::Chunks(parts) if ranges.len() > RANGES => parts,
        then => return vec![Fetch { key, ranges, version, then }],
    };
    let fetch = |ranges: &[ByteRange]| Fetch {
        key: key.clone(),
        ranges: ranges.to_vec(),
        version: version.clone(),
        then: Then::Chunks(Vec::new()),
    };
    let mut groups: Vec<Fetch> = ranges.chunks(RANGES).map(fetch).collect();
    for part in parts {
        let (group, range) = (part.range / RANGES, part.range % RANGES);
        if let Some(Fetch { then: Then::Chunks(parts), .. }) = groups.get_mut(group) {
            parts.push(ChunkPart { range, ..part });
        }
    }
    groups
}

/// How many requests the stores that read and write large values in pieces make of one of so many bytes, at a time.
pub(crate) fn requests_of(bytes: usize) -> usize {
    const PIECE: usize = 4 << 20;
    const AT_ONCE: usize = 8;
    if bytes > 2 * PIECE { bytes.div_ceil(PIECE).min(AT_ONCE) } else { 1 }
}

/// Asks an async store, when the gate lets it; the pass is for as long as somebody keeps the bytes.
pub(crate) async fn fetch_gated(
    plan: &Plan,
    storage: &Storage,
    gate: &Arc<Gate>,
    fetch: &mut Fetch,
) -> Result<(Option<Vec<Bytes>>, Pass), ArrayError> {
    let pass = enter(plan, gate, fetch)?.await;
    ask(plan, storage, fetch, pass).await
}

/// Waits for the gate to let a fetch through.
fn enter(plan: &Plan, gate: &Arc<Gate>, fetch: &Fetch) -> Result<Enter, ArrayError> {
    let known = fetch.ranges.iter().try_fold(0usize, |sum, range| sum.checked_add(usize::try_from(range.len_hint()?).ok()?));
    let expected = match (known, &fetch.then) {
        (None, Then::Chunks(parts)) => {
            let bound = parts.first().map(|part| plan.bound(&part.node)).transpose()?;
            bound.map(|bound| bound.byte_len).filter(|&len| len > 0)
        }
        (known, _) => known,
    };
    let len = |range: &ByteRange| range.len_hint().map_or(expected.unwrap_or(0), |len| usize::try_from(len).unwrap_or(usize::MAX));
    let requests = fetch.ranges.iter().map(|range| requests_of(len(range))).sum();
    Ok(gate.enter(requests, expected))
}

/// Asks a store. A shard's index is then of the version that the answer is of, and so is all that it leads to.
async fn ask(plan: &Plan, storage: &Storage, fetch: &mut Fetch, mut pass: Pass) -> Result<(Option<Vec<Bytes>>, Pass), ArrayError> {
    let bytes = if plan.chunks.levels.is_empty() {
        storage.get_ranges(&fetch.key, &fetch.ranges).await?
    } else {
        let answer = storage.get_versioned(&fetch.key, &fetch.ranges, fetch.version.as_ref()).await?;
        answer.map(|(bytes, version)| {
            if let Then::Index(node) = &mut fetch.then {
                node.version = node.version.take().or(version);
            }
            bytes
        })
    };
    pass.answered(bytes.iter().flatten().map(Bytes::len).sum());
    Ok((bytes, pass))
}
