//! What an array and a group do beyond reading and writing: indexes that are kept, resizing, hierarchies, types, failures.

use std::sync::{Arc, Mutex};

use crate::common::{Random, SHAPE, codecs, layouts, memory, options, positions, runtime, selection};
use futures::FutureExt as _;
use half::f16;
use zarr_array::{Array, ArrayBuilder, ArrayError, Group, GroupBuilder, Node, Pool, Selection, StoredMetadata, Version};
use zarr_buffer_api::Layout;
use zarr_meta::{ChunkGrid, DataType, FillValue, Json, JsonObject};
use zarr_store::{BlockingToAsync, Fault, FaultyStore, FilesystemStore, MemoryStore, Metrics, When};
use zarr_store_api::{AnyStore, ByteRange, Bytes, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, WritableStore};

fn fill(value: i32) -> FillValue {
    FillValue::from_bytes(value.to_ne_bytes().to_vec(), &DataType::Int32).unwrap()
}

#[test]
fn shrinking_and_growing_leaves_no_stale_elements() {
    for builder in [
        ArrayBuilder::new([10, 10], DataType::Int32).chunks([4, 3]),
        ArrayBuilder::new([10, 10], DataType::Int32).chunks([2, 3]).shards([4, 6]),
        ArrayBuilder::new([10, 10], DataType::Int32).chunks([4, 3]).version(Version::V2),
    ] {
        let mut array = builder.fill_value(fill(-1)).create(memory(), "/x", &options()).unwrap();
        let values: Vec<i32> = (0..100).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        array.resize(&[5, 7]).unwrap();
        assert_eq!(array.shape(), [5, 7]);
        assert!(array.stored_chunk_size(&[2, 0]).unwrap().is_none(), "chunks outside are gone");
        array.resize(&[12, 10]).unwrap();
        let expected: Vec<i32> = (0..12 * 10).map(|at| if at / 10 < 5 && at % 10 < 7 { at / 10 * 10 + at % 10 } else { -1 }).collect();
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), expected);
        let again = Array::open(array.store().clone(), "/x", &options()).unwrap();
        assert_eq!(again.shape(), [12, 10]);
        assert!(array.resize(&[1]).is_err());
    }
}

#[test]
fn appending_grows_along_an_axis() {
    let mut array = ArrayBuilder::new([0, 4], DataType::Int32).chunks([3, 4]).create(memory(), "/", &options()).unwrap();
    for step in 0..5i32 {
        let rows: Vec<u8> = (0..8).flat_map(|i| (step * 8 + i).to_ne_bytes()).collect();
        array.append(0, &rows).unwrap();
    }
    assert_eq!(array.shape(), [10, 4]);
    assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), (0..40).collect::<Vec<i32>>());
    array.append_elements(0, &[40, 41, 42, 43]).unwrap();
    pollster::block_on(array.append_elements_async(0, &[44, 45, 46, 47])).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::parse("10:", 2).unwrap()).unwrap(), (40..48).collect::<Vec<i32>>());
    assert!(array.append(0, &[1, 2, 3]).is_err());
    assert!(array.append_elements(0, &[1, 2, 3]).is_err());
    assert!(array.append_elements(0, &[1.0f32; 4]).is_err());
    assert!(array.append(2, &[]).is_err());
    assert_eq!(array.shape(), [12, 4]);

    let mut texts = ArrayBuilder::new([0, 2], DataType::String).chunks([3, 2]).create(memory(), "/", &options()).unwrap();
    texts.append_elements(0, &["a".to_owned(), "b".to_owned()]).unwrap();
    pollster::block_on(texts.append_elements_async(0, &["c".to_owned(), String::new()])).unwrap();
    assert_eq!(texts.read_elements::<String>(&Selection::all()).unwrap(), ["a", "b", "c", ""]);
}

#[test]
fn what_another_handle_changed_stays() {
    for version in [Version::V2, Version::V3] {
        let (store, options) = (memory(), options());
        let mut group = GroupBuilder::new().version(version).create(store.clone(), "/", &options).unwrap();
        let builder = ArrayBuilder::new([2, 3], DataType::UInt8).chunks([1, 3]);
        let mut first = group.create_array("a", &builder).unwrap();
        let mut second = group.array("a").unwrap();
        first.append(0, &[1; 6]).unwrap();
        second.set_attributes(JsonObject::new().with("one", 1u64)).unwrap();
        assert_eq!(second.shape(), [4, 3]);
        first.update_attributes(|own| drop(own.insert("two", 2u64))).unwrap();
        second.append(0, &[2; 3]).unwrap();
        let expected = JsonObject::new().with("one", 1u64).with("two", 2u64);
        assert_eq!((second.shape(), second.attributes()), (&[5, 3][..], &expected));
        assert_eq!((first.shape(), first.attributes()), (&[4, 3][..], &expected));
        first.refresh().unwrap();
        assert_eq!(first.read_elements::<u8>(&Selection::parse("1:, 0", 2).unwrap()).unwrap(), [0, 1, 1, 2]);

        // What the other one added is removed.
        second.append(0, &[3; 3]).unwrap();
        first.resize(&[1, 3]).unwrap();
        assert!((1..6).all(|chunk| second.stored_chunk_size(&[chunk, 0]).unwrap().is_none()));

        let mut other = Group::open(store.clone(), "/", &options).unwrap();
        other.update_attributes(|own| drop(own.insert("of", "the group"))).unwrap();
        group.consolidate().unwrap();
        assert_eq!(Group::open(store.clone(), "/", &options).unwrap().attributes(), other.attributes());
        other.set_attributes(JsonObject::new()).unwrap();
        assert!(other.is_consolidated() && Group::open(store.clone(), "/", &options).unwrap().is_consolidated());

        let other_type = ArrayBuilder::new([2, 3], DataType::Int8).chunks([1, 3]).version(version).overwrite(true);
        other_type.create(store.clone(), "/a", &options).unwrap();
        assert!(second.append(0, &[1; 3]).unwrap_err().to_string().contains("another data type"));
        first.clone().erase().unwrap();
        assert!(matches!(first.set_attributes(JsonObject::new()), Err(ArrayError::NotFound { .. })));
        assert!(matches!(Array::open(store, "/a", &options), Err(ArrayError::NotFound { .. })));
    }
}

#[test]
fn an_append_that_fails_leaves_the_array_as_long_as_it_was() {
    for mut append in [(|array, data| array.append(0, data)) as fn(&mut Array, &[u8]) -> Result<(), ArrayError>, |array, data| {
        pollster::block_on(array.append_async(0, data.to_vec()))
    }] {
        let append = &mut append;
        let faulty = FaultyStore::new(MemoryStore::new());
        let builder = ArrayBuilder::new([2, 3], DataType::UInt8).chunks([2, 3]);
        let mut array = builder.create(AnyStore::blocking(faulty.clone()), "/", &options()).unwrap();
        faulty.inject(When::Key(array.chunk_key(&[2, 0]).unwrap()), Fault::Fail(StoreErrorKind::NoSpace));
        append(&mut array, &[1; 15]).unwrap_err();
        assert_eq!(array.shape(), [2, 3]);
        array.refresh().unwrap();
        assert_eq!(array.shape(), [2, 3]);
        append(&mut array, &[1; 6]).unwrap();
        assert_eq!(array.shape(), [4, 3]);
    }
}

