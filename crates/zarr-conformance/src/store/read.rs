//! The laws of reading values and sizes.

use zarr_store_api::{ByteRange, Bytes, StoreErrorKind};

use super::face::{Face, expect_kind, show};
use super::fixture::{EMPTY, LONG, LONGEST, MISSING, THOUSAND, UNICODE, fixture, key, value_of};
use super::ranges::{BAD_RANGES, RANGES, expect_out_of_range};
use super::{StoreCase, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("read/whole", "a value is read as it was written, whatever its length", whole),
        on_filled("read/empty-value", "a value may be empty, which is another thing than missing", empty_value),
        on_filled("read/size", "the size is that of the value, whatever its length", size),
        on_filled("read/missing", "a key that is not there is `None`, whatever the range and the method", missing),
        on_filled("read/prefix-is-no-key", "what only keys lie below is no key itself", prefix_is_no_key),
        on_filled("read/exact-keys", "keys are any text, and differ where their bytes do: in case, in normalisation", exact_keys),
        on_filled("read/into", "reads into the caller's memory fill the front and leave the rest alone", into),
        on_filled("read/into-too-short", "a destination shorter than the range is an error, not a cut", into_too_short),
        on_filled("read/into-out-of-range", "reads into the caller's memory refuse the ranges that other reads refuse", into_out_of_range),
    ]
}

fn whole(store: &Face) -> Result<(), Broken> {
    for (key, value) in fixture().into_iter().filter(|(_, value)| !value.is_empty()) {
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read.as_ref() == Some(&value), "`{key}` reads {}", show(&read));
    }
    Ok(())
}

fn empty_value(store: &Face) -> Result<(), Broken> {
    let key = key(EMPTY);
    let empty =
        [ByteRange::All, ByteRange::Suffix(8), ByteRange::Suffix(0), ByteRange::From(0), ByteRange::from(0..0), ByteRange::from(0..8)];
    for range in empty {
        let read = store.get(&key, range).map_err(|error| Broken::Failed(format!("{range}: {error}")))?;
        ensure!(read.as_ref().is_some_and(Bytes::is_empty), "{range} reads {}", show(&read));
        let read = store.get_into(&key, range, &mut [])?;
        ensure!(read == Some(0), "{range} reads {read:?} into nothing");
    }
    expect_out_of_range("get of bytes 1.. of no bytes", store.get(&key, ByteRange::From(1)))
}

fn size(store: &Face) -> Result<(), Broken> {
    for (key, value) in fixture() {
        let size = store.size(&key)?;
        ensure!(size == Some(value.len() as u64), "`{key}` has {} bytes, its size is {size:?}", value.len());
    }
    Ok(())
}

fn missing(store: &Face) -> Result<(), Broken> {
    for name in MISSING {
        let key = key(name);
        for range in [ByteRange::All, ByteRange::Suffix(16), ByteRange::from(5..10), ByteRange::from(0..0), ByteRange::From(1)] {
            let read = store.get(&key, range)?;
            ensure!(read.is_none(), "`{key}`, {range}: reads {}", show(&read));
            let mut dst = [0xaa; 16];
            let read = store.get_into(&key, range, &mut dst)?;
            ensure!(read.is_none() && dst == [0xaa; 16], "`{key}`, {range}: get_into gives {read:?}, and {dst:x?}");
            let read = store.get_ranges(&key, &[range, range])?;
            ensure!(read.is_none(), "`{key}`, {range}: get_ranges gives something");
        }
        ensure!(store.size(&key)?.is_none(), "`{key}` has a size");
        ensure!(store.get_ranges(&key, &[])?.is_none(), "`{key}`: no ranges of no value are something");
    }
    Ok(())
}

fn prefix_is_no_key(store: &Face) -> Result<(), Broken> {
    for name in ["foo", "foo/c", "foo/c/0", "température"] {
        let key = key(name);
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read.is_none(), "`{key}` reads {}", show(&read));
        ensure!(store.get(&key, ByteRange::Suffix(4))?.is_none(), "`{key}` has an end");
        ensure!(store.size(&key)?.is_none(), "`{key}` has a size");
    }
    Ok(())
}

fn exact_keys(store: &Face) -> Result<(), Broken> {
    let read = store.get(&key(UNICODE), ByteRange::All)?;
    ensure!(read == Some(value_of(UNICODE)), "`{UNICODE}` reads {}", show(&read));
    for other in ["température/données ❄/e\u{301}", "température/données ❄/É", "Zarr.json", "foo/C/0/0", "foo/zarr.json ", "foo/c/00/0"]
    {
        let read = store.get(&key(other), ByteRange::All)?;
        ensure!(read.is_none(), "`{}` is not there, and reads {}", other.escape_unicode(), show(&read));
    }
    Ok(())
}

fn into(store: &Face) -> Result<(), Broken> {
    let (key, value) = (key(THOUSAND), value_of(THOUSAND));
    for (range, (start, end)) in RANGES {
        for behind in [0, 7] {
            let length = end - start;
            let mut dst = vec![0xaa; length + behind];
            let read = store.get_into(&key, *range, &mut dst)?;
            ensure!(read == Some(length), "{range} is {length} bytes, {read:?} are reported");
            ensure!(dst.get(..length) == value.get(*start..*end), "{range} reads other bytes");
            ensure!(dst.iter().skip(length).all(|byte| *byte == 0xaa), "{range} writes behind its end");
        }
    }
    let long = value_of(LONGEST);
    let mut dst = vec![0; LONG];
    store.get_into(&self::key(LONGEST), ByteRange::All, &mut dst)?;
    ensure!(dst == long, "a long value reads other bytes");
    Ok(())
}

fn into_too_short(store: &Face) -> Result<(), Broken> {
    for (range, (start, end)) in RANGES.iter().filter(|(_, (start, end))| start < end) {
        let mut dst = vec![0; end - start - 1];
        let read = store.get_into(&key(THOUSAND), *range, &mut dst);
        expect_kind(&format!("{range} into {} bytes", dst.len()), StoreErrorKind::Parameter, read)?;
    }
    Ok(())
}

fn into_out_of_range(store: &Face) -> Result<(), Broken> {
    for range in BAD_RANGES {
        let mut dst = [0; 16];
        expect_out_of_range(&format!("get_into of {range}"), store.get_into(&key(THOUSAND), *range, &mut dst))?;
    }
    Ok(())
}
