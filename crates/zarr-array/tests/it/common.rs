//! What the tests share: stores, options, layouts, and a naive array to compare with.

use zarr_array::{Array, ArrayBuilder, AxisSelection, Options, Selection, Version};
use zarr_codec_api::Registry;
use zarr_meta::{ChunkGrid, DataType, Extension, GridAxis, Json};
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

pub(crate) fn options() -> Options {
    Options::new(Registry::new().with(zarr_codecs_cpu::provider()))
}

pub(crate) fn memory() -> AnyStore {
    AnyStore::blocking(MemoryStore::new())
}

pub(crate) fn codecs(json: &str) -> Vec<Extension> {
    let json = Json::parse(json.as_bytes()).expect("test JSON");
    json.as_array().expect("a list").iter().map(|codec| Extension::parse(codec).expect("a codec")).collect()
}

/// A generator that needs no crate: splitmix64.
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }
}

/// Ways to store an array of int32 of shape [13, 9, 7].
pub(crate) const SHAPE: [u64; 3] = [13, 9, 7];

pub(crate) fn layouts() -> Vec<(&'static str, ArrayBuilder)> {
    let base = || ArrayBuilder::new(SHAPE, DataType::Int32);
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let big = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
    let zstd = r#"{"name":"zstd","configuration":{"level":1,"checksum":true}}"#;
    let crc = r#"{"name":"crc32c"}"#;
    let transpose = |order: &str| format!(r#"{{"name":"transpose","configuration":{{"order":{order}}}}}"#);
    let shard = |shape: &str, codecs: &str, location: &str| {
        format!(
            r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{shape},"codecs":[{codecs}],"index_codecs":[{little},{crc}],"index_location":"{location}"}}}}"#
        )
    };
    let with = |chunks: [u64; 3], json: String| base().chunks(chunks).codecs(codecs(&format!("[{json}]")));
    vec![
        ("raw", with([4, 5, 7], little.into())),
        ("raw big endian", with([4, 5, 7], big.into())),
        ("crc32c", with([4, 5, 3], format!("{little},{crc}"))),
        ("zstd", with([4, 5, 3], format!("{little},{zstd}"))),
        ("one chunk", with([20, 20, 20], format!("{little},{zstd}"))),
        ("rows", with([3, 9, 7], format!("{little},{zstd},{crc}"))),
        ("transpose", with([4, 5, 3], format!("{},{little},{zstd}", transpose("[2,0,1]")))),
        ("two transposes", with([4, 5, 3], format!("{},{},{big}", transpose("[2,0,1]"), transpose("[1,0,2]")))),
        // Axes of one element, whose strides are those of another order.
        ("transposed lines", with([1, 5, 1], format!("{},{little}", transpose("[2,1,0]")))),
        ("transposed planes", with([4, 1, 7], format!("{},{little}", transpose("[1,0,2]")))),
        ("shard", with([6, 4, 6], shard("[2,2,3]", &format!("{little},{zstd}"), "end"))),
        ("shard raw", with([6, 4, 6], shard("[2,2,3]", little, "start"))),
        ("shard of one", with([4, 3, 7], shard("[4,3,7]", &format!("{little},{crc}"), "start"))),
        (
            "transpose before shard",
            with(
                [6, 4, 8],
                format!("{},{}", transpose("[2,0,1]"), shard("[4,3,2]", &format!("{},{big},{zstd}", transpose("[1,2,0]")), "end")),
            ),
        ),
        ("nested", with([8, 8, 8], shard("[4,4,8]", &shard("[2,4,2]", &format!("{little},{zstd}"), "start"), "end"))),
        (
            "nested raw",
            with([8, 8, 8], shard("[4,4,8]", &format!("{},{}", transpose("[2,1,0]"), shard("[2,4,2]", little, "end")), "start")),
        ),
        ("compressed shard", with([6, 4, 6], format!("{},{zstd}", shard("[2,2,3]", little, "end")))),
        ("compressed nested", with([8, 8, 8], shard("[4,4,8]", &format!("{},{crc}", shard("[2,4,2]", little, "end")), "end"))),
        ("rectilinear", {
            let axes = vec![GridAxis::edges([5, 1, 7]).unwrap(), GridAxis::runs([(3, 3)]).unwrap(), GridAxis::edges([2, 6]).unwrap()];
            base().chunk_grid(ChunkGrid::Rectilinear { axes }).codecs(codecs(&format!("[{little},{zstd}]")))
        }),
        ("rectilinear shards", {
            let axes = vec![GridAxis::edges([4, 2, 8]).unwrap(), GridAxis::runs([(3, 3)]).unwrap(), GridAxis::edges([2, 6]).unwrap()];
            base()
                .chunk_grid(ChunkGrid::Rectilinear { axes })
                .codecs(codecs(&format!("[{}]", shard("[2,3,2]", &format!("{little},{zstd}"), "end"))))
        }),
        ("v2", base().chunks([4, 5, 3]).version(Version::V2)),
        ("v2 raw", base().chunks([4, 5, 3]).compressors([]).version(Version::V2)),
        ("v2 F raw", with([1, 5, 1], format!("{},{little}", transpose("[2,1,0]"))).version(Version::V2)),
        ("v2 F", with([4, 5, 3], format!("{},{little},{zstd}", transpose("[2,1,0]"))).version(Version::V2)),
    ]
}