#[test]
fn hierarchies_with_and_without_consolidated_metadata() {
    for version in [Version::V2, Version::V3] {
        let directory = tempfile::tempdir().unwrap();
        let store: AnyStore = AnyStore::blocking(FilesystemStore::new(directory.path()).unwrap());
        let attributes = JsonObject::new().with("title", "root").with("big", Json::parse(b"123456789012345678901234567890").unwrap());
        let options = options();
        let mut root = GroupBuilder::new().attributes(attributes.clone()).version(version).create(store.clone(), "/", &options).unwrap();
        let inner = root.create_group("inner", &GroupBuilder::new()).unwrap();
        let builder = ArrayBuilder::new([4], DataType::Int32).dimension_names(["t"]);
        let builder = if version == Version::V2 { builder.optional_dimension_names(None) } else { builder };
        let array = inner.create_array("a", &builder).unwrap();
        array.write_elements(&Selection::all(), &[1, 2, 3, 4]).unwrap();
        root.create_array("ab", &builder).unwrap();
        assert_eq!(root.names().unwrap(), ["ab", "inner"]);
        assert!(matches!(root.create_group("inner", &GroupBuilder::new()), Err(ArrayError::Exists { .. })));
        root.consolidate().unwrap();

        let (counted, metrics) = Metrics::any(store.clone());
        let root = Group::open(counted, "/", &options).unwrap();
        assert!(root.is_consolidated());
        assert_eq!(root.attributes(), &attributes);
        let before = metrics.snapshot();
        assert_eq!(root.names().unwrap(), ["ab", "inner"]);
        let paths: Vec<String> = root.walk().unwrap().iter().map(|node| node.as_ref().unwrap().path().to_string()).collect();
        assert_eq!(paths, ["/ab", "/inner", "/inner/a"]);
        let Node::Group(inner) = root.get("inner").unwrap() else { panic!("a group") };
        assert_eq!(inner.names().unwrap(), ["a"]);
        assert_eq!(metrics.snapshot().requests(), before.requests(), "one document says it all");
        assert_eq!(inner.array("a").unwrap().read_elements::<i32>(&Selection::all()).unwrap(), [1, 2, 3, 4]);
        assert!(matches!(root.array("inner"), Err(ArrayError::NotFound { .. })));
        assert!(matches!(root.get("none"), Err(ArrayError::NotFound { .. })));
        inner.erase().unwrap();
    }
}

#[test]
fn groups_on_the_way_are_created() {
    for version in [Version::V2, Version::V3] {
        let options = options();
        let top = GroupBuilder::new().version(version).create(memory(), "/top", &options).unwrap();
        let builder = ArrayBuilder::new([4], DataType::Int32);
        top.create_array("a/b/x", &builder).unwrap();
        top.create_group("a/c/d", &GroupBuilder::new()).unwrap();
        let paths: Vec<String> = top.walk().unwrap().iter().map(|node| node.as_ref().unwrap().path().to_string()).collect();
        assert_eq!(paths, ["/top/a", "/top/a/b", "/top/a/b/x", "/top/a/c", "/top/a/c/d"]);
        assert!(top.children().unwrap().iter().all(|node| matches!(node, Ok(Node::Group(group)) if group.version() == version)));

        let titled = top.create_group("titled", &GroupBuilder::new().attributes(JsonObject::new().with("title", "kept"))).unwrap();
        top.create_array("titled/x", &builder).unwrap();
        assert_eq!(top.require_group("titled").unwrap().attributes(), titled.attributes());
        assert_eq!(top.require_group("new/one").unwrap().path().to_string(), "/top/new/one");
        for below_an_array in ["a/b/x", "a/b/x/y", "a/b/x/y/z"] {
            let error = top.require_group(below_an_array).unwrap_err();
            assert!(error.to_string().contains("already an array at /top/a/b/x in "), "{error}");
        }
        let reserved = top.create_array("__x", &builder).map(drop);
        assert_eq!(reserved.is_ok(), version == Version::V2, "{reserved:?}");
        assert_eq!(top.require_group("__y/z").is_ok(), version == Version::V2);
        assert!(matches!(top.create_array("a/b/x/y", &builder), Err(ArrayError::Exists { .. })));
        assert!(matches!(top.create_group("a/b/x/y", &GroupBuilder::new()), Err(ArrayError::Exists { .. })));
        // Nothing is made for what cannot be made.
        let bad = builder.clone().codecs(codecs(r#"[{"name":"of nobody"}]"#));
        top.create_array("nothing/here", &bad).unwrap_err();
        assert_eq!(top.create_group("nothing/__z", &GroupBuilder::new()).is_ok(), version == Version::V2);
        assert_eq!(top.names().unwrap().contains(&"nothing".to_owned()), version == Version::V2);
    }
}

#[test]
fn groups_of_either_version_take_the_place_of_others() {
    type Create = fn(&GroupBuilder, AnyStore) -> Result<Group, ArrayError>;
    let blocking: Create = |builder, store| builder.create(store, "/", &options());
    let native: Create = |builder, store| pollster::block_on(builder.create_async(store, "/", &options()));
    for create in [blocking, native] {
        let store = memory();
        let title = JsonObject::new().with("title", "old");
        let old = create(&GroupBuilder::new().attributes(title.clone()), store.clone()).unwrap();
        assert_eq!((old.version(), old.attributes()), (Version::V3, &title));
        old.create_array("a", &ArrayBuilder::new([4], DataType::Int32)).unwrap();
        let new = GroupBuilder::new().version(Version::V2);
        assert!(matches!(create(&new, store.clone()), Err(ArrayError::Exists { .. })));
        create(&new.clone().overwrite(true), store.clone()).unwrap();
        let new = Group::open(store, "/", &options()).unwrap();
        assert_eq!((new.version(), new.attributes(), new.names().unwrap().len()), (Version::V2, &JsonObject::new(), 0));

        let version_3 = GroupBuilder::new().attributes(title.clone()).version(Version::V3);
        let below = new.create_group("b", &version_3).unwrap();
        assert_eq!((below.version(), below.attributes()), (Version::V2, &title), "as the group around it");
        below.create_group("c", &GroupBuilder::new()).unwrap();
        assert!(matches!(new.create_group("b", &GroupBuilder::new()), Err(ArrayError::Exists { .. })));
        assert!(new.create_group("b", &GroupBuilder::new().overwrite(true)).unwrap().names().unwrap().is_empty());
    }
}

/// As in hierarchies of version 2 that lack `.zgroup` on the way.
#[test]
fn consolidating_keeps_nodes_that_no_group_leads_to() {
    for version in [Version::V2, Version::V3] {
        let (store, options) = (memory(), options());
        let mut top = GroupBuilder::new().version(version).create(store.clone(), "/top", &options).unwrap();
        let builder = ArrayBuilder::new([4], DataType::Int32);
        let gone = top.create_array("gone", &builder).unwrap();
        top.create_array("apart/x", &builder).unwrap();
        top.consolidate().unwrap();
        gone.erase().unwrap();
        let AnyStore::Blocking(blocking) = &store else { panic!("a store that blocks") };
        for name in ["zarr.json", ".zgroup"] {
            blocking.as_writable().unwrap().erase(&StoreKey::new(format!("top/apart/{name}")).unwrap()).unwrap();
        }
        let mut top = Group::open(store.clone(), "/top", &options).unwrap();
        top.create_array("new", &builder).unwrap();
        top.consolidate().unwrap();
        let document = if version == Version::V2 { "top/.zmetadata" } else { "top/zarr.json" };
        let text = blocking.get(&StoreKey::new(document).unwrap(), ByteRange::All).unwrap().unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        let named = |name: &str| text.contains(&format!("\"{name}\"")) || text.contains(&format!("\"{name}/.zarray\""));
        assert_eq!(["apart/x", "new", "gone"].map(named), [true, true, false], "{text}");
    }
}

/// Of a codec and of a data type that nobody here knows.
#[test]
fn what_cannot_be_opened_is_consolidated_with_the_others() {
    for version in [Version::V2, Version::V3] {
        let (store, options) = (memory(), options());
        let mut root = GroupBuilder::new().version(version).create(store.clone(), "/", &options).unwrap();
        let builder = ArrayBuilder::new([4], DataType::Int32).attributes(JsonObject::new().with("kept", true));
        for name in ["known", "inner/codec", "inner/data_type"] {
            root.create_array(name, &builder).unwrap();
        }
        let AnyStore::Blocking(blocking) = &store else { panic!("a store that blocks") };
        let edit = |name: &str, from: &str, to: &str| {
            let document = if version == Version::V2 { ".zarray" } else { "zarr.json" };
            let key = StoreKey::new(format!("inner/{name}/{document}")).unwrap();
            let text = blocking.get(&key, ByteRange::All).unwrap().unwrap();
            let text = std::str::from_utf8(&text).unwrap();
            assert!(text.contains(from), "{text}");
            blocking.as_writable().unwrap().set(&key, text.replace(from, to).into()).unwrap();
        };
        edit("codec", "\"zstd\"", "\"nobody_knows\"");
        edit("data_type", if version == Version::V2 { "\"<i4\"" } else { "\"int32\"" }, "\"of the future\"");
        let walk = |root: &Group| {
            let show = |node: Result<Node, ArrayError>| node.map_or_else(|error| error.to_string(), |node| node.path().to_string());
            let found: Vec<String> = root.walk().unwrap().into_iter().map(show).collect();
            assert_eq!([&found[0], &found[3]], ["/inner", "/known"], "{found:?}");
            assert!(found[1].contains("nobody_knows") && found[2].contains("of the future"), "{found:?}");
        };
        walk(&root);
        root.consolidate().unwrap();

        let root = Group::open(store.clone(), "/", &options).unwrap();
        walk(&root);
        let inner = "inner".to_owned();
        assert_eq!(root.names().unwrap(), [inner, "known".to_owned()]);
        let all = match root.stored_metadata() {
            StoredMetadata::GroupV3(group) => group.consolidated_metadata.as_ref().unwrap().to_json(),
            _ => Json::parse(&blocking.get(&StoreKey::new(".zmetadata").unwrap(), ByteRange::All).unwrap().unwrap()).unwrap(),
        };
        let text = all.to_text();
        assert!(text.contains("nobody_knows") && text.contains("of the future"), "{text}");
        assert_eq!(text.matches("\"kept\":true").count(), 3, "{text}");
    }
}

#[test]
fn what_no_memory_holds_is_refused_before_it_is_planned() {
    for data_type in [DataType::Float64, DataType::String] {
        let shape = [10_000_000_000, 10_000_000_000];
        let array = ArrayBuilder::new(shape, data_type).create(memory(), "/", &options()).unwrap();
        let refused = array.read(&Selection::all()).unwrap_err();
        assert!(refused.to_string().ends_with("of shape [10000000000, 10000000000] are more than memory can have"), "{refused}");
        assert!(array.read(&Selection::parse("::1000000000, :2", 2).unwrap()).is_ok());
    }
}

#[test]
fn a_chunk_that_no_memory_holds_is_an_error() {
    let compressors = [
        "[]",
        r#"[{"name":"crc32c"}]"#,
        r#"[{"name":"gzip","configuration":{"level":1}}]"#,
        r#"[{"name":"zstd","configuration":{"level":1,"checksum":false}}]"#,
        r#"[{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"noshuffle","typesize":8,"blocksize":0}}]"#,
    ];
    let some = Selection::parse("0:4:2", 1).unwrap();
    for compressors in compressors {
        let with = |length: u64| {
            let builder = ArrayBuilder::new([length], DataType::UInt64).chunks([length]).compressors(codecs(compressors));
            builder.create(memory(), "/", &options()).unwrap()
        };
        let (small, large) = (with(100), with(1 << 57));
        small.write_elements(&Selection::all(), &(0..100).collect::<Vec<u64>>()).unwrap();
        assert!(matches!(large.write_elements(&some, &[1u64, 2]), Err(ArrayError::Chunk { .. })), "{compressors}");
        assert_eq!(large.read_elements::<u64>(&some).unwrap(), [0, 0]);
        large.write_encoded_chunk(&[0], small.read_encoded_chunk(&[0]).unwrap().unwrap()).unwrap();
        assert!(large.clone().resize(&[10]).is_err(), "{compressors}");
        if compressors != "[]" {
            assert!(matches!(large.read_elements::<u64>(&some), Err(ArrayError::Chunk { .. })), "{compressors}");
        }
    }
}

#[test]
fn chunk_coordinates_are_of_the_grid() {
    let array = ArrayBuilder::new([4, 6], DataType::Int32).chunks([2, 2]).create(memory(), "/", &options()).unwrap();
    for chunk in [&[0][..], &[0, 0, 0]] {
        let wrong = |result: Result<(), ArrayError>| assert!(matches!(result, Err(ArrayError::Parameter(_))), "{chunk:?}");
        wrong(array.read_encoded_chunk(chunk).map(drop));
        wrong(array.stored_chunk_size(chunk).map(drop));
        wrong(array.write_encoded_chunk(chunk, vec![1]));
        wrong(array.erase_chunk(chunk));
    }
    assert_eq!(array.read_encoded_chunk(&[2, 0]).unwrap(), None);
    let error = array.write_encoded_chunk(&[2, 0], vec![1]).unwrap_err();
    assert_eq!(error.to_string(), "chunk [2, 0] is outside the grid of [2, 3] chunks");
}

#[test]
fn a_shard_that_is_cut_short_is_told_from_a_chunk() {
    let builder = ArrayBuilder::new([64], DataType::Int32).chunks([8]).shards([64]);
    let array = builder.create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &(0..64).collect::<Vec<i32>>()).unwrap();
    let mut shard = array.read_encoded_chunk(&[0]).unwrap().unwrap().to_vec();
    shard.truncate(shard.len() - 7);
    array.write_encoded_chunk(&[0], shard).unwrap();
    let error = array.read(&Selection::all()).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "chunk [0] (c/0): codec sharding_indexed: the shard's index cannot be decoded, as when a shard is cut short: codec crc32c: "
        ),
        "{error}"
    );
    array.write_encoded_chunk(&[0], vec![1, 2, 3]).unwrap();
    let error = array.read(&Selection::all()).unwrap_err().to_string();
    assert!(error.ends_with("codec sharding_indexed: the shard is cut short: its index has 132 bytes, and 3 are there"), "{error}");
}

