//! Stores that read what is not there, or not what is.

use zarr_buffer_api::BufferErrorKind;
use zarr_store_api::ByteRange::{Bounded, From, Suffix};
use zarr_store_api::{ByteRange, Bytes, ReadableStore, StoreErrorKind};

use super::{by_several, cut, failure, wrong, wrong_async};
use crate::idle::Wrong;

pub(crate) fn table() -> Vec<Wrong> {
    let mut table = values();
    table.extend(ranges());
    table.extend(several_ranges());
    table.extend(into_memory());
    table.extend(into_buffers());
    table.extend(pieces());
    table
}

fn values() -> Vec<Wrong> {
    vec![
        wrong("store/read/whole", "the last byte of long values is dropped", |store| {
            store.get = |right, key, range| {
                let value = right.get(key, range)?;
                Ok(value.map(|value| if value.len() > 200_000 { value.slice(..value.len() - 1) } else { value }))
            };
        }),
        wrong("store/read/empty-value", "no range of an empty value is in range", |store| {
            store.get = |right, key, range| match right.value(key) {
                Some(value) if value.is_empty() && range != ByteRange::All => Err(failure(StoreErrorKind::Io)),
                _ => right.get(key, range),
            };
        }),
        wrong("store/read/size", "sizes are kept in 16 bits", |store| {
            store.size = |right, key| Ok(right.size(key)?.map(|size| size & 0xFFFF));
        }),
        wrong("store/read/missing", "no ranges of a missing key are something", |store| {
            store.get_ranges = |right, key, ranges| if ranges.is_empty() { Ok(Some(Vec::new())) } else { right.get_ranges(key, ranges) };
        }),
        by_several(
            &[
                "store/read/missing",
                "store/read/prefix-is-no-key",
                "store/read/exact-keys",
                "store/write/erase",
                "store/write/coming-and-going",
                "store/write-then-list/erased",
            ],
            "a missing key is an empty value",
            |store| store.get = |right, key, range| right.get(key, range).map(|value| Some(value.unwrap_or_default())),
        ),
        wrong("store/read/prefix-is-no-key", "a prefix has a size, as a directory does", |store| {
            store.size = |right, key| {
                let below = format!("{key}/");
                let is_prefix = right.keys().iter().any(|key| key.as_str().starts_with(&below));
                Ok(right.size(key)?.or(is_prefix.then_some(4096)))
            };
        }),
        wrong("store/read/exact-keys", "keys are found whatever their case", |store| {
            store.get = |right, key, range| {
                let same = |other: &&zarr_store_api::StoreKey| other.as_str().to_lowercase() == key.as_str().to_lowercase();
                match right.keys().iter().find(same) {
                    Some(key) => right.get(key, range),
                    None => Ok(None),
                }
            };
        }),
        wrong("store/read/exact-keys", "accents are composed", |store| {
            store.get = |right, key, range| right.get(&key.as_str().replace("e\u{301}", "é").parse()?, range);
        }),
    ]
}

fn ranges() -> Vec<Wrong> {
    vec![
        wrong("store/range/within", "reads begin where a sector does", |store| {
            store.get = |right, key, range| match range {
                From(start) if right.size(key)?.is_some_and(|size| start < size) => right.get(key, From(start & !1)),
                range => right.get(key, range),
            };
        }),
        wrong("store/range/past-the-end", "a range past the end is an error", |store| {
            store.get = |right, key, range| match (range, right.size(key)?) {
                (Bounded { start, end }, Some(size)) if start < size && end > size => Err(failure(StoreErrorKind::OutOfRange)),
                _ => right.get(key, range),
            };
        }),
        wrong("store/range/suffix", "a suffix is the front", |store| {
            store.get = |right, key, range| match (range, right.size(key)?) {
                (Suffix(len), Some(size)) if 0 < len && len < size => right.get(key, (0..len).into()),
                _ => right.get(key, range),
            };
        }),
        wrong("store/range/long-suffix", "a suffix longer than the value is an error", |store| {
            store.get = |right, key, range| match (range, right.size(key)?) {
                (Suffix(len), Some(size)) if len > size && size > 0 => Err(failure(StoreErrorKind::OutOfRange)),
                _ => right.get(key, range),
            };
        }),
        wrong("store/range/empty", "the last 0 bytes are all bytes", |store| {
            store.get = |right, key, range| right.get(key, if range == Suffix(0) { ByteRange::All } else { range });
        }),
        wrong("store/range/out-of-range", "a range that begins past the end is empty", |store| {
            store.get = |right, key, range| match (range, right.size(key)?) {
                (Bounded { start, end }, Some(size)) if start > size && start <= end => Ok(Some(Bytes::new())),
                _ => right.get(key, range),
            };
        }),
        wrong("store/range/backwards", "a range that ends before it begins is turned round", |store| {
            store.get = |right, key, range| match range {
                Bounded { start, end } if end < start => right.get(key, (end..start).into()),
                range => right.get(key, range),
            };
        }),
    ]
}

