//! Documents that other implementations wrote, see `tests/vectors/make_v2.py` and `make_v3.py`.
#![cfg(target_endian = "little")]

use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, ConsolidatedMetadataV2, DataTypeV2, Json, NodeMetadata, NodeMetadataV2, NodePath};

fn cases(text: &str) -> Vec<Json> {
    let document = Json::parse(text.as_bytes()).expect("the vectors");
    document.as_array().expect("a list of cases").to_vec()
}

fn text<'a>(case: &'a Json, key: &str) -> Option<&'a str> {
    case.get(key).and_then(Json::as_str)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads each document, compares the fill value, and reads back what it writes.
fn check_v3(vectors: &str) {
    for case in cases(vectors) {
        let name = text(&case, "name").expect("a name");
        let document = text(&case, "document").expect("a document");
        let node = NodeMetadata::parse(document.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}\n{document}"));
        let written = node.to_bytes().unwrap_or_else(|error| panic!("{name}: {error}"));
        let back = NodeMetadata::parse(&written).unwrap_or_else(|error| panic!("{name}: {error}"));
        if !document.contains("NaN,") {
            assert_eq!(back, node, "{name}");
        }
        if let (NodeMetadata::Array(array), Some(fill)) = (&node, text(&case, "fill")) {
            assert_eq!(hexadecimal(array.fill_value.as_bytes()), fill, "{name}");
        }
        assert_unchanged(name, &Json::parse(document.as_bytes()).unwrap(), &node.to_json().unwrap());
    }
}

/// What we write equals what was read, but for the forms that `src/decisions.md` says we change.
fn assert_unchanged(name: &str, read: &Json, written: &Json) {
    let (Some(read), Some(written)) = (read.as_object(), written.as_object()) else { panic!("{name}: no objects") };
    let changed = ["raw", "struct", "vlen bytes", "datetime nat", "attributes", "consolidated"];
    for (key, value) in read.iter() {
        let rewritten_form = match key {
            "storage_transformers" => true,
            // Separators are spelt out.
            "chunk_key_encoding" => true,
            "data_type" | "fill_value" | "attributes" | "consolidated_metadata" => changed.iter().any(|prefix| name.starts_with(prefix)),
            _ => false,
        };
        if !rewritten_form {
            let ours = written.get(key).unwrap_or_else(|| panic!("{name}: no {key}"));
            assert!(is_same(ours, value), "{name}: {key}: {ours} for {value}");
        }
    }
}

/// Equal but for the order of keys and the dress of floats (`1e-5`, `1e-05`).
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) if !one.is_integer() => one.as_f64().to_bits() == other.as_f64().to_bits(),
        (Json::Array(one), Json::Array(other)) => one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other)),
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|v| is_same(value, v)))
        }
        _ => one == other,
    }
}

#[test]
fn zarr_python_v3() {
    check_v3(include_str!("vectors/zarr_python_v3.json"));
}

#[test]
fn tensorstore_v3() {
    check_v3(include_str!("vectors/tensorstore_v3.json"));
}

#[test]
fn zarr_python_v3_attributes_and_consolidated_metadata() {
    let cases = cases(include_str!("vectors/zarr_python_v3.json"));
    let find = |wanted: &str| {
        let case = cases.iter().find(|case| text(case, "name") == Some(wanted));
        NodeMetadata::parse(case.and_then(|case| text(case, "document")).unwrap_or("").as_bytes())
    };
    let attributes = find("attributes").unwrap().attributes().clone();
    assert_eq!(
        Json::from(attributes).to_text(),
        "{\"z\":[1,2.5,null,true,{\"nested\":{}}],\"a\":1180591620717411303424,\"nan\":\"NaN\",\
         \"inf\":[\"Infinity\",\"-Infinity\"],\"ünï\":\"名\\u0000\\u001f😀\",\"small\":1e-300}"
    );
    let Ok(NodeMetadata::Group(group)) = find("consolidated") else { panic!("no group") };
    let consolidated = group.consolidated_metadata.expect("consolidated metadata");
    assert_eq!(consolidated.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["sub", "sub/x", "y"]);
    assert_eq!(consolidated.below("sub").count(), 1);
    assert!(matches!(consolidated.node("sub/x"), Ok(Some(NodeMetadata::Array(_)))));
}

#[test]
fn zarr_python_v2() {
    let document = Json::parse(include_bytes!("vectors/zarr_python_v2.json")).unwrap();
    for case in document.get("arrays").and_then(Json::as_array).unwrap() {
        let name = text(case, "name").unwrap();
        let zarray = text(case, "zarray").unwrap();
        let zattrs = text(case, "zattrs").map(str::as_bytes);
        let array = ArrayMetadataV2::parse(zarray.as_bytes(), zattrs).unwrap_or_else(|error| panic!("{name}: {error}\n{zarray}"));

        let read = Json::parse(zarray.as_bytes()).unwrap();
        let written = array.to_json().unwrap_or_else(|error| panic!("{name}: {error}"));
        for (key, value) in read.as_object().unwrap().iter() {
            match (key, name) {
                // The padding has a name now.
                ("dtype", "struct aligned") => {}
                // The order of the keys of a codec is ours.
                ("compressor" | "filters", _) => {
                    assert_eq!(written.get(key).unwrap().to_text().len(), value.to_text().len());
                }
                _ => assert_eq!(written.get(key), Some(value), "{name}: {key}"),
            }
        }

        if let Some(fill) = text(case, "fill") {
            let value = array.fill_value().unwrap().expect("a fill value");
            assert_eq!(hexadecimal(value.as_bytes()), fill, "{name}");
            let mut again = array.clone();
            again.set_fill_value(Some(&value)).unwrap();
            assert_eq!(again.fill_value(), Ok(Some(value)), "{name}");
            // Byte strings are written in full.
            if !name.starts_with('S') {
                assert_eq!(again.fill_value, array.fill_value, "{name}");
            }
        }
        let v3 = array.to_v3().unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = v3.to_bytes().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(ArrayMetadataV3::parse(&text).is_ok(), "{name}");
        check_way_back(name, &array, &v3);
    }
}