#[test]
fn a_page_in_place_of_a_chunk_is_told() {
    for (data_type, codecs) in [(DataType::Int32, vec![zarr_meta::Extension::new("crc32c")]), (DataType::String, Vec::new())] {
        let array = ArrayBuilder::new([8], data_type).chunks([4]).compressors(codecs).create(memory(), "/", &options()).unwrap();
        array.write_encoded_chunk(&[1], "\n<!doctype html><html>Please log in</html>").unwrap();
        let error = array.read(&Selection::all()).unwrap_err().to_string();
        assert!(error.contains("the stored bytes begin with `<!DOCTYPE`: a page of HTML or XML in place of a chunk: codec "), "{error}");
    }
}

#[test]
fn a_node_of_the_other_kind_is_told() {
    let root = GroupBuilder::new().create(memory(), "/", &options()).unwrap();
    let array = root.create_array("a", &ArrayBuilder::new([4], DataType::Int8)).unwrap();
    let told = |error: ArrayError| {
        assert!(matches!(error, ArrayError::NotFound { .. }), "{error:?}");
        error.to_string()
    };
    assert_eq!(told(Array::open(root.store().clone(), "/", &options()).unwrap_err()), "no array, but a group, at / in memory://");
    assert_eq!(told(root.array("").unwrap_err()), "no array, but a group, at / in memory://");
    assert_eq!(told(Group::open(array.store().clone(), "/a", &options()).unwrap_err()), "no group, but an array, at /a in memory://");
    assert_eq!(told(Array::open(root.store().clone(), "/b", &options()).unwrap_err()), "no array at /b in memory://");
    // A path that is none is named once.
    let error = Array::open(root.store().clone(), "/a//b", &options()).unwrap_err();
    assert_eq!(error.to_string(), "node path \"/a//b\": a name must not be empty");
}

