//! One test for each row of the table of decisions (`src/decisions.md`).

use zarr_meta::{
    ArrayMetadataV2, ArrayMetadataV3, ChunkGrid, DataType, FillValue, GroupMetadataV3, Json, JsonObject, MAX_DEPTH, MetadataError, NodePath,
};

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A one-dimensional int8 array with some keys replaced; a key set to `null` text "-" is removed.
fn array_with(changes: &[(&str, &str)]) -> Result<ArrayMetadataV3, MetadataError> {
    let mut document = json(
        r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int8",
            "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
            "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}"#,
    );
    let object = document.as_object_mut().expect("an object");
    for (key, value) in changes {
        if *value == "-" {
            object.remove(key);
        } else {
            object.insert(*key, json(value));
        }
    }
    ArrayMetadataV3::from_json(&document)
}

fn group_with(key: &str, value: &str) -> Result<GroupMetadataV3, MetadataError> {
    let document = JsonObject::new().with("zarr_format", 3).with("node_type", "group");
    GroupMetadataV3::from_json(&document.with(key, json(value)).into())
}

fn array_v2_with(changes: &[(&str, &str)]) -> Result<ArrayMetadataV2, MetadataError> {
    let mut document =
        json(r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i4","compressor":null,"fill_value":0,"order":"C","filters":null}"#);
    let object = document.as_object_mut().expect("an object");
    for (key, value) in changes {
        if *value == "-" {
            object.remove(key);
        } else {
            object.insert(*key, json(value));
        }
    }
    ArrayMetadataV2::from_json(&document, None)
}

fn fill(data_type: &str, value: &str) -> Result<FillValue, MetadataError> {
    FillValue::parse(&json(value), &DataType::parse(&json(data_type))?)
}

/// The fill value read and written again.
fn rewritten(data_type: &str, value: &str) -> String {
    let data_type = DataType::parse(&json(data_type)).expect("a data type");
    let value = FillValue::parse(&json(value), &data_type).expect("a fill value");
    value.to_json(&data_type).expect("a fill value").to_text()
}

fn codecs_v3(changes: &[(&str, &str)]) -> String {
    let metadata = array_v2_with(changes).and_then(|array| array.to_v3()).expect("version 3");
    Json::from_iter(metadata.codecs.iter().map(|codec| codec.to_json())).to_text()
}

#[test]
fn every_row_names_a_test_of_this_file() {
    let tests = include_str!("decisions.rs");
    let mut rows = 0;
    for line in include_str!("../src/decisions.md").lines().filter(|line| line.ends_with("` |")) {
        let name = line.rsplit('`').nth(1).unwrap_or_default();
        assert!(tests.contains(&format!("\nfn {name}() {{")), "no test named {name}");
        rows += 1;
    }
    // Every test but this one belongs to a row.
    assert_eq!(rows, tests.lines().filter(|line| *line == "#[test]").count() - 1);
}

#[test]
fn bare_nan_is_read_and_written_as_a_string() {
    let array = array_with(&[("attributes", r#"{"a":NaN,"b":[-Infinity,{"c":Infinity}]}"#)]).unwrap();
    let text = String::from_utf8(array.to_bytes().unwrap()).unwrap();
    let back = ArrayMetadataV3::parse(text.as_bytes()).unwrap();
    assert_eq!(Json::from(back.attributes).to_text(), r#"{"a":"NaN","b":["-Infinity",{"c":"Infinity"}]}"#);
    assert!(fill("\"float32\"", "NaN").is_ok());
    assert_eq!(rewritten("\"float32\"", "-Infinity"), "\"-Infinity\"");
}

#[test]
fn the_last_of_equal_keys_wins() {
    assert_eq!(json(r#"{"a":1,"b":2,"a":3}"#).to_text(), r#"{"a":3,"b":2}"#);
}

#[test]
fn lone_surrogates_are_refused() {
    assert!(Json::parse(br#""\ud83d""#).is_err());
    assert_eq!(json(r#""\ud83d\ude00""#), Json::from("😀"));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(json("\u{feff}{}"), json("{}"));
}

#[test]
fn nesting_is_limited() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(Json::parse(deep(MAX_DEPTH).as_bytes()).is_ok());
    assert!(Json::parse(deep(MAX_DEPTH + 1).as_bytes()).is_err());
}

#[test]
fn undefined_keys_may_be_ignored_only_if_they_say_so() {
    let kept = array_with(&[("later", r#"{"must_understand":false,"x":1}"#)]).unwrap();
    assert_eq!(kept.to_json().unwrap().get("later").and_then(|l| l.get("x")), Some(&json("1")));
    for value in ["1", "null", "{}", r#"{"must_understand":true}"#, r#"{"must_understand":"false"}"#] {
        assert!(matches!(array_with(&[("later", value)]), Err(MetadataError::UnknownKey { .. })), "{value}");
        assert!(group_with("later", value).is_err(), "{value}");
    }
}

#[test]
fn must_understand_false_excuses_no_data_type() {
    for (key, value) in [
        ("data_type", r#"{"name":"int8","must_understand":false}"#),
        ("chunk_key_encoding", r#"{"name":"default","must_understand":false}"#),
        ("chunk_grid", r#"{"name":"regular","configuration":{"chunk_shape":[2]},"must_understand":false}"#),
    ] {
        assert!(array_with(&[(key, value)]).is_err(), "{key}");
    }
    let codec = array_with(&[("codecs", r#"["bytes",{"name":"x","must_understand":false}]"#)]).unwrap();
    assert!(!codec.codecs[1].must_understand);
}

#[test]
fn storage_transformers_must_be_ignorable() {
    for value in ["[]", "null", "-"] {
        let array = array_with(&[("storage_transformers", value)]).unwrap();
        assert!(!array.to_json().unwrap().as_object().unwrap().contains_key("storage_transformers"));
    }
    assert!(array_with(&[("storage_transformers", r#"[{"name":"x"}]"#)]).is_err());
    let ignorable = r#"[{"name":"x","must_understand":false}]"#;
    let array = array_with(&[("storage_transformers", ignorable)]).unwrap();
    assert_eq!(array.to_json().unwrap().get("storage_transformers"), Some(&json(ignorable)));
}

#[test]
fn consolidated_metadata_may_be_null() {
    let group = group_with("consolidated_metadata", "null").unwrap();
    assert_eq!(group.consolidated_metadata, None);
    assert!(!group.to_json().unwrap().as_object().unwrap().contains_key("consolidated_metadata"));
}

#[test]
fn other_kinds_of_consolidated_metadata_are_kept() {
    let other = r#"{"kind":"file","must_understand":false,"key":"m.json"}"#;
    let group = group_with("consolidated_metadata", other).unwrap();
    assert_eq!(group.consolidated_metadata, None);
    assert_eq!(group.to_json().unwrap().get("consolidated_metadata"), Some(&json(other)));
    assert!(group_with("consolidated_metadata", r#"{"kind":"file"}"#).is_err());
    assert!(group_with("consolidated_metadata", r#"{"must_understand":false}"#).is_err());
}

#[test]
fn consolidated_documents_are_read_when_asked_for() {
    let group = group_with(
        "consolidated_metadata",
        r#"{"kind":"inline","must_understand":false,"metadata":{
            "good":{"zarr_format":3,"node_type":"group"},"bad":{"zarr_format":3,"node_type":"cube"}}}"#,
    )
    .unwrap();
    let consolidated = group.consolidated_metadata.unwrap();
    assert!(matches!(consolidated.node("good"), Ok(Some(_))));
    assert!(matches!(consolidated.node("absent"), Ok(None)));
    assert_eq!(
        consolidated.node("bad").map_err(|error| error.to_string()),
        Err("$.bad.node_type: expected \"array\" or \"group\", found the string \"cube\"".to_owned())
    );
}

#[test]
fn null_stands_for_absent_members() {
    let array = array_with(&[("attributes", "null"), ("dimension_names", "null")]).unwrap();
    assert_eq!(array.dimension_names, None);
    assert!(array.attributes.is_empty());
    assert!(group_with("attributes", "null").is_ok());
}

#[test]
fn dimension_names_need_not_differ() {
    let names = array_with(&[
        ("shape", "[1,1,1]"),
        ("chunk_grid", r#"{"name":"regular","configuration":{"chunk_shape":[1,1,1]}}"#),
        ("dimension_names", r#"["x","x",null]"#),
    ]);
    assert!(names.is_ok());
    assert!(array_with(&[("dimension_names", r#"["x","y"]"#)]).is_err());
    assert!(array_with(&[("dimension_names", "[1]")]).is_err());
}

#[test]
fn chunk_lengths_of_zero_read_as_one_along_empty_axes() {
    let zero = ("chunk_grid", r#"{"name":"regular","configuration":{"chunk_shape":[0]}}"#);
    let array = array_with(&[zero, ("shape", "[0]")]).unwrap();
    assert_eq!(array.chunk_grid, ChunkGrid::regular([1]));
    assert!(array_with(&[zero]).is_err());
    let mut array = array;
    array.chunk_grid = ChunkGrid::regular([0]);
    assert!(array.to_bytes().is_err());
    assert_eq!(array_v2_with(&[("shape", "[0]"), ("chunks", "[0]")]).unwrap().chunks, [1]);
}

#[test]
fn rectilinear_chunks_beyond_the_array_are_not_counted() {
    let grid = r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[3,3,3,3]]}}"#;
    let array = array_with(&[("chunk_grid", grid)]).unwrap();
    assert_eq!(array.chunk_grid.grid_shape(&array.shape), [2]);
    assert!(array_with(&[("chunk_grid", grid), ("shape", "[13]")]).is_err());
}

#[test]
fn bare_strings_are_read_and_codecs_written_as_objects() {
    let array = array_with(&[("codecs", r#"["bytes"]"#), ("chunk_key_encoding", "\"v2\"")]).unwrap();
    let document = array.to_json().unwrap();
    assert_eq!(document.get("codecs"), Some(&json(r#"[{"name":"bytes"}]"#)));
    assert_eq!(document.get("chunk_key_encoding"), Some(&json(r#"{"name":"v2","configuration":{"separator":"."}}"#)));
    assert_eq!(document.get("data_type"), Some(&json("\"int8\"")));
}

#[test]
fn chunk_key_encodings_beyond_the_specification() {
    for (encoding, key) in [
        (r#"{"name":"fanout","configuration":{"max_children":101}}"#, "d0/12/34/c"),
        (
            r#"{"name":"suffix","configuration":{"suffix":".tiff","base_encoding":{"name":"v2","configuration":{"separator":"/"}}}}"#,
            "1234.tiff",
        ),
        (r#"{"name":"zarrs.default_suffix","configuration":{"separator":".","suffix":".tiff"}}"#, "c.1234.tiff"),
    ] {
        let array = array_with(&[("chunk_key_encoding", encoding)]).unwrap();
        assert_eq!(array.chunk_key_encoding.encode(&[1234]), key);
        assert_eq!(array.to_json().unwrap().get("chunk_key_encoding"), Some(&json(encoding)));
    }
    for wrong in [
        r#"{"name":"suffix","configuration":{"suffix":"/../x","base_encoding":{"name":"v2"}}}"#,
        r#"{"name":"template","configuration":{"template":"{0}"}}"#,
        r#"{"name":"prefix","configuration":{"prefix":"x/","base_encoding":"v2"}}"#,
    ] {
        assert!(array_with(&[("chunk_key_encoding", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn names_of_older_writers_are_read() {
    for (old, new) in [
        ("\"variable_length_bytes\"", "\"bytes\""),
        ("\"binary\"", "\"bytes\""),
        (r#"{"name":"raw_bytes","configuration":{"length_bytes":3}}"#, "\"r24\""),
        (
            r#"{"name":"structured","configuration":{"fields":[["a","int8"]]}}"#,
            r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"}]}}"#,
        ),
    ] {
        assert_eq!(DataType::parse(&json(old)).map(|t| t.to_json()), Ok(json(new)));
    }
}

#[test]
fn float8_e4m3fn_is_known() {
    assert_eq!(rewritten("\"float8_e4m3fn\"", "\"0x7f\""), "\"NaN\"");
    assert_eq!(rewritten("\"float8_e4m3fn\"", "448"), "448.0");
}

/// Filters decode to the order that they name, and readers take what they give for the array's.
#[test]
fn the_byte_order_is_that_of_what_the_first_filter_gives() {
    for (dtype, filter) in [
        (">U3", r#"{"id":"categorize","labels":["a"],"dtype":">U3","astype":"|u1"}"#),
        (">f8", r#"{"id":"astype","encode_dtype":"<f4","decode_dtype":">f8"}"#),
        ("<f8", r#"{"id":"astype","encode_dtype":">f4","decode_dtype":"<f8"}"#),
        (">f8", r#"{"id":"fixedscaleoffset","offset":0,"scale":1,"dtype":">f8","astype":"<i2"}"#),
        (">i4", r#"{"id":"delta","dtype":">i4"}"#),
        ("<i4", r#"{"id":"delta","dtype":"<i4","astype":">i8"}"#),
        (">f4", r#"{"id":"bitround","keepbits":3},{"id":"delta","dtype":">f4","astype":"|u1"}"#),
    ] {
        let text = format!("\"{dtype}\"");
        let array = array_v2_with(&[("dtype", &text), ("filters", &format!("[{filter}]")), ("fill_value", "null")]).unwrap();
        let back = ArrayMetadataV2::from_v3(&array.to_v3().unwrap()).unwrap();
        assert_eq!(back.data_type, array.data_type, "{filter}");
    }
}

#[test]
fn axes_are_limited() {
    for (shape, fits) in [("[9223372036854775807]", true), ("[9223372036854775808]", false), ("[18446744073709551615]", false)] {
        let unsupported = |checked: Result<(), MetadataError>| matches!(checked, Err(MetadataError::Unsupported { .. }));
        assert_eq!(unsupported(array_with(&[("shape", shape)]).and_then(|array| array.check())), !fits, "{shape}");
        let array = array_v2_with(&[("shape", shape)]).and_then(|array| array.to_v3());
        assert_eq!(unsupported(array.and_then(|array| array.check())), !fits, "{shape}");
    }
}

#[test]
fn elements_are_limited() {
    for text in [r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":2147483647}}"#, "\"r8589934592\""] {
        assert!(matches!(DataType::parse(&json(text)), Err(MetadataError::Unsupported { .. })), "{text}");
    }
    assert!(DataType::parse(&json("\"r536870912\"")).is_ok());
}

#[test]
fn sub_arrays_become_structs() {
    let array = array_v2_with(&[("dtype", r#"[["a","<i2",[2]]]"#), ("fill_value", "\"AQACAA==\"")]);
    let document = array.and_then(|array| array.to_v3()).and_then(|array| array.to_json()).unwrap();
    assert_eq!(document.get("fill_value"), Some(&json(r#"{"a":{"0":1,"1":2}}"#)));
    let back = ArrayMetadataV3::from_json(&document).unwrap();
    assert_eq!(back.data_type.fixed_size(), Some(4));
}

#[test]
fn integers_may_be_written_with_a_fraction_of_zero() {
    assert_eq!(rewritten("\"uint8\"", "255.0"), "255");
    assert_eq!(rewritten("\"int64\"", "-9.223372036854775808e18"), "-9223372036854775808");
    assert!(fill("\"uint8\"", "0.5").is_err());
}

#[test]
fn integers_out_of_range_are_refused() {
    for (data_type, value) in [
        ("\"uint8\"", "256"),
        ("\"uint32\"", "-1"),
        ("\"int8\"", "128"),
        ("\"int4\"", "8"),
        ("\"uint2\"", "4"),
        ("\"uint64\"", "18446744073709551616"),
        ("\"int64\"", "1e300"),
    ] {
        assert!(fill(data_type, value).is_err(), "{data_type} {value}");
    }
    assert_eq!(rewritten("\"int4\"", "-8"), "-8");
}

#[test]
fn bool_takes_numbers_in_version_2_alone() {
    assert!(fill("\"bool\"", "0").is_err());
    assert!(fill("\"bool\"", "null").is_err());
    let v2 = |value| array_v2_with(&[("dtype", "\"|b1\""), ("fill_value", value)]);
    assert_eq!(v2("1").unwrap().fill_value(), Ok(Some(FillValue::Fixed([1].into()))));
    assert_eq!(v2("0.0").unwrap().fill_value(), Ok(Some(FillValue::Fixed([0].into()))));
    assert!(v2("2").is_err());
}

#[test]
fn floats_overflow_to_infinity_where_there_is_one() {
    assert_eq!(rewritten("\"float32\"", "-1.7976931348623157e308"), "\"-Infinity\"");
    assert_eq!(rewritten("\"float64\"", "1e400"), "\"Infinity\"");
    assert_eq!(rewritten("\"float8_e5m2\"", "1e6"), "\"Infinity\"");
    assert!(fill("\"float8_e5m2fnuz\"", "1e6").is_err());
    assert!(fill("\"float4_e2m1fn\"", "\"Infinity\"").is_err());
}

#[test]
fn hexadecimal_needs_every_digit() {
    assert!(fill("\"float32\"", "\"0x7fc0\"").is_err());
    assert!(fill("\"float32\"", "\"7fc00000\"").is_err());
    assert!(fill("\"float32\"", "\"0x7FC00000\"").is_ok());
}

#[test]
fn nan_bits_survive() {
    for (data_type, text) in [
        ("\"float16\"", "\"0x7c01\""),
        ("\"float32\"", "\"0x7f800001\""),
        ("\"float32\"", "\"0xffc00000\""),
        ("\"float64\"", "\"0x7ff4000000000001\""),
        ("\"complex64\"", "[\"0x7fa00001\",\"NaN\"]"),
    ] {
        assert_eq!(rewritten(data_type, text), text);
    }
    assert_eq!(fill("\"float32\"", "\"0x7f800001\""), Ok(FillValue::Fixed(0x7f80_0001_u32.to_ne_bytes().into())));
    assert_eq!(rewritten("\"float32\"", "\"0x7fc00000\""), "\"NaN\"");
}

#[test]
fn raw_fill_values_in_both_forms() {
    assert_eq!(rewritten("\"r24\"", "[1,2,255]"), "[1,2,255]");
    assert_eq!(rewritten("\"r24\"", "\"AQL/\""), "[1,2,255]");
    for bad in ["[1,2]", "[1,2,256]", "0"] {
        assert!(fill("\"r24\"", bad).is_err(), "{bad}");
    }
}

#[test]
fn byte_string_fill_values_in_both_forms() {
    assert_eq!(rewritten("\"bytes\"", "[1,2,255]"), "\"AQL/\"");
    assert_eq!(rewritten("\"bytes\"", "\"AQL/\""), "\"AQL/\"");
    assert!(fill("\"bytes\"", "\"not base64\"").is_err());
}

#[test]
fn fixed_length_strings_may_be_shorter() {
    let data_type = r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":12}}"#;
    assert_eq!(rewritten(data_type, "\"né\""), "\"né\"");
    assert_eq!(fill(data_type, "\"né\"").unwrap().as_bytes().len(), 12);
    assert!(fill(data_type, "\"four\"").is_err());
}

#[test]
fn structs_are_read_from_base64_and_written_as_objects() {
    let data_type = r#"{"name":"struct","configuration":{"fields":[
        {"name":"a","data_type":"int16"},{"name":"b","data_type":"float32"}]}}"#;
    assert_eq!(rewritten(data_type, "\"AQAAAIA/\""), r#"{"a":1,"b":1.0}"#);
    assert_eq!(rewritten(data_type, r#"{"b":1,"a":1}"#), r#"{"a":1,"b":1.0}"#);
    for bad in [r#"{"a":1}"#, r#"{"a":1,"b":1,"c":1}"#, "\"AQAA\"", "0"] {
        assert!(fill(data_type, bad).is_err(), "{bad}");
    }
}

#[test]
fn not_a_time_in_both_forms() {
    let data_type = r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}"#;
    assert_eq!(rewritten(data_type, "-9223372036854775808"), "\"NaT\"");
    assert_eq!(rewritten(data_type, "\"NaT\""), "\"NaT\"");
    assert_eq!(rewritten(data_type, "-5"), "-5");
    let mut v2 = array_v2_with(&[("dtype", "\"<M8[s]\""), ("fill_value", "\"NaT\"")]).unwrap();
    let value = v2.fill_value().unwrap();
    v2.set_fill_value(value.as_ref()).unwrap();
    assert_eq!(v2.fill_value, json("-9223372036854775808"));
}

#[test]
fn v2_filters_may_be_missing_or_empty() {
    for value in ["-", "[]", "null"] {
        let array = array_v2_with(&[("filters", value)]).unwrap();
        assert_eq!(array.to_json().unwrap().get("filters"), Some(&Json::Null));
    }
}

#[test]
fn v2_undefined_keys_are_kept() {
    let array = array_v2_with(&[("later", "[1]")]).unwrap();
    assert_eq!(array.to_json().unwrap().get("later"), Some(&json("[1]")));
}

#[test]
fn v2_zero_fills_any_type() {
    for (dtype, size) in [("\"|S3\"", 3), ("\"<U2\"", 8), ("\"|V5\"", 5), ("[[\"a\",\"<i4\"]]", 4), ("\"<M8[s]\"", 8), ("\"<c8\"", 8)] {
        let array = array_v2_with(&[("dtype", dtype), ("fill_value", "0")]).unwrap();
        assert_eq!(array.fill_value(), Ok(Some(FillValue::Fixed(vec![0; size].into()))), "{dtype}");
    }
    let strings = array_v2_with(&[("dtype", "\"|O\""), ("filters", r#"[{"id":"vlen-utf8"}]"#)]);
    assert_eq!(strings.unwrap().fill_value(), Ok(Some(FillValue::Variable([].into()))));
}

#[test]
fn v2_byte_string_fill_values_are_written_in_full() {
    let mut array = array_v2_with(&[("dtype", "\"|S3\""), ("fill_value", "\"YWI=\"")]).unwrap();
    let value = array.fill_value().unwrap();
    assert_eq!(value, Some(FillValue::Fixed(b"ab\0".as_slice().into())));
    array.set_fill_value(value.as_ref()).unwrap();
    assert_eq!(array.fill_value, json("\"YWIA\""));
}

#[test]
fn v2_null_fill_value_becomes_the_default() {
    let v3 = |dtype| {
        let array = array_v2_with(&[("dtype", dtype), ("fill_value", "null")]).unwrap();
        array.to_v3().unwrap().to_json().unwrap().get("fill_value").cloned().unwrap()
    };
    assert_eq!(v3("\"<f4\""), json("0.0"));
    assert_eq!(v3("\"<M8[s]\""), json("\"NaT\""));
}

#[test]
fn v2_byte_order_on_one_byte_is_ignored() {
    for (odd, plain) in [("\"<i1\"", "\"|i1\""), ("\">b1\"", "\"|b1\""), ("\"<S2\"", "\"|S2\"")] {
        let array = array_v2_with(&[("dtype", odd)]).unwrap();
        assert_eq!(array.to_json().unwrap().get("dtype"), Some(&json(plain)));
    }
    assert!(array_v2_with(&[("dtype", "\"|O8\""), ("filters", r#"[{"id":"vlen-utf8"}]"#)]).is_ok());
}

#[test]
fn v2_byte_order_is_required_where_it_matters() {
    for dtype in ["\"|i4\"", "\"=i4\"", "\"i4\""] {
        assert!(array_v2_with(&[("dtype", dtype)]).is_err(), "{dtype}");
    }
}

#[test]
fn v2_nameless_fields_are_numbered() {
    let array = array_v2_with(&[("dtype", r#"[["a","|i1"],["","|V3"]]"#)]).unwrap();
    assert_eq!(array.to_json().unwrap().get("dtype"), Some(&json(r#"[["a","|i1"],["f1","|V3"]]"#)));
}

#[test]
fn v2_mixed_byte_orders_do_not_convert() {
    let array = array_v2_with(&[("dtype", r#"[["a","<i4"],["b",">i4"]]"#)]).unwrap();
    assert!(matches!(array.to_v3(), Err(MetadataError::Unsupported { .. })));
}

#[test]
fn v2_names_may_start_with_underscores() {
    assert!(NodePath::new("/__a").is_err());
    assert!(NodePath::new_v2("/__a").is_ok());
}

#[test]
fn v2_column_major_comes_before_filters() {
    let codecs =
        codecs_v3(&[("shape", "[4,4]"), ("chunks", "[2,2]"), ("order", "\"F\""), ("filters", r#"[{"id":"delta","dtype":"<i4"}]"#)]);
    assert_eq!(
        codecs,
        r#"[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"numcodecs.delta","configuration":{"dtype":"<i4"}},{"name":"bytes","configuration":{"endian":"little"}}]"#
    );
    // One dimension has one order.
    assert_eq!(codecs_v3(&[("order", "\"F\"")]), codecs_v3(&[]));
}

#[test]
fn v2_byte_order_is_that_of_the_last_filter() {
    let codecs = codecs_v3(&[("filters", r#"[{"id":"delta","dtype":"<i4","astype":">i2"}]"#)]);
    assert!(codecs.ends_with(r#"{"name":"bytes","configuration":{"endian":"big"}}]"#), "{codecs}");
    let codecs = codecs_v3(&[("filters", r#"[{"id":"astype","encode_dtype":"|u1","decode_dtype":"<i4"}]"#)]);
    assert!(codecs.ends_with(r#"{"name":"bytes"}]"#), "{codecs}");
}

#[test]
fn v2_blosc_automatic_shuffle() {
    let blosc = ("compressor", r#"{"id":"blosc","cname":"lz4","clevel":5,"shuffle":-1}"#);
    assert!(codecs_v3(&[blosc]).contains(r#""shuffle":"shuffle","typesize":4"#));
    assert!(codecs_v3(&[blosc, ("dtype", "\"|u1\"")]).contains(r#""shuffle":"bitshuffle","typesize":1"#));
}

#[test]
fn v2_zstd_without_checksum() {
    assert!(
        codecs_v3(&[("compressor", r#"{"id":"zstd","level":3}"#)])
            .ends_with(r#"{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#)
    );
}

#[test]
fn v2_crc32c_at_the_start_is_another_codec() {
    let start = codecs_v3(&[("filters", r#"[{"id":"crc32c","location":"start"}]"#)]);
    assert!(start.ends_with(r#"{"name":"numcodecs.crc32c","configuration":{"location":"start"}}]"#));
    assert!(codecs_v3(&[("filters", r#"[{"id":"crc32c"}]"#)]).ends_with(r#"{"name":"crc32c"}]"#));
}

#[test]
fn v2_bitround_keeps_its_numcodecs_name() {
    let codecs = codecs_v3(&[("filters", r#"[{"id":"bitround","keepbits":5}]"#)]);
    assert!(codecs.starts_with(r#"[{"name":"numcodecs.bitround","configuration":{"keepbits":5}}"#), "{codecs}");
}

#[test]
fn v2_array_dimensions_become_names() {
    let mut array = array_v2_with(&[]).unwrap();
    array.attributes = JsonObject::new().with("_ARRAY_DIMENSIONS", vec!["x"]);
    let v3 = array.to_v3().unwrap();
    assert_eq!(v3.dimension_names, Some(vec![Some("x".to_owned())]));
    assert_eq!(v3.attributes, array.attributes);
    array.attributes = JsonObject::new().with("_ARRAY_DIMENSIONS", vec!["x", "y"]);
    assert_eq!(array.to_v3().unwrap().dimension_names, None);
}

#[test]
fn v2_objects_of_any_kind_are_text_or_bytes() {
    let array = |filter: &str, fill: &str| {
        let filters = format!(r#"[{{"id":"{filter}"}}]"#);
        let changes = [
            ("dtype", "\"|O\""),
            ("filters", filters.as_str()),
            ("fill_value", fill),
            ("order", "\"F\""),
            ("shape", "[4,4]"),
            ("chunks", "[2,2]"),
        ];
        array_v2_with(&changes).unwrap()
    };
    for (filter, fill, data_type, element) in [
        ("json2", "null", DataType::String, &b"null"[..]),
        ("json2", "0", DataType::String, b"0"),
        ("json2", "\"\"", DataType::String, b"\"\""),
        ("msgpack2", "null", DataType::Bytes, b"\xc0"),
        ("msgpack2", "\"a\"", DataType::Bytes, b"\xa1a"),
    ] {
        let v2 = array(filter, fill);
        let v3 = v2.to_v3().unwrap();
        assert_eq!((&v3.data_type, v3.fill_value.as_bytes()), (&data_type, element), "{filter} {fill}");
        let names: Vec<&str> = v3.codecs.iter().map(|codec| codec.name.as_str()).collect();
        assert_eq!(names, [format!("numcodecs.{filter}")]);
        assert_eq!(ArrayMetadataV2::from_v3(&v3).unwrap().fill_value, json(fill));
    }
}

#[test]
fn v2_pickles_have_metadata_alone() {
    let array = array_v2_with(&[("dtype", "\"|O\""), ("filters", r#"[{"id":"pickle","protocol":5}]"#), ("fill_value", "{}")]).unwrap();
    assert_eq!(array.fill_value(), Ok(None));
    assert_eq!(array.to_v3().unwrap().codecs[0].name, "numcodecs.pickle");
}

#[test]
fn v2_categorize_is_of_two_kinds() {
    let names = |dtype: &str, of: &str| {
        let filters = format!(r#"[{{"id":"categorize","labels":["a"],"dtype":"{of}","astype":"|u1"}}]"#);
        codecs_v3(&[("dtype", dtype), ("filters", filters.as_str()), ("fill_value", "\"\"")])
    };
    assert!(!names("\"|O\"", "|O").contains("\"bytes\""));
    assert!(names("\"<U2\"", "<U2").contains("\"bytes\""));
}
