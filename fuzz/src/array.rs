//! Arrays: shards of any bytes, and any selection of any layout against a vector.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use zarr_array::{Array, ArrayBuilder, AxisSelection, Selection, StoredMetadata};
use zarr_meta::{ArrayMetadataV2, DataType, Extension, Json, NodeMetadata};
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

fn memory() -> AnyStore {
    AnyStore::blocking(MemoryStore::new())
}

fn codecs(json: &str) -> Vec<Extension> {
    let json = Json::parse(json.as_bytes()).expect("JSON");
    json.as_array().expect("a list").iter().map(|codec| Extension::parse(codec).expect("a codec")).collect()
}

const LITTLE: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
const CRC: &str = r#"{"name": "crc32c"}"#;
const ZSTD: &str = r#"{"name": "zstd", "configuration": {"level": 1, "checksum": false}}"#;

fn shard(inner: &str, codecs: &[&str], index_codecs: &[&str], location: &str) -> String {
    let (codecs, index) = (codecs.join(","), index_codecs.join(","));
    format!(
        r#"{{"name": "sharding_indexed", "configuration": {{"chunk_shape": {inner}, "codecs": [{codecs}], "index_codecs": [{index}], "index_location": "{location}"}}}}"#
    )
}

/// Ways to cut a shard of 8 × 8 elements of 16 bits. The place in the list is the first byte of an input: add at the end.
pub fn shard_configurations() -> Vec<String> {
    let transpose = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#;
    vec![
        shard("[4, 4]", &[LITTLE], &[LITTLE], "end"),
        shard("[4, 4]", &[LITTLE], &[LITTLE], "start"),
        shard("[4, 2]", &[LITTLE, ZSTD], &[LITTLE], "end"),
        shard("[2, 8]", &[LITTLE, CRC], &[LITTLE, CRC], "start"),
        shard("[4, 4]", &[&shard("[2, 2]", &[LITTLE, ZSTD], &[LITTLE], "start")], &[LITTLE], "end"),
        format!("{transpose},{}", shard("[2, 4]", &[LITTLE, ZSTD], &[LITTLE, CRC], "end")),
        format!("{},{ZSTD}", shard("[4, 4]", &[LITTLE], &[LITTLE], "end")),
        shard("[4, 4]", &[&shard("[4, 2]", &[LITTLE], &[LITTLE], "end"), CRC], &[LITTLE], "start"),
    ]
}

/// The first byte picks the configuration; the rest is the value of a shard. Parts must agree with the whole, and a write into it with what was there.
pub fn shard_index(data: &[u8]) {
    static ARRAYS: LazyLock<Vec<ArrayBuilder>> = LazyLock::new(|| {
        let builder = |json: &String| ArrayBuilder::new([8, 8], DataType::Int16).chunks([8, 8]).codecs(codecs(&format!("[{json}]")));
        shard_configurations().iter().map(builder).collect()
    });
    let Some((&first, value)) = data.split_first() else { return };
    let Some(builder) = ARRAYS.get(usize::from(first)) else { return };
    let array = builder.create(memory(), "/", &crate::options()).expect("an array");
    array.write_encoded_chunk(&[0, 0], value.to_vec()).expect("memory");
    let whole: Option<Vec<i16>> = array.read_elements(&Selection::all()).ok();
    let corner: Option<Vec<i16>> = array.read_elements(&Selection::ranges([3..6, 1..5])).ok();
    let column: Option<Vec<i16>> = array.read_elements(&Selection::parse(":, 7", 2).expect("a selection")).ok();
    if let Some(whole) = &whole {
        let wanted = (3..6).flat_map(|row| (1..5).map(move |column| whole[row * 8 + column])).collect::<Vec<_>>();
        assert_eq!(corner, Some(wanted), "a part of a shard that can be read");
        let wanted = (0..8).map(|row| whole[row * 8 + 7]).collect::<Vec<_>>();
        assert_eq!(column, Some(wanted), "a column of a shard that can be read");
    }
    let inside = Selection::ranges([1..3, 5..6]);
    if array.write_elements(&inside, &[7i16, 8]).is_ok() {
        let again: Vec<i16> = array.read_elements(&inside).expect("what was written can be read");
        assert_eq!(again, [7, 8]);
        if let Some(mut whole) = whole {
            (whole[8 + 5], whole[16 + 5]) = (7, 8);
            let again: Vec<i16> = array.read_elements(&Selection::all()).expect("a shard that could be read before");
            assert_eq!(again, whole, "what a write must leave alone");
        }
    }
}

