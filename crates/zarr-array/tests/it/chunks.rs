//! How chunks are fetched and decoded: requests, rows, blocks, pieces, fronts, threads.

use std::sync::Arc;

use crate::common::{Random, codecs, memory, options, positions, selection};
use zarr_array::{Array, ArrayBuilder, ArrayError, Selection};
use zarr_meta::{ChunkGrid, DataType, GridAxis};
use zarr_store::{FilesystemStore, MemoryStore, Metrics};
use zarr_store_api::AnyStore;

#[test]
fn a_cold_box_in_one_shard_costs_two_requests() {
    let (store, metrics) = Metrics::any(AnyStore::blocking(MemoryStore::new()));
    let builder = ArrayBuilder::new([64, 64, 64], DataType::UInt16).chunks([8, 8, 8]).shards([64, 64, 64]);
    let array = builder.create(store.clone(), "/", &options()).unwrap();
    let values: Vec<u16> = (0..64u32 * 64 * 64).map(|i| (i.wrapping_mul(2_654_435_761) >> 18) as u16).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let shard = array.stored_chunk_size(&[0, 0, 0]).unwrap().unwrap();
    let per_chunk = (shard - 512 * 16 - 4) as f64 / 512.0;
    // Boxes of several extents, along rows of inner chunks and across them.
    for (text, inner) in [
        ("0:8, 0:8, :", 8.0),
        ("10:14, 3:20, 9:30", 3.0 * 3.0),
        ("0:16, :, 30:34", 2.0 * 8.0 * 2.0),
        ("5, 5, 5", 1.0),
        ("::9, ::9, 0", 64.0),
    ] {
        let array = Array::open(store.clone(), "/", &options()).unwrap();
        metrics.reset();
        array.read(&Selection::parse(text, 3).unwrap()).unwrap();
        let done = metrics.reset();
        let bytes = done.bytes_read();
        assert_eq!(done.requests(), 2, "{text}: one for the index, one for the inner chunks");
        let needed = inner * per_chunk + 512.0 * 16.0 + 4.0;
        assert!((bytes as f64) <= 1.25 * needed, "{text}: {bytes} bytes for {needed}");
    }
}

#[test]
fn a_cold_box_in_one_shard_costs_two_requests_however_large() {
    let (store, metrics) = Metrics::any(AnyStore::blocking(MemoryStore::new()));
    let dir = tempfile::tempdir().unwrap();
    let files = AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap());
    let mut random = crate::common::Random(7);
    let values: Vec<u64> = (0..1 << 20).map(|_| random.next()).collect();
    let builder = ArrayBuilder::new([16, 256, 256], DataType::UInt64).chunks([4, 32, 32]).shards([16, 256, 256]);
    for store in [&store, &files] {
        builder.create(store.clone(), "/", &options()).unwrap().write_elements(&Selection::all(), &values).unwrap();
    }
    // 8 MB, bytes that do not compress; and columns of inner chunks, with gaps between them.
    for (text, inner) in [(":, :, :", 256), ("2:, 40:, :250", 4 * 7 * 8), (":, :, 40:", 4 * 8 * 7), ("::9, ::70, ::70", 2 * 4 * 4)] {
        let selection = Selection::parse(text, 3).unwrap();
        let array = Array::open(store.clone(), "/", &options()).unwrap();
        metrics.reset();
        let expected = array.read(&selection).unwrap();
        let done = metrics.reset();
        assert_eq!(done.requests(), 2, "{text}: one for the index, one for the inner chunks");
        let needed = inner as f64 * 32_800.0 + 4_100.0;
        assert!((done.bytes_read() as f64) <= 1.25 * needed, "{text}: {} bytes for {needed}", done.bytes_read());

        // Of files, the threads read a part each; a plan asks for as much.
        let array = Array::open(files.clone(), "/", &options()).unwrap();
        assert_eq!(array.read(&selection).unwrap().as_bytes(), expected.as_bytes(), "{text}");
        let AnyStore::Blocking(store) = &files else { unreachable!("a store of files") };
        let mut plan = array.plan(&selection).unwrap();
        let mut requests = 0;
        while let Some(request) = plan.next_requests(1).unwrap().pop() {
            requests += 1;
            let bytes = store.get_ranges(&request.key, &request.ranges).unwrap();
            plan.supply(request.id, bytes).unwrap();
        }
        assert_eq!(requests, 2, "{text}");
    }
}

