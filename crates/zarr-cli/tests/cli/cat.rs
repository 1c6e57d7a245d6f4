//! `cat` and `create`: elements out, bit for bit.

use crate::common::{bytes_of, command, files, ok, run, sample, temporary, zarr};
use zarr::{ArrayBuilder, DataType, Selection};

/// The parts of an npy file: its dictionary, and the bytes of the elements.
fn parse_npy(file: &[u8]) -> (String, &[u8]) {
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let (header, elements) = file[10..].split_at(length);
    assert!(header.ends_with(b"\n") && (10 + length) % 64 == 0);
    (String::from_utf8(header.to_vec()).unwrap().trim_end().to_owned(), elements)
}

#[test]
fn the_three_formats_agree() {
    let (_directory, at) = temporary();
    let array = sample("north_america.zarr/air_temperature");
    let raw = ok(&["cat", &array, "--format", "raw"]).stdout;
    assert_eq!(raw, bytes_of(&array));
    ok(&["cat", &array, "--format", "npy", "-o", &at("a.npy")]);
    let file = std::fs::read(at("a.npy")).unwrap();
    let (header, elements) = parse_npy(&file);
    assert_eq!(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (240, 37, 49), }");
    assert_eq!(elements, raw);
    let json = ok(&["cat", &array]).json();
    let floats = json.as_array().unwrap().iter().flat_map(|map| map.as_array().unwrap()).flat_map(|row| row.as_array().unwrap());
    let bits: Vec<u8> = floats.flat_map(|value| (value.as_f64().unwrap() as f32).to_le_bytes()).collect();
    assert_eq!(bits, raw);
}

#[test]
fn selections() {
    let array = sample("north_america.zarr/air_temperature");
    let library = zarr::open_array(&array).unwrap();
    for select in ["0", "-1, ::-1", "::100, 3, :", "[5, 5, 0], 1:3, -2:", "..., 7", "10:10"] {
        let expected = library.read(&Selection::parse(select, 3).unwrap()).unwrap();
        let file = ok(&["cat", &array, "--select", select, "--format", "npy"]).stdout;
        let (header, elements) = parse_npy(&file);
        assert_eq!(elements, expected.as_bytes().unwrap(), "{select}");
        let lengths: Vec<String> = expected.shape.iter().map(u64::to_string).collect();
        assert!(header.contains(&format!("'shape': ({}", lengths.join(", "))), "{select}: {header}");
    }
    assert_eq!(ok(&["cat", &array, "-s", "0, :2, :2"]).text(), "[[296.07858, 296.17642],\n [295.51743, 295.58868]]\n");
    assert_eq!(ok(&["cat", &array, "-s", "0, 0, 0"]).text(), "296.07858\n");
    assert_eq!(ok(&["cat", &array, "-s", "3:3, 0"]).text(), "[]\n");
}

fn create(path: &str, data_type: &str, shape: &str, data: &[u8]) {
    ok(&["create", path, "--dtype", data_type, "--shape", shape, "--chunks", "2", "--quiet"]);
    let store = zarr::open_url(path, &zarr::OpenOptions::write()).unwrap();
    zarr::Array::open(store, "/", &zarr::options()).unwrap().write(&Selection::all(), data).unwrap();
}