/// A selection as text, for an array of a rank and shape that the first bytes tell.
pub fn selection(data: &[u8]) {
    let [rank, lens @ .., last] = data.first_chunk::<6>().copied().unwrap_or_default();
    let rank = usize::from(rank % 5);
    let text = String::from_utf8_lossy(data.get(6..).unwrap_or_default());
    let Ok(selection) = Selection::parse(&text, rank) else { return };
    // A first axis of any length, in a few large chunks: only shapes are worked out.
    let mut shape: Vec<u64> = lens.iter().take(rank).map(|&len| u64::from(len)).collect();
    let mut chunks = vec![1; rank];
    if let (Some(len), Some(chunk)) = (shape.first_mut(), chunks.first_mut()) {
        *len <<= last % 56;
        *chunk = (*len / 3).max(1);
    }
    let builder = ArrayBuilder::new(shape, DataType::UInt8).chunks(chunks);
    let array = builder.create(memory(), "/", &crate::options()).expect("an array");
    if let Ok(shape) = array.selection_shape(&selection) {
        assert!(shape.len() <= rank);
    }
}

/// An array, a selection of it, and what is done.
#[derive(Debug, Arbitrary)]
struct Read {
    axes: Vec<Axis>,
    layout: u8,
    /// Chunks that are not written, as bits.
    absent: u64,
    wanted: Wanted,
    write: bool,
}

#[derive(Debug, Arbitrary)]
struct Axis {
    len: u8,
    inner: u8,
    times: u8,
}

#[derive(Debug, Arbitrary)]
enum Wanted {
    Axes(Vec<WantedAxis>),
    Points(Vec<[i8; 3]>),
    Mask(Vec<bool>),
    Blocks([(u8, u8); 3]),
}

#[derive(Debug, Arbitrary)]
enum WantedAxis {
    Index(i8),
    Slice(Option<i8>, Option<i8>, i8),
    List(Vec<i8>),
    Mask(Vec<bool>),
}

/// Any layout and selection: a read gives what a vector would, and so does a write.
pub fn plan(data: &[u8]) {
    let Ok(read) = Read::arbitrary(&mut Unstructured::new(data)) else { return };
    let axes: Vec<&Axis> = read.axes.iter().take(3).collect();
    let shape: Vec<u64> = axes.iter().map(|axis| u64::from(axis.len % 8)).collect();
    let inner: Vec<u64> = axes.iter().map(|axis| u64::from(axis.inner % 5) + 1).collect();
    let outer: Vec<u64> = axes.iter().zip(&inner).map(|(axis, inner)| inner * (u64::from(axis.times % 3) + 1)).collect();
    let array = build(&shape, &inner, &outer, read.layout);
    let mut model = fill(&array, &shape, &outer, read.absent);
    let Some((selection, places)) = wanted(&read.wanted, &shape, &array.chunk_grid_shape(), &outer) else { return };
    let Some(places) = places else {
        assert!(array.read(&selection).is_err(), "{selection:?} is outside {shape:?}");
        return;
    };
    let expected: Vec<i32> = places.iter().map(|&at| model[at]).collect();
    assert_eq!(array.read_elements::<i32>(&selection).expect("a read"), expected, "{selection:?} of {shape:?}");
    // What a repeated position ends up as, a write does not say.
    let mut sorted = places.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if read.write && sorted.len() == places.len() {
        let values: Vec<i32> = (0..).map(|at| -5 - at).take(places.len()).collect();
        array.write_elements(&selection, &values).expect("a write");
        places.iter().zip(&values).for_each(|(&at, &value)| model[at] = value);
        assert_eq!(array.read_elements::<i32>(&Selection::all()).expect("a read"), model, "after a write of {selection:?} of {shape:?}");
    }
}