#[test]
fn an_error_names_its_store_once() {
    let store = AnyStore::blocking(FilesystemStore::new("/no/such/directory").unwrap());
    let builder = ArrayBuilder::new([4], DataType::Int32);
    let array = builder.create(memory(), "/", &options()).unwrap();
    let error = builder.create(array.store().clone(), "/", &options()).unwrap_err();
    assert_eq!(error.to_string(), "there is already an array at / in memory://; erase it first, or ask to overwrite it");
    let read_only = zarr_store::ReadOnly::any(store);
    let error = builder.create(read_only, "/", &options()).unwrap_err();
    let mut told = vec![error.to_string()];
    let mut next = std::error::Error::source(&error);
    while let Some(source) = next {
        told.push(source.to_string());
        next = source.source();
    }
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn elements_of_every_kind() {
    fn round_trip<T: zarr_array::Element + PartialEq + std::fmt::Debug>(data_type: DataType, values: Vec<T>) {
        for version in [Version::V3, Version::V2] {
            let builder = ArrayBuilder::new([values.len() as u64], data_type.clone()).chunks([2]).version(version);
            let Ok(array) = builder.create(memory(), "/", &options()) else {
                assert_eq!(version, Version::V2, "{data_type:?}");
                continue;
            };
            array.write_elements(&Selection::all(), &values).unwrap();
            assert_eq!(array.read_elements::<T>(&Selection::all()).unwrap(), values, "{data_type:?}");
            let reversed: Vec<T> = values.iter().rev().cloned().collect();
            assert_eq!(array.read_elements::<T>(&Selection::parse("::-1", 1).unwrap()).unwrap(), reversed);
            let _ = array.read_elements::<u128_like::Wrong>(&Selection::all()).unwrap_err();
        }
    }
    round_trip(DataType::Bool, vec![true, false, true]);
    round_trip(DataType::Int8, vec![-1i8, 2, 3]);
    round_trip(DataType::UInt64, vec![u64::MAX, 0, 1]);
    round_trip(DataType::Float16, vec![f16::NEG_INFINITY, f16::ONE, f16::MIN_POSITIVE_SUBNORMAL]);
    round_trip(DataType::Float64, vec![-0.0f64, f64::MAX, 5e-324]);
    round_trip(DataType::Complex64, vec![num_complex::Complex::new(1.0f32, -2.0); 3]);
    round_trip(DataType::String, vec!["é".to_owned(), String::new(), "数据".to_owned()]);
    round_trip(DataType::Bytes, vec![vec![0u8, 255], vec![], vec![1]]);
}

mod u128_like {
    use zarr_array::{Array, ArrayData, ArrayError, Element, Elements, Selection};

    /// An element of no data type.
    #[derive(Clone, Debug)]
    pub(super) struct Wrong;

    impl Element for Wrong {
        fn matches(_: &zarr_meta::DataType) -> bool {
            false
        }
        fn write(_: &Array, _: &Selection, _: &[Self]) -> Result<(), ArrayError> {
            unreachable!()
        }
        fn from_data(_: ArrayData) -> Result<Vec<Self>, ArrayError> {
            unreachable!()
        }
        fn to_owned_data(_: &[Self]) -> Elements {
            unreachable!()
        }
    }
}

#[test]
fn sharded_and_nested_strings() {
    let names: Vec<String> = (0..60).map(|i| "x".repeat(i % 7) + &i.to_string()).collect();
    let array = ArrayBuilder::new([6, 10], DataType::String).chunks([2, 3]).shards([4, 6]).create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &names).unwrap();
    assert_eq!(array.read_elements::<String>(&Selection::all()).unwrap(), names);
    let some = Selection::parse("[4, 1], ::-3", 2).unwrap();
    let expected: Vec<String> = [4, 1].iter().flat_map(|row| [9, 6, 3, 0].map(|column| names[row * 10 + column].clone())).collect();
    assert_eq!(array.read_elements::<String>(&some).unwrap(), expected);
    array.write_elements(&some, &vec![String::new(); 8]).unwrap();
    assert_eq!(array.read_elements::<String>(&some).unwrap(), vec![String::new(); 8]);
    assert_eq!(array.read_elements::<String>(&Selection::parse("5, 9", 2).unwrap()).unwrap(), [names[59].clone()]);
}

#[test]
fn empty_chunks_are_stored_only_on_request() {
    let builder = ArrayBuilder::new([8], DataType::Int32).chunks([4]).fill_value(fill(3));
    let array = builder.create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &[3, 3, 3, 3, 1, 3, 3, 3]).unwrap();
    assert_eq!(array.stored_size().unwrap().1, 1);
    array.write_elements(&Selection::parse("4", 1).unwrap(), &[3]).unwrap();
    assert_eq!(array.stored_size().unwrap().1, 0, "a chunk that becomes empty is removed");
    let kept = array.with_options(&options().with_write_empty_chunks(true)).unwrap();
    kept.write_elements(&Selection::all(), &[3; 8]).unwrap();
    assert_eq!(kept.stored_size().unwrap().1, 2);
}

#[test]
fn zero_dimensions_and_zero_lengths() {
    let scalar = ArrayBuilder::new([], DataType::Float32).create(memory(), "/", &options()).unwrap();
    assert_eq!(scalar.read_elements::<f32>(&Selection::all()).unwrap(), [0.0]);
    scalar.write_elements(&Selection::all(), &[2.5f32]).unwrap();
    assert_eq!(scalar.read_elements::<f32>(&Selection::all()).unwrap(), [2.5]);
    assert_eq!(scalar.selection_shape(&Selection::all()).unwrap(), [] as [u64; 0]);
    let sharded = codecs(
        r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[],"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]"#,
    );
    let scalar = ArrayBuilder::new([], DataType::Float32).codecs(sharded).create(memory(), "/", &options()).unwrap();
    scalar.write_elements(&Selection::all(), &[2.5f32]).unwrap();
    assert_eq!(scalar.read_elements::<f32>(&Selection::all()).unwrap(), [2.5]);

    let empty = ArrayBuilder::new([3, 0], DataType::Int8).chunks([2, 2]).create(memory(), "/", &options()).unwrap();
    assert_eq!(empty.read_elements::<i8>(&Selection::all()).unwrap(), [] as [i8; 0]);
    empty.write_elements::<i8>(&Selection::all(), &[]).unwrap();
    assert_eq!(empty.selection_shape(&Selection::parse("1", 2).unwrap()).unwrap(), [0]);
    // Of nothing, the chunks along the other axes are not counted out.
    let wide = ArrayBuilder::new([4, 1 << 40], DataType::Int8).chunks([1, 1]).create(memory(), "/", &options()).unwrap();
    for text in ["0:0", "[]", "0:0, ::-1"] {
        let selection = Selection::parse(text, 2).unwrap();
        assert_eq!(wide.read(&selection).unwrap().shape, [0, 1 << 40], "{text}");
        wide.write_elements::<i8>(&selection, &[]).unwrap();
    }
}

#[test]
fn a_name_that_may_not_be_looked_at_is_told_to_who_opens_it() {
    let faulty = FaultyStore::new(MemoryStore::new());
    let root = GroupBuilder::new().create(AnyStore::blocking(faulty.clone()), "/", &options()).unwrap();
    for name in ["a", "b"] {
        root.create_group(name, &GroupBuilder::new()).unwrap();
    }
    faulty.inject(When::Key(StoreKey::new("a/zarr.json").unwrap()), Fault::Fail(StoreErrorKind::Permission));
    assert_eq!(root.names().unwrap(), ["a", "b"]);
    assert!(matches!(root.get("a"), Err(ArrayError::Store(error)) if error.kind() == StoreErrorKind::Permission));
    root.get("b").unwrap();
}

#[test]
fn an_entry_of_the_index_that_overflows_is_an_error() {
    let array = ArrayBuilder::new([8], DataType::Int32).chunks([4]).shards([8]).compressors([]).create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &[1; 8]).unwrap();
    for (offset, nbytes) in
        [(u64::MAX - 1, 16), (u64::MAX, 16), (16, u64::MAX), (1 << 63, 1 << 63), (0, 1 << 40), (1 << 40, 16), (0, 15), (0, 17)]
    {
        let mut shard = array.read_encoded_chunk(&[0]).unwrap().unwrap().to_vec();
        let at = shard.len() - 4 - 32;
        shard[at..at + 8].copy_from_slice(&u64::to_le_bytes(offset));
        shard[at + 8..at + 16].copy_from_slice(&u64::to_le_bytes(nbytes));
        let sum = crc32c_of(&shard[at..at + 32]);
        let end = shard.len() - 4;
        shard[end..].copy_from_slice(&sum.to_le_bytes());
        let bad =
            ArrayBuilder::new([8], DataType::Int32).chunks([4]).shards([8]).compressors([]).create(memory(), "/", &options()).unwrap();
        bad.write_encoded_chunk(&[0], shard).unwrap();
        let error = bad.read(&Selection::all()).expect_err("an entry outside the shard");
        assert!(!error.to_string().is_empty());
        assert_eq!(bad.read_elements::<i32>(&Selection::parse("4:", 1).unwrap()).unwrap(), [1; 4], "the other chunk is read");
        // What lies outside cannot be kept; what only does not decode is kept as it is.
        let rewritten = bad.write_elements(&Selection::parse("5", 1).unwrap(), &[2]);
        assert_eq!(rewritten.is_ok(), offset == 0 && nbytes < 20, "{offset} {nbytes}");
    }
}

