//! Any layout, any selection, any order of reads and writes: the array behaves like a vector in memory.

use crate::common::{Random, SHAPE, layouts, memory, options, positions, runtime, selection};
use bytes::Bytes;
use zarr_array::{Array, Coalescing, ReadSet, Selection};
use zarr_codec_api::Scratch;
use zarr_store::BlockingToAsync;
use zarr_store_api::{AnyStore, ByteRange};

const FILL: i32 = 0;

fn bytes_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn check_read(name: &str, array: &Array, model: &[i32], wanted: &Selection) {
    let (places, shape) = positions(wanted, &SHAPE);
    let expected: Vec<i32> = places.iter().map(|&at| model[at]).collect();
    let found: Vec<i32> = array.read_elements(wanted).unwrap_or_else(|error| panic!("{name}: {wanted:?}: {error}"));
    assert_eq!(found, expected, "{name}: {wanted:?}");
    assert_eq!(array.selection_shape(wanted).unwrap(), shape, "{name}: {wanted:?}");
    let mut into = vec![0xAA; expected.len() * 4];
    array.read_into(wanted, &mut into).unwrap();
    assert_eq!(into, bytes_of(&expected), "{name}: {wanted:?}");
}

/// The public plan, driven by hand with answers out of order.
fn check_plan(name: &str, array: &Array, model: &[i32], wanted: &Selection, random: &mut Random) {
    let AnyStore::Blocking(store) = array.store().clone() else { panic!("a blocking store") };
    let mut plan = array.plan(wanted).unwrap();
    let output = plan.output(vec![0; plan.output_len()]).unwrap();
    let mut scratch = Scratch::new();
    let mut waiting = Vec::new();
    let mut turns = 0;
    while !plan.is_done() {
        turns += 1;
        assert!(turns < 10_000, "{name}: the plan does not end");
        waiting.extend(plan.next_requests(1 + random.below(4) as usize).unwrap());
        if waiting.is_empty() {
            continue;
        }
        let request = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
        let bytes: Option<Vec<Bytes>> = request.ranges.iter().map(|&range| store.get(&request.key, range).unwrap()).collect();
        for job in plan.supply(request.id, bytes).unwrap() {
            job.run(&output, &mut scratch).unwrap();
        }
    }
    let (places, _) = positions(wanted, &SHAPE);
    let expected: Vec<i32> = places.iter().map(|&at| model[at]).collect();
    assert_eq!(output.into_bytes(), bytes_of(&expected), "{name}: {wanted:?}");
}

