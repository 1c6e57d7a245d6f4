//! Shapes that change: what lies outside of one handle's shape, and inside of another's.

use std::sync::Arc;

use zarr_array::{Array, ArrayBuilder, Selection, StoredMetadata, Version};
use zarr_buffer_api::Layout;
use zarr_meta::DataType;
use zarr_store::{BlockingToAsync, Fault, FaultyStore, MemoryStore, Metrics, When};
use zarr_store_api::{AnyStore, StoreErrorKind};

use crate::common::{Random, SHAPE, SMALL, grown, layouts, memory, options, outgrown, positions, runtime, selection};

#[test]
fn a_write_through_an_older_handle_keeps_what_others_added() {
    let options = options();
    let runtime = runtime();
    let _inside = runtime.enter();
    let remote = || AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())));
    for (name, builder, store) in
        layouts().into_iter().flat_map(|(name, layout)| [(name, layout.clone(), memory()), (name, layout, remote())])
    {
        let mut random = Random(31);
        let mut model: Vec<i32> = (0..SHAPE.iter().product::<u64>() as i32).map(|value| value + 1).collect();
        let (old, new) = outgrown(store, &builder, &model, &options);
        for turn in 0..24 {
            let wanted = if turn < 4 { Selection::all() } else { selection(&mut random, &SMALL) };
            let (places, shape) = positions(&wanted, &SMALL);
            let values: Vec<i32> = places.iter().map(|_| random.next() as i32).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            for (&at, &value) in places.iter().zip(&values) {
                model[grown(at)] = value;
            }
            let layout = Layout::contiguous(&shape.iter().map(|&len| len as usize).collect::<Vec<_>>(), 4).unwrap();
            match turn % 4 {
                0 => old.write(&wanted, &bytes).unwrap(),
                1 => runtime.block_on(old.write_async(&wanted, bytes)).unwrap(),
                2 => old.write_strided(&wanted, &bytes, &layout).unwrap(),
                _ => runtime.block_on(old.write_strided_async(&wanted, bytes, &layout)).unwrap(),
            }
            let found = new.read_elements::<i32>(&Selection::all()).unwrap();
            assert!(found == model, "{name}, {}, turn {turn}: {wanted:?}", old.store().name());
        }
    }
}

#[test]
fn strings_that_others_added_stay() {
    let strings = |text: &str, count: usize| vec![text.to_owned(); count];
    for builder in
        [ArrayBuilder::new([10], DataType::String).chunks([16]), ArrayBuilder::new([10], DataType::String).chunks([8]).shards([16])]
    {
        let mut new = builder.create(memory(), "/", &options()).unwrap();
        let old = Array::open(new.store().clone(), "/", &options()).unwrap();
        new.resize(&[16]).unwrap();
        new.write_elements(&Selection::parse("10:", 1).unwrap(), &strings("new", 6)).unwrap();
        for part in ["8:", ":"] {
            let part = Selection::parse(part, 1).unwrap();
            let len = old.selection_shape(&part).unwrap()[0] as usize;
            old.write_elements(&part, &strings("old", len)).unwrap();
            let found = new.read_elements::<String>(&Selection::parse("8:", 1).unwrap()).unwrap();
            assert_eq!(found, [strings("old", 2), strings("new", 6)].concat());
        }
    }
}

/// The metadata are looked at once for a write that would overwrite what it cannot see, and not for others; chunks are not read.
#[test]
fn a_write_of_whole_chunks_at_the_edge_asks_once() {
    for version in [Version::V2, Version::V3] {
        let (store, metrics) = Metrics::any(memory());
        let builder = ArrayBuilder::new([10, 10], DataType::Int32).chunks([4, 4]).version(version);
        let array = builder.create(store, "/", &options()).unwrap();
        let requests = |selection: &str| {
            let selection = Selection::parse(selection, 2).unwrap();
            let elements: u64 = array.selection_shape(&selection).unwrap().iter().product();
            metrics.reset();
            array.write_elements(&selection, &vec![7i32; elements as usize]).unwrap();
            metrics.reset().requests()
        };
        assert_eq!(requests(":, :"), 9 + 1, "nine chunks");
        assert_eq!(requests("8:, :4"), 1 + 1);
        assert_eq!(requests(":8, :8"), 4, "no chunk is cut");
        assert_eq!(requests("8:, 0"), 1 + 1, "a chunk that is written in part is read");
    }
}