/// CRC-32C bit by bit (RFC 3720, B.4).
fn crc32c_of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 })
    })
}

#[test]
fn a_failing_writer_leaves_every_chunk_old_or_new() {
    let inner = Arc::new(MemoryStore::new());
    let shards = || ArrayBuilder::new([8, 8], DataType::Int32).chunks([2, 2]).shards([4, 4]);
    let plain = || ArrayBuilder::new([8, 8], DataType::Int32).chunks([4, 4]);
    for builder in [shards(), plain()] {
        for failing in 1..8 {
            let store = AnyStore::blocking(Arc::clone(&inner));
            let old = builder.clone().overwrite(true).create(store, "/", &options()).unwrap();
            old.write_elements(&Selection::all(), &[1i32; 64]).unwrap();
            let faulty = FaultyStore::new(Arc::clone(&inner)).with(When::Write(failing), Fault::Fail(StoreErrorKind::NoSpace));
            let array = Array::open(AnyStore::blocking(faulty), "/", &options()).unwrap();
            let result = array.write_elements(&Selection::all(), &[2i32; 64]);
            if let Err(error) = &result {
                assert!(
                    error.to_string().contains("unchanged") || error.to_string().contains("stored"),
                    "the error says what is on disk: {error}"
                );
            }
            let now = old.read_elements::<i32>(&Selection::all()).unwrap();
            for chunk in 0..4 {
                let of_chunk: Vec<i32> = (0..16).map(|i| now[(chunk / 2 * 4 + i / 4) * 8 + chunk % 2 * 4 + i % 4]).collect();
                assert!(of_chunk == [1; 16] || of_chunk == [2; 16], "{of_chunk:?}");
            }
            if result.is_ok() {
                assert_eq!(now, [2; 64]);
            }
        }
    }
}

#[test]
fn of_positions_that_are_written_several_times_the_last_one_stays() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap());
    let options = options().with_pool(Pool::new(pool));
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut random = Random(31);
    let position = |random: &mut Random| random.below(60) as i64 - 30;
    for builder in [ArrayBuilder::new([30, 30], DataType::Int32).chunks([4, 7]), {
        ArrayBuilder::new([30, 30], DataType::Int32).chunks([2, 5]).shards([8, 15])
    }] {
        for store in [memory(), AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())))] {
            let array = builder.create(store.clone(), "/numbers", &options).unwrap();
            let texts = ArrayBuilder::new([30, 30], DataType::String).chunks([4, 7]).create(store, "/texts", &options).unwrap();
            let mut model = [0i32; 900];
            for turn in 0..20 {
                let mut list = |count: usize| -> Vec<i64> { (0..count).map(|_| position(&mut random)).collect() };
                let wanted = match turn {
                    // As many positions as the chunk has, and yet not all of it.
                    0 => Selection::axes([vec![1, 1, 0, 1].into(), (..7).into()]),
                    turn if turn % 2 == 0 => Selection::Points(vec![list(2000), list(2000)]),
                    _ => Selection::axes([list(50).into(), list(70).into()]),
                };
                let places = positions(&wanted, &[30, 30]).0;
                let values: Vec<i32> = (0..places.len()).map(|_| random.next() as i32).collect();
                places.iter().zip(&values).for_each(|(&at, &value)| model[at] = value);
                array.write_elements(&wanted, &values).unwrap();
                assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), model, "{wanted:?}");
                let values: Vec<String> = values.iter().map(i32::to_string).collect();
                texts.write_elements(&wanted, &values).unwrap();
                let found = texts.read_elements::<String>(&Selection::all()).unwrap();
                let expected = model.iter().map(|&value| if value == 0 { String::new() } else { value.to_string() });
                assert!(found.into_iter().eq(expected), "{wanted:?}");
            }
        }
    }
}

#[test]
fn inner_chunks_come_in_c_order_and_end_with_the_array() {
    for (name, builder) in crate::common::layouts() {
        let array = builder.create(memory(), "/", &options()).unwrap();
        let found: Vec<Selection> = array.inner_chunk_selections().collect();
        if array.shard_levels().is_empty() {
            assert_eq!(found, array.chunk_selections().collect::<Vec<_>>(), "{name}");
            continue;
        }
        let inner = array.inner_chunk_shape();
        let cut = |axis: usize| -> Vec<std::ops::Range<u64>> {
            let (len, step) = (array.shape()[axis], inner[axis]);
            (0..len).step_by(step as usize).map(|start| start..len.min(start + step)).collect()
        };
        let mut expected = Vec::new();
        for a in cut(0) {
            for b in cut(1) {
                expected.extend(cut(2).into_iter().map(|c| Selection::ranges([a.clone(), b.clone(), c])));
            }
        }
        assert_eq!(found, expected, "{name}");
    }
    let scalar = ArrayBuilder::new([], DataType::Int8).create(memory(), "/", &options()).unwrap();
    assert_eq!(scalar.inner_chunk_selections().count(), 1);
    let none = ArrayBuilder::new([0, 8], DataType::Int8).chunks([2, 2]).shards([4, 4]).create(memory(), "/", &options()).unwrap();
    assert_eq!(none.inner_chunk_selections().count(), 0);
}

#[test]
fn elements_are_read_to_where_others_were() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let values: Vec<i32> = (0..13 * 9 * 7).collect();
    let wanted = Selection::parse("::-3, 2:, [6, 0, 0]", 3).unwrap();
    let expected: Vec<i32> = positions(&wanted, &[13, 9, 7]).0.iter().map(|&at| values[at]).collect();
    for (name, builder) in crate::common::layouts() {
        for store in [memory(), AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())))] {
            let array = builder.create(store, "/", &options()).unwrap();
            array.write_elements(&Selection::all(), &values).unwrap();
            let mut output = vec![-1; expected.len()];
            assert_eq!(array.read_elements_into(&wanted, &mut output).unwrap(), [5, 7, 3], "{name}");
            assert_eq!(output, expected, "{name}");
            assert!(matches!(array.read_elements_into(&wanted, &mut output[1..]), Err(ArrayError::Parameter(_))));
            assert!(matches!(array.read_elements_into(&wanted, &mut [0u32; 105]), Err(ArrayError::Parameter(_))));
        }
    }
    let array = ArrayBuilder::new([3], DataType::Bool).create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &[true, false, true]).unwrap();
    let mut output = [false, true, false];
    array.read_elements_into(&Selection::all(), &mut output).unwrap();
    assert_eq!(output, [true, false, true]);
    let array = ArrayBuilder::new([2], DataType::String).create(memory(), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &["a".to_owned(), "bc".to_owned()]).unwrap();
    let mut output = vec![String::new(), "was here".to_owned()];
    array.read_elements_into(&Selection::all(), &mut output).unwrap();
    assert_eq!(output, ["a", "bc"]);
    assert!(matches!(array.read_elements_into(&Selection::all(), &mut output[..1]), Err(ArrayError::Parameter(_))));
}

