//! The laws of stores: what every implementation of `zarr-store-api` must do.
//!
//! A store is held to them with a line in a test:
//!
//! ```
//! # #[derive(Debug)] struct MyStore;
//! # use zarr_store_api::*;
//! # impl ReadableStore for MyStore {
//! #     fn get(&self, _: &StoreKey, _: ByteRange) -> Result<Option<Bytes>, StoreError> { Ok(None) }
//! #     fn size(&self, _: &StoreKey) -> Result<Option<u64>, StoreError> { Ok(None) }
//! # }
//! # impl Store for MyStore { fn name(&self) -> String { "mine".to_owned() } }
//! use zarr_conformance::store;
//! use zarr_store_api::AnyStore;
//!
//! let outcomes = store::check_store(|| AnyStore::blocking(MyStore));
//! # assert!(outcomes.iter().all(|outcome| matches!(outcome.verdict, store::Verdict::Skipped(_))));
//! # if false {
//! store::assert_held(&outcomes);
//! # }
//! ```
//!
//! [`check_store`] takes stores that can be written to; [`check_filled_store`] takes those that
//! cannot, and whose values are put there by other means. Both forms of a store, blocking and async,
//! are held to the same laws. Stores whose futures need a runtime are checked within it
//! (`let _entered = runtime.enter();`).

/// Ends a check unless something holds.
macro_rules! require {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(Broken(format!($($message)+)));
        }
    };
}

mod buffers;
mod face;
mod forwarding;
mod list;
mod read;
mod recorder;
mod write;

use std::fmt;

use zarr_buffer_api::BufferError;
use zarr_store_api::{AnyStore, Bytes, StoreError, StoreKey, StorePrefix};

use face::Face;
pub use forwarding::check_forwarding;

/// What a store must be able to do for a law to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// To be read.
    Reading,
    /// To be listed.
    Listing,
    /// To be written to.
    Writing,
    /// To be written to and listed.
    WritingAndListing,
}

/// One law.
#[derive(Clone, Copy)]
pub struct Law {
    /// What it is called; does not change once published.
    pub id: &'static str,
    /// What it says.
    pub what: &'static str,
    /// What the store must be able to do.
    pub needs: Needs,
    check: fn(&Face) -> Result<(), Broken>,
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

/// What came of holding a store to a law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store keeps it.
    Held,
    /// It does not apply, and why.
    Skipped(String),
    /// The store breaks it, and how.
    Broken(String),
}

/// What came of one law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The law.
    pub id: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

/// Holds a store that can be written to to every law; `make` gives an empty one each time.
/// Laws that need what the store cannot do are skipped.
pub fn check_store(mut make: impl FnMut() -> AnyStore) -> Vec<Outcome> {
    let judge = |law: &Law| {
        let face = Face(make());
        if matches!(law.needs, Needs::Reading | Needs::Listing) {
            if !face.0.is_writable() {
                return Verdict::Skipped("the store cannot be filled".to_owned());
            }
            for (key, value) in fixture() {
                if let Err(error) = face.set(&key, value) {
                    return Verdict::Broken(format!("the store cannot be filled: {error}"));
                }
            }
        }
        apply(law, &face)
    };
    LAWS.iter().map(outcome(judge)).collect()
}

/// Holds a store that cannot be written to to the laws of reading and listing; `make` gives one with
/// the given values each time.
pub fn check_filled_store(mut make: impl FnMut(&[(StoreKey, Bytes)]) -> AnyStore) -> Vec<Outcome> {
    let judge = |law: &Law| match law.needs {
        Needs::Reading | Needs::Listing => apply(law, &Face(make(&fixture()))),
        _ => Verdict::Skipped("the store cannot be written to".to_owned()),
    };
    LAWS.iter().map(outcome(judge)).collect()
}

fn outcome(mut judge: impl FnMut(&Law) -> Verdict) -> impl FnMut(&Law) -> Outcome {
    move |law| Outcome { id: law.id, verdict: judge(law) }
}

fn apply(law: &Law, face: &Face) -> Verdict {
    let (write, list) = match law.needs {
        Needs::Reading => (false, false),
        Needs::Listing => (false, true),
        Needs::Writing => (true, false),
        Needs::WritingAndListing => (true, true),
    };
    if write && !face.0.is_writable() {
        return Verdict::Skipped("the store cannot be written to".to_owned());
    }
    if list && !face.0.is_listable() {
        return Verdict::Skipped("the store cannot be listed".to_owned());
    }
    match (law.check)(face) {
        Ok(()) => Verdict::Held,
        Err(Broken(how)) => Verdict::Broken(how),
    }
}

/// Panics if a law is broken, with all that are.
///
/// # Panics
///
/// As said; that is what it is for, in tests.
pub fn assert_held(outcomes: &[Outcome]) {
    let broken: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| match &outcome.verdict {
            Verdict::Broken(how) => Some(format!("{}: {how}", outcome.id)),
            _ => None,
        })
        .collect();
    assert!(broken.is_empty(), "the store breaks {} of {} laws:\n{}", broken.len(), outcomes.len(), broken.join("\n"));
}

/// Every law.
#[must_use]
pub fn laws() -> &'static [Law] {
    LAWS
}