#[test]
fn every_kind_of_element() {
    let (_directory, at) = temporary();
    let floats = [1.5f32, f32::NAN, f32::NEG_INFINITY, -0.0].map(f32::to_ne_bytes).concat();
    let times = [0i64, i64::MIN, 86_400].map(i64::to_ne_bytes).concat();
    let text = ['a', '\0', 'é', '☃'].map(|character| u32::from(character).to_ne_bytes()).concat();
    let complex = [1f64, 2.0, f64::NAN, f64::INFINITY].map(f64::to_ne_bytes).concat();
    let fields = r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"uint8"}]}}"#;
    let rows = [&7i16.to_ne_bytes()[..], &[1], &(-1i16).to_ne_bytes(), &[255]].concat();
    for (data_type, count, data, descr, json) in [
        ("float32", "4", floats.as_slice(), "'<f4'", r#"[1.5, "NaN", "-Infinity", -0.0]"#),
        ("bool", "3", &[1, 0, 1], "'|b1'", "[true, false, true]"),
        ("datetime64[s]", "3", &times, "'<M8[s]'", r#"[0, "NaT", 86400]"#),
        ("U2", "2", &text, "'<U2'", r#"["a", "é☃"]"#),
        ("S3", "2", b"ab\0xyz", "'|S3'", r#"["YWI=", "eHl6"]"#),
        ("complex128", "2", &complex, "'<c16'", r#"[[1.0, 2.0], ["NaN", "Infinity"]]"#),
        ("r16", "2", &[1, 2, 3, 4], "'|V2'", "[[1,2], [3,4]]"),
        ("int64", "1", &i64::MIN.to_ne_bytes(), "'<i8'", "[-9223372036854775808]"),
        ("uint64", "1", &u64::MAX.to_ne_bytes(), "'<u8'", "[18446744073709551615]"),
        ("float16", "1", &0x3C01u16.to_ne_bytes(), "'<f2'", "[1.0009766]"),
        (fields, "2", &rows, "[('a', '<i2'), ('b', '|u1')]", r#"[{"a":7,"b":1}, {"a":-1,"b":255}]"#),
    ] {
        let path = at(&data_type.replace(['"', ':', '[', ']', '{', '}', ','], "_")[..data_type.len().min(12)]);
        create(&path, data_type, count, data);
        let file = ok(&["cat", &path, "-f", "npy"]).stdout;
        let (header, elements) = parse_npy(&file);
        assert_eq!(header, format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({count},), }}"));
        if cfg!(target_endian = "little") {
            assert_eq!(elements, data, "{data_type}");
        }
        assert_eq!(ok(&["cat", &path]).text().trim_end(), json, "{data_type}");
    }
}

#[test]
fn what_a_format_cannot_hold() {
    let (_directory, at) = temporary();
    let options = zarr::options();
    let store = zarr::open_url(&at("s"), &zarr::OpenOptions::write()).unwrap();
    let array = ArrayBuilder::new([3], DataType::String).create(store, "/", &options).unwrap();
    array.write_elements(&Selection::all(), &["".to_owned(), "a\"b".to_owned(), "né".to_owned()]).unwrap();
    assert_eq!(ok(&["cat", &at("s")]).text(), "[\"\", \"a\\\"b\", \"né\"]\n");
    assert_eq!(
        zarr(&["cat", &at("s"), "-f", "raw", "-o", &at("o")]).stderr,
        "error: elements of string differ in length, so raw bytes do not tell where one ends\nhint: --format json writes them\n"
    );
    assert!(!std::path::Path::new(&at("o")).exists());
    ok(&["create", &at("b"), "--dtype", "bfloat16", "--shape", "3"]);
    let run = zarr(&["cat", &at("b"), "-f", "npy"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("error: NumPy has no data type for bfloat16, so there is no npy file of it\nhint: --format json"),
        "{}",
        run.stderr
    );
}

#[test]
fn creating() {
    let (_directory, at) = temporary();
    let path = at("a.zarr");
    let created = ok(&[
        "create",
        &path,
        "--shape",
        "10,20",
        "--dtype",
        "float32",
        "--chunks",
        "y=5,x=all",
        "--shards",
        "10,20",
        "--codec",
        "shuffle+zstd:1",
        "--fill",
        "NaN",
        "--dimension-names",
        "y,x",
        "--attributes",
        r#"{"big": 123456789012345678901234567890}"#,
    ]);
    assert!(created.stderr.contains("10×20 float32, chunks of 5×20 in 10×20, shuffle(elementsize=4) → zstd(1)"), "{}", created.stderr);
    let info = ok(&["info", &path, "--json"]);
    assert!(info.text().contains("123456789012345678901234567890"));
    let json = info.json();
    assert_eq!((&json["chunk_shape"], &json["shard_shape"]), (&serde_json::json!([5, 20]), &serde_json::json!([10, 20])));
    assert_eq!((&json["fill_value"], &json["chunks_present"]), (&"NaN".into(), &0.into()));
    assert_eq!(
        zarr(&["create", &path, "--shape", "3", "--dtype", "int8"]).stderr,
        format!(
            "error: cannot create {path}\n  because: there is an array or a group at {path} already\nhint: --overwrite removes it first\n"
        )
    );
    let json = ok(&["create", &path, "--shape", "3", "--dtype", "int8", "--version", "2", "--overwrite", "--fill", "-5", "--json"]).json();
    assert_eq!((&json["zarr_format"], &json["chunks_total"]), (&2.into(), &1.into()));
    assert_eq!(ok(&["cat", &path]).text(), "[-5, -5, -5]\n");
    ok(&["create", &at("in.zip/deep/down"), "--shape", "2", "--dtype", "bool"]);
    assert_eq!(ok(&["cat", &at("in.zip/deep/down")]).text(), "[false, false]\n");
    ok(&["create", &at("scalar"), "--shape", "", "--dtype", "f8", "--fill", "1.5"]);
    assert_eq!(ok(&["cat", &at("scalar")]).text(), "1.5\n");
    let wrong = zarr(&["create", &at("w"), "--shape", "3", "--dtype", "float23"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`float23` is no data type; examples are float32"), "{}", wrong.stderr);
    let wrong = zarr(&["create", &at("w"), "--shape", "3", "--dtype", "int8", "--fill", "300"]);
    assert!(wrong.stderr.starts_with("error: --fill: `300` is no element of int8\n  because: "), "{}", wrong.stderr);
}

#[test]
fn a_file_is_whole_or_as_it_was() {
    let (_directory, at) = temporary();
    let bad = at("bad");
    ok(&["create", &bad, "--shape", "4", "--chunks", "2", "--dtype", "int16", "--codec", "zstd"]);
    std::fs::create_dir_all(at("bad/c")).unwrap();
    std::fs::write(at("bad/c/1"), "no frame").unwrap();
    let file = at("out.npy");
    for format in ["npy", "raw", "json"] {
        assert_eq!(zarr(&["cat", &bad, "-f", format, "-o", &file]).code, 1);
        assert!(!std::path::Path::new(&file).exists(), "{format}");
    }
    ok(&["cat", &bad, "-s", ":2", "-o", &file]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[0, 0]\n");
    assert_eq!(zarr(&["cat", &bad, "-o", &file]).code, 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[0, 0]\n");
    assert_eq!(files(&at("")).iter().filter(|name| !name.starts_with("bad/")).count(), 1, "nothing is left behind");
    let missing = zarr(&["cat", &bad, "-s", ":2", "-o", &at("no/where")]);
    assert!(missing.stderr.contains("cannot create"), "{}", missing.stderr);
    #[cfg(unix)]
    for target in ["out.npy", "new"] {
        let link = at(&format!("link-{target}"));
        std::os::unix::fs::symlink(target, &link).unwrap();
        ok(&["cat", &bad, "-s", "1:2", "-o", &link]);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "a link stays one");
        assert_eq!(std::fs::read_to_string(at(target)).unwrap(), "[0]\n");
    }
}

/// Version 2 arrays of objects, as numcodecs encodes them.
#[test]
fn objects_are_the_values_they_are() {
    let (_directory, at) = temporary();
    let array = |name: &str, filter: &str, chunk: &[u8]| {
        std::fs::create_dir(at(name)).unwrap();
        let metadata = format!(
            r#"{{"zarr_format":2,"shape":[4],"chunks":[3],"dtype":"|O","order":"C","compressor":null,"fill_value":null,"filters":[{filter}]}}"#
        );
        std::fs::write(at(&format!("{name}/.zarray")), metadata).unwrap();
        std::fs::write(at(&format!("{name}/0")), chunk).unwrap();
        at(name)
    };
    let json = array("json", r#"{"id":"json2"}"#, br#"["foo",{"a":NaN},[1,"\u00e9"],"|O",[3]]"#);
    assert_eq!(ok(&["cat", &json]).text(), "[\"foo\", {\"a\":\"NaN\"}, [1,\"é\"], null]\n");
    let packed = array("packed", r#"{"id":"msgpack2"}"#, b"\x95\xc0\x01\xa1a\xa2|O\x91\x03");
    ok(&["validate", &packed]);
    let words = array("words", r#"{"id":"categorize","labels":["a","bc"],"dtype":"|O","astype":"|u1"}"#, b"\x02\x00\x01");
    assert_eq!(ok(&["cat", &words]).text(), "[\"bc\", \"\", \"a\", \"\"]\n");
    // In version 3 these filters would be read by nobody else.
    for (source, codec) in [(&json, "vlen-utf8"), (&packed, "vlen-bytes"), (&words, "vlen-utf8")] {
        let target = format!("{source}-3");
        ok(&["copy", source, &target, "--version", "3"]);
        assert_eq!(ok(&["info", &target, "--json"]).json()["codecs"][0]["name"], codec);
        let read = |path: &str| zarr::open_array(path).unwrap().read(&Selection::all()).unwrap();
        assert_eq!(read(&target), read(source));
    }
    let pickled = array("pickled", r#"{"id":"pickle","protocol":5}"#, b"");
    let refused = zarr(&["info", &pickled]);
    assert!(refused.stderr.contains("pickles are not read, because that runs programs in them"), "{}", refused.stderr);
}

#[test]
fn what_is_created_in_a_hierarchy_belongs_to_it() {
    let (_directory, at) = temporary();
    let int8 = ["--shape", "3", "--dtype", "int8"];
    let create = |path: &str| zarr(&[&["create", path][..], &int8].concat());
    for (root, name, version) in [(at("whole"), "sea_surface.zarr", "2"), (at("whole.zip"), "north_america.zarr", "3")] {
        ok(&["copy", &sample(name), &root]);
        assert_eq!(create(&format!("{root}/new/one")).code, 0);
        ok(&["copy", &sample("north_america.zarr/height"), &format!("{root}/new/two/copy"), "--version", version]);
        let info = ok(&["info", &root, "--json"]).json();
        assert_eq!(info["consolidated"], true);
        assert!(info["children"].as_array().unwrap().iter().any(|child| child["name"] == "new" && child["kind"] == "group"), "{info}");
        assert!(ok(&["tree", &root]).text().contains("copy"));
        ok(&["validate", &root]);
        let inside = create(&format!("{root}/new/one/inside"));
        assert!(inside.code != 0 && inside.stderr.contains("there is already an array at /new/one in "), "{}", inside.stderr);
    }
    std::fs::create_dir(at("beside")).unwrap();
    assert_eq!(create(&at("whole/time/../../beside/a")).code, 0);
    assert_eq!(std::fs::read_dir(at("beside")).unwrap().count(), 1);
    ok(&["validate", &at("whole")]);
    // Places are those of the store, whatever the URL looks like.
    std::fs::rename(at("whole"), at("the whole")).unwrap();
    ok(&[&["create", &format!("file://{}/new/three", at("the whole").replace(' ', "%20"))][..], &int8].concat());
    assert!(ok(&["tree", &at("the whole")]).text().contains("three"));
    let mut elsewhere = command(&[&["create", &format!("file://localhost{}", at("beside/b"))][..], &int8].concat());
    elsewhere.current_dir(at("the whole"));
    assert_eq!(run(elsewhere).code, 0);
    assert!(!std::path::Path::new(&at("the whole/localhost")).exists());
    // What is refused leaves nothing behind, and a copy that was interrupted does not look like a whole one.
    std::fs::create_dir_all(at("the whole/g/x/c")).unwrap();
    assert_ne!(zarr(&["copy", &sample("north_america.zarr/height"), &at("the whole/g/x")]).code, 0);
    std::fs::write(at("the whole/g/.zarr-copy"), r#"{"source": "file:///x", "digest": "0000000000000000"}"#).unwrap();
    let inside = create(&at("the whole/g/new"));
    assert!(inside.stderr.contains("an interrupted copy of file:///x is at g"), "{}", inside.stderr);
    assert!(["zarr.json", ".zgroup"].iter().all(|name| !std::path::Path::new(&at("the whole/g")).join(name).exists()));
    let array = at("alone");
    assert_eq!(create(&array).code, 0);
    let inside = create(&format!("{array}/deep/inside"));
    assert!(inside.stderr.contains("alone is an array, and nothing can be below one"), "{}", inside.stderr);
    assert!(!std::path::Path::new(&format!("{array}/deep")).exists());
}

#[test]
fn groups_are_created() {
    let (_directory, at) = temporary();
    let created = ok(&["create", &at("g"), "--group", "--attributes", r#"{"title": "bare"}"#]);
    assert_eq!(created.stderr, format!("created {}: group, v3\n", at("g")));
    let info = ok(&["info", &at("g"), "--json"]).json();
    assert_eq!((&info["kind"], &info["attributes"]["title"], &info["zarr_format"]), (&"group".into(), &"bare".into(), &3.into()));
    let json = ok(&["create", &at("h"), "--group", "--version", "2", "--json"]).json();
    assert_eq!(json, serde_json::json!({"path": at("h"), "kind": "group", "zarr_format": 2}));
    assert_eq!(crate::common::files(&at("h")), [".zgroup"]);
    // Groups between, and the version, are those of the hierarchy; its consolidated metadata take the new one in.
    for root in [at("whole"), at("whole.zip")] {
        ok(&["copy", &sample("sea_surface.zarr"), &root]);
        ok(&["create", &format!("{root}/a/b"), "--group"]);
        let tree = ok(&["tree", &root, "--json"]).json();
        let found = |path: &str| tree["nodes"].as_array().unwrap().iter().any(|node| node["path"] == path && node["zarr_format"] == 2);
        assert!(found("/a") && found("/a/b"), "{tree}");
    }
    ok(&["create", &at("in.zip"), "--group"]);
    assert_eq!(ok(&["info", &at("in.zip"), "--json"]).json()["kind"], "group");
    // What is there stays, unless it is to go.
    let refused = zarr(&["create", &at("g"), "--group"]);
    assert!(refused.code == 1 && refused.stderr.contains("already\nhint: --overwrite"), "{}", refused.stderr);
    ok(&["create", &at("g/x"), "--shape", "3", "--dtype", "int8"]);
    ok(&["create", &at("g"), "--group", "--overwrite"]);
    assert_eq!(crate::common::files(&at("g")), ["zarr.json"]);
    for wrong in [&["--group", "--dtype", "int8"][..], &["--group", "--chunks", "3"], &["--shape", "3"], &["--dtype", "int8"], &[]] {
        assert_eq!(zarr(&[&["create", &at("w")], wrong].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn an_array_is_not_created_over_what_is_there() {
    let (_directory, at) = temporary();
    std::fs::create_dir_all(at("a/c")).unwrap();
    std::fs::write(at("a/c/0"), "stale").unwrap();
    let refused = zarr(&["create", &at("a"), "--shape", "3", "--dtype", "int8"]);
    let expected = format!(
        "error: cannot create {0}\n  because: {0} is not empty, and holds no Zarr\nhint: --overwrite removes what is there\n",
        at("a")
    );
    assert_eq!((refused.code, refused.stderr), (1, expected));
    std::fs::write(at("a/.zarr-copy"), r#"{"source": "file:///x", "digest": "0000000000000000"}"#).unwrap();
    let refused = zarr(&["create", &at("a"), "--shape", "3", "--dtype", "int8"]);
    assert!(refused.stderr.contains("because: an interrupted copy of file:///x is at "), "{}", refused.stderr);
    ok(&["create", &at("a"), "--shape", "3", "--dtype", "int8", "--overwrite"]);
    assert_eq!(ok(&["cat", &at("a")]).text(), "[0, 0, 0]\n");
}

#[cfg(unix)]
#[test]
fn what_the_system_refuses() {
    let (_directory, at) = temporary();
    std::os::unix::fs::symlink(at("nowhere/at/all"), at("link")).unwrap();
    let refused = zarr(&["create", &at("link/a"), "--shape", "3", "--dtype", "int8"]);
    assert!(
        refused.stderr.contains(&format!("cannot create the directory {}: the link ", at("link/a")))
            && refused.stderr.contains("leads nowhere"),
        "{}",
        refused.stderr
    );
}

#[test]
fn sizes_past_all_numbers() {
    let (_directory, at) = temporary();
    ok(&["create", &at("a"), "--shape", "10000000000,10000000000", "--dtype", "float64"]);
    assert!(ok(&["info", &at("a")]).text().contains("decoded     18.4 EB or more\n"));
    assert_eq!(ok(&["info", &at("a"), "--json"]).json()["decoded_bytes"], serde_json::Value::Null);
}