#[test]
fn data_are_written_from_where_they_lie() {
    let mut random = Random(29);
    let data: Vec<i32> = (0..4000).map(|_| random.below(1 << 31) as i32).collect();
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_ne_bytes()).collect();
    for (name, builder) in crate::common::layouts() {
        let [found, expected] = [(); 2].map(|()| builder.create(memory(), "/", &options()).unwrap());
        for turn in 0..20 {
            let wanted = selection(&mut random, found.shape());
            let shape: Vec<usize> = found.selection_shape(&wanted).unwrap().iter().map(|&len| len as usize).collect();
            // Axes in any order, forwards, backwards, with gaps, and one element for all.
            let mut strides = vec![0isize; shape.len()];
            let (mut next, mut offset) = (4, 0usize);
            let first = random.below(shape.len().max(1) as u64) as usize;
            for axis in (0..shape.len()).map(|at| (at + first) % shape.len()) {
                let step: isize = [0, next, next, -next, 2 * next][random.below(5) as usize];
                if step.unsigned_abs() * shape[axis] + offset > bytes.len() / 2 {
                    continue;
                }
                strides[axis] = step;
                next = if step == 0 { next } else { step.abs() * shape[axis].max(1) as isize };
                offset += if step < 0 { step.unsigned_abs() * shape[axis].saturating_sub(1) } else { 0 };
            }
            let layout = Layout { offset, shape: shape.clone(), strides, item_size: 4 };
            if layout.check_within(bytes.len()).is_err() {
                continue;
            }
            let mut elements = Vec::new();
            for flat in 0..shape.iter().product() {
                let (mut at, mut rest) = (offset as isize, flat);
                for (&len, &stride) in shape.iter().zip(&layout.strides).rev() {
                    at += (rest % len) as isize * stride;
                    rest /= len;
                }
                elements.push(data[at as usize / 4]);
            }
            expected.write_elements(&wanted, &elements).unwrap();
            if turn % 2 == 0 {
                found.write_strided(&wanted, &bytes, &layout).unwrap();
            } else {
                pollster::block_on(found.write_strided_async(&wanted, bytes.clone(), &layout)).unwrap();
            }
            assert_eq!(found.read(&Selection::all()).unwrap(), expected.read(&Selection::all()).unwrap(), "{name}: {wanted:?}, {layout:?}");
        }
        let whole = |layout: Layout| found.write_strided(&Selection::all(), &bytes, &layout).unwrap_err();
        let right = Layout { offset: 0, shape: vec![13, 9, 7], strides: vec![0; 3], item_size: 4 };
        assert!(matches!(whole(Layout { item_size: 2, ..right.clone() }), ArrayError::Parameter(_)));
        assert!(matches!(whole(Layout { shape: vec![13, 9, 1], ..right.clone() }), ArrayError::Parameter(_)));
        assert!(matches!(whole(Layout { strides: vec![0, 0, -4], ..right.clone() }), ArrayError::Buffer(_)));
        assert!(matches!(whole(Layout { strides: vec![4000, 0, 0], ..right }), ArrayError::Buffer(_)));
    }
}

#[test]
fn dropping_an_async_write_begins_no_more_chunks() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let options = options().with_pool(Pool::new(Arc::clone(&pool)));
    let inner = Arc::new(MemoryStore::new());
    let (begun, gate) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let (begun, gate) = ((Mutex::new(begun.0), begun.1), (gate.0, Mutex::new(gate.1)));
    let tell = move || {
        begun.0.lock().unwrap().send(()).unwrap();
        let _ = gate.1.lock().unwrap().recv();
    };
    let store = AnyStore::blocking(Gated { store: Arc::clone(&inner), tell: Box::new(tell) });
    ArrayBuilder::new([40], DataType::Int32).chunks([1]).create(AnyStore::blocking(inner), "/", &options).unwrap();
    let array = Array::open(store, "/", &options).unwrap();
    let all = Selection::all();
    let mut write = Box::pin(array.write_elements_async(&all, &[7i32; 40]));
    assert!((&mut write).now_or_never().is_none());
    begun.1.recv().unwrap();
    drop(write);
    drop(gate.0);
    // The one thread comes to this when it is done with the write.
    pool.install(|| ());
    let now: Vec<i32> = array.read_elements(&all).unwrap();
    assert_eq!(now.iter().filter(|&&value| value == 7).count(), 1, "{now:?}");
}

/// A store that tells of each value before it is stored.
struct Gated {
    store: Arc<MemoryStore>,
    tell: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gated")
    }
}

impl ReadableStore for Gated {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.store.get(key, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.store.size(key)
    }
}

impl WritableStore for Gated {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        (self.tell)();
        self.store.set(key, value)
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.store.erase(key)
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.store.erase_prefix(prefix)
    }
}

impl Store for Gated {
    fn name(&self) -> String {
        "gated".into()
    }

    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }
}

#[test]
fn a_dropped_async_write_leaves_every_chunk_old_or_new() {
    let runtime = runtime();
    let inner = Arc::new(MemoryStore::new());
    let builder = ArrayBuilder::new([64, 8], DataType::Int32).chunks([2, 2]).shards([4, 4]);
    for microseconds in [0, 50, 200, 500, 1000, 3000] {
        let old = builder.clone().overwrite(true).create(AnyStore::blocking(Arc::clone(&inner)), "/", &options()).unwrap();
        old.write_elements(&Selection::all(), &[1i32; 512]).unwrap();
        runtime.block_on(async {
            let store = AnyStore::Async(Arc::new(BlockingToAsync::new(Arc::clone(&inner))));
            let array = Array::open_async(store, "/", &options()).await.unwrap();
            let all = Selection::all();
            let write = array.write_elements_async(&all, &[2i32; 512]);
            let _ = tokio::time::timeout(std::time::Duration::from_micros(microseconds), write).await;
            let read = array.read_elements_async::<i32>(&all);
            let _ = tokio::time::timeout(std::time::Duration::from_micros(microseconds), read).await;
        });
        let now = old.read_elements::<i32>(&Selection::all()).unwrap();
        for (at, value) in now.iter().enumerate() {
            let (row, column) = (at / 8 / 4 * 4, at % 8 / 4 * 4);
            assert!([1, 2].contains(value) && *value == now[row * 8 + column], "chunks are whole");
        }
    }
}

