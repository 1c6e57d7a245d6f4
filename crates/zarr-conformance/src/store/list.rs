//! The laws of listing.

use zarr_store_api::{ByteRange, Listing, StoreKey, StorePrefix};

use super::face::Face;
use super::fixture::{fixture, key, pattern, prefix};
use super::{StoreCase, on_empty, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("list/all", "all keys are listed, those of empty values too, sorted by their bytes", all),
        on_filled("list/siblings", "what only begins with the same letters is not below a prefix", siblings),
        on_filled("list/dir", "one level lists its keys and the prefixes below it, each once, sorted", dir),
        on_filled("list/missing", "a prefix without keys is empty, and a key is no prefix", missing),
        on_empty("write-then-list/written", "a write is seen by every later listing", written),
        on_empty("write-then-list/erased", "what is erased is in no later listing, nor is a prefix that it leaves without keys", erased),
    ]
}

pub(super) fn names<T: AsRef<str>>(keys: &[T]) -> Vec<&str> {
    keys.iter().map(AsRef::as_ref).collect()
}

fn all(store: &Face) -> Result<(), Broken> {
    let mut want: Vec<StoreKey> = fixture().into_iter().map(|(key, _)| key).collect();
    want.sort_unstable();
    let listed = store.list(&StorePrefix::root())?;
    ensure!(listed == want, "the store lists {:?}", names(&listed));
    Ok(())
}

fn siblings(store: &Face) -> Result<(), Broken> {
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
        ensure!(names(&listed) == want, "below `{below}/`: {:?}", names(&listed));
    }
    Ok(())
}

fn dir(store: &Face) -> Result<(), Broken> {
    for (below, keys, prefixes) in [
        ("", &["foo-bar", "zarr.json"][..], &["foo.bar/", "foo/", "foobar/", "température/"][..]),
        ("foo", &["foo/empty", "foo/zarr.json"], &["foo/c/"]),
        ("foo/c", &[], &["foo/c/0/", "foo/c/10/"]),
        ("foo/c/0", &["foo/c/0/0", "foo/c/0/1"], &[]),
    ] {
        let listed = store.list_dir(&prefix(below))?;
        ensure!(names(&listed.keys) == keys, "keys at `{below}`: {:?}", names(&listed.keys));
        ensure!(names(&listed.prefixes) == prefixes, "prefixes at `{below}`: {:?}", names(&listed.prefixes));
    }
    Ok(())
}

fn missing(store: &Face) -> Result<(), Broken> {
    for below in ["nothing", "foo/nothing", "no/such/path", "zarr.json", "foo/empty"] {
        let listed = store.list(&prefix(below))?;
        ensure!(listed.is_empty(), "below `{below}/`: {:?}", names(&listed));
        let listed = store.list_dir(&prefix(below))?;
        ensure!(listed == Listing::default(), "at `{below}/`: {listed:?}");
    }
    Ok(())
}

/// What is listed at each level, and in all.
fn listings(store: &Face) -> Result<(Vec<String>, Listing, Listing), Broken> {
    let all = store.list(&StorePrefix::root())?.into_iter().map(String::from).collect();
    Ok((all, store.list_dir(&StorePrefix::root())?, store.list_dir(&prefix("group"))?))
}

fn written(store: &Face) -> Result<(), Broken> {
    let (all, root, group) = listings(store)?;
    ensure!(all.is_empty() && root == Listing::default() && group == root, "a new store lists {all:?}, {root:?}");
    let mut want = Vec::new();
    for (name, length) in [("group/b", 3), ("group/a/0", 2), ("top", 5), ("group/a/1", 7)] {
        store.set(&key(name), pattern(length, 1))?;
        want.push(name.to_owned());
        want.sort();
        let (all, ..) = listings(store)?;
        ensure!(all == want, "once `{name}` is written, the store lists {all:?}");
    }
    let (_, root, group) = listings(store)?;
    ensure!(names(&root.keys) == ["top"] && names(&root.prefixes) == ["group/"], "once all is written, the root lists {root:?}");
    ensure!(names(&group.keys) == ["group/b"] && names(&group.prefixes) == ["group/a/"], "once all is written, `group/` lists {group:?}");
    Ok(())
}

fn erased(store: &Face) -> Result<(), Broken> {
    for name in ["group/a/0", "group/a/1", "group/b", "other/c", "top"] {
        store.set(&key(name), pattern(10, 1))?;
    }
    for (name, left) in [
        ("group/a/1", &["group/a/0", "group/b", "other/c", "top"][..]),
        ("group/a/0", &["group/b", "other/c", "top"]),
        ("other/c", &["group/b", "top"]),
    ] {
        store.erase(&key(name))?;
        ensure!(store.get(&key(name), ByteRange::All)?.is_none(), "`{name}` is erased, and has a value");
        let (all, ..) = listings(store)?;
        ensure!(all == left, "once `{name}` is erased, the store lists {all:?}");
    }
    let (_, root, group) = listings(store)?;
    ensure!(names(&root.prefixes) == ["group/"], "prefixes without keys are listed: {:?}", names(&root.prefixes));
    ensure!(group.prefixes.is_empty(), "prefixes without keys are listed: {:?}", names(&group.prefixes));
    Ok(())
}
