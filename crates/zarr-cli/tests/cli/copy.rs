//! `copy`: the same elements however they are stored, and nothing half done that looks done.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{bytes_of, command, files, ok, sample, temporary, zarr};
use zarr::{ArrayBuilder, DataType, Selection, Version};

/// Every array of two hierarchies, element by element, and all attributes.
fn assert_same(a: &str, b: &str) {
    let (a, b) = (zarr::open_group(a).unwrap(), zarr::open_group(b).unwrap());
    let (left, right) = (a.walk().unwrap(), b.walk().unwrap());
    assert_eq!(left.len(), right.len());
    for (left, right) in left.into_iter().zip(right) {
        let (left, right) = (left.unwrap(), right.unwrap());
        assert_eq!(left.path(), right.path());
        if let (Some(left), Some(right)) = (left.into_array(), right.into_array()) {
            assert_eq!(left.read(&Selection::all()).unwrap(), right.read(&Selection::all()).unwrap(), "{}", left.path());
            assert_eq!(left.dimension_names(), right.dimension_names());
            let attributes = |array: &zarr::Array| {
                let mut all: Vec<String> = array.attributes().iter().map(|(key, value)| format!("{key}: {value}")).collect();
                all.retain(|attribute| !attribute.starts_with("_ARRAY_DIMENSIONS"));
                all.sort();
                all
            };
            assert_eq!(attributes(&left), attributes(&right));
        }
    }
}

#[test]
fn there_and_back_between_the_versions() {
    let (_directory, at) = temporary();
    for (name, there, back) in [("sea_surface.zarr", "3", "2"), ("north_america.zarr", "2", "3")] {
        let (first, second) = (at(&format!("{name}.{there}")), at(&format!("{name}.{back}")));
        ok(&["copy", &sample(name), &first, "--version", there]);
        ok(&["copy", &first, &second, "--version", back]);
        for copy in [&first, &second] {
            assert_same(&sample(name), copy);
            assert!(ok(&["validate", copy]).text().contains("is valid"));
        }
        let version = if there == "3" { Version::V3 } else { Version::V2 };
        let group = zarr::open_group(&first).unwrap();
        assert_eq!(group.version(), version);
        assert!(group.is_consolidated());
        assert!(group.walk().unwrap().into_iter().filter_map(|node| node.unwrap().into_array()).all(|array| array.version() == version));
    }
    // Bytes that need not change do not.
    let chunk = |root: String, key: &str| std::fs::read(Path::new(&root).join(key)).unwrap();
    assert_eq!(
        chunk(at("sea_surface.zarr.3"), "surface_temperature/c/3/0/1"),
        chunk(sample("sea_surface.zarr"), "surface_temperature/3.0.1")
    );
}

#[test]
fn a_plain_copy_is_the_same_files() {
    let (_directory, at) = temporary();
    let done = ok(&["copy", &sample("north_america.zarr"), &at("n"), "--json"]).json();
    assert_eq!((&done["arrays"], &done["chunks_copied"], &done["chunks_encoded"]), (&9.into(), &10.into(), &0.into()));
    assert_eq!(files(&at("n")), files(&sample("north_america.zarr")));
    assert_same(&sample("north_america.zarr"), &at("n"));
}

#[test]
fn other_chunks_shards_and_codecs() {
    let (_directory, at) = temporary();
    let source = sample("north_america.zarr/air_temperature");
    let expected = bytes_of(&source);
    for (index, options) in [
        vec!["--chunks", "7,11,13"],
        vec!["--shards", "none"],
        vec!["--chunks", "8,37,49", "--shards", "16,37,49", "--codec", "blosc:zstd:1:bitshuffle"],
        vec!["--codec", "none"],
        vec!["--codec", "gzip:1", "--shards", "none", "--chunks", "longitude=5"],
        vec!["--version", "2", "--codec", "transpose+shuffle+zlib:1"],
        vec!["--chunks", "1,1,49", "--shards", "none", "--codec", "lz4", "--memory", "2MiB"],
        vec!["--codec", r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}]"#],
    ]
    .iter()
    .enumerate()
    {
        if options.contains(&"7,11,13") {
            let run = zarr(&["copy", &source, &at("x"), "--chunks", "7,11,13"]);
            assert_eq!(
                (run.code, run.stderr.as_str()),
                (
                    2,
                    "error: shards of 120×37×49 cannot be made of chunks of 7×11×13: 120 is no multiple of 7 along axis 0\n\
                     hint: give --chunks and --shards that fit, or --shards none\n"
                )
            );
            continue;
        }
        let target = at(&format!("{index}.zarr"));
        ok(&[&["copy", &source, &target], options.as_slice()].concat());
        assert_eq!(bytes_of(&target), expected, "{options:?}");
        assert!(ok(&["validate", &target]).text().contains("is valid"));
    }
    let info = ok(&["info", &at("4.zarr"), "--json"]).json();
    assert_eq!(info["chunk_shape"], serde_json::json!([24, 37, 5]));
    assert_eq!(ok(&["info", &at("2.zarr"), "--json"]).json()["shard_shape"], serde_json::json!([16, 37, 49]));
}