#[test]
fn metadata_is_version_2_when_asked() {
    let array = ArrayBuilder::new([4, 4], DataType::Int16).version(Version::V2).create(memory(), "/", &options()).unwrap();
    assert!(matches!(array.stored_metadata(), StoredMetadata::ArrayV2(_)));
    assert_eq!(array.chunk_key(&[0, 0]).unwrap().as_str(), "0.0");
    let sharded = ArrayBuilder::new([4, 4], DataType::Int16).chunks([2, 2]).shards([4, 4]).version(Version::V2);
    assert!(sharded.create(memory(), "/", &options()).is_err(), "version 2 has no shards");
    assert!(matches!(array.clone().erase(), Ok(())));
    assert!(matches!(Array::open(array.store().clone(), "/", &options()), Err(ArrayError::NotFound { .. })));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let bytes = r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#;
    let chain = || codecs(bytes);
    let grid = || ChunkGrid::regular([4, 4]);
    let base = || ArrayBuilder::new([8, 8], DataType::Int16);
    for (builder, told) in [
        (base().codecs(chain()).index_at_start(), "`sharding_indexed` of `codecs`"),
        (base().codecs(chain()).compressors([]), "`compressors` into `codecs`"),
        (base().codecs(chain()).filters(codecs(r#"[{"name":"transpose","configuration":{"order":[1,0]}}]"#)), "`filters`"),
        (base().codecs(chain()).array_to_bytes(chain().remove(0)), "`array_to_bytes`"),
        (base().chunk_grid(grid()).chunks([4, 4]), "leave one of them out"),
        (base().chunk_grid(grid()).shards([4, 4]), "`sharding_indexed` into `codecs`"),
        (base().chunks([2, 2]).index_at_start(), "set `shards`"),
    ] {
        let store = memory();
        for error in [builder.metadata().unwrap_err(), builder.create(store.clone(), "/", &options()).unwrap_err()] {
            assert!(matches!(error, ArrayError::Parameter(_)) && error.to_string().contains(told), "{error}");
        }
        assert!(matches!(Array::open(store, "/", &options()), Err(ArrayError::NotFound { .. })));
    }
    for builder in [
        base().chunks([4, 4]).codecs(chain()),
        base().chunk_grid(grid()).codecs(chain()),
        base().chunk_grid(grid()).compressors([]),
        base().chunks([2, 2]).shards([4, 4]).index_at_start().filters([]),
    ] {
        builder.create(memory(), "/", &options()).unwrap();
    }
    // Shards of one's own chain.
    let sharded = base().chunks([2, 2]).shards([4, 4]).index_at_start().codecs(chain()).create(memory(), "/", &options()).unwrap();
    assert_eq!((sharded.shard_levels(), sharded.inner_chunk_shape()), (vec![vec![2, 2]], vec![2, 2]));
    let text = sharded.metadata().codecs[0].to_json().to_string();
    assert!(text.contains(r#""codecs":[{"name":"bytes""#) && text.contains(r#""index_location":"start""#), "{text}");
}

#[test]
fn a_read_only_store_says_so() {
    let store = AnyStore::blocking(zarr_store::ReadOnly::new(MemoryStore::new()));
    let error = ArrayBuilder::new([4], DataType::Int16).create(store, "/", &options()).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_in_and_out() {
    let array = ArrayBuilder::new([3, 4], DataType::Float64).create(memory(), "/", &options()).unwrap();
    let values = ndarray::Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64);
    array.write_ndarray(&Selection::all(), values.view().into_dyn()).unwrap();
    assert_eq!(array.read_ndarray::<f64>(&Selection::all()).unwrap(), values.clone().into_dyn());
    let column = array.read_ndarray::<f64>(&Selection::parse(":, 1", 2).unwrap()).unwrap();
    assert_eq!(column.shape(), [3]);
    // Any memory order.
    let transposed = values.t().as_standard_layout().into_owned();
    array.write_ndarray(&Selection::all(), transposed.t().into_dyn()).unwrap();
    assert_eq!(array.read_ndarray::<f64>(&Selection::all()).unwrap(), values.into_dyn());
    assert!(array.write_ndarray(&Selection::all(), column.view()).is_err());
}

#[test]
fn an_index_cache_saves_requests_and_sees_writes() {
    let (store, metrics) = Metrics::any(memory());
    let builder = ArrayBuilder::new([16, 16], DataType::Int32).chunks([2, 2]).shards([8, 8]);
    let array = builder.create(store, "/", &options().with_index_cache(1 << 20)).unwrap();
    let mut values: Vec<i32> = (0..256).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
    metrics.reset();
    assert_eq!(array.read_elements::<i32>(&Selection::parse("3, 3", 2).unwrap()).unwrap(), [51]);
    assert_eq!(metrics.reset().requests(), 1, "only the inner chunk");
    array.write_elements(&Selection::parse("3, 3", 2).unwrap(), &[-7]).unwrap();
    values[51] = -7;
    assert_eq!(array.clone().read_elements::<i32>(&Selection::all()).unwrap(), values);
    array.erase_chunk(&[0, 0]).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::parse("3, 3", 2).unwrap()).unwrap(), [0]);
}

/// Whole inner chunks, of which the first of each is read before the index of its shard is at hand, and the second with it.
#[test]
fn inner_chunks_are_the_same_with_and_without_a_kept_index() {
    for (name, builder) in layouts() {
        let array = builder.create(memory(), "/", &options()).unwrap();
        if array.shard_levels().is_empty() {
            continue;
        }
        let plain = Array::open(array.store().clone(), "/", &options().with_index_cache(0)).unwrap();
        // The first of the inner chunks are absent.
        let count = SHAPE.iter().product::<u64>() as i32;
        let values: Vec<i32> = (0..count).map(|at| if at < count / 4 { 0 } else { at }).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        let read_all = || {
            for selection in array.inner_chunk_selections() {
                let expected: Vec<i32> = positions(&selection, &SHAPE).0.into_iter().map(|at| values[at]).collect();
                for array in [&plain, &array, &array] {
                    assert_eq!(array.read_elements::<i32>(&selection).unwrap(), expected, "{name}: {selection:?}");
                    assert_eq!(array.read(&selection).unwrap().into_elements::<i32>().unwrap(), expected, "{name}: {selection:?}");
                }
            }
        };
        read_all();
        // With the indexes of all shards at hand.
        array.read(&Selection::all()).unwrap();
        read_all();
    }
}

#[test]
fn bad_inner_chunks_are_the_same_error_with_and_without_a_kept_index() {
    let zstd =
        || codecs(r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1,"checksum":true}}]"#);
    let raw = || codecs(r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#);
    // Shards whose inner chunks were encoded by other codecs.
    for (name, chain, other) in [("zstd", zstd(), raw()), ("raw", raw(), zstd())] {
        let builder = |chain| ArrayBuilder::new([8, 8], DataType::Int32).chunks([2, 2]).shards([4, 8]).codecs(chain);
        let written = builder(other).create(memory(), "/", &options()).unwrap();
        written.write_elements(&Selection::all(), &[7i32; 64]).unwrap();
        let array = builder(chain).create(memory(), "/", &options()).unwrap();
        for shard in [[0, 0], [1, 0]] {
            array.write_encoded_chunk(&shard, written.read_encoded_chunk(&shard).unwrap().unwrap()).unwrap();
        }
        let plain = Array::open(array.store().clone(), "/", &options().with_index_cache(0)).unwrap();
        let inner = Selection::ranges([4..6, 2..4]);
        let expected = plain.read(&inner).unwrap_err().to_string();
        assert!(expected.contains("chunk [2, 1] (c/1/0)"), "{name}: {expected}");
        for _ in 0..2 {
            assert_eq!(array.read(&inner).unwrap_err().to_string(), expected, "{name}");
        }
    }
}

/// Two shards of 8 × 8, of which the first has one inner chunk: an index kept of it says so.
fn sparse_shards(store: AnyStore) -> Array {
    let builder = ArrayBuilder::new([16, 8], DataType::Int32).chunks([2, 2]).shards([8, 8]).compressors([]);
    let array = builder.create(store, "/", &options().with_index_cache(1 << 20)).unwrap();
    array.write_elements(&Selection::ranges([0..2, 0..2]), &[1i32; 4]).unwrap();
    array
}

#[test]
fn a_kept_index_serves_no_other_version_of_its_shard() {
    let directory = tempfile::tempdir().unwrap();
    let files = AnyStore::blocking(FilesystemStore::new(directory.path()).unwrap());
    for (name, store) in [("memory", memory()), ("files", files)] {
        let (counted, metrics) = Metrics::any(store.clone());
        let first = sparse_shards(counted);
        let corner = Selection::ranges([0..1, 0..1]);
        assert_eq!(first.read_elements::<i32>(&corner).unwrap(), [1], "{name}");
        if name == "files" {
            // One that was just written might be taken for the next one.
            std::thread::sleep(std::time::Duration::from_secs(5));
            assert_eq!(first.read_elements::<i32>(&corner).unwrap(), [1]);
        }
        metrics.reset();
        assert_eq!(first.read_elements::<i32>(&corner).unwrap(), [1], "{name}");
        assert_eq!(metrics.reset().requests(), 1, "{name}: only the inner chunk");
        // Somebody else writes: the inner chunks come to lie elsewhere, then nowhere.
        let other = Array::open(store, "/", &options()).unwrap();
        for value in 2..5 {
            other.write_elements(&Selection::ranges([0..8, 0..8]), &[value; 64]).unwrap();
            assert_eq!(first.read_elements::<i32>(&corner).unwrap(), [value], "{name}");
            assert_eq!(first.read_elements::<i32>(&Selection::ranges([6..7, 6..7])).unwrap(), [value], "{name}");
        }
        other.erase_chunk(&[0, 0]).unwrap();
        assert_eq!(first.read_elements::<i32>(&corner).unwrap(), [0], "{name}");
    }
}

#[test]
fn clones_see_writes_through_an_array_that_was_changed() {
    type Change = fn(&mut Array);
    let changes: [(&str, Change); 7] = [
        ("append", |array| array.append(0, &[7; 16 * 4]).unwrap()),
        ("resize", |array| array.resize(&[24, 8]).unwrap()),
        ("refresh", |array| array.refresh().unwrap()),
        ("set_attributes", |array| array.set_attributes(JsonObject::new().with("a", 1u64)).unwrap()),
        ("options", |array| *array = array.with_options(&array.options().clone().with_concurrency(3)).unwrap()),
        ("shrink", |array| array.resize(&[5, 8]).unwrap()),
        ("shrink and grow", |array| [0, 16].map(|len| array.resize(&[len, 8]).unwrap()).into_iter().collect()),
    ];
    for (name, change) in changes {
        let mut array = sparse_shards(memory());
        let clone = array.clone();
        let shard = Selection::ranges([0..5, 0..8]);
        clone.read(&shard).unwrap();
        change(&mut array);
        array.write_elements(&shard, &[5i32; 40]).unwrap();
        assert_eq!(clone.read_elements::<i32>(&shard).unwrap(), [5; 40], "{name}");
        clone.write_elements(&Selection::ranges([0..2, 0..2]), &[0i32; 4]).unwrap();
        assert_eq!(array.read_elements::<i32>(&Selection::ranges([0..1, 0..4])).unwrap(), [0, 0, 5, 5], "{name}");
    }
}

#[test]
fn clones_see_shards_removed_by_a_smaller_shape() {
    for stay in [3, 0] {
        let mut array = sparse_shards(memory());
        array.write_elements(&Selection::all(), &[4i32; 128]).unwrap();
        let clone = array.clone();
        clone.read(&Selection::all()).unwrap();
        array.resize(&[stay, 8]).unwrap();
        let left = clone.read_elements::<i32>(&Selection::all()).unwrap();
        assert!(left.iter().enumerate().all(|(at, &value)| value == if (at as u64) < stay * 8 { 4 } else { 0 }), "{left:?}");
    }
}

#[test]
fn a_refresh_sees_what_others_wrote() {
    let store = memory();
    let mut array = sparse_shards(store.clone());
    let shard = Selection::ranges([0..8, 0..8]);
    array.read(&shard).unwrap();
    Array::open(store.clone(), "/", &options()).unwrap().write_elements(&shard, &[3i32; 64]).unwrap();
    array.refresh().unwrap();
    assert_eq!(array.read_elements::<i32>(&shard).unwrap(), [3; 64]);
    // Another array in its place has other inner chunks, of which the clone does not know.
    let (clone, values) = (array.clone(), (0..128).collect::<Vec<i32>>());
    let builder = ArrayBuilder::new([16, 8], DataType::Int32).chunks([4, 1]).shards([8, 8]).overwrite(true);
    builder.create(store, "/", &options()).unwrap().write_elements(&Selection::all(), &values).unwrap();
    array.refresh().unwrap();
    let _ = clone.read(&Selection::all());
    assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
}

/// Someone writes between the moment when the index of a shard is read and the one when it is kept.
#[test]
fn an_index_that_was_read_before_a_write_is_not_kept() {
    type Write = fn(&mut Array, &Selection);
    let writes: [(&str, Write); 4] = [
        ("write", |array, shard| array.write_elements(shard, &[6i32; 64]).unwrap()),
        ("write_encoded_chunk", |array, shard| {
            let other = array.read_encoded_chunk(&[1, 0]).unwrap().unwrap();
            assert_eq!(array.selection_shape(shard).unwrap(), [8, 8]);
            array.write_encoded_chunk(&[0, 0], other).unwrap();
        }),
        ("append", |array, shard| {
            array.append(0, &[0; 8 * 4]).unwrap();
            array.write_elements(shard, &[6i32; 64]).unwrap();
        }),
        ("shrink", |array, _| {
            array.write_elements(&Selection::ranges([0..8, 0..8]), &[6i32; 64]).unwrap();
            array.resize(&[8, 8]).unwrap();
        }),
    ];
    for (name, write) in writes {
        let inner = Arc::new(MemoryStore::new());
        let after = Then::default();
        let array = sparse_shards(AnyStore::blocking(After { store: Arc::clone(&inner), then: Arc::clone(&after) }));
        array.write_elements(&Selection::ranges([8..16, 0..8]), &[6i32; 64]).unwrap();
        let shard = Selection::ranges([0..8, 0..8]);
        let (mut writer, wanted) = (array.clone(), shard.clone());
        *after.lock().unwrap() = Some(Box::new(move || write(&mut writer, &wanted)));
        // What this read gives is old, new, or an error: it is under way while its shard is written.
        let _ = array.read(&shard);
        assert!(after.lock().unwrap().is_none());
        assert_eq!(array.read_elements::<i32>(&shard).unwrap(), [6; 64], "{name}");
    }
}

type Then = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A store that does something once, after it read a value.
struct After {
    store: Arc<MemoryStore>,
    then: Then,
}

impl std::fmt::Debug for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("After")
    }
}