fn several_ranges() -> Vec<Wrong> {
    vec![
        wrong("store/ranges/order", "several ranges come sorted", |store| {
            store.get_ranges = |right, key, ranges| {
                let mut sorted = ranges.to_vec();
                sorted.sort_by_key(|range| range.resolve(1000).map_or(0, |range| range.start));
                let refused = ranges.iter().any(|range| right.get(key, *range).is_err());
                right.get_ranges(key, if refused || ranges.len() < 4 || right.size(key)? != Some(1000) { ranges } else { &sorted })
            };
        }),
        wrong("store/ranges/scattered", "requests joined from several ranges are at most 128 KiB", |store| {
            store.get_ranges = |right, key, ranges| {
                let front = right.value(key).map(|value| value.slice(..value.len().min(128 << 10)));
                let Some(front) = front else { return Ok(None) };
                ranges
                    .iter()
                    .map(|range| cut(front.clone(), *range).or(Ok(Bytes::new())))
                    .collect::<Result<_, _>>()
                    .map(Some)
                    .and_then(|joined| if front.len() < 128 << 10 { right.get_ranges(key, ranges) } else { Ok(joined) })
            };
        }),
        wrong("store/ranges/out-of-range", "bad ranges among several are empty", |store| {
            store.get_ranges = |right, key, ranges| {
                let one = |range: &ByteRange| right.get(key, *range).unwrap_or(Some(Bytes::new()));
                if ranges.is_empty() { right.get_ranges(key, ranges) } else { Ok(ranges.iter().map(one).collect()) }
            };
        }),
    ]
}

fn into_memory() -> Vec<Wrong> {
    vec![
        wrong("store/read/into", "the rest of the destination is zeroed", |store| {
            store.get_into = |right, key, range, dst| {
                let read = right.get_into(key, range, dst)?;
                if let Some(len) = read {
                    dst[len..].fill(0);
                }
                Ok(read)
            };
        }),
        wrong("store/read/into-too-short", "what is longer than the destination is cut off", |store| {
            store.get_into = |right, key, range, dst| {
                let Some(value) = right.get(key, range)? else { return Ok(None) };
                let len = value.len().min(dst.len());
                dst[..len].copy_from_slice(&value[..len]);
                Ok(Some(len))
            };
        }),
        wrong("store/read/into-out-of-range", "a bad range is no bytes", |store| {
            store.get_into = |right, key, range, dst| match right.get_into(key, range, dst) {
                Err(error) if error.kind() == StoreErrorKind::OutOfRange => Ok(Some(0)),
                read => read,
            };
        }),
    ]
}

fn into_buffers() -> Vec<Wrong> {
    vec![
        wrong("store/buffer/read", "the host waits for the device", |store| {
            store.get_into_buffer = |right, key, range, dst, device, queue| {
                let read = right.get_into_buffer(key, range, dst, device, queue)?;
                dst.wait().map_err(|error| zarr_store_api::StoreError::from_buffer(error, "cannot wait"))?;
                Ok(read)
            };
        }),
        wrong("store/buffer/missing", "the buffer of a missing key is zeroed", |store| {
            store.get_into_buffer = |right, key, range, dst, device, queue| {
                let read = right.get_into_buffer(key, range, dst, device, queue)?;
                if read.is_none() {
                    let layout = zarr_buffer_api::Layout::contiguous(&[dst.len()], 1).unwrap();
                    queue.fill_region(&zarr_buffer_api::Region::new(dst.clone(), layout).unwrap(), &[0]).unwrap();
                }
                Ok(read)
            };
        }),
        wrong("store/buffer/too-short", "what is longer than the buffer is cut off", |store| {
            store.get_into_buffer = |right, key, range, dst, device, queue| {
                let len = right.get(key, range)?.map_or(0, |value| value.len());
                if len <= dst.len() {
                    return right.get_into_buffer(key, range, dst, device, queue);
                }
                let start = range.resolve(right.size(key)?.unwrap_or(0))?.start;
                right.get_into_buffer(key, (start..start + dst.len() as u64).into(), dst, device, queue)
            };
        }),
        wrong("store/buffer/out-of-range", "a bad range is no bytes for a buffer", |store| {
            store.get_into_buffer = |right, key, range, dst, device, queue| match right.get_into_buffer(key, range, dst, device, queue) {
                Err(error) if error.kind() == StoreErrorKind::OutOfRange => Ok(Some(0)),
                read => read,
            };
        }),
        wrong("store/buffer/borrowed", "a buffer that is held is said to be filled", |store| {
            store.get_into_buffer = |right, key, range, dst, device, queue| {
                let held = dst.is_host_visible() && dst.host_write().is_err_and(|error| error.kind == BufferErrorKind::Borrowed);
                if held {
                    right.size(key).map(|size| size.map(|size| size as usize))
                } else {
                    right.get_into_buffer(key, range, dst, device, queue)
                }
            };
        }),
    ]
}

fn pieces() -> Vec<Wrong> {
    vec![
        wrong("store/read/pieces", "a last piece that is short is lost", |store| {
            store.get_pieces = |right, key, range, piece, each| {
                let Some(value) = right.get(key, range)? else { return Ok(None) };
                let whole = value.len() / piece.len() * piece.len();
                value[..whole].chunks(piece.len()).enumerate().for_each(|(index, part)| each((index * piece.len()) as u64, part));
                Ok(Some(whole as u64))
            };
        }),
        wrong("store/read/reader", "a reader of a value knows no suffixes", |store| {
            store.reader_get = |right, key, range| match range {
                Suffix(len) => right.get(key, (0..len).into()),
                range => right.get(key, range),
            };
        }),
        wrong_async("store/read/one-version", "the ranges of one version come in another order", |store| {
            store.get_versioned = |right, key, ranges, version| {
                let Some((mut bytes, found)) = right.get_versioned(key, ranges, version)? else { return Ok(None) };
                bytes.reverse();
                Ok(Some((bytes, found)))
            };
        }),
        wrong_async("store/write/one-version", "the version that was asked for is passed over", |store| {
            store.get_versioned = |right, key, ranges, _| right.get_versioned(key, ranges, None);
        }),
    ]
}