#[test]
fn one_whole_chunk_costs_one_request_and_says_what_is_wrong() {
    let (store, metrics) = Metrics::any(AnyStore::blocking(MemoryStore::new()));
    let array = ArrayBuilder::new([9, 8], DataType::UInt16).chunks([4, 8]).create(store.clone(), "/", &options()).unwrap();
    let values: Vec<u16> = (1..=72).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    metrics.reset();
    for (text, range) in [("4:8, :", 32..64), ("0:4, 0:8", 0..32), ("8:, :", 64..72), ("3:7, :", 24..56)] {
        let selection = Selection::parse(text, 2).unwrap();
        assert_eq!(array.read_elements::<u16>(&selection).unwrap(), values[range.clone()], "{text}");
        let mut bytes = vec![0; range.len() * 2];
        assert_eq!(array.read_into(&selection, &mut bytes).unwrap(), [range.len() as u64 / 8, 8]);
        assert_eq!(array.read(&selection).unwrap().as_bytes(), Some(&bytes[..]));
    }
    assert_eq!(metrics.reset().requests(), 3 * (1 + 1 + 1 + 2));

    array.erase_chunk(&[1, 0]).unwrap();
    assert_eq!(array.read_elements::<u16>(&Selection::parse("4:8, :", 2).unwrap()).unwrap(), [0; 32]);
    array.write_encoded_chunk(&[1, 0], vec![1, 2, 3]).unwrap();
    for error in
        [array.read(&Selection::parse("4:8, :", 2).unwrap()).unwrap_err(), array.read(&Selection::parse("3:8, :", 2).unwrap()).unwrap_err()]
    {
        assert!(matches!(&error, ArrayError::Chunk { chunk, .. } if chunk == &[1, 0]), "{error}");
    }
}

#[test]
fn a_large_raw_chunk_is_read_by_several_threads() {
    let dir = tempfile::tempdir().unwrap();
    let store = AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap());
    let len = (5 << 20) + 123;
    let array =
        ArrayBuilder::new([2 * len], DataType::UInt8).chunks([len]).codecs(codecs(r#"["bytes"]"#)).create(store, "/", &options()).unwrap();
    let values: Vec<u8> = (0..2 * len).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    array.write(&Selection::all(), &values).unwrap();
    let second = Selection::ranges(std::iter::once(len..2 * len));
    assert!(array.read(&second).unwrap().as_bytes() == Some(&values[len as usize..]));
    for wrong in [len - 1, len + 1, 1 << 20, 3, 0] {
        array.write_encoded_chunk(&[1], values[..wrong as usize].to_vec()).unwrap();
        let error = array.read(&second).unwrap_err().to_string();
        assert!(error.contains(&wrong.to_string()), "{error}");
    }
    array.erase_chunk(&[1]).unwrap();
    assert!(array.read(&second).unwrap().as_bytes().unwrap().iter().all(|&byte| byte == 0));
}

/// Nor is the front of one that a few bytes claim to be.
#[test]
fn a_front_that_no_memory_holds_is_an_error() {
    let zstd = codecs(r#"[{"name":"zstd","configuration":{"level":1,"checksum":false}}]"#);
    let builder = ArrayBuilder::new([1u64 << 40], DataType::UInt8).chunks([1u64 << 40]).compressors(zstd);
    let array = builder.create(memory(), "/", &options()).unwrap();
    // One segment of 2^40 bytes, of which the first 2^16 are there.
    let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0xE0][..], &(1u64 << 40).to_le_bytes(), &[0x02, 0x00, 0x08, 0x07]].concat();
    array.write_encoded_chunk(&[0], frame).unwrap();
    let error = array.read(&Selection::axes([(1i64 << 38).into()])).unwrap_err();
    assert!(matches!(error, ArrayError::Chunk { .. }), "{error}");
    assert_eq!(array.read_elements::<u8>(&Selection::parse("65000:65003", 1).unwrap()).unwrap(), [7; 3]);
}