impl ReadableStore for After {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let found = self.store.get(key, range);
        let then = self.then.lock().unwrap().take();
        then.into_iter().for_each(|then| then());
        found
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.store.size(key)
    }
}

impl Store for After {
    fn name(&self) -> String {
        "after".into()
    }

    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.store.as_writable()
    }
}

#[test]
fn the_blocking_form_writes_and_reads_an_async_store() {
    let runtime = runtime();
    let store = AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())));
    let _inside = runtime.enter();
    let array = ArrayBuilder::new([64, 8], DataType::Int32).chunks([2, 2]).shards([4, 4]).create(store.clone(), "/", &options()).unwrap();
    let values: Vec<i32> = (0..512).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
    let names = ArrayBuilder::new([9], DataType::String).chunks([2]).create(store, "/names", &options()).unwrap();
    let words: Vec<String> = (0..9).map(|i| i.to_string()).collect();
    names.write_elements(&Selection::all(), &words).unwrap();
    assert_eq!(names.read_elements::<String>(&Selection::all()).unwrap(), words);
}

#[test]
fn a_struct_without_byte_order_is_little_endian() {
    let metadata = br#"{"zarr_format":3,"node_type":"array","shape":[1],"data_type":{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"uint8"}]}},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},"chunk_key_encoding":{"name":"default"},"fill_value":{"a":0,"b":0},"codecs":[{"name":"bytes"}]}"#;
    let metadata = StoredMetadata::ArrayV3(zarr_meta::ArrayMetadataV3::parse(metadata).unwrap().into());
    let array = Array::from_metadata(memory(), "/", metadata, &options()).unwrap();
    array.write_encoded_chunk(&[0], vec![1, 2, 3]).unwrap();
    let expected = [&0x0201i16.to_ne_bytes()[..], &[3]].concat();
    assert_eq!(array.read(&Selection::all()).unwrap().as_bytes().unwrap(), expected);
}

#[test]
fn chunk_keys_of_any_encoding() {
    for (encoding, key) in [
        (r#"{"name":"fanout","configuration":{"max_children":4}}"#, "a/d0/1/0/d1/2/c"),
        (r#"{"name":"suffix","configuration":{"suffix":".bin","base_encoding":{"name":"v2"}}}"#, "a/3.2.bin"),
        (r#"{"name":"zarrs.default_suffix","configuration":{"suffix":".bin"}}"#, "a/c/3/2.bin"),
    ] {
        let store = memory();
        let encoding = zarr_meta::ChunkKeyEncoding::parse(&Json::parse(encoding.as_bytes()).unwrap()).unwrap();
        let builder = ArrayBuilder::new([8, 6], DataType::Int32).chunks([2, 2]).chunk_key_encoding(encoding.clone());
        let array = builder.create(store.clone(), "/a", &options()).unwrap();
        let values: Vec<i32> = (1..=48).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        assert_eq!(array.chunk_key(&[3, 2]).unwrap().as_str(), key);
        assert_eq!(array.stored_size().unwrap().1, 12);
        let mut array = Array::open(store, "/a", &options()).unwrap();
        assert_eq!(array.metadata().chunk_key_encoding, encoding);
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
        array.resize(&[4, 6]).unwrap();
        assert_eq!(array.stored_size().unwrap().1, 6);
    }
}

/// The array of zarr-python 2's tutorial on objects, with the values that numcodecs writes.
#[test]
fn objects_of_version_2_in_json() {
    let store = MemoryStore::new();
    let put = |key: &str, value: &[u8]| store.set(&StoreKey::new(key).unwrap(), value.to_vec().into()).unwrap();
    put(
        ".zarray",
        br#"{"zarr_format":2,"shape":[7],"chunks":[5],"dtype":"|O","order":"C","compressor":{"id":"zlib","level":1},"fill_value":null,
            "filters":[{"id":"json2","encoding":"utf-8","ensure_ascii":true,"sort_keys":true,"indent":null,"separators":[",",":"]}]}"#,
    );
    let store = AnyStore::blocking(store);
    let array = Array::open(store.clone(), "/", &options()).unwrap();
    let values = ["42", "\"foo\"", "[\"bar\",\"baz\",\"qux\"]", "{\"a\":1,\"b\":2.2}"].map(str::to_owned);
    array.write_elements(&Selection::parse("0:4", 1).unwrap(), &values).unwrap();
    let mut expected = values.to_vec();
    expected.resize(7, "null".to_owned());
    assert_eq!(array.read_elements::<String>(&Selection::all()).unwrap(), expected);
    let wrong = array.write_elements(&Selection::parse("4:5", 1).unwrap(), &["foo".to_owned()]);
    assert!(wrong.unwrap_err().to_string().contains("no JSON text"));
}