#[test]
fn reads_and_writes_agree_with_a_vector() {
    let mut random = Random(7);
    for (name, builder) in layouts() {
        let array = builder.create(memory(), "/", &options()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut model = vec![FILL; SHAPE.iter().product::<u64>() as usize];
        check_read(name, &array, &model, &Selection::all());
        for turn in 0..60 {
            let written = if turn == 20 { Selection::all() } else { selection(&mut random, &SHAPE) };
            let (places, _) = positions(&written, &SHAPE);
            // Some writes restore the fill value, so that chunks vanish again.
            let values: Vec<i32> = places.iter().map(|_| if turn % 5 == 4 { FILL } else { random.next() as i32 }).collect();
            for (&at, &value) in places.iter().zip(&values) {
                model[at] = value;
            }
            array.write_elements(&written, &values).unwrap_or_else(|error| panic!("{name}: {written:?}: {error}"));
            for _ in 0..4 {
                check_read(name, &array, &model, &selection(&mut random, &SHAPE));
            }
            check_plan(name, &array, &model, &selection(&mut random, &SHAPE), &mut random);
        }
        check_read(name, &array, &model, &Selection::all());
        // The same through a new handle, and with every range asked for on its own.
        let apart = options().with_coalescing(Coalescing { gap: 0, waste: 0, request: 1 });
        let again = Array::open(array.store().clone(), "/", &apart).unwrap();
        check_read(name, &again, &model, &Selection::all());
    }
}

#[test]
fn async_agrees_with_a_vector() {
    let runtime = runtime();
    let mut random = Random(11);
    for (name, builder) in layouts() {
        // A face that does not say that it is one, so that the async path is taken.
        let store = AnyStore::Async(std::sync::Arc::new(BlockingToAsync::new(zarr_store::MemoryStore::new())));
        let _inside = runtime.enter();
        runtime.block_on(async {
            let array = builder.create_async(store, "/", &options()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(matches!(array.store(), AnyStore::Async(_)));
            let mut model = vec![FILL; SHAPE.iter().product::<u64>() as usize];
            for _ in 0..12 {
                let written = selection(&mut random, &SHAPE);
                let (places, _) = positions(&written, &SHAPE);
                let values: Vec<i32> = places.iter().map(|_| random.next() as i32).collect();
                for (&at, &value) in places.iter().zip(&values) {
                    model[at] = value;
                }
                array.write_elements_async(&written, &values).await.unwrap_or_else(|error| panic!("{name}: {written:?}: {error}"));
                let wanted = selection(&mut random, &SHAPE);
                let (places, shape) = positions(&wanted, &SHAPE);
                let expected: Vec<i32> = places.iter().map(|&at| model[at]).collect();
                let found = array.read_async(&wanted).await.unwrap();
                assert_eq!(found.shape, shape);
                assert_eq!(found.into_elements::<i32>().unwrap(), expected, "{name}: {wanted:?}");
            }
        });
    }
}

#[test]
fn a_read_set_is_its_reads() {
    let mut random = Random(3);
    let arrays: Vec<(Array, Vec<i32>)> = layouts()
        .into_iter()
        .map(|(_, builder)| {
            let array = builder.create(memory(), "/", &options()).unwrap();
            let values: Vec<i32> = (0..SHAPE.iter().product::<u64>()).map(|_| random.next() as i32).collect();
            array.write_elements(&Selection::all(), &values).unwrap();
            (array, values)
        })
        .collect();
    let mut set = ReadSet::new();
    let mut expected = Vec::new();
    for (array, model) in &arrays {
        let wanted = selection(&mut random, &SHAPE);
        expected.push(positions(&wanted, &SHAPE).0.iter().map(|&at| model[at]).collect::<Vec<i32>>());
        set.push(array, wanted);
    }
    let found: Vec<Vec<i32>> = set.read().unwrap().into_iter().map(|data| data.into_elements().unwrap()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_whole_array_is_written_without_reading() {
    // Chunks that are covered are not read first: a store that refuses reads of chunks takes the write.
    for (name, builder) in layouts() {
        let array = builder.create(memory(), "/", &options()).unwrap();
        let values: Vec<i32> = (0..SHAPE.iter().product::<u64>() as i32).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        for chunk in [[0, 0, 0], [1, 1, 0]] {
            if array.stored_chunk_size(&chunk).unwrap().is_some() {
                array.write_encoded_chunk(&chunk, vec![1, 2, 3]).unwrap();
            }
        }
        assert!(array.read(&Selection::all()).is_err(), "{name}: a broken chunk is read");
        array.write_elements(&Selection::all(), &values).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values, "{name}");
    }
}

#[test]
fn encoded_chunks_are_there() {
    let (_, builder) = layouts().swap_remove(3);
    let array = builder.create(memory(), "/a/b", &options()).unwrap();
    assert_eq!(array.read_encoded_chunk(&[0, 0, 0]).unwrap(), None);
    array.write_elements(&Selection::all(), &vec![5i32; 13 * 9 * 7]).unwrap();
    let encoded = array.read_encoded_chunk(&[0, 0, 0]).unwrap().unwrap();
    assert_eq!(array.stored_chunk_size(&[0, 0, 0]).unwrap(), Some(encoded.len() as u64));
    let AnyStore::Blocking(store) = array.store().clone() else { panic!("blocking") };
    assert_eq!(store.get(&array.chunk_key(&[0, 0, 0]).unwrap(), ByteRange::All).unwrap().unwrap(), encoded);
    array.erase_chunk(&[0, 0, 0]).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::axes([0.into(), 0.into(), 0.into()])).unwrap(), [0]);
}
