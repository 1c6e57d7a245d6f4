//! The laws of stores: what every implementation of `zarr-store-api` must do.
//!
//! A store that can be written to is held to them with a line in a test:
//!
//! ```
//! # #[derive(Debug)] struct MyStore;
//! # use zarr_store_api::*;
//! # impl ReadableStore for MyStore {
//! #     fn get(&self, _: &StoreKey, _: ByteRange) -> Result<Option<Bytes>, StoreError> { Ok(None) }
//! #     fn size(&self, _: &StoreKey) -> Result<Option<u64>, StoreError> { Ok(None) }
//! # }
//! # impl Store for MyStore { fn name(&self) -> String { "mine".to_owned() } }
//! use zarr_conformance::store::StoreUnderTest;
//! use zarr_store_api::AnyStore;
//!
//! # fn test() {
//! zarr_conformance::assert_conforms(StoreUnderTest::writable("mine", || AnyStore::blocking(MyStore)));
//! # }
//! ```
//!
//! [`StoreUnderTest::filled`] takes stores whose values are put there by other means. What a store cannot do is declared:
//! [`not_listable`](StoreUnderTest::not_listable), [`without`](StoreUnderTest::without). Both forms of a store, blocking and async, are held to the
//! same laws; what only one of them has (pieces and readers, versions and futures that can be dropped) is unsupported for the other.
//!
//! A wrapper around stores has laws of its own besides: [`WrapperUnderTest`].

mod blocking;
mod buffers;
mod cancel;
mod concurrent;
mod face;
mod fixture;
mod forwarding;
mod list;
mod many;
mod ranges;
mod read;
mod recorder;
mod versions;
mod write;

use std::fmt;
use std::sync::{Arc, OnceLock};

use zarr_store_api::{AnyStore, Bytes, StoreError, StoreErrorKind, StoreKey};

use crate::suite::{Broken, Case, Subject, Suite, Trial};
use face::{Face, cannot};
use fixture::fixture;
pub use forwarding::{WrapperSubject, WrapperUnderTest, wrapper_cases};

/// A store to be checked.
pub trait StoreSubject: Subject {
    /// A store of its own, with these values and no others. Stores that can be written to may be filled by it.
    ///
    /// # Errors
    /// When that fails.
    fn open(&self, values: &[(StoreKey, Bytes)]) -> Result<AnyStore, StoreError>;

    /// Runs a check: within an async runtime, say, for a store whose futures need one.
    fn within(&self, check: &mut dyn FnMut()) {
        check();
    }
}

type Within = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// A store as it comes, with what it does not support.
#[derive(Clone)]
pub struct StoreUnderTest {
    name: String,
    maker: Maker,
    within: Within,
    declared: Vec<String>,
    unsupported: OnceLock<Vec<String>>,
}

type Values = [(StoreKey, Bytes)];

#[derive(Clone)]
enum Maker {
    Empty(Arc<dyn Fn() -> AnyStore + Send + Sync>),
    Filled(Arc<dyn Fn(&Values) -> AnyStore + Send + Sync>),
}

impl fmt::Debug for StoreUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreUnderTest").field("name", &self.name).field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl StoreUnderTest {
    /// A store that claims to support everything; `make` gives an empty one each time.
    pub fn writable(name: impl Into<String>, make: impl Fn() -> AnyStore + Send + Sync + 'static) -> Self {
        Self::with_maker(name.into(), Maker::Empty(Arc::new(make)), &[])
    }

    /// A store that cannot be written to; `make` gives one with just the given values each time.
    pub fn filled(name: impl Into<String>, make: impl Fn(&[(StoreKey, Bytes)]) -> AnyStore + Send + Sync + 'static) -> Self {
        Self::with_maker(name.into(), Maker::Filled(Arc::new(make)), &WRITING)
    }

    fn with_maker(name: String, maker: Maker, declared: &[&str]) -> Self {
        let declared = declared.iter().map(|&start| start.to_owned()).collect();
        Self { name, maker, within: Arc::new(|check| check()), declared, unsupported: OnceLock::new() }
    }

    /// Declares that the store cannot be listed.
    #[must_use]
    pub fn not_listable(mut self) -> Self {
        self.declared.extend(LISTING.map(str::to_owned));
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.declared.push(start.into());
        self
    }

    /// Runs the checks, and makes the stores, in `run`: a store whose futures need a runtime enters it there.
    #[must_use]
    pub fn within(mut self, run: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        self.within = Arc::new(run);
        self
    }

    /// What the form of the store does not have.
    fn foreign(&self) -> &'static [&'static str] {
        let mut foreign: &[&str] = &[];
        (self.within)(&mut || {
            foreign = match self.open(&[]) {
                Ok(AnyStore::Async(_)) => &BLOCKING_ONLY,
                Ok(AnyStore::Blocking(_)) => &ASYNC_ONLY,
                Err(_) => &[],
            };
        });
        foreign
    }
}