#[test]
fn strings_scalars_and_empty_arrays() {
    let (_directory, at) = temporary();
    let store = zarr::open_url(&at("s"), &zarr::OpenOptions::write()).unwrap();
    let options = zarr::options();
    let root = zarr::GroupBuilder::new().attributes(zarr::meta::JsonObject::new().with("a", 1)).create(store, "/", &options).unwrap();
    let strings = root.create_array("deep/strings", &ArrayBuilder::new([10], DataType::String).chunks([3]));
    let words: Vec<String> = (0..10).map(|number| "é".repeat(number)).collect();
    strings.unwrap().write_elements(&Selection::all(), &words).unwrap();
    root.create_array("none", &ArrayBuilder::new([0, 5], DataType::Float32)).unwrap();
    let scalar = root.create_array("scalar", &ArrayBuilder::new([], DataType::Int16)).unwrap();
    scalar.write_elements(&Selection::all(), &[-7i16]).unwrap();
    for (target, extra) in [("t", vec!["--codec", "gzip:1"]), ("u", vec!["--version", "2"]), ("v.zip", vec!["--chunks", "4"])] {
        ok(&[&["copy", &at("s"), &at(target)], extra.as_slice()].concat());
        assert_same(&at("s"), &at(target));
        assert!(ok(&["validate", &at(target)]).text().contains("is valid"), "{target}");
    }
    assert_eq!(zarr::open_group(&at("t")).unwrap().attributes().len(), 1);
}

#[test]
fn what_is_there_is_not_written_over() {
    let (_directory, at) = temporary();
    let (source, target) = (sample("north_america.zarr/time"), at("t"));
    ok(&["copy", &source, &target]);
    assert_eq!(
        zarr(&["copy", &source, &target]).stderr,
        format!("error: there is an array or a group at {target} already\nhint: --overwrite removes it first\n")
    );
    assert!(ok(&["copy", &source, &target, "--resume"]).text().starts_with("nothing left to copy: 1 array of 1 array"));
    let other = zarr(&["copy", &sample("north_america.zarr/height"), &target, "--resume"]);
    assert!(other.stderr.contains("is a whole array or group already, and not this copy"), "{}", other.stderr);
    ok(&["copy", &sample("north_america.zarr/height"), &target, "--overwrite"]);
    assert_eq!(ok(&["cat", &target]).text(), "1.5\n");
    std::fs::create_dir(at("d")).unwrap();
    std::fs::write(at("d/notes.txt"), "x").unwrap();
    assert!(zarr(&["copy", &source, &at("d")]).stderr.contains("is not empty, and holds no Zarr"));
    assert!(zarr(&["copy", &target, &format!("{target}/inside")]).stderr.contains("the destination lies in the source"));
    ok(&["copy", &sample("sea_surface.zarr"), &at("whole")]);
    let inside = zarr(&["copy", &at("whole/time"), &at("whole"), "--overwrite"]);
    assert_eq!((inside.code, inside.stderr.as_str()), (2, "error: the source lies in the destination\n"));
    assert!(Path::new(&at("whole/time/.zarray")).exists());
    let unknown = zarr(&["copy", &sample("north_america.zarr"), &at("n"), "--chunks", "lattitude=4"]);
    assert_eq!(unknown.stderr, "error: no array has a dimension `lattitude`\nhint: did you mean `latitude`?\n");
    assert!(!Path::new(&at("n")).exists());
}

/// An array that takes a while to compress: 64 chunks of half a megabyte.
fn slow_array(path: &str) {
    let store = zarr::open_url(path, &zarr::OpenOptions::write()).unwrap();
    let codecs = [zarr::meta::Extension::with_configuration("bytes", zarr::meta::JsonObject::new().with("endian", "little"))];
    let builder = ArrayBuilder::new([64, 256, 512], DataType::UInt32).chunks([1, 256, 512]).codecs(codecs);
    let array = builder.create(store, "/", &zarr::options()).unwrap();
    let mut state = 1u32;
    for step in 0..64 {
        let data: Vec<u32> = (0..256 * 512)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 20
            })
            .collect();
        array.write_elements(&Selection::axes([(step..step + 1).into()]), &data).unwrap();
    }
}

