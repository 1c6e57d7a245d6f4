//! The laws of writing.

use std::thread;

use zarr_store_api::{AnyStore, ByteRange, Bytes, StorePrefix};

use super::face::{Face, Job, Op, poll_and_drop, show};
use super::list::{list_all, names};
use super::read::read_whole;
use super::{Broken, fixture, key, pattern, prefix};

pub(super) fn write_read_after_write(store: &Face) -> Result<(), Broken> {
    let key = key("a/b/c");
    for (seed, length) in [1000, 10, 0, 5000, 1].into_iter().enumerate() {
        let value = pattern(length, seed as u64);
        store.set(&key, value.clone())?;
        let read = store.get(&key, ByteRange::All)?;
        require!(read.as_ref() == Some(&value), "{length} bytes written, reads {}", show(&read));
        require!(store.size(&key)? == Some(length as u64), "{length} bytes written, another size");
    }
    Ok(())
}

pub(super) fn write_pieces(store: &Face) -> Result<(), Broken> {
    let key = key("a/pieces");
    let whole = pattern(100_000, 9);
    for cuts in [&[][..], &[0], &[100_000], &[1, 1, 2, 50_000, 99_999], &[30_000; 3]] {
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([100_000]) {
            parts.push(whole.slice(from..cut));
            from = cut;
        }
        store.set_vectored(&key, parts)?;
        let read = store.get(&key, ByteRange::All)?;
        require!(read.as_ref() == Some(&whole), "cut at {cuts:?}: reads {}", show(&read));
    }
    let many: Vec<Bytes> = whole.chunks(20).map(Bytes::copy_from_slice).collect();
    store.set_vectored(&key, many)?;
    require!(store.get(&key, ByteRange::All)? == Some(whole), "5000 pieces read as something else");
    store.set_vectored(&key, Vec::new())?;
    require!(store.size(&key)? == Some(0), "no pieces at all are not an empty value");
    Ok(())
}

pub(super) fn write_erase(store: &Face) -> Result<(), Broken> {
    let (one, other) = (key("a/b/one"), key("a/b/other"));
    store.erase(&one)?;
    store.set(&one, pattern(10, 1))?;
    store.set(&other, pattern(10, 2))?;
    store.erase(&one)?;
    store.erase(&one)?;
    store.erase(&key("a/b"))?;
    store.erase(&key("a/b/other/below"))?;
    require!(store.get(&one, ByteRange::All)?.is_none(), "an erased key has a value");
    require!(store.size(&other)? == Some(10), "erasing one key erased another");
    store.set(&one, pattern(20, 3))?;
    require!(store.size(&one)? == Some(20), "an erased key cannot be written again");
    Ok(())
}

pub(super) fn fill(store: &Face) -> Result<(), Broken> {
    for (key, value) in fixture() {
        store.set(&key, value)?;
    }
    Ok(())
}

pub(super) fn write_erase_prefix(store: &Face) -> Result<(), Broken> {
    fill(store)?;
    for below in ["nothing", "fo", "zarr.json", "foo/c/1"] {
        store.erase_prefix(&prefix(below))?;
    }
    require!(store.list(&StorePrefix::root())?.len() == fixture().len(), "erasing what is not there erased something");
    for (below, left) in [("foo/c/0", 8), ("foo", 5), ("température", 4)] {
        store.erase_prefix(&prefix(below))?;
        let listed = store.list(&StorePrefix::root())?;
        require!(listed.len() == left, "erasing `{below}/` leaves {:?}", names(&listed));
        require!(!listed.iter().any(|key| prefix(below).contains(key)), "erasing `{below}/` leaves {:?}", names(&listed));
    }
    require!(store.get(&key("foobar/zarr.json"), ByteRange::All)?.is_some(), "a sibling is gone");
    let listed = store.list_dir(&StorePrefix::root())?;
    require!(names(&listed.prefixes) == ["foo.bar/", "foobar/"], "an erased prefix is still listed: {:?}", names(&listed.prefixes));
    store.set(&key("foo/c/0/0"), pattern(3, 1))?;
    require!(store.size(&key("foo/c/0/0"))? == Some(3), "an erased prefix cannot be written to again");
    Ok(())
}

