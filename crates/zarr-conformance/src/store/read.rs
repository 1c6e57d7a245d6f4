//! The laws of reading.

use std::fmt;

use zarr_store_api::{AnyStore, ByteRange, Bytes, StoreError, StoreErrorKind};

use super::face::{Face, Job, Op, poll_and_drop, show};
use super::{Broken, LONG, fixture, key, value_of};

fn bounded(start: u64, end: u64) -> ByteRange {
    ByteRange::Bounded { start, end }
}

pub(super) fn read_whole(store: &Face) -> Result<(), Broken> {
    for (key, value) in fixture() {
        let read = store.get(&key, ByteRange::All)?;
        require!(read.as_ref() == Some(&value), "`{key}` reads {}", show(&read));
    }
    Ok(())
}

pub(super) fn read_size(store: &Face) -> Result<(), Broken> {
    for (key, value) in fixture() {
        let size = store.size(&key)?;
        require!(size == Some(value.len() as u64), "`{key}` has {} bytes, its size is {size:?}", value.len());
    }
    Ok(())
}

/// Ranges, and where they begin and end in a value of 1000 bytes.
pub(super) const RANGES: &[(ByteRange, (usize, usize))] = &[
    (ByteRange::All, (0, 1000)),
    (ByteRange::Bounded { start: 0, end: 1000 }, (0, 1000)),
    (ByteRange::Bounded { start: 0, end: 1 }, (0, 1)),
    (ByteRange::Bounded { start: 999, end: 1000 }, (999, 1000)),
    (ByteRange::Bounded { start: 10, end: 20 }, (10, 20)),
    (ByteRange::Bounded { start: 990, end: 2000 }, (990, 1000)),
    (ByteRange::Bounded { start: 990, end: u64::MAX }, (990, 1000)),
    (ByteRange::Bounded { start: 0, end: 0 }, (0, 0)),
    (ByteRange::Bounded { start: 500, end: 500 }, (500, 500)),
    (ByteRange::Bounded { start: 1000, end: 1000 }, (1000, 1000)),
    (ByteRange::Bounded { start: 1000, end: 1010 }, (1000, 1000)),
    (ByteRange::From(0), (0, 1000)),
    (ByteRange::From(1), (1, 1000)),
    (ByteRange::From(999), (999, 1000)),
    (ByteRange::From(1000), (1000, 1000)),
    (ByteRange::Suffix(0), (1000, 1000)),
    (ByteRange::Suffix(1), (999, 1000)),
    (ByteRange::Suffix(1000), (0, 1000)),
    (ByteRange::Suffix(1001), (0, 1000)),
    (ByteRange::Suffix(u64::MAX), (0, 1000)),
];

pub(super) const BAD_RANGES: &[ByteRange] = &[
    ByteRange::Bounded { start: 1001, end: 1002 },
    ByteRange::Bounded { start: 1001, end: 1001 },
    ByteRange::Bounded { start: u64::MAX - 1, end: u64::MAX },
    ByteRange::Bounded { start: 20, end: 10 },
    ByteRange::From(1001),
    ByteRange::From(u64::MAX),
];

pub(super) fn read_ranges(store: &Face) -> Result<(), Broken> {
    let (key, value) = (key("foo/c/0/0"), value_of("foo/c/0/0"));
    for (range, (start, end)) in RANGES {
        let read = store.get(&key, *range).map_err(|error| Broken(format!("{range}: {error}")))?;
        require!(read.as_deref() == value.get(*start..*end), "{range} reads {}", show(&read));
    }
    Ok(())
}

pub(super) fn read_out_of_range(store: &Face) -> Result<(), Broken> {
    let key = key("foo/c/0/0");
    for range in BAD_RANGES {
        expect_out_of_range(&format!("get of {range}"), store.get(&key, *range))?;
        let mut dst = [0; 16];
        expect_out_of_range(&format!("get_into of {range}"), store.get_into(&key, *range, &mut dst))?;
    }
    Ok(())
}