const LAWS: &[Law] = &[
    Law { id: "read/whole", what: "a value is read as it was written", needs: Needs::Reading, check: read::read_whole },
    Law { id: "read/size", what: "the size is that of the value", needs: Needs::Reading, check: read::read_size },
    Law {
        id: "read/ranges",
        what: "ranges are cut off at the end of the value; suffixes longer than the value are the value; ranges may be empty",
        needs: Needs::Reading,
        check: read::read_ranges,
    },
    Law {
        id: "read/out-of-range",
        what: "a range that begins past the end, or ends before it begins, is an error of that kind",
        needs: Needs::Reading,
        check: read::read_out_of_range,
    },
    Law {
        id: "read/missing",
        what: "a key that is not there is `None`, whatever the range",
        needs: Needs::Reading,
        check: read::read_missing,
    },
    Law {
        id: "read/prefix-is-no-key",
        what: "what only keys lie below is no key itself",
        needs: Needs::Reading,
        check: read::read_prefix_is_no_key,
    },
    Law { id: "read/empty-value", what: "a value may be empty", needs: Needs::Reading, check: read::read_empty_value },
    Law {
        id: "read/many-ranges",
        what: "several ranges come in the order they were asked for, overlapping or not",
        needs: Needs::Reading,
        check: read::read_many_ranges,
    },
    Law {
        id: "read/many-ranges-out-of-range",
        what: "one bad range among several is an error",
        needs: Needs::Reading,
        check: read::read_many_ranges_out_of_range,
    },
    Law {
        id: "read/into",
        what: "reads into the caller's memory fill the front and leave the rest alone",
        needs: Needs::Reading,
        check: read::read_into,
    },
    Law {
        id: "read/into-too-short",
        what: "a destination shorter than the range is an error, not a cut",
        needs: Needs::Reading,
        check: read::read_into_too_short,
    },
    Law {
        id: "read/into-buffer",
        what: "reads into a buffer, on any device, fill the front and leave the rest alone, without a wait for the device",
        needs: Needs::Reading,
        check: buffers::read_into_buffer,
    },
    Law {
        id: "read/into-buffer-missing",
        what: "a read of a key that is not there leaves the buffer alone",
        needs: Needs::Reading,
        check: buffers::read_into_buffer_missing,
    },
    Law {
        id: "read/into-buffer-refused",
        what: "a buffer shorter than the range, or held by others, and a range past the end are errors",
        needs: Needs::Reading,
        check: buffers::read_into_buffer_refused,
    },
    Law { id: "read/unicode", what: "keys are any text", needs: Needs::Reading, check: read::read_unicode },
    Law { id: "read/concurrent", what: "many may read at once", needs: Needs::Reading, check: read::read_concurrent },
    Law { id: "read/cancel", what: "a read that is dropped does no harm", needs: Needs::Reading, check: read::read_cancel },
    Law { id: "list/all", what: "all keys are listed, sorted by their bytes", needs: Needs::Listing, check: list::list_all },
    Law {
        id: "list/siblings",
        what: "what only begins with the same letters is not below a prefix",
        needs: Needs::Listing,
        check: list::list_siblings,
    },
    Law { id: "list/dir", what: "one level lists keys and prefixes, each once, sorted", needs: Needs::Listing, check: list::list_dir },
    Law { id: "list/missing", what: "a prefix without keys is empty", needs: Needs::Listing, check: list::list_missing },
    Law {
        id: "write/read-after-write",
        what: "a write is seen by every later read, also when it replaces a longer value",
        needs: Needs::Writing,
        check: write::write_read_after_write,
    },
    Law {
        id: "write/pieces",
        what: "a value in pieces is the pieces one after another",
        needs: Needs::Writing,
        check: write::write_pieces,
    },
    Law { id: "write/erase", what: "an erased key is gone, and can be erased again", needs: Needs::Writing, check: write::write_erase },
    Law {
        id: "write/erase-prefix",
        what: "erasing a prefix erases what is below it and nothing else",
        needs: Needs::WritingAndListing,
        check: write::write_erase_prefix,
    },
    Law {
        id: "write/erase-root",
        what: "erasing the root empties the store, which stays usable",
        needs: Needs::WritingAndListing,
        check: write::write_erase_root,
    },
    Law { id: "write/list", what: "a write is seen by every later listing", needs: Needs::WritingAndListing, check: write::write_list },
    Law {
        id: "write/atomic",
        what: "readers see one value or another while writers replace it, never a mixture",
        needs: Needs::Writing,
        check: write::write_atomic,
    },
    Law {
        id: "write/concurrent",
        what: "many may write different keys at once, below prefixes that come and go",
        needs: Needs::Writing,
        check: write::write_concurrent,
    },
    Law {
        id: "write/cancel",
        what: "a write that is dropped leaves the old value or the new one, whole",
        needs: Needs::Writing,
        check: write::write_cancel,
    },
];

/// How a law is broken.
struct Broken(String);

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self(format!("unexpected error: {error}"))
    }
}

impl From<BufferError> for Broken {
    fn from(error: BufferError) -> Self {
        Self(format!("unexpected error of a buffer: {error}"))
    }
}

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

fn prefix(text: &str) -> StorePrefix {
    StorePrefix::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Bytes in which no stretch looks like another one.
fn pattern(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

const LONG: usize = 300_000;

fn fixture() -> Vec<(StoreKey, Bytes)> {
    [
        ("zarr.json", 20),
        ("foo/zarr.json", 100),
        ("foo/c/0/0", 1000),
        ("foo/c/0/1", LONG),
        ("foo/c/10/0", 1),
        ("foo/empty", 0),
        ("foobar/zarr.json", 50),
        ("foo.bar/.zarray", 51),
        ("foo-bar", 52),
        ("température/données ❄/é", 53),
    ]
    .into_iter()
    .enumerate()
    .map(|(seed, (name, length))| (key(name), pattern(length, seed as u64 + 1)))
    .collect()
}

fn value_of(name: &str) -> Bytes {
    let found = fixture().into_iter().find(|(key, _)| key.as_str() == name);
    found.map_or_else(Bytes::new, |(_, value)| value)
}
