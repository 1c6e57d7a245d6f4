//! Shapes that change: what lies outside of one handle's shape, and inside of another's.

use std::sync::Arc;

use zarr_array::{Array, ArrayBuilder, Selection, Version};
use zarr_buffer_api::Layout;
use zarr_meta::DataType;
use zarr_store::{BlockingToAsync, MemoryStore, Metrics};
use zarr_store_api::AnyStore;

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