/// From version 3 back to version 2 nothing is lost but what version 3 cannot say.
fn check_way_back(name: &str, array: &ArrayMetadataV2, v3: &ArrayMetadataV3) {
    let back = ArrayMetadataV2::from_v3(v3).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(back.shape, array.shape, "{name}");
    assert_eq!(back.chunks, array.chunks, "{name}");
    assert_eq!(back.order, array.order, "{name}");
    assert_eq!(back.dimension_separator, array.dimension_separator, "{name}");
    assert_eq!(back.attributes, array.attributes, "{name}");
    let ids =
        |array: &ArrayMetadataV2| -> Vec<String> { array.filters.iter().chain(&array.compressor).map(|codec| codec.id.clone()).collect() };
    assert_eq!(ids(&back), ids(array), "{name}");
    // A filter that changes the type hides the byte order of the array, which is that of the
    // elements in memory by then.
    if array.filters.is_empty() {
        assert_eq!(back.data_type, array.data_type, "{name}");
    } else {
        assert_eq!(back.data_type == DataTypeV2::Object, array.data_type == DataTypeV2::Object);
    }
}

#[test]
fn zarr_python_v2_conversions() {
    let document = Json::parse(include_bytes!("vectors/zarr_python_v2.json")).unwrap();
    let cases = document.get("arrays").and_then(Json::as_array).unwrap();
    let codecs = |wanted: &str| {
        let case = cases.iter().find(|case| text(case, "name") == Some(wanted)).expect(wanted);
        let array = ArrayMetadataV2::parse(text(case, "zarray").unwrap().as_bytes(), None).unwrap();
        let v3 = array.to_v3().unwrap();
        let codecs: Vec<String> = v3.codecs.iter().map(|codec| codec.to_json().to_text()).collect();
        codecs.join(" ")
    };
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let big = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
    let bytes = r#"{"name":"bytes"}"#;
    for (name, expected) in [
        ("compressor None", big.to_owned()),
        ("compressor Zstd(level=-5)", format!(r#"{big} {{"name":"zstd","configuration":{{"level":-5,"checksum":true}}}}"#)),
        ("compressor GZip(level=7)", format!(r#"{big} {{"name":"gzip","configuration":{{"level":7}}}}"#)),
        ("compressor Zlib(level=1)", format!(r#"{big} {{"name":"numcodecs.zlib","configuration":{{"level":1}}}}"#)),
        (
            "compressor Blosc(cname='zstd', clevel=3, shuffle=BITSHUFFLE, blocksize=0)",
            format!(
                r#"{big} {{"name":"blosc","configuration":{{"cname":"zstd","shuffle":"bitshuffle","typesize":4,"clevel":3,"blocksize":0}}}}"#
            ),
        ),
        ("|u1 zero", format!(r#"{bytes} {}"#, blosc("shuffle", 1))),
        (
            "filters scale",
            format!(
                r#"{{"name":"numcodecs.fixedscaleoffset","configuration":{{"astype":"|u1","dtype":"<f8","offset":0,"scale":10}}}} {bytes} {}"#,
                blosc("bitshuffle", 1)
            ),
        ),
        (
            "filters shuffle",
            format!(
                r#"{little} {{"name":"numcodecs.shuffle","configuration":{{"elementsize":4}}}} {{"name":"numcodecs.zlib","configuration":{{"level":5}}}}"#
            ),
        ),
        ("vlen-utf8", format!(r#"{{"name":"vlen-utf8"}} {}"#, blosc("shuffle", 1))),
        ("vlen-array", format!(r#"{{"name":"numcodecs.vlen-array","configuration":{{"dtype":"<i4"}}}} {}"#, blosc("shuffle", 1))),
        ("order F", format!(r#"{{"name":"transpose","configuration":{{"order":[1,0]}}}} {little} {}"#, blosc("shuffle", 4))),
    ] {
        assert_eq!(codecs(name), expected, "{name}");
    }
}

fn blosc(shuffle: &str, typesize: u8) -> String {
    format!(r#"{{"name":"blosc","configuration":{{"cname":"lz4","shuffle":"{shuffle}","typesize":{typesize},"clevel":5,"blocksize":0}}}}"#)
}

#[test]
fn zarr_python_v2_consolidated() {
    let document = Json::parse(include_bytes!("vectors/zarr_python_v2.json")).unwrap();
    let text = text(&document, "zmetadata").unwrap();
    let consolidated = ConsolidatedMetadataV2::parse(text.as_bytes()).unwrap();
    let paths: Vec<String> = consolidated.paths().map(|path| path.to_string()).collect();
    assert_eq!(paths, ["/", "/g", "/g/__a"]);
    for path in consolidated.paths() {
        assert!(matches!(consolidated.node(&path), Ok(Some(_))), "{path}");
    }
    let root = consolidated.node(&NodePath::root()).unwrap();
    assert!(matches!(root, Some(NodeMetadataV2::Group(group)) if group.attributes.len() == 1));

    let mut copy = ConsolidatedMetadataV2::new();
    for path in consolidated.paths() {
        copy.insert(&path, &consolidated.node(&path).unwrap().unwrap()).unwrap();
    }
    let back = ConsolidatedMetadataV2::parse(&copy.to_bytes()).unwrap();
    assert_eq!(back.paths().count(), 3);
    assert_eq!(back, copy);
}