pub(super) fn write_erase_root(store: &Face) -> Result<(), Broken> {
    store.erase_prefix(&StorePrefix::root())?;
    fill(store)?;
    store.erase_prefix(&StorePrefix::root())?;
    let listed = store.list(&StorePrefix::root())?;
    require!(listed.is_empty(), "left are {:?}", names(&listed));
    fill(store)?;
    read_whole(store)
}

pub(super) fn write_list(store: &Face) -> Result<(), Broken> {
    require!(store.list(&StorePrefix::root())?.is_empty(), "a new store is not empty");
    fill(store)?;
    list_all(store)?;
    store.erase(&key("foobar/zarr.json"))?;
    let listed = store.list_dir(&StorePrefix::root())?;
    require!(names(&listed.prefixes) == ["foo.bar/", "foo/", "température/"], "listed are {:?}", names(&listed.prefixes));
    Ok(())
}

/// A value of which every byte tells which writer it is from.
pub(super) fn uniform(writer: usize, step: usize) -> Bytes {
    let length = 10_000 + 7 * writer + 1000 * (step % 5);
    Bytes::from(vec![writer as u8 + 1; length])
}

pub(super) fn is_uniform(value: &Bytes) -> bool {
    let Some(first) = value.first() else { return false };
    let writer = usize::from(*first) - 1;
    value.iter().all(|byte| byte == first) && (0..5).any(|step| uniform(writer, step).len() == value.len())
}

pub(super) fn write_atomic(store: &Face) -> Result<(), Broken> {
    let target = key("a/contested");
    store.set(&target, uniform(0, 0))?;
    let writers = (0..4).map(|writer| -> Job {
        let target = target.clone();
        Box::new(move |step| match step % 2 {
            0 => Op::Set(target.clone(), uniform(writer, step)),
            _ => Op::SetVectored(target.clone(), uniform(writer, step).chunks(999).map(Bytes::copy_from_slice).collect()),
        })
    });
    let readers = (0..4).map(|_| -> Job {
        let target = target.clone();
        Box::new(move |_| Op::Get(target.clone(), Box::new(|read| read.as_ref().is_some_and(is_uniform))))
    });
    store.run(writers.chain(readers).collect(), 40)?;
    let left = store.get(&target, ByteRange::All)?;
    require!(left.as_ref().is_some_and(is_uniform), "what is left is a mixture: {}", show(&left));
    Ok(())
}

pub(super) fn write_concurrent(store: &Face) -> Result<(), Broken> {
    let jobs = (0..6).map(|writer| -> Job {
        Box::new(move |step| {
            // All below one prefix, which vanishes and comes back as its keys do.
            let key = key(&format!("shared/{}/{writer}", step / 2 % 3));
            match step % 2 {
                0 => Op::Set(key, uniform(writer, step)),
                _ => Op::Erase(key),
            }
        })
    });
    store.run(jobs.collect(), 30)?;
    let jobs = (0..6).map(|writer| -> Job { Box::new(move |step| Op::Set(key(&format!("kept/{step}/{writer}")), uniform(writer, step))) });
    store.run(jobs.collect(), 10)?;
    for writer in 0..6 {
        for step in 0..10 {
            let read = store.get(&key(&format!("kept/{step}/{writer}")), ByteRange::All)?;
            require!(read.as_ref() == Some(&uniform(writer, step)), "`kept/{step}/{writer}` reads {}", show(&read));
        }
    }
    Ok(())
}

pub(super) fn write_cancel(store: &Face) -> Result<(), Broken> {
    let AnyStore::Async(inner) = &store.0 else { return Ok(()) };
    let Some(writable) = inner.as_writable() else { return Ok(()) };
    for polls in 0..6 {
        // A key of its own each time: a write that was dropped may still take place later.
        let key = key(&format!("cancelled/{polls}"));
        store.set(&key, uniform(0, 0))?;
        poll_and_drop(writable.set(&key, uniform(1, 1)), polls);
        poll_and_drop(writable.set_vectored(&key, vec![uniform(2, 0), Bytes::new()]), polls);
        for _ in 0..20 {
            let read = store.get(&key, ByteRange::All)?;
            require!(read.as_ref().is_some_and(is_uniform), "dropped after {polls} polls: {}", show(&read));
            thread::yield_now();
        }
    }
    Ok(())
}