#[test]
fn a_copy_that_is_killed_goes_on_where_it_stopped() {
    let (_directory, at) = temporary();
    let (source, target) = (at("source"), at("target"));
    slow_array(&source);
    let arguments = ["copy", &source, &target, "--chunks", "2,256,512", "--codec", "gzip:9", "--memory", "8MiB", "--threads", "1"];
    let mut child = command(&arguments).spawn().unwrap();
    let stored = || if Path::new(&target).exists() { files(&target).iter().filter(|file| file.starts_with("c/")).count() } else { 0 };
    let start = Instant::now();
    while stored() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no chunk in a minute");
        assert!(child.try_wait().unwrap().is_none(), "the copy ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // As if a write had been under way at that moment.
    std::fs::write(Path::new(&target).join("c/.zarr-partial.0"), "half a chunk").unwrap();
    let before = stored();
    assert!(before < 32, "{before}");

    assert!(!files(&target).contains(&"zarr.json".to_owned()));
    let info = zarr(&["info", &target]);
    assert_eq!(info.code, 1);
    assert!(info.stderr.contains("was interrupted, or is under way: `zarr copy --resume` goes on with it"), "{}", info.stderr);
    let again = zarr(&arguments);
    assert!(
        again.stderr.contains("an interrupted copy of file://") && again.stderr.contains("hint: --resume goes on with it"),
        "{}",
        again.stderr
    );
    let other = zarr(&["copy", &source, &target, "--resume"]);
    assert!(other.stderr.contains("was made with other settings, or the source has changed since"), "{}", other.stderr);
    let elsewhere = zarr(&["copy", &sample("north_america.zarr"), &target, "--resume"]);
    assert!(elsewhere.stderr.contains("is one of file://"), "{}", elsewhere.stderr);

    let done = ok(&[&arguments[..], &["--resume", "--json"]].concat()).json();
    let (skipped, encoded) = (done["chunks_already_there"].as_u64().unwrap(), done["chunks_encoded"].as_u64().unwrap());
    assert!(skipped >= 2 && skipped <= before as u64 && skipped + encoded == 32, "{done}");
    assert_eq!(bytes_of(&target), bytes_of(&source));
    assert!(
        files(&target).iter().all(|file| file == "zarr.json" || file.starts_with("c/") && !file.contains("partial")),
        "{:?}",
        files(&target)
    );
    assert!(ok(&["validate", &target]).text().contains("is valid"));
}

#[test]
fn a_hierarchy_that_is_cut_off_has_no_root() {
    let (_directory, at) = temporary();
    crate::common::copy_directory(&sample("north_america.zarr"), &at("broken"));
    // The fifth array has a chunk that cannot be decoded.
    std::fs::write(at("broken/latitude/c/0"), "no zstd").unwrap();
    let failed = zarr(&["copy", &at("broken"), &at("target"), "--codec", "gzip:1"]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("/target/latitude\n  because: copying [0:37] of /latitude\n  because: chunk [0] (latitude/c/0): codec zstd"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.ends_with("; what was copied is kept: --resume goes on from there\n"));
    assert!(!Path::new(&at("target/zarr.json")).exists() && Path::new(&at("target/height/zarr.json")).exists());
    std::fs::copy(sample("north_america.zarr/latitude/c/0"), at("broken/latitude/c/0")).unwrap();
    // One of the four that are done has lost bytes since.
    std::fs::write(at("target/air_temperature/c/1/0/0"), "").unwrap();
    let done = ok(&["copy", &at("broken"), &at("target"), "--codec", "gzip:1", "--resume", "--json"]).json();
    assert_eq!(done["arrays_already_there"], 3);
    assert_same(&sample("north_america.zarr"), &at("target"));
    // An archive takes its name when it is whole.
    std::fs::write(at("broken/latitude/c/0"), "no zstd").unwrap();
    assert_eq!(zarr(&["copy", &at("broken"), &at("a.zip"), "--codec", "gzip:1"]).code, 1);
    assert!(!Path::new(&at("a.zip")).exists());
}

/// Peak memory of a run, in bytes.
#[cfg(target_os = "linux")]
fn peak(arguments: &[&str]) -> u64 {
    let mut child = command(arguments).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kilobytes) = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()) {
            peak = kilobytes * 1024;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success(), "{arguments:?}");
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_within_the_budget() {
    let (_directory, at) = temporary();
    let source = at("source");
    slow_array(&source);
    ok(&["copy", &source, &at("sharded"), "--chunks", "1,64,512", "--shards", "16,256,512", "--codec", "zstd:1"]);
    let budget = 16 << 20;
    for (from, options) in [
        (&source, vec!["--chunks", "64,16,64", "--codec", "zstd:1"]),
        (&source, vec!["--chunks", "4,256,512", "--codec", "zstd:1"]),
        (&source, vec![]),
        (&at("sharded"), vec!["--shards", "none", "--chunks", "1,256,512", "--codec", "none"]),
    ] {
        let target = at("target");
        let used = peak(&[&["copy", from, &target, "--overwrite", "--memory", "16MiB", "--threads", "2"], options.as_slice()].concat());
        assert!(used < budget + (48 << 20), "{options:?}: {used} bytes");
        assert_eq!(bytes_of(&target), bytes_of(&source));
    }
    let refused = zarr(&["copy", &source, &at("x"), "--shards", "64,256,512", "--memory", "16MiB"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("16.8 MB of memory are too little: one chunk of the destination takes"), "{}", refused.stderr);
    let least = refused.stderr.split("--memory ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    ok(&["copy", &source, &at("x"), "--shards", "64,256,512", "--memory", &least, "--resume"]);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_within_the_budget_with_long_strings() {
    let (_directory, at) = temporary();
    let store = zarr::open_url(&at("s"), &zarr::OpenOptions::write()).unwrap();
    let builder = ArrayBuilder::new([40_000], DataType::String).chunks([500]);
    let array = builder.create(store, "/", &zarr::options()).unwrap();
    for part in 0..80u64 {
        let words: Vec<String> = (0..500).map(|number| format!("{part} {number} ").repeat(300)).collect();
        let place = Selection::parse(&format!("{}:{}", part * 500, (part + 1) * 500), 1).unwrap();
        array.write_elements(&place, &words).unwrap();
    }
    let used = peak(&["copy", &at("s"), &at("t"), "--chunks", "800", "--codec", "zstd:1", "--memory", "32MiB", "--threads", "2"]);
    assert!(used < (32 << 20) + (48 << 20), "{used} bytes");
    let copied = zarr::open_array(&at("t")).unwrap().read(&Selection::all()).unwrap();
    assert_eq!(copied.elements, array.read(&Selection::all()).unwrap().elements);
}

/// The documents of all groups, and which groups collect the metadata of what is below them.
#[test]
fn groups_inside_are_consolidated_as_in_the_source() {
    let (_directory, at) = temporary();
    let options = zarr::options();
    let store = zarr::open_url(&at("s"), &zarr::OpenOptions::write()).unwrap();
    let mut root = zarr::GroupBuilder::new().create(store.clone(), "/", &options).unwrap();
    for name in ["a", "a/deep", "ab", "b"] {
        root.create_group(name, &zarr::GroupBuilder::new().attributes(zarr::meta::JsonObject::new().with("name", name))).unwrap();
    }
    for name in ["a/x", "a/deep/y", "ab/z"] {
        root.create_array(name, &ArrayBuilder::new([4], DataType::Int16).chunks([2])).unwrap();
    }
    let consolidate = |path: &str| zarr::Group::open(store.clone(), path, &options).unwrap().consolidate().unwrap();
    let consolidated = |target: &str| {
        let groups = ["", "a", "a/deep", "ab", "b"];
        groups.map(|group| {
            let group = zarr::open_group(&format!("{}/{group}", at(target))).unwrap();
            let stored = group.is_consolidated();
            (stored, stored.then(|| group.walk().unwrap().len()))
        })
    };
    consolidate("/a");
    let inside_alone = [(false, None), (true, Some(3)), (false, None), (false, None), (false, None)];
    ok(&["copy", &at("s"), &at("inside"), "--codec", "gzip:1"]);
    assert_eq!(consolidated("inside"), inside_alone);
    root.consolidate().unwrap();
    let both = [(true, Some(7)), (true, Some(3)), (false, None), (false, None), (false, None)];
    for (source, target, version, expected) in
        [("s", "both", "3", both), ("s", "2", "2", both), ("2", "3", "3", both), ("inside", "2-inside", "2", inside_alone)]
    {
        ok(&["copy", &at(source), &at(target), "--chunks", "3", "--version", version]);
        assert_eq!(consolidated(target), expected, "{target}");
        assert!(ok(&["validate", &at(target)]).text().contains("is valid"), "{target}");
    }
    ok(&["copy", &at("s"), &at("none"), "--consolidate", "no"]);
    assert!(consolidated("none").iter().all(|(stored, _)| !stored));
    ok(&["copy", &at("s"), &at("root"), "--consolidate", "yes"]);
    assert_eq!(consolidated("root")[..2], [(true, Some(7)), (false, None)]);
}

/// Appends to `/x`, adds `/y` and removes `/gone`, as writers do that leave consolidated metadata as they are.
fn make_older(path: &str) {
    let store = zarr::open_url(path, &zarr::OpenOptions::write()).unwrap();
    let options = zarr::options();
    zarr::Array::open(store.clone(), "/x", &options).unwrap().append(0, &[2; 10]).unwrap();
    let root = zarr::Group::open(store, "/", &options).unwrap();
    let y = root.create_array("inside/y", &ArrayBuilder::new([3], DataType::UInt8)).unwrap();
    y.write_elements(&Selection::all(), &[7u8, 8, 9]).unwrap();
    std::fs::remove_dir_all(Path::new(path).join("gone")).unwrap();
}

#[test]
fn documents_count_where_consolidated_metadata_are_older() {
    let (_directory, at) = temporary();
    let store = zarr::open_url(&at("3"), &zarr::OpenOptions::write()).unwrap();
    let root = zarr::GroupBuilder::new().create(store, "/", &zarr::options()).unwrap();
    for name in ["x", "gone", "inside/z"] {
        let array = root.create_array(name, &ArrayBuilder::new([10], DataType::UInt8).chunks([5])).unwrap();
        array.write_elements(&Selection::all(), &[1u8; 10]).unwrap();
    }
    root.clone().consolidate().unwrap();
    ok(&["copy", &at("3"), &at("2"), "--version", "2"]);
    for source in ["3", "2"] {
        make_older(&at(source));
        let found = zarr(&["validate", &at(source), "--json"]).json();
        let mut told: Vec<&str> = found["problems"].as_array().unwrap().iter().map(|problem| problem["reason"].as_str().unwrap()).collect();
        told.sort_unstable();
        assert_eq!(told, ["/gone is named, and not stored", "/inside/y is stored, and not named", "/x differs from what is stored"]);
        for (target, extra) in [("plain", vec![]), ("other", vec!["--codec", "gzip:1"]), ("whole.zip", vec![])] {
            let target = at(&format!("{source}-{target}"));
            let run = ok(&[&["copy", &at(source), &target], extra.as_slice()].concat());
            assert!(run.stderr.contains("and so not copied: /gone"), "{}", run.stderr);
            assert_eq!(bytes_of(&format!("{target}/x")), [[1u8; 10], [2; 10]].concat());
            assert_eq!(bytes_of(&format!("{target}/inside/y")), [7, 8, 9]);
            let copy = zarr::open_group(&target).unwrap();
            assert!(copy.is_consolidated() && copy.walk().unwrap().len() == 4);
            assert!(ok(&["validate", &target]).text().contains("is valid"));
        }
    }
}

/// An archive is put in place by the copy, whatever it is called, and not at all by one that fails.
#[test]
fn archives_by_any_name() {
    let (_directory, at) = temporary();
    let source = sample("north_america.zarr/time");
    crate::common::copy_directory(&source, &at("broken"));
    std::fs::write(at("broken/c/0"), "no zstd").unwrap();
    for (url, file) in [
        (at("OUT.ZIP"), "OUT.ZIP"),
        (format!("zip://{}", at("out.bin")), "out.bin"),
        (format!("ZIP://{}", at("a%20b.zip")), "a%20b.zip"),
        (format!("file://{}", at("c%20d.zip")), "c d.zip"),
        (format!("File://localhost{}", at("e.Zip")), "e.Zip"),
    ] {
        assert_eq!(zarr(&["copy", &at("broken"), &url, "--codec", "gzip:1"]).code, 1, "{url}");
        assert!(!Path::new(&at(file)).exists(), "{url}");
        ok(&["copy", &source, &url]);
        assert!(Path::new(&at(file)).is_file(), "{url}");
        assert_eq!(bytes_of(&url), bytes_of(&source));
    }
    // An archive of several nodes.
    for node in ["N.ZIP/a", "N.ZIP/b c"] {
        ok(&["copy", &source, &at(node)]);
        assert_eq!(bytes_of(&at(node)), bytes_of(&source));
    }
    assert_eq!(bytes_of(&format!("file://{}", at("N.ZIP/b%20c"))), bytes_of(&source));
}
