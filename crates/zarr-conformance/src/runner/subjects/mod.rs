//! What is tested: named suites that are built when they are wanted.
//!
//! To add subjects, write a function that lists them in a module here, and name it in [`all`].

mod codecs;
mod devices;
mod dlpack;
mod implementations;
mod kernels;
mod pairs;
mod stores;
mod trouble;
mod types;
mod vectors;

use std::fmt::Display;

use super::args::{Choice, Device};
use super::failure::{Failure, Result};
use super::results::Place;
use crate::Suite;

/// A subject that can be built.
pub(crate) struct Entry {
    /// The same from version to version, and unique. Parts are separated by slashes; the first is the group in which it is counted.
    pub(crate) name: String,
    pub(crate) place: Option<Place>,
    /// Those of one lane share a few processes, one after the other in each: what they need is dear to set up.
    pub(crate) lane: Option<&'static str>,
    place_of_case: Box<PlaceOfCase>,
    build: Box<dyn Fn() -> Result<Suite, Unbuilt> + Send + Sync>,
}

type PlaceOfCase = dyn Fn(&str) -> Option<Place> + Send + Sync;

/// Why there is no suite.
#[derive(Debug)]
pub(crate) enum Unbuilt {
    /// The machine has no such device. Counts as skipped, unless devices are required.
    NoDevice(String),
    /// The machine has no such thing. Counts as skipped.
    Absent(String),
    /// The implementation does not take it, and says so. Counts as skipped, too.
    NotTaken(String),
    /// It should be there. Counts as a failure.
    Broken(String),
}

impl<E: Display> From<E> for Unbuilt {
    fn from(error: E) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Entry {
    /// A subject without a place in the matrix.
    pub(crate) fn new<S: Into<Suite>>(name: impl Into<String>, build: impl Fn() -> Result<S, Unbuilt> + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            place: None,
            lane: None,
            place_of_case: Box::new(|_| None),
            build: Box::new(move || build().map(Into::into)),
        }
    }

    /// Says where all its cases stand in the matrix.
    #[must_use]
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Shares a process with others.
    #[must_use]
    pub(crate) fn in_lane(mut self, lane: &'static str) -> Self {
        self.lane = Some(lane);
        self
    }

    /// Says where a case stands in the matrix, by its id, for subjects whose cases stand in several places.
    #[must_use]
    pub(crate) fn at_by_case(mut self, place_of_case: impl Fn(&str) -> Option<Place> + Send + Sync + 'static) -> Self {
        self.place_of_case = Box::new(place_of_case);
        self
    }

    pub(crate) fn place_of_case(&self, id: &str) -> Option<Place> {
        (self.place_of_case)(id)
    }

    /// # Errors
    /// When it cannot be had, or should be there and is not.
    pub(crate) fn build(&self) -> Result<Suite, Unbuilt> {
        (self.build)()
    }
}

/// All subjects that `device` asks for.
pub(crate) fn all(device: Device) -> Vec<Entry> {
    if trouble::wanted() {
        return trouble::entries();
    }
    let mut entries = Vec::new();
    if !device.only_cuda() {
        entries.extend(codecs::entries());
        entries.extend(pairs::entries());
        entries.extend(vectors::entries());
        entries.extend(kernels::on_host());
        entries.extend(devices::on_host());
        entries.extend(dlpack::on_host());
        entries.extend(stores::entries());
        entries.extend(implementations::entries());
    }
    if let Some(ordinal) = device.cuda() {
        entries.extend(devices::on_cuda(ordinal));
        entries.extend(dlpack::on_cuda(ordinal));
        entries.extend(kernels::on_cuda(ordinal));
    }
    entries
}

/// The subjects that the command line asks for.
///
/// # Errors
/// When there are none.
pub(crate) fn chosen(choice: &Choice) -> Result<Vec<Entry>> {
    let mut entries = all(choice.device);
    if !choice.subjects.is_empty() {
        entries.retain(|entry| choice.subjects.iter().any(|text| entry.name.contains(text.as_str())));
    }
    if entries.is_empty() {
        return Err(Failure::usage("no subject has such a name").hint("`list` shows all; --device decides which there are"));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let entries = all(Device::Auto);
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), entries.len());
    }

    #[test]
    fn what_needs_no_device_can_be_built() {
        for entry in all(Device::Cpu) {
            let suite = match entry.build() {
                Ok(suite) => suite,
                Err(Unbuilt::NotTaken(_) | Unbuilt::Absent(_)) => continue,
                Err(error) => panic!("{}: {error:?}", entry.name),
            };
            let ids: BTreeSet<&str> = suite.cases().iter().map(crate::SuiteCase::id).collect();
            assert_eq!(ids.len(), suite.cases().len(), "{}: ids of cases are unique", entry.name);
        }
    }
}