pub(super) fn expect_out_of_range<T: fmt::Debug>(what: &str, result: Result<T, StoreError>) -> Result<(), Broken> {
    match result {
        Err(error) if error.kind() == StoreErrorKind::OutOfRange => Ok(()),
        Err(error) => Err(Broken(format!("{what} fails with another kind: {error}"))),
        Ok(_) => Err(Broken(format!("{what} is no error"))),
    }
}

pub(super) const MISSING: &[&str] = &["nothing", "foo/nothing", "foo/c/0/2", "foo/c/0/0/0", "fo", "no/such/path", "zarr.json/x"];

pub(super) fn read_missing(store: &Face) -> Result<(), Broken> {
    for name in MISSING {
        let key = key(name);
        for range in [ByteRange::All, ByteRange::Suffix(16), bounded(5, 10), bounded(0, 0), ByteRange::From(1)] {
            let read = store.get(&key, range)?;
            require!(read.is_none(), "`{key}`, {range}: reads {}", show(&read));
            let read = store.get_into(&key, range, &mut [0; 16])?;
            require!(read.is_none(), "`{key}`, {range}: get_into gives {read:?}");
            let read = store.get_ranges(&key, &[range, range])?;
            require!(read.is_none(), "`{key}`, {range}: get_ranges gives something");
        }
        require!(store.size(&key)?.is_none(), "`{key}` has a size");
        require!(store.get_ranges(&key, &[])?.is_none(), "`{key}`: no ranges of no value are something");
    }
    Ok(())
}

pub(super) fn read_prefix_is_no_key(store: &Face) -> Result<(), Broken> {
    for name in ["foo", "foo/c", "foo/c/0", "température"] {
        let key = key(name);
        let read = store.get(&key, ByteRange::All)?;
        require!(read.is_none(), "`{key}` reads {}", show(&read));
        require!(store.get(&key, ByteRange::Suffix(4))?.is_none(), "`{key}` has an end");
        require!(store.size(&key)?.is_none(), "`{key}` has a size");
    }
    Ok(())
}

pub(super) fn read_empty_value(store: &Face) -> Result<(), Broken> {
    let key = key("foo/empty");
    for range in [ByteRange::All, ByteRange::Suffix(8), ByteRange::Suffix(0), ByteRange::From(0), bounded(0, 0), bounded(0, 8)] {
        let read = store.get(&key, range).map_err(|error| Broken(format!("{range}: {error}")))?;
        require!(read.as_ref().is_some_and(Bytes::is_empty), "{range} reads {}", show(&read));
        let read = store.get_into(&key, range, &mut [])?;
        require!(read == Some(0), "{range} reads {read:?} into nothing");
    }
    expect_out_of_range("get of bytes 1..", store.get(&key, ByteRange::From(1)))
}

pub(super) fn read_many_ranges(store: &Face) -> Result<(), Broken> {
    let (small, long) = (key("foo/c/0/0"), key("foo/c/0/1"));
    let value = value_of("foo/c/0/0");
    let ranges: Vec<ByteRange> = RANGES.iter().map(|(range, _)| *range).collect();
    for ranges in [ranges.clone(), ranges.iter().rev().copied().collect(), Vec::new()] {
        let read = store.get_ranges(&small, &ranges)?.unwrap_or_default();
        require!(read.len() == ranges.len(), "{} ranges give {} values", ranges.len(), read.len());
        for (range, bytes) in ranges.iter().zip(read) {
            let want = range.resolve(1000)?;
            let want = value.get(want.start as usize..want.end as usize);
            require!(Some(&*bytes) == want, "among others, {range} reads {} bytes", bytes.len());
        }
    }
    let value = value_of("foo/c/0/1");
    let scattered: Vec<ByteRange> = (0..40).map(|i| (i * 7919) % 290_000).map(|at| bounded(at, at + 100 + at % 5000)).collect();
    let read = store.get_ranges(&long, &scattered)?.unwrap_or_default();
    for (range, bytes) in scattered.iter().zip(&read) {
        let want = range.resolve(LONG as u64)?;
        let want = value.get(want.start as usize..want.end as usize);
        require!(Some(&**bytes) == want, "among 40 of a long value, {range} is wrong");
    }
    require!(read.len() == scattered.len(), "{} ranges give {} values", scattered.len(), read.len());
    Ok(())
}

