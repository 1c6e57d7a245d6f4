//! The laws of writing, one call after another.

use zarr_store_api::{ByteRange, Bytes, StoreErrorKind, StorePrefix};

use super::face::{Face, show};
use super::fixture::{key, pattern, prefix};
use super::{StoreCase, on_empty};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_empty("write/read-after-write", "a write is seen by every later read, also when it replaces a longer value", read_after_write),
        on_empty("write/pieces", "a value in pieces is the pieces one after another, however many", pieces),
        on_empty(
            "write/odd-keys",
            "a key is a name and no path or pattern: odd ones are kept as they are, or refused as invalid",
            odd_keys,
        ),
        on_empty("write/erase", "an erased key is gone, can be erased again and written again", erase),
        on_empty("write/erase-prefix", "erasing a prefix erases what is below it and nothing else", erase_prefix),
        on_empty("write/erase-root", "erasing the root empties the store, which stays usable", erase_root),
    ]
}

fn read_after_write(store: &Face) -> Result<(), Broken> {
    let key = key("a/b/c");
    for (seed, length) in [1000, 10, 0, 5000, 1].into_iter().enumerate() {
        let value = pattern(length, seed as u64 + 1);
        store.set(&key, value.clone())?;
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read.as_ref() == Some(&value), "{length} bytes written, reads {}", show(&read));
        let mut dst = vec![0xaa; length];
        let read = store.get_into(&key, ByteRange::All, &mut dst)?;
        ensure!(read == Some(length) && dst == value, "{length} bytes written, {read:?} others are read into memory");
        ensure!(store.size(&key)? == Some(length as u64), "{length} bytes written, another size");
    }
    Ok(())
}

fn pieces(store: &Face) -> Result<(), Broken> {
    let whole = pattern(100_000, 9);
    for (index, cuts) in [&[][..], &[0], &[100_000], &[1, 1, 2, 50_000, 99_999], &[30_000; 3]].into_iter().enumerate() {
        let key = key(&format!("pieces/{index}"));
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([100_000]) {
            parts.push(whole.slice(from..cut));
            from = cut;
        }
        store.set_vectored(&key, parts)?;
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read.as_ref() == Some(&whole), "cut at {cuts:?}: reads {}", show(&read));
    }
    let (many, none) = (key("pieces/many"), key("pieces/none"));
    store.set_vectored(&many, whole.chunks(20).map(Bytes::copy_from_slice).collect())?;
    let read = store.get(&many, ByteRange::All)?;
    ensure!(read == Some(whole), "5000 pieces read {}", show(&read));
    store.set_vectored(&none, Vec::new())?;
    ensure!(store.size(&none)? == Some(0), "no pieces at all are not an empty value");
    Ok(())
}

/// Keys that mean something else to one medium or another.
const ODD: [&str; 16] = [
    "odd/%2E%2E/a",
    "odd/a%2Fb",
    "odd/a\\..\\b",
    "odd/..a",
    "odd/a..",
    "odd/.../a",
    "odd/a b",
    "odd/ a",
    "odd/~",
    "odd/$HOME",
    "odd/#?*",
    "odd/[x]{y}",
    "odd/a:b",
    "odd/-rf",
    "odd/a\nb",
    "odd/.hidden",
];

fn odd_keys(store: &Face) -> Result<(), Broken> {
    // What an odd key could be taken for.
    let plain = ["a", "b", "odd/b", "odd/a/b", "odd/hidden", "odd/x/a"];
    let plain: Vec<_> = plain.iter().zip(100..).map(|(name, seed)| (key(name), pattern(10, seed))).collect();
    plain.iter().try_for_each(|(key, value)| store.set(key, value.clone()))?;
    let mut kept = Vec::new();
    for (index, name) in ODD.iter().enumerate() {
        match store.set(&key(name), pattern(20, index as u64 + 1)) {
            Ok(()) => kept.push((name, pattern(20, index as u64 + 1))),
            Err(error) if error.kind() == StoreErrorKind::InvalidKey => {}
            Err(error) => return Err(Broken::Failed(format!("`{}` is refused as no invalid key: {error}", name.escape_debug()))),
        }
    }
    for (name, value) in kept {
        let read = store.get(&key(name), ByteRange::All)?;
        ensure!(read.as_ref() == Some(&value), "`{}` reads {}", name.escape_debug(), show(&read));
    }
    for (key, value) in plain {
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read == Some(value), "once odd keys are written, `{key}` reads {}", show(&read));
    }
    Ok(())
}

fn erase(store: &Face) -> Result<(), Broken> {
    let (one, other) = (key("a/b/one"), key("a/b/other"));
    store.erase(&one)?;
    store.set(&one, pattern(10, 1))?;
    store.set(&other, pattern(10, 2))?;
    store.erase(&one)?;
    store.erase(&one)?;
    store.erase(&key("a/b"))?;
    store.erase(&key("a/b/other/below"))?;
    ensure!(store.get(&one, ByteRange::All)?.is_none(), "an erased key has a value");
    ensure!(store.size(&other)? == Some(10), "erasing one key erased another");
    store.set(&one, pattern(20, 3))?;
    ensure!(store.size(&one)? == Some(20), "an erased key cannot be written again");
    Ok(())
}

/// Keys below prefixes that begin alike.
const TREE: [&str; 7] = ["foo/c/0/0", "foo/c/0/1", "foo/c/10/0", "foo/zarr.json", "foo-bar", "foo.bar/.zarray", "foobar/zarr.json"];

fn plant(store: &Face) -> Result<(), Broken> {
    TREE.iter().try_for_each(|name| Ok(store.set(&key(name), pattern(30, 1))?))
}

/// The keys of [`TREE`] that have values.
fn standing(store: &Face) -> Result<Vec<&'static str>, Broken> {
    let mut standing = Vec::new();
    for name in TREE {
        if store.size(&key(name))?.is_some() {
            standing.push(name);
        }
    }
    Ok(standing)
}

fn erase_prefix(store: &Face) -> Result<(), Broken> {
    plant(store)?;
    for below in ["nothing", "fo", "foo-bar", "foo/c/1", "foo/zarr.json"] {
        store.erase_prefix(&prefix(below))?;
        ensure!(standing(store)? == TREE, "erasing `{below}/`, where nothing is, leaves {:?}", standing(store)?);
    }
    for (below, left) in [("foo/c/0", &TREE[2..]), ("foo", &TREE[4..])] {
        store.erase_prefix(&prefix(below))?;
        ensure!(standing(store)? == left, "erasing `{below}/` leaves {:?}", standing(store)?);
    }
    store.set(&key("foo/c/0/0"), pattern(3, 1))?;
    ensure!(store.size(&key("foo/c/0/0"))? == Some(3), "an erased prefix cannot be written to again");
    Ok(())
}

fn erase_root(store: &Face) -> Result<(), Broken> {
    store.erase_prefix(&StorePrefix::root())?;
    plant(store)?;
    store.erase_prefix(&StorePrefix::root())?;
    ensure!(standing(store)?.is_empty(), "left are {:?}", standing(store)?);
    plant(store)?;
    ensure!(standing(store)? == TREE, "an emptied store, filled again, has {:?}", standing(store)?);
    Ok(())
}
