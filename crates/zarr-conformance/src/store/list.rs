//! The laws of listing.

use zarr_store_api::{Listing, StoreKey, StorePrefix};

use super::face::Face;
use super::{Broken, fixture, prefix};

pub(super) fn names<T: AsRef<str>>(keys: &[T]) -> Vec<&str> {
    keys.iter().map(AsRef::as_ref).collect()
}

pub(super) fn list_all(store: &Face) -> Result<(), Broken> {
    let mut want: Vec<StoreKey> = fixture().into_iter().map(|(key, _)| key).collect();
    want.sort_unstable();
    let listed = store.list(&StorePrefix::root())?;
    require!(listed == want, "the store lists {:?}", names(&listed));
    Ok(())
}

pub(super) fn list_siblings(store: &Face) -> Result<(), Broken> {
    for (below, want) in [
        ("foo", &["foo/c/0/0", "foo/c/0/1", "foo/c/10/0", "foo/empty", "foo/zarr.json"][..]),
        ("foobar", &["foobar/zarr.json"]),
        ("foo/c", &["foo/c/0/0", "foo/c/0/1", "foo/c/10/0"]),
        ("foo/c/1", &[]),
        ("fo", &[]),
        ("foo-bar", &[]),
        ("température", &["température/données ❄/é"]),
    ] {
        let listed = store.list(&prefix(below))?;
        require!(names(&listed) == want, "below `{below}/`: {:?}", names(&listed));
    }
    Ok(())
}

pub(super) fn list_dir(store: &Face) -> Result<(), Broken> {
    for (below, keys, prefixes) in [
        ("", &["foo-bar", "zarr.json"][..], &["foo.bar/", "foo/", "foobar/", "température/"][..]),
        ("foo", &["foo/empty", "foo/zarr.json"], &["foo/c/"]),
        ("foo/c", &[], &["foo/c/0/", "foo/c/10/"]),
        ("foo/c/0", &["foo/c/0/0", "foo/c/0/1"], &[]),
    ] {
        let listed = store.list_dir(&prefix(below))?;
        require!(names(&listed.keys) == keys, "keys at `{below}`: {:?}", names(&listed.keys));
        require!(names(&listed.prefixes) == prefixes, "prefixes at `{below}`: {:?}", names(&listed.prefixes));
    }
    Ok(())
}

pub(super) fn list_missing(store: &Face) -> Result<(), Broken> {
    for below in ["nothing", "foo/nothing", "no/such/path", "zarr.json", "foo/empty"] {
        let listed = store.list(&prefix(below))?;
        require!(listed.is_empty(), "below `{below}/`: {:?}", names(&listed));
        let listed = store.list_dir(&prefix(below))?;
        require!(listed == Listing::default(), "at `{below}/`: {listed:?}");
    }
    Ok(())
}
