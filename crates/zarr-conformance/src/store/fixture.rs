//! The values that stores are filled with.

use std::sync::OnceLock;

use zarr_store_api::{Bytes, StoreKey, StorePrefix};

pub(super) fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

pub(super) fn prefix(text: &str) -> StorePrefix {
    StorePrefix::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Bytes in which no stretch looks like another one.
pub(super) fn pattern(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// The length of the longest value, in bytes; of no use to who keeps lengths in 16 bits.
pub(super) const LONG: usize = 300_000;

/// A value of 1000 bytes, for ranges.
pub(super) const THOUSAND: &str = "foo/c/0/0";
/// The value of [`LONG`] bytes.
pub(super) const LONGEST: &str = "foo/c/0/1";
/// The value of no bytes.
pub(super) const EMPTY: &str = "foo/empty";
/// A key of more than ASCII, its letters composed.
pub(super) const UNICODE: &str = "température/données ❄/é";

pub(super) fn fixture() -> Vec<(StoreKey, Bytes)> {
    static FIXTURE: OnceLock<Vec<(StoreKey, Bytes)>> = OnceLock::new();
    let make = || {
        [
            ("zarr.json", 20),
            ("foo/zarr.json", 100),
            (THOUSAND, 1000),
            (LONGEST, LONG),
            ("foo/c/10/0", 1),
            (EMPTY, 0),
            ("foobar/zarr.json", 50),
            ("foo.bar/.zarray", 51),
            ("foo-bar", 52),
            (UNICODE, 53),
        ]
        .into_iter()
        .enumerate()
        .map(|(seed, (name, length))| (key(name), pattern(length, seed as u64 + 1)))
        .collect()
    };
    FIXTURE.get_or_init(make).clone()
}

pub(super) fn value_of(name: &str) -> Bytes {
    let found = fixture().into_iter().find(|(key, _)| key.as_str() == name);
    found.map_or_else(Bytes::new, |(_, value)| value)
}

/// Keys for which there is no value.
pub(super) const MISSING: &[&str] = &["nothing", "foo/nothing", "foo/c/0/2", "foo/c/0/0/0", "fo", "no/such/path", "zarr.json/x"];