/// A random selection of an array of `shape`, in any of the forms; lists and points may repeat themselves.
pub(crate) fn selection(random: &mut Random, shape: &[u64]) -> Selection {
    match random.below(8) {
        0 => {
            let count = random.below(12) as usize;
            let mut points: Vec<Vec<i64>> = vec![Vec::new(); shape.len()];
            for _ in 0..count {
                // Some twice.
                let again = points.first().is_some_and(|axis| !axis.is_empty()) && random.below(4) == 0;
                for (axis, &len) in points.iter_mut().zip(shape) {
                    axis.push(if again { axis[0] } else { random.below(len) as i64 });
                }
            }
            Selection::Points(points)
        }
        1 => {
            let elements: u64 = shape.iter().product();
            Selection::Mask((0..elements).map(|_| random.below(5) == 0).collect())
        }
        _ => Selection::axes(shape.iter().map(|&len| axis_selection(random, len))),
    }
}

fn axis_selection(random: &mut Random, len: u64) -> AxisSelection {
    let signed = |random: &mut Random| Some(random.below(2 * len + 2) as i64 - len as i64);
    match random.below(7) {
        0 => (random.below(len) as i64).into(),
        1 => (-1 - random.below(len) as i64).into(),
        2 => (..).into(),
        3 => AxisSelection::Slice { start: signed(random), stop: signed(random), step: 1 + random.below(3) as i64 },
        4 => AxisSelection::Slice { start: signed(random), stop: signed(random), step: -1 - random.below(3) as i64 },
        5 => AxisSelection::List((0..random.below(6)).map(|_| random.below(len) as i64).collect()),
        _ => AxisSelection::Mask((0..len).map(|_| random.below(3) == 0).collect()),
    }
}

/// The flat C-order positions that a selection names, and the shape of the result: written anew, one element at a time.
pub(crate) fn positions(selection: &Selection, shape: &[u64]) -> (Vec<usize>, Vec<u64>) {
    let flat = |point: &[u64]| point.iter().zip(shape).fold(0, |flat, (&at, &len)| flat * len as usize + at as usize);
    let wrap = |at: i64, len: u64| if at < 0 { (len as i64 + at) as u64 } else { at as u64 };
    match selection {
        Selection::Points(axes) => {
            let count = axes.first().map_or(1, Vec::len);
            let all = (0..count).map(|point| flat(&axes.iter().zip(shape).map(|(axis, &len)| wrap(axis[point], len)).collect::<Vec<_>>()));
            (all.collect(), vec![count as u64])
        }
        Selection::Mask(mask) => {
            let all: Vec<usize> = mask.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(at, _)| at).collect();
            let count = all.len() as u64;
            (all, vec![count])
        }
        Selection::Axes(axes) => {
            let whole = AxisSelection::from(..);
            let mut result = Vec::new();
            let lists: Vec<Vec<u64>> = shape
                .iter()
                .zip(axes.iter().chain(std::iter::repeat(&whole)))
                .map(|(&len, axis)| {
                    let list: Vec<u64> = match axis {
                        AxisSelection::Index(at) => return vec![wrap(*at, len)],
                        AxisSelection::Slice { start, stop, step } => python_slice(*start, *stop, *step, len as i64),
                        AxisSelection::List(list) => list.iter().map(|&at| wrap(at, len)).collect(),
                        AxisSelection::Mask(mask) => (0..len).filter(|&at| mask[at as usize]).collect(),
                        _ => unreachable!(),
                    };
                    result.push(list.len() as u64);
                    list
                })
                .collect();
            let mut all = vec![0];
            for (list, &len) in lists.iter().zip(shape) {
                let mut longer = Vec::with_capacity(all.len() * list.len());
                for &start in &all {
                    for &at in list {
                        longer.push(start * len as usize + at as usize);
                    }
                }
                all = longer;
            }
            (all, result)
        }
        _ => unreachable!(),
    }
}

fn python_slice(start: Option<i64>, stop: Option<i64>, step: i64, len: i64) -> Vec<u64> {
    let fix = |at: i64| if at < 0 { at + len } else { at };
    let mut found = Vec::new();
    if step > 0 {
        let (mut at, end) = (start.map_or(0, |at| fix(at).max(0)), stop.map_or(len, |at| fix(at).min(len)));
        while at < end {
            found.push(at as u64);
            at += step;
        }
    } else {
        let (mut at, end) = (start.map_or(len - 1, |at| fix(at).min(len - 1)), stop.map_or(-1, |at| fix(at).max(-1)));
        while at > end {
            found.push(at as u64);
            at += step;
        }
    }
    found
}

/// A runtime for async tests.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A shape in [`SHAPE`] that cuts chunks of every layout.
pub(crate) const SMALL: [u64; 3] = [10, 7, 5];

/// The position in an array of [`SHAPE`] of an element of one of [`SMALL`].
pub(crate) fn grown(flat: usize) -> usize {
    let [_, rows, columns] = SMALL.map(|len| len as usize);
    let (plane, row, column) = (flat / columns / rows, flat / columns % rows, flat % columns);
    (plane * SHAPE[1] as usize + row) * SHAPE[2] as usize + column
}

/// A handle on an array of [`SMALL`], and one that made it as large as [`SHAPE`] and wrote `values` since.
pub(crate) fn outgrown(store: AnyStore, builder: &ArrayBuilder, values: &[i32], options: &Options) -> (Array, Array) {
    let mut new = builder.create(store, "/", options).expect("an array");
    new.resize(&SMALL).expect("a smaller shape");
    let old = Array::open(new.store().clone(), "/", options).expect("an array");
    new.resize(&SHAPE).expect("the shape before");
    new.write_elements(&Selection::all(), values).expect("a write");
    (old, new)
}