#[test]
fn large_raw_chunks_are_read_some_rows_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = AnyStore::blocking(FilesystemStore::new(directory.path()).unwrap());
    let builder = ArrayBuilder::new([60, 400_000], DataType::UInt8).chunks([30, 200_000]).compressors([]);
    let array = builder.create(store, "/", &options()).unwrap();
    let values: Vec<u8> = (0..24_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    array.erase_chunk(&[1, 0]).unwrap();
    let mut expected = values.clone();
    (30..60).for_each(|row| expected[row * 400_000..row * 400_000 + 200_000].fill(0));
    assert!(array.read_elements::<u8>(&Selection::all()).unwrap() == expected);
    // A chunk that is too long or too short is told all the same.
    let mut long = array.read_encoded_chunk(&[0, 1]).unwrap().unwrap().to_vec();
    long.push(0);
    array.write_encoded_chunk(&[0, 1], long.clone()).unwrap();
    assert!(array.read(&Selection::all()).is_err());
    long.truncate(long.len() - 2);
    array.write_encoded_chunk(&[0, 1], long).unwrap();
    assert!(array.read(&Selection::all()).is_err());
}

/// A chunk of one element along some axes lies in C order whatever order its axes are stored in; the strides of these axes say nothing.
#[test]
fn chunks_of_one_element_along_some_axes() {
    let shape = [4u64, 5, 3];
    let values: Vec<i32> = (1..=60).collect();
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let blosc = r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":0}}"#;
    let zstd = r#"{"name":"zstd","configuration":{"level":1,"checksum":false}}"#;
    for chunk in 0..27u64 {
        let chunks = [chunk / 9 + 1, chunk / 3 % 3 + 1, chunk % 3 + 1];
        for order in ["[0,1,2]", "[0,2,1]", "[1,0,2]", "[1,2,0]", "[2,0,1]", "[2,1,0]"] {
            let turned = format!(r#"{{"name":"transpose","configuration":{{"order":{order}}}}},{little}"#);
            let shard = format!(
                r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{chunks:?},"codecs":[{turned}],"index_codecs":[{little}]}}}}"#
            );
            let outer = chunks.map(|len| 2 * len);
            for (chunks, chain) in
                [(chunks, turned.clone()), (chunks, format!("{turned},{blosc}")), (chunks, format!("{turned},{zstd}")), (outer, shard)]
            {
                let name = format!("{chunks:?} {chain}");
                let array = ArrayBuilder::new(shape, DataType::Int32).chunks(chunks).codecs(codecs(&format!("[{chain}]")));
                let array = array.create(memory(), "/", &options()).unwrap();
                array.write_elements(&Selection::all(), &values).unwrap();
                assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values, "{name}");
                let mut all = Vec::new();
                for chunk in array.read_each(array.chunk_selections()) {
                    all.extend(chunk.unwrap().into_elements::<i32>().unwrap());
                }
                all.sort_unstable();
                assert_eq!(all, values, "{name}, chunk by chunk");
                let part = Selection::ranges([1..4, 0..5, 2..3]);
                let expected: Vec<i32> = positions(&part, &shape).0.iter().map(|&at| values[at]).collect();
                assert_eq!(array.read_elements::<i32>(&part).unwrap(), expected, "{name}, a part");
                let negative: Vec<i32> = expected.iter().map(|value| -value).collect();
                array.write_elements(&part, &negative).unwrap();
                let expected: Vec<i32> = values.iter().map(|value| if expected.contains(value) { -value } else { *value }).collect();
                assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), expected, "{name}, after a write");
            }
        }
    }
}