fn build(shape: &[u64], inner: &[u64], outer: &[u64], layout: u8) -> Array {
    let builder = ArrayBuilder::new(shape, DataType::Int32).chunks(outer);
    let reversed: Vec<String> = (0..shape.len()).rev().map(|axis| axis.to_string()).collect();
    let transpose = format!(r#"{{"name": "transpose", "configuration": {{"order": [{}]}}}}"#, reversed.join(","));
    let list = format!("{inner:?}");
    let turned: Vec<u64> = inner.iter().rev().copied().collect();
    let json = match layout % 8 {
        0 => LITTLE.to_owned(),
        1 => format!("{LITTLE},{CRC}"),
        2 => format!("{transpose},{LITTLE}"),
        3 => shard(&list, &[LITTLE], &[LITTLE, CRC], "end"),
        4 => shard(&list, &[LITTLE, ZSTD], &[LITTLE], "start"),
        5 => format!("{transpose},{}", shard(&format!("{turned:?}"), &[LITTLE, CRC], &[LITTLE], "end")),
        6 => shard(&list, &[&transpose, LITTLE], &[LITTLE], "start"),
        _ => shard(&list, &[&shard(&list, &[LITTLE], &[LITTLE], "end")], &[LITTLE, CRC], "end"),
    };
    builder.codecs(codecs(&format!("[{json}]"))).create(memory(), "/", &crate::options()).expect("an array")
}

/// Numbers the elements from 1; those of absent chunks stay 0, the fill value.
fn fill(array: &Array, shape: &[u64], outer: &[u64], absent: u64) -> Vec<i32> {
    let count: u64 = shape.iter().product();
    let mut model: Vec<i32> = (1..=count as i32).collect();
    array.write_elements(&Selection::all(), &model).expect("a write");
    let grid = array.chunk_grid_shape();
    let chunks: u64 = grid.iter().product();
    let coordinates = |mut flat: u64, shape: &[u64]| {
        let mut coordinates = vec![0; shape.len()];
        for (at, len) in coordinates.iter_mut().zip(shape).rev() {
            *at = flat % len;
            flat /= len;
        }
        coordinates
    };
    for chunk in (0..chunks).filter(|chunk| absent >> (chunk % 64) & 1 == 1) {
        array.erase_chunk(&coordinates(chunk, &grid)).expect("memory");
    }
    for (flat, value) in model.iter_mut().enumerate() {
        let chunk =
            coordinates(flat as u64, shape).iter().zip(outer).zip(&grid).fold(0, |chunk, ((at, outer), len)| chunk * len + at / outer);
        if absent >> (chunk % 64) & 1 == 1 {
            *value = 0;
        }
    }
    model
}

/// The selection, and the flat positions that it stands for; no positions when it is outside the array. `None` when the input makes no selection.
fn wanted(wanted: &Wanted, shape: &[u64], grid: &[u64], outer: &[u64]) -> Option<(Selection, Option<Vec<usize>>)> {
    let flat = |at: &[u64]| at.iter().zip(shape).fold(0, |flat, (at, len)| flat * len + at) as usize;
    match wanted {
        Wanted::Axes(axes) => {
            let axes: Vec<AxisSelection> = axes.iter().take(shape.len()).zip(shape).map(|(axis, &len)| axis.selection(len)).collect();
            let whole = AxisSelection::from(..);
            let lists: Option<Vec<Vec<u64>>> =
                axes.iter().chain(std::iter::repeat(&whole)).zip(shape).map(|(axis, &len)| positions(axis, len)).collect();
            Some((Selection::Axes(axes), lists.map(|lists| product(&lists).iter().map(|at| flat(at)).collect())))
        }
        Wanted::Points(points) => {
            let axes: Vec<Vec<i64>> = (0..shape.len()).map(|axis| points.iter().map(|point| i64::from(point[axis])).collect()).collect();
            if axes.is_empty() {
                return None;
            }
            let places: Option<Vec<usize>> = points
                .iter()
                .map(|point| {
                    let at: Option<Vec<u64>> = shape.iter().zip(point).map(|(&len, &at)| position(i64::from(at), len)).collect();
                    at.map(|at| flat(&at))
                })
                .collect();
            Some((Selection::Points(axes), places))
        }
        Wanted::Mask(mask) => {
            let count: u64 = shape.iter().product();
            let mask: Vec<bool> =
                if mask.is_empty() { vec![true; count as usize] } else { mask.iter().copied().cycle().take(count as usize).collect() };
            let places = mask.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(at, _)| at).collect();
            Some((Selection::Mask(mask), Some(places)))
        }
        Wanted::Blocks(blocks) => {
            let blocks: Vec<std::ops::Range<u64>> = blocks
                .iter()
                .zip(grid)
                .map(|(&(start, len), &count)| {
                    let start = u64::from(start) % (count + 1);
                    start..start + u64::from(len) % (count + 1 - start)
                })
                .collect();
            let lists: Vec<Vec<u64>> = blocks
                .iter()
                .zip(shape)
                .zip(outer)
                .map(|((block, &len), outer)| (0..len).filter(|at| block.contains(&(at / outer))).collect())
                .collect();
            Some((Selection::Blocks(blocks), Some(product(&lists).iter().map(|at| flat(at)).collect())))
        }
    }
}

impl WantedAxis {
    fn selection(&self, len: u64) -> AxisSelection {
        let wide = |at: &i8| i64::from(*at);
        match self {
            Self::Index(at) => AxisSelection::Index(wide(at)),
            Self::Slice(start, stop, step) => {
                AxisSelection::Slice { start: start.as_ref().map(wide), stop: stop.as_ref().map(wide), step: wide(step) }
            }
            Self::List(list) => AxisSelection::List(list.iter().map(wide).collect()),
            Self::Mask(mask) => AxisSelection::Mask((0..len as usize).map(|at| mask.get(at).copied().unwrap_or(true)).collect()),
        }
    }
}