/// What starts the ids of cases that write.
const WRITING: [&str; 2] = ["store/write", "store/cancel/write"];
/// What starts the ids of cases that list.
const LISTING: [&str; 2] = ["store/list/", "store/write-then-list/"];
/// Cases for methods that only the blocking form has.
const BLOCKING_ONLY: [&str; 4] = ["store/read/pieces", "store/read/reader", "store/write/made", "store/write/version"];
/// Cases for futures, and for methods that only the async form has.
const ASYNC_ONLY: [&str; 3] = ["store/cancel/", "store/read/one-version", "store/write/one-version"];

impl Subject for StoreUnderTest {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unsupported(&self) -> &[String] {
        self.unsupported.get_or_init(|| {
            let foreign = self.foreign().iter().map(|&start| start.to_owned());
            self.declared.iter().cloned().chain(foreign).collect()
        })
    }
}

impl StoreSubject for StoreUnderTest {
    fn open(&self, values: &[(StoreKey, Bytes)]) -> Result<AnyStore, StoreError> {
        match &self.maker {
            Maker::Filled(make) => Ok(make(values)),
            Maker::Empty(make) => {
                let face = Face(make());
                values.iter().try_for_each(|(key, value)| face.set(key, value.clone()))?;
                Ok(face.0)
            }
        }
    }

    fn within(&self, check: &mut dyn FnMut()) {
        (self.within)(check);
    }
}

impl From<StoreUnderTest> for Suite {
    fn from(subject: StoreUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn StoreSubject>, cases())
    }
}

/// All cases for stores.
pub fn cases() -> Vec<Case<dyn StoreSubject>> {
    let mut cases = read::cases();
    cases.extend(ranges::cases());
    cases.extend(many::cases());
    cases.extend(buffers::cases());
    cases.extend(blocking::cases());
    cases.extend(list::cases());
    cases.extend(write::cases());
    cases.extend(concurrent::cases());
    cases.extend(cancel::cases());
    cases.extend(versions::cases());
    cases
}

type StoreCase = Case<dyn StoreSubject>;

/// A case on a store with the values of the fixture.
fn on_filled(id: &str, says: &'static str, check: fn(&Face) -> Result<(), Broken>) -> StoreCase {
    case(id, says, fixture, check)
}

/// A case on an empty store that can be written to.
fn on_empty(id: &str, says: &'static str, check: fn(&Face) -> Result<(), Broken>) -> StoreCase {
    case(id, says, Vec::new, move |face| if face.0.is_writable() { check(face) } else { Err(cannot("written to").into()) })
}

fn case(
    id: &str,
    says: &'static str,
    values: fn() -> Vec<(StoreKey, Bytes)>,
    check: impl Fn(&Face) -> Result<(), Broken> + Send + Sync + 'static,
) -> StoreCase {
    Case::new(format!("store/{id}"), says, move |subject: &(dyn StoreSubject + 'static), _: &Trial| {
        let mut result = Err(Broken::Failed("the subject did not run the check".into()));
        subject.within(&mut || result = subject.open(&values()).map_err(Broken::from).and_then(|store| check(&Face(store))));
        result
    })
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Unsupported | StoreErrorKind::ReadOnly => Self::Unsupported(error.to_string()),
            _ => Self::Failed(format!("unexpected error: {error}")),
        }
    }
}