#[test]
fn a_shrink_that_is_cut_off_leaves_nothing_stale() {
    let strings = || ArrayBuilder::new([10, 10], DataType::String);
    let numbers = || ArrayBuilder::new([10, 10], DataType::Int32);
    for (at, builder) in [
        numbers().chunks([4, 3]),
        numbers().chunks([2, 3]).shards([4, 6]),
        numbers().chunks([4, 3]).version(Version::V2),
        strings().chunks([4, 3]),
        strings().chunks([2, 3]).shards([4, 6]),
    ]
    .into_iter()
    .enumerate()
    {
        // Cut off at any write: some chunks are removed, some are blank.
        for cut in 0.. {
            let inner = MemoryStore::new();
            let faulty = FaultyStore::new(inner.clone());
            let mut array = builder.create(AnyStore::blocking(faulty.clone()), "/", &options()).unwrap();
            let write = |array: &Array, value: &str| match array.data_type() {
                DataType::String => array.write_elements(&Selection::all(), &vec![value.to_owned(); 100]).unwrap(),
                _ => array.write_elements(&Selection::all(), &vec![value.parse::<i32>().unwrap(); 100]).unwrap(),
            };
            write(&array, "7");
            faulty.heal();
            faulty.inject(When::CrashAtWrite(cut), Fault::Fail(StoreErrorKind::Io));
            let failed = array.resize(&[5, 7]).is_err();
            faulty.heal();
            let mut array = Array::open(AnyStore::blocking(inner.clone()), "/", &options()).unwrap();
            if array.shape() == [10, 10] {
                continue;
            }
            array.resize(&[12, 9]).unwrap();
            let found: Vec<bool> = match array.data_type() {
                DataType::String => array.read_elements::<String>(&Selection::all()).unwrap().iter().map(|value| value == "7").collect(),
                _ => array.read_elements::<i32>(&Selection::all()).unwrap().iter().map(|&value| value == 7).collect(),
            };
            let expected: Vec<bool> = (0..12 * 9).map(|place| place / 9 < 5 && place % 9 < 7).collect();
            assert_eq!(found, expected, "layout {at}, cut off at {cut}");
            if !failed {
                break;
            }
        }
    }
}

#[test]
fn a_shrink_that_failed_is_completed_by_another_one() {
    for cut in 1..4 {
        let faulty = FaultyStore::new(MemoryStore::new());
        let mut array =
            ArrayBuilder::new([10], DataType::UInt8).chunks([4]).create(AnyStore::blocking(faulty.clone()), "/", &options()).unwrap();
        array.write_elements(&Selection::all(), &[7u8; 10]).unwrap();
        faulty.heal();
        faulty.inject(When::Write(cut), Fault::Fail(StoreErrorKind::Io));
        let failed = array.resize(&[2]).is_err();
        assert_eq!((array.shape(), failed), (&[2][..], cut < 4));
        faulty.heal();
        array.resize(&[2]).unwrap();
        assert_eq!([1, 2].map(|chunk| array.stored_chunk_size(&[chunk]).unwrap()), [None; 2]);
        // As another implementation reads it.
        let metadata = array.stored_metadata().clone();
        let StoredMetadata::ArrayV3(mut metadata) = metadata else { panic!() };
        metadata.shape = vec![10];
        let larger = Array::from_metadata(array.store().clone(), "/", StoredMetadata::ArrayV3(metadata), &options()).unwrap();
        assert_eq!(larger.read_elements::<u8>(&Selection::all()).unwrap(), [7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

/// Of ten chunks in a grid of 10¹², ten are looked at, and nothing is walked.
#[test]
fn a_sparse_array_shrinks_and_grows_by_what_is_stored() {
    const LEN: u64 = 1_000_000;
    let (store, metrics) = Metrics::any(memory());
    let mut array = ArrayBuilder::new([LEN; 3], DataType::UInt8).chunks([100; 3]).create(store, "/", &options()).unwrap();
    let at = |row: u64, column: u64| Selection::ranges([row..row + 1, column..column + 1, 0..1]);
    for column in 0..5 {
        for row in [0, LEN - 100] {
            array.write_elements(&at(row, column * 1000), &[1u8]).unwrap();
            array.write_elements(&at(row + 99, column * 1000), &[2u8]).unwrap();
        }
    }
    metrics.reset();
    array.resize(&[LEN - 50, LEN, LEN]).unwrap();
    // The metadata read and stored, the listing, and five chunks at the edge, read twice and stored.
    let requests = metrics.reset().requests();
    assert!(requests <= 1 + 1 + 1 + 5 * 3, "{requests}");
    array.resize(&[LEN, LEN, LEN + 1000]).unwrap();
    let requests = metrics.reset().requests();
    assert!(requests <= 1 + 1 + 1 + 5, "{requests}");
    for column in 0..5 {
        let found = [0, 99, LEN - 100, LEN - 1].map(|row| array.read_elements::<u8>(&at(row, column * 1000)).unwrap()[0]);
        assert_eq!(found, [1, 2, 1, 0]);
    }
    metrics.reset();
    array.resize(&[1, LEN, LEN]).unwrap();
    array.resize(&[1, LEN, LEN]).unwrap();
    assert_eq!(array.stored_size().unwrap().1, 5);
    array.resize(&[0, 0, 0]).unwrap();
    assert_eq!(array.stored_size().unwrap().1, 0);
}