fn position(at: i64, len: u64) -> Option<u64> {
    let at = if at < 0 { at + len as i64 } else { at };
    u64::try_from(at).ok().filter(|at| *at < len)
}

/// The positions along one axis, walked one by one; `None` when one is outside, or the step is 0.
fn positions(axis: &AxisSelection, len: u64) -> Option<Vec<u64>> {
    match axis {
        AxisSelection::Index(at) => Some(vec![position(*at, len)?]),
        AxisSelection::List(list) => list.iter().map(|&at| position(at, len)).collect(),
        AxisSelection::Mask(mask) => Some((0..len).filter(|&at| mask[at as usize]).collect()),
        AxisSelection::Slice { start, stop, step } => {
            let len = len as i64;
            let turn = |at: i64| if at < 0 { at + len } else { at };
            let mut list = Vec::new();
            if *step > 0 {
                let mut at = start.map_or(0, turn).max(0);
                while at < stop.map_or(len, turn).min(len) {
                    list.push(at as u64);
                    at += step;
                }
            } else if *step < 0 {
                let mut at = start.map_or(len - 1, turn).min(len - 1);
                while at > stop.map_or(-1, turn).max(-1) {
                    list.push(at as u64);
                    at += step;
                }
            } else {
                return None;
            }
            Some(list)
        }
        _ => None,
    }
}

/// Every combination, the last axis fastest.
fn product(lists: &[Vec<u64>]) -> Vec<Vec<u64>> {
    lists.iter().fold(vec![Vec::new()], |product, list| {
        product.iter().flat_map(|before| list.iter().map(move |&at| before.iter().copied().chain([at]).collect())).collect()
    })
}

/// A whole small array: its `zarr.json` (or its `.zarray`, when the first byte is `2`), a NUL, and the value of every chunk.
pub fn array(data: &[u8]) {
    let Some((&version, data)) = data.split_first() else { return };
    let Some(end) = data.iter().position(|&byte| byte == 0) else { return };
    let (document, value) = (&data[..end], &data[end + 1..]);
    let stored = match version {
        b'2' => match ArrayMetadataV2::parse(document, None) {
            Ok(array) => StoredMetadata::ArrayV2(array.into()),
            Err(_) => return,
        },
        _ => match NodeMetadata::parse(document) {
            Ok(NodeMetadata::Array(array)) => StoredMetadata::ArrayV3(array),
            _ => return,
        },
    };
    let Ok(array) = Array::from_metadata(memory(), "/", stored, &crate::options()) else { return };
    // What the metadata asks for is given: keep that small.
    let chunk = array.chunk_grid().chunk_shape(&vec![0; array.shape().len()]);
    let bytes = |shape: &[u64]| shape.iter().try_fold(array.item_size().unwrap_or(1) as u64, |product, len| product.checked_mul(*len));
    let chunks = array.chunk_grid_shape();
    let inner = array.inner_chunk_shape().iter().try_fold(1u64, |product, len| product.checked_mul(*len));
    let cells = bytes(&chunk).zip(inner).map(|(chunk, inner)| chunk / inner.max(1));
    if [bytes(array.shape()), bytes(&chunk), cells].iter().any(|bytes| bytes.is_none_or(|bytes| bytes > 1 << 18))
        || bytes(&chunks).is_none_or(|bytes| bytes > 1 << 10)
    {
        return;
    }
    let grid: Vec<Vec<u64>> = chunks.iter().map(|&len| (0..len).collect()).collect();
    for chunk in product(&grid) {
        if let Ok(key) = array.chunk_key(&chunk)
            && let AnyStore::Blocking(store) = array.store()
            && let Some(store) = store.as_writable()
        {
            store.set(&key, value.to_vec().into()).expect("memory");
        }
    }
    let whole = array.read(&Selection::all());
    let first = array.read(&Selection::Points(vec![vec![0]; array.shape().len()]));
    // Where stored bytes are elements, only those asked for are read: a chunk of a wrong size may be found out by one read and not by the other.
    if let (Ok(whole), Ok(first), Some(size)) = (whole, first, array.item_size()) {
        let (whole, first) = (whole.as_bytes().unwrap_or_default(), first.as_bytes().unwrap_or_default());
        assert_eq!(whole.get(..size), first.get(..size), "one element, and the same among all");
    }
    let _ = array.explain();
}