pub(super) fn read_many_ranges_out_of_range(store: &Face) -> Result<(), Broken> {
    for bad in BAD_RANGES {
        let ranges = [bounded(0, 10), *bad, ByteRange::Suffix(10)];
        expect_out_of_range(&format!("{bad} among others"), store.get_ranges(&key("foo/c/0/0"), &ranges))?;
    }
    Ok(())
}

pub(super) fn read_into(store: &Face) -> Result<(), Broken> {
    let (key, value) = (key("foo/c/0/0"), value_of("foo/c/0/0"));
    for (range, (start, end)) in RANGES {
        for behind in [0, 7] {
            let length = end - start;
            let mut dst = vec![0xaa; length + behind];
            let read = store.get_into(&key, *range, &mut dst)?;
            require!(read == Some(length), "{range} is {length} bytes, {read:?} are reported");
            require!(dst.get(..length) == value.get(*start..*end), "{range} reads other bytes");
            require!(dst.iter().skip(length).all(|byte| *byte == 0xaa), "{range} writes behind its end");
        }
    }
    let long = value_of("foo/c/0/1");
    let mut dst = vec![0; LONG];
    store.get_into(&self::key("foo/c/0/1"), ByteRange::All, &mut dst)?;
    require!(dst == long, "a long value reads other bytes");
    Ok(())
}

pub(super) fn read_into_too_short(store: &Face) -> Result<(), Broken> {
    for (range, (start, end)) in RANGES.iter().filter(|(_, (start, end))| start < end) {
        let mut dst = vec![0; end - start - 1];
        match store.get_into(&key("foo/c/0/0"), *range, &mut dst) {
            Err(error) if error.kind() == StoreErrorKind::Parameter => {}
            Err(error) => return Err(Broken(format!("{range} into {} bytes fails with another kind: {error}", dst.len()))),
            Ok(read) => return Err(Broken(format!("{range} into {} bytes gives {read:?}", dst.len()))),
        }
    }
    Ok(())
}

pub(super) fn read_unicode(store: &Face) -> Result<(), Broken> {
    let name = "température/données ❄/é";
    let read = store.get(&key(name), ByteRange::All)?;
    require!(read == Some(value_of(name)), "`{name}` reads {}", show(&read));
    // The same letters, composed in another way, are another key.
    let decomposed = store.get(&key("température/données ❄/e\u{301}"), ByteRange::All)?;
    require!(decomposed.is_none(), "a key is found under another normalisation of its letters");
    Ok(())
}

pub(super) fn read_concurrent(store: &Face) -> Result<(), Broken> {
    let jobs = (0..8).map(|reader| -> Job {
        Box::new(move |step| {
            let (key, value) = fixture().swap_remove((reader + step) % 10);
            Op::Get(key, Box::new(move |read| read.as_ref() == Some(&value)))
        })
    });
    store.run(jobs.collect(), 25)
}

pub(super) fn read_cancel(store: &Face) -> Result<(), Broken> {
    let AnyStore::Async(inner) = &store.0 else { return Ok(()) };
    let key = key("foo/c/0/1");
    for polls in 0..4 {
        poll_and_drop(inner.get(&key, ByteRange::All), polls);
        poll_and_drop(inner.get_ranges(&key, &[bounded(0, 10), ByteRange::Suffix(10)]), polls);
        poll_and_drop(inner.get_into(&key, ByteRange::All, Box::new(vec![0; LONG])), polls);
        poll_and_drop(inner.size(&key), polls);
    }
    read_whole(store)
}
