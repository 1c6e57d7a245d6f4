//! The laws of what only blocking stores have: values in pieces, and several reads of one value.

use zarr_store_api::{AnyStore, ByteRange, Store};

use super::face::{Face, cannot, show};
use super::fixture::{MISSING, THOUSAND, fixture, key, pattern, value_of};
use super::ranges::{BAD_RANGES, RANGES, expect_out_of_range};
use super::{StoreCase, on_empty, on_filled};
use crate::suite::{Broken, ensure, ensure_same};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("read/pieces", "a range read in pieces is its bytes, in order, without a gap", pieces),
        on_filled("read/reader", "a reader of one value answers as the store does", reader),
        on_empty("write/version", "a version is that of one value, if the store tells versions apart", version),
        on_empty("write/made", "a value made in pieces is these pieces, each made once and in order", made),
    ]
}

fn blocking(store: &Face) -> Result<&dyn Store, Broken> {
    match &store.0 {
        AnyStore::Blocking(store) => Ok(&**store),
        AnyStore::Async(_) => Err(Broken::Unsupported("an async store has no such method".into())),
    }
}

/// What pieces of a range were lent, and what was said about its length.
fn collect(
    length_of_piece: usize,
    read: impl FnOnce(&mut [u8], &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, zarr_store_api::StoreError>,
) -> Result<Option<Vec<u8>>, Broken> {
    let mut all = Vec::new();
    let mut gap = None;
    let length = read(&mut vec![0; length_of_piece], &mut |start, piece| {
        if start != all.len() as u64 {
            gap = gap.or(Some((all.len(), start)));
        }
        all.extend_from_slice(piece);
    })?;
    if let Some((behind, start)) = gap {
        return Err(Broken::Failed(format!("behind {behind} bytes comes a piece that starts at {start}")));
    }
    ensure!(length.unwrap_or(0) == all.len() as u64, "{length:?} bytes are reported, {} were lent", all.len());
    Ok(length.map(|_| all))
}

fn pieces(store: &Face) -> Result<(), Broken> {
    let store = blocking(store)?;
    for length_of_piece in [1, 7, 64, 4096] {
        for (range, (start, end)) in RANGES {
            let read = collect(length_of_piece, |piece, each| store.get_pieces(&key(THOUSAND), *range, piece, each))?;
            let value = value_of(THOUSAND);
            ensure!(read.as_deref() == value.get(*start..*end), "{range} in pieces of {length_of_piece} is something else");
        }
        for (key, value) in fixture() {
            let read = collect(length_of_piece << 10, |piece, each| store.get_pieces(&key, ByteRange::All, piece, each))?;
            ensure_same(&format!("`{key}` in pieces"), &read.unwrap_or_default(), &value)?;
        }
    }
    for name in MISSING {
        let read = collect(64, |piece, each| store.get_pieces(&key(name), ByteRange::All, piece, each))?;
        ensure!(read.is_none(), "`{name}` is not there, and comes in pieces");
    }
    for range in BAD_RANGES {
        expect_out_of_range(&format!("get_pieces of {range}"), store.get_pieces(&key(THOUSAND), *range, &mut [0; 64], &mut |_, _| {}))?;
    }
    Ok(())
}

fn reader(store: &Face) -> Result<(), Broken> {
    let store = blocking(store)?;
    let (thousand, value) = (key(THOUSAND), value_of(THOUSAND));
    let reader = store.reader(&thousand)?;
    for (range, (start, end)) in RANGES {
        let want = value.get(*start..*end);
        let read = reader.get(*range)?;
        ensure!(read.as_deref() == want, "{range} of a reader is {}", show(&read));
        let read = reader.get_ranges(&[*range, ByteRange::from(3..5)])?.unwrap_or_default();
        ensure!(read.len() == 2 && read.first().map(|first| &**first) == want, "get_ranges of a reader: {range} is something else");
        ensure!(read.last().map(|last| &**last) == value.get(3..5), "get_ranges of a reader: the second range is something else");
        let mut dst = vec![0xaa; end - start + 3];
        let length = reader.get_into(*range, &mut dst)?;
        ensure!(length == Some(end - start) && dst.get(..end - start) == want, "get_into of a reader: {range} is something else");
        ensure!(dst.ends_with(&[0xaa; 3]), "get_into of a reader writes behind {range}");
        let read = collect(64, |piece, each| reader.get_pieces(*range, piece, each))?;
        ensure!(read.as_deref() == want, "get_pieces of a reader: {range} is something else");
    }
    for range in BAD_RANGES {
        expect_out_of_range(&format!("a reader's {range}"), reader.get(*range))?;
        expect_out_of_range(&format!("{range} of a reader, among others"), reader.get_ranges(&[ByteRange::All, *range]))?;
        expect_out_of_range(&format!("a reader's {range} into memory"), reader.get_into(*range, &mut [0; 16]))?;
    }
    for name in MISSING {
        let missing = key(name);
        let reader = store.reader(&missing)?;
        let nothing = reader.get(ByteRange::Suffix(3))?.is_none()
            && reader.get_ranges(&[ByteRange::All])?.is_none()
            && reader.get_into(ByteRange::All, &mut [])?.is_none()
            && reader.get_pieces(ByteRange::All, &mut [0], &mut |_, _| {})?.is_none();
        ensure!(nothing, "a reader of `{name}`, which is not there, gives something");
    }
    Ok(())
}

fn version(store: &Face) -> Result<(), Broken> {
    let store = blocking(store)?;
    let writable = store.as_writable().ok_or_else(|| cannot("written to"))?;
    let key = key("versions");
    let mut seen = Vec::new();
    for seed in 0..8 {
        // All as long: what tells two values apart must be more than their sizes.
        writable.set(&key, pattern(100, seed))?;
        // A store that does not tell versions apart has none.
        let Some(version) = store.reader(&key)?.version() else { continue };
        ensure!(store.reader(&key)?.version().as_ref() == Some(&version), "a value that nobody replaced has another version");
        let same = seen.iter().position(|other| *other == version);
        ensure!(same.is_none(), "value {seed} has the version of value {}, {version:?}, which is settled", same.unwrap_or(0));
        // Of one that is not settled, nothing is said.
        if version.is_settled() {
            seen.push(version);
        }
    }
    writable.erase(&key)?;
    ensure!(store.reader(&key)?.version().is_none(), "a value that is not there has a version");
    Ok(())
}

fn made(store: &Face) -> Result<(), Broken> {
    let writable = blocking(store)?.as_writable().ok_or_else(|| cannot("written to"))?;
    for (length, length_of_piece) in [(0, 64), (1, 64), (64, 64), (1000, 64), (1000, 999), (1000, 1000), (100_001, 4096)] {
        let key = key(&format!("made/{length}-{length_of_piece}"));
        let value = pattern(length, 11);
        let mut next = 0;
        let mut wrong = None;
        writable.set_pieces(&key, length as u64, &mut vec![0; length_of_piece], &mut |start, piece| {
            if start != next {
                wrong = wrong.or(Some((start, next)));
            }
            next = start + piece.len() as u64;
            if let Some(part) = value.get(start as usize..next as usize) {
                piece.copy_from_slice(part);
            }
        })?;
        ensure!(wrong.is_none(), "a piece at {:?} was asked for behind another that ends elsewhere", wrong);
        ensure!(next == length as u64, "a value of {length} bytes was asked for up to byte {next}");
        let read = store.get(&key, ByteRange::All)?;
        ensure!(read.as_ref() == Some(&value), "{length} bytes made in pieces of {length_of_piece} read {}", show(&read));
    }
    Ok(())
}