/// Blocks of which none ends where a row does, or where one of the array's axes turns.
#[test]
fn chunks_in_blocks_are_decoded_some_blocks_at_a_time() {
    let shape = [45u64, 40, 37];
    let values: Vec<i32> = (0..shape.iter().product::<u64>() as i32).map(|i| i.wrapping_mul(2_654_435) >> 3).collect();
    for (name, order, blosc, last) in [
        ("lz4", "[0, 1, 2]", 8192, r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        ("zstd", "[2, 0, 1]", 4096, r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        ("lz4", "[0, 2, 1]", 100_000, r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        ("lz4", "[0, 1, 2]", 1_000_000, r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        ("lz4", "[1, 0, 2]", 1_000_000, r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        ("lz4", "[0, 1, 2]", 8192, r#"{"name":"bytes","configuration":{"endian":"big"}}"#),
    ] {
        let blosc = format!(
            r#"[{{"name":"transpose","configuration":{{"order":{order}}}}},{last},{{"name":"blosc","configuration":{{"cname":"{name}","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":{blosc}}}}},{{"name":"crc32c"}}]"#
        );
        let builder = ArrayBuilder::new(shape, DataType::Int32).chunks([32, 40, 36]).codecs(codecs(&blosc));
        let array = builder.create(memory(), "/", &options()).unwrap();
        array.write_elements(&Selection::all(), &values).unwrap();
        let mut random = Random(3);
        for turn in 0..300 {
            let wanted = match turn {
                0 => Selection::all(),
                1 => Selection::ranges([0..32, 0..40, 0..36]),
                _ => selection(&mut random, &shape),
            };
            let expected: Vec<i32> = positions(&wanted, &shape).0.iter().map(|&at| values[at]).collect();
            assert!(array.read_elements::<i32>(&wanted).unwrap() == expected, "{blosc}: {wanted:?}");
        }
        // A block that is damaged is told by whoever wants it.
        let mut encoded = array.read_encoded_chunk(&[0, 0, 0]).unwrap().unwrap().to_vec();
        encoded[100] ^= 0xFF;
        array.write_encoded_chunk(&[0, 0, 0], encoded).unwrap();
        assert!(array.read(&Selection::all()).is_err());
        assert!(array.read(&Selection::Blocks(vec![0..1, 0..1, 0..1])).is_err());
    }
}

#[test]
fn a_large_chunk_in_blocks_is_decoded_by_several_threads() {
    let blosc = r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":2,"blocksize":65536}}]"#;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let options = options().with_pool(zarr_array::Pool::new(Arc::new(pool)));
    let builder = ArrayBuilder::new([2, 700_000], DataType::UInt16).chunks([1, 700_000]).codecs(codecs(blosc));
    let array = builder.create(memory(), "/", &options).unwrap();
    let values: Vec<u16> = (0..1_400_000u32).map(|i| (i / 7) as u16 ^ (i.wrapping_mul(2_654_435_761) >> 28) as u16).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let second = Selection::Blocks(vec![1..2, 0..1]);
    assert!(array.read_elements::<u16>(&second).unwrap() == values[700_000..]);
    let mut encoded = array.read_encoded_chunk(&[1, 0]).unwrap().unwrap().to_vec();
    encoded[16..20].fill(0xFF);
    array.write_encoded_chunk(&[1, 0], encoded).unwrap();
    let error = array.read(&second).unwrap_err();
    assert!(matches!(error, ArrayError::Chunk { .. }), "{error}");
}

/// Chunks of a file are decoded in pieces, which end anywhere in a row.
#[test]
fn large_chunks_of_files_are_decoded_in_pieces() {
    let shape = [70u64, 130, 140];
    let mut random = Random(5);
    let values: Vec<u16> = (0..shape.iter().product::<u64>()).map(|i| ((i / 50) as u16) ^ (random.next() & 0xFF) as u16).collect();
    let second = Selection::Blocks(vec![1..2, 0..1, 0..1]);
    let zstd = |codecs: &str, level: i32| format!(r#"[{codecs},{{"name":"zstd","configuration":{{"level":{level},"checksum":false}}}}]"#);
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let turned = r#"{"name":"transpose","configuration":{"order":[2,0,1]}},{"name":"bytes","configuration":{"endian":"little"}}"#;
    // The second has a window as large as the chunk, and so is read again; of the others, a row is most of the chunk.
    for (text, chunk, expected) in [
        (zstd(little, 1), [40, 128, 130], 3..5),
        (zstd(little, 5), [40, 128, 130], 2..3),
        (zstd(turned, 1), [40, 128, 130], 1..2),
        (zstd(little, 1), [4, 130, 1400], 1..2),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let files = AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap());
        let builder = ArrayBuilder::new(shape, DataType::UInt16).chunks(chunk).codecs(codecs(&text));
        let plain = builder.create(memory(), "/", &options()).unwrap();
        builder.create(files.clone(), "/", &options()).unwrap().write_elements(&Selection::all(), &values).unwrap();
        let (store, metrics) = Metrics::any(files);
        let array = Array::open(store, "/", &options()).unwrap();
        metrics.reset();
        array.read(&Selection::ranges([1..chunk[0], 0..128, 0..130])).unwrap();
        let requests = metrics.reset().requests();
        assert!(expected.contains(&requests), "{text}: {requests} requests for a chunk");
        assert!(array.read_elements::<u16>(&Selection::all()).unwrap() == values, "{text}");
        for _ in 0..36 {
            let wanted = selection(&mut random, &shape);
            let expected: Vec<u16> = positions(&wanted, &shape).0.iter().map(|&at| values[at]).collect();
            assert!(array.read_elements::<u16>(&wanted).unwrap() == expected, "{text}: {wanted:?}");
        }
        // What is wrong with a chunk is said as of one that is decoded at once.
        let encoded = array.read_encoded_chunk(&[1, 0, 0]).unwrap().unwrap().to_vec();
        let mut flipped = encoded.clone();
        flipped[encoded.len() / 2] ^= 0x55;
        for bad in [&encoded[..encoded.len() - 1], &encoded[..2], &[], &[encoded.as_slice(), &[0]].concat(), &flipped, &encoded.repeat(2)] {
            for array in [&array, &plain] {
                array.write_encoded_chunk(&[1, 0, 0], bad.to_vec()).unwrap();
            }
            let verdict = |array: &Array| array.read_elements::<u16>(&second).map_err(|error| error.to_string());
            assert!(verdict(&array) == verdict(&plain), "{text}: {:?}, {:?}", verdict(&array).err(), verdict(&plain).err());
        }
        array.erase_chunk(&[1, 0, 0]).unwrap();
        assert!(array.read_elements::<u16>(&second).unwrap().iter().all(|&element| element == 0));
    }
    // Inner chunks of a shard.
    let dir = tempfile::tempdir().unwrap();
    let (store, metrics) = Metrics::any(AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap()));
    let builder = ArrayBuilder::new(shape, DataType::UInt16).chunks([35, 130, 140]).shards([70, 130, 140]).codecs(codecs(&zstd(little, 1)));
    let array = builder.create(store, "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &values).unwrap();
    metrics.reset();
    let found = array.read_elements::<u16>(&Selection::ranges([35..70, 0..129, 0..140])).unwrap();
    assert!(metrics.reset().requests() > 3, "one for the index, the others for pieces");
    let rows = values[35 * 130 * 140..].chunks_exact(140).enumerate().filter(|(row, _)| row % 130 < 129);
    assert!(found == rows.flat_map(|(_, row)| row).copied().collect::<Vec<_>>());
}

/// Of chunks that are one frame of zstd, no more is decoded than up to the last element that is wanted, and no more is read of large ones.
#[test]
fn the_front_of_a_chunk_is_read_and_decoded_alone() {
    let mut random = Random(11);
    let zstd = |checksum| {
        codecs(&format!(
            r#"[{{"name":"bytes","configuration":{{"endian":"little"}}}},{{"name":"zstd","configuration":{{"level":1,"checksum":{checksum}}}}}]"#
        ))
    };
    for (shape, large) in [([24u64, 300, 200], true), ([24, 90, 80], false)] {
        let values: Vec<u16> = (0..shape.iter().product::<u64>()).map(|_| random.next() as u16 & 0xFFF).collect();
        let dir = tempfile::tempdir().unwrap();
        let (store, metrics) = Metrics::any(AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap()));
        let builder = ArrayBuilder::new(shape, DataType::UInt16).chunks(shape);
        let array = builder.clone().codecs(zstd(false)).create(store.clone(), "/one", &options()).unwrap();
        let checked = builder.clone().codecs(zstd(true)).create(store.clone(), "/checked", &options()).unwrap();
        let shards =
            builder.chunks([12, shape[1], shape[2]]).shards(shape).codecs(zstd(false)).create(store, "/shards", &options()).unwrap();
        for array in [&array, &checked, &shards] {
            array.write_elements(&Selection::all(), &values).unwrap();
        }
        let expected = |wanted: &Selection| -> Vec<u16> { positions(wanted, &shape).0.iter().map(|&at| values[at]).collect() };
        let read = |array: &Array, wanted: &Selection| {
            array.read_elements::<u16>(wanted).map(|found| assert!(found == expected(wanted), "{wanted:?}"))
        };
        for _ in 0..48 {
            let wanted = selection(&mut random, &shape);
            let expected = expected(&wanted);
            for array in [&array, &checked, &shards] {
                assert!(array.read_elements::<u16>(&wanted).unwrap() == expected, "{wanted:?}");
            }
        }
        let (second, last) = (Selection::axes([1.into()]), Selection::axes([(-1).into()]));
        let stored = array.stored_chunk_size(&[0, 0, 0]).unwrap().unwrap();
        metrics.reset();
        read(&array, &second).unwrap();
        assert_eq!(metrics.reset().bytes_read() < stored / 4, large);
        // What lies behind is not looked at, unless it says whether the front is right.
        for (array, front_is_read) in [(&array, true), (&checked, false)] {
            let mut bad = array.read_encoded_chunk(&[0, 0, 0]).unwrap().unwrap().to_vec();
            let end = bad.len() - 5000;
            bad[end..].fill(0xFF);
            array.write_encoded_chunk(&[0, 0, 0], bad).unwrap();
            assert_eq!(read(array, &second).is_ok(), front_is_read);
            assert!(read(array, &last).is_err());
        }
    }
}

/// Gzip is slower in pieces, which are for chunks that threads have no room for.
#[test]
fn chunks_without_room_are_decoded_in_pieces_though_that_is_slower() {
    for (codec, rows, expected) in [("gzip", 31u64, 4..1000), ("numcodecs.zlib", 31, 4..1000), ("gzip", 4, 1..3)] {
        let dir = tempfile::tempdir().unwrap();
        let (store, metrics) = Metrics::any(AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap()));
        let text = format!(r#"[{{"name":"bytes"}},{{"name":"{codec}","configuration":{{"level":1}}}}]"#);
        let builder = ArrayBuilder::new([rows, 1 << 20], DataType::UInt8).chunks([rows, 1 << 20]).codecs(codecs(&text));
        let array = builder.create(store, "/", &options()).unwrap();
        let mut random = Random(7);
        let values: Vec<u8> = (0..rows << 20).map(|_| random.next() as u8 & 0xF).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        metrics.reset();
        let found = array.read_elements::<u8>(&Selection::ranges([0..rows, 3..1 << 20])).unwrap();
        let requests = metrics.reset().requests();
        assert!(expected.contains(&requests), "{codec}, {rows} MiB: {requests} requests for a chunk");
        assert!(found.chunks_exact((1 << 20) - 3).zip(values.chunks_exact(1 << 20)).all(|(found, row)| *found == row[3..]));
    }
}

/// Results of which every chunk has parts in every huge page, below and above the size from which memory comes as zeros.
#[test]
fn chunks_that_are_spread_over_a_large_result() {
    for len in [40u64, 260] {
        let builder = ArrayBuilder::new([len, 512, 1024], DataType::UInt8).chunks([len, 256, 512]).compressors([]);
        let array = builder.create(memory(), "/", &options()).unwrap();
        let plane: Vec<u8> = (0..512u32 * 1024).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for index in [0, 7, len - 1] {
            array.write(&Selection::axes([(index as i64).into()]), &plane).unwrap();
        }
        let found = array.read_elements::<u8>(&Selection::all()).unwrap();
        for (index, found) in (0..len).zip(found.chunks_exact(plane.len())) {
            let written = [0, 7, len - 1].contains(&index);
            assert!(if written { found == plane } else { found.iter().all(|&element| element == 0) }, "plane {index} of {len}");
        }
    }
}

/// Along an axis of a rectilinear grid that is given by one length as much as by many.
#[test]
fn inner_chunks_divide_the_chunks_of_any_grid() {
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let create = |axis: GridAxis, inner: u64| {
        let shard = format!(
            r#"[{{"name":"sharding_indexed","configuration":{{"chunk_shape":[{inner}],"codecs":[{little}],"index_codecs":[{little}]}}}}]"#
        );
        let builder =
            ArrayBuilder::new([20], DataType::Int32).chunk_grid(ChunkGrid::Rectilinear { axes: vec![axis] }).codecs(codecs(&shard));
        builder.create(memory(), "/", &options())
    };
    for inner in [4, 3, 64] {
        let error = create(GridAxis::step(10).unwrap(), inner).unwrap_err();
        assert!(error.to_string().contains("do not divide"), "{error}");
        assert!(create(GridAxis::runs([(10, 2)]).unwrap(), inner).is_err());
    }
    let array = create(GridAxis::step(10).unwrap(), 5).unwrap();
    let values: Vec<i32> = (0..20).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
}

#[test]
fn an_answer_without_pieces_is_no_absent_shard() {
    let array = ArrayBuilder::new([8], DataType::UInt8).chunks([4]).shards([8]).create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &[1u8; 8]).unwrap();
    let mut plan = array.plan(&Selection::all()).unwrap();
    let request = plan.next_requests(1).unwrap().remove(0);
    assert!(plan.supply(request.id, Some(Vec::new())).is_err());
}

#[test]
fn an_empty_selection_of_a_huge_array_is_empty() {
    let builder = |first: u64| ArrayBuilder::new([first, 1 << 40, 1 << 40], DataType::Float64).chunks([1, 16, 16]);
    let array = builder(10).create(memory(), "/", &options()).unwrap();
    assert_eq!(array.read(&Selection::ranges(std::iter::once(0..0))).unwrap().shape, [0, 1 << 40, 1 << 40]);
    let array = builder(0).create(memory(), "/", &options()).unwrap();
    assert_eq!(array.read(&Selection::all()).unwrap().byte_len(), 0);
    array.write(&Selection::all(), &[]).unwrap();
}

/// What metadata alone claim takes no memory.
#[test]
fn a_list_of_one_element_in_a_huge_chunk_is_an_error() {
    let builder = ArrayBuilder::new([1 << 62], DataType::UInt8).chunks([1 << 62]).compressors([]);
    let array = builder.create(memory(), "/", &options()).unwrap();
    assert!(array.write(&Selection::axes([vec![0i64].into()]), &[1]).is_err());
}

/// Positions are signed, so that they can count from the end.
#[test]
fn axes_of_more_elements_than_positions_are_refused() {
    let builder = |len: u64| ArrayBuilder::new([len], DataType::UInt8).chunks([16]);
    let error = builder(1 << 63).create(memory(), "/", &options()).unwrap_err();
    assert!(error.to_string().contains("2^63 - 1"), "{error}");
    let mut array = builder((1 << 63) - 1).create(memory(), "/", &options()).unwrap();
    let last = Selection::ranges(std::iter::once((1 << 63) - 3..(1 << 63) - 1));
    array.write(&last, &[1, 2]).unwrap();
    assert_eq!(array.read(&last).unwrap().as_bytes().unwrap(), [1, 2]);
    assert!(array.resize(&[1 << 63]).is_err());
    assert!(array.append(0, &[3]).is_err());
    assert_eq!(array.shape(), [(1 << 63) - 1]);
}
