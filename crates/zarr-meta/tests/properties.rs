//! Nothing panics, and what is written reads back.

use proptest::prelude::*;
use zarr_meta::{
    ArrayMetadataV2, ArrayMetadataV3, ChunkGrid, ChunkKeyEncoding, ConsolidatedMetadataV2, DataType, DataTypeV2, Extension, FillValue,
    GridAxis, Json, JsonObject, NodeMetadata, NodePath, Number, StructField,
};

fn any_json() -> impl Strategy<Value = Json> {
    let names = prop_oneof![
        "[a-z]{1,3}",
        prop::sample::select(
            [
                "name",
                "configuration",
                "must_understand",
                "zarr_format",
                "node_type",
                "shape",
                "data_type",
                "chunk_grid",
                "chunk_key_encoding",
                "fill_value",
                "codecs",
                "attributes",
                "dimension_names",
                "chunks",
                "dtype",
                "compressor",
                "filters",
                "order",
                "id",
                "fields",
                "length_bytes",
                "unit",
                "scale_factor",
                "separator",
                "chunk_shape",
                "chunk_shapes",
                "kind",
                "metadata",
                "consolidated_metadata",
                "level",
                "shuffle",
            ]
            .as_slice()
        )
        .prop_map(str::to_owned),
    ];
    let words = prop_oneof![
        any::<String>(),
        prop::sample::select(
            [
                "array",
                "group",
                "regular",
                "rectilinear",
                "inline",
                "default",
                "v2",
                "/",
                ".",
                "float32",
                "struct",
                "r16",
                "string",
                "bytes",
                "NaN",
                "NaT",
                "0x7f",
                "<f4",
                "|O",
                ">M8[ns]",
                "|S2",
                "C",
                "F",
                "AAAA",
                "fixed_length_utf32",
                "numpy.datetime64",
                "blosc",
                "delta",
                "vlen-utf8",
                "zstd",
            ]
            .as_slice()
        )
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (0u64..5).prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "-?[1-9][0-9]{0,40}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?"
            .prop_filter_map("a literal", |text| Number::parse(&text).map(Json::from)),
        words.prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

/// The value with every number that is not finite replaced by its name, as the writer does.
fn as_written(value: &Json) -> Json {
    match value {
        Json::Number(number) if !number.is_finite() => number.as_str().into(),
        Json::Array(elements) => elements.iter().map(as_written).collect(),
        Json::Object(object) => Json::Object(object.iter().map(|(key, value)| (key, as_written(value))).collect()),
        other => other.clone(),
    }
}

fn any_data_type() -> impl Strategy<Value = DataType> {
    let plain: Vec<DataType> = DataType::plain().collect();
    let fixed: Vec<DataType> = plain.iter().filter(|data_type| data_type.fixed_size().is_some()).cloned().collect();
    let leaf = prop_oneof![
        prop::sample::select(fixed),
        (0u64..20).prop_map(|bytes| DataType::Raw { bits: 8 * (bytes + 1) }),
        (0u32..5).prop_map(|n| DataType::FixedLengthUtf32 { length_bytes: 4 * n }),
        (0u32..9).prop_map(|n| DataType::NullTerminatedBytes { length_bytes: n }),
        (1u32..9).prop_map(|n| DataType::NumpyDateTime64 { unit: zarr_meta::TimeUnit::Second, scale_factor: n }),
    ];
    let nested = leaf.prop_recursive(3, 12, 4, |inner| {
        prop::collection::vec(inner, 1..4).prop_map(|types| {
            DataType::Struct(types.into_iter().enumerate().map(|(i, data_type)| StructField { name: format!("f{i}"), data_type }).collect())
        })
    });
    prop_oneof![3 => nested, 1 => prop::sample::select(plain)]
}

/// A data type with a fill value that its bits can be any of.
fn any_fill() -> impl Strategy<Value = (DataType, FillValue)> {
    any_data_type()
        .prop_flat_map(|data_type| {
            let size = data_type.fixed_size().unwrap_or(4);
            (Just(data_type), prop::collection::vec(any::<u8>(), size))
        })
        .prop_filter_map("an element", |(data_type, mut bytes)| {
            canonical(&data_type, &mut bytes);
            FillValue::from_bytes(bytes, &data_type).ok().map(|value| (data_type, value))
        })
}

/// Clears what a fill value does not hold: bits above narrow types, code points beyond Unicode.
fn canonical(data_type: &DataType, bytes: &mut [u8]) {
    if let Some(component) = data_type.complex_component() {
        let (real, imaginary) = bytes.split_at_mut(bytes.len() / 2);
        canonical(&component, real);
        canonical(&component, imaginary);
        return;
    }
    match data_type {
        DataType::Bool => bytes.iter_mut().for_each(|byte| *byte &= 1),
        DataType::FixedLengthUtf32 { .. } => {
            for unit in bytes.chunks_mut(4) {
                let code = u32::from(unit[0]) + 1;
                unit.copy_from_slice(&code.to_ne_bytes());
            }
        }
        DataType::Struct(fields) => {
            let mut rest = bytes;
            for field in fields {
                let (head, tail) = rest.split_at_mut(field.data_type.fixed_size().unwrap_or(0));
                canonical(&field.data_type, head);
                rest = tail;
            }
        }
        DataType::Bytes | DataType::String => bytes.iter_mut().for_each(|byte| *byte &= 0x7f),
        narrow => {
            if let Some(bits @ 1..8) = narrow.bit_width() {
                let unused = 8 - bits;
                for byte in bytes {
                    *byte = if narrow.is_signed_integer() {
                        ((*byte << unused).cast_signed() >> unused).cast_unsigned()
                    } else {
                        *byte << unused >> unused
                    };
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Json::parse(&bytes);
        let _ = NodeMetadata::parse(&bytes);
        let _ = ArrayMetadataV2::parse(&bytes, Some(&bytes));
        let _ = ConsolidatedMetadataV2::parse(&bytes);
    }

    #[test]
    fn no_text_of_json_characters_panics(text in "[\\[\\]{}\",:0-9eE.+-nulltruefas \\\\]{0,80}") {
        let _ = Json::parse(text.as_bytes());
    }

    #[test]
    fn json_reads_back(value in any_json()) {
        let expected = as_written(&value);
        prop_assert_eq!(Json::parse(value.to_text().as_bytes()), Ok(expected.clone()));
        prop_assert_eq!(Json::parse(value.to_text_pretty().as_bytes()), Ok(expected));
        // Into a type and out of one: literals stay.
        prop_assert_eq!(value.to::<Json>(), Ok(value.clone()));
    }

    #[test]
    fn no_document_panics(value in any_json()) {
        let _ = NodeMetadata::from_json(&value);
        let _ = DataType::parse(&value);
        let _ = DataTypeV2::parse(&value).map(|t| (t.data_type(), t.endianness()));
        let _ = Extension::parse(&value);
        let _ = ChunkGrid::parse(&value);
        let _ = ChunkKeyEncoding::parse(&value);
        for data_type in DataType::plain() {
            let _ = FillValue::parse(&value, &data_type);
        }
    }

    /// Documents that are almost right get deeper than those that are wholly random.
    #[test]
    fn no_changed_document_panics(index in 0usize..12, change in any_json()) {
        let keys = [
            "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
            "attributes", "dimension_names", "storage_transformers", "more",
        ];
        let mut v3 = Json::parse(br#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int8",
            "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
            "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}"#).unwrap();
        v3.as_object_mut().unwrap().insert(keys[index], change.clone());
        if let Ok(node) = NodeMetadata::from_json(&v3) {
            let text = node.to_bytes().unwrap();
            prop_assert!(NodeMetadata::parse(&text).is_ok());
        }
        let keys = ["zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters",
            "dimension_separator", "more", "more", "more"];
        let mut v2 = Json::parse(br#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i4","compressor":null,
            "fill_value":0,"order":"C","filters":null}"#).unwrap();
        v2.as_object_mut().unwrap().insert(keys[index], change.clone());
        if let Ok(array) = ArrayMetadataV2::from_json(&v2, Some(&change)) {
            prop_assert!(ArrayMetadataV2::parse(&array.to_bytes().unwrap(), None).is_ok());
            if let Ok(v3) = array.to_v3() {
                prop_assert!(v3.to_bytes().is_ok());
                let _ = ArrayMetadataV2::from_v3(&v3);
            }
        }
    }

    #[test]
    fn fill_values_read_back((data_type, value) in any_fill()) {
        let json = value.to_json(&data_type).unwrap();
        let text = json.to_text();
        let back = FillValue::parse(&Json::parse(text.as_bytes()).unwrap(), &data_type);
        prop_assert_eq!(back, Ok(value), "{} {}", data_type, text);
        prop_assert_eq!(DataType::parse(&data_type.to_json()), Ok(data_type));
    }

    #[test]
    fn arrays_read_back(
        (data_type, fill) in any_fill(),
        shape in prop::collection::vec(0u64..100, 0..5),
        attributes in prop::collection::vec(("[a-c]{1,2}", any_json()), 0..4),
    ) {
        let chunk_shape: Vec<u64> = shape.iter().map(|length| length / 3 + 1).collect();
        let mut array = ArrayMetadataV3::new(
            shape.clone(), data_type, ChunkGrid::regular(chunk_shape), fill, [Extension::new("bytes")],
        );
        array.attributes = attributes.iter().map(|(key, value)| (key.as_str(), as_written(value))).collect::<JsonObject>();
        array.dimension_names = Some(shape.iter().map(|length| (length % 2 == 0).then(|| length.to_string())).collect());
        prop_assert_eq!(ArrayMetadataV3::parse(&array.to_bytes().unwrap()), Ok(array));
    }

    #[test]
    fn chunks_tile_the_axis(runs in prop::collection::vec((1u64..6, 1u64..4), 0..6), length in 0u64..60) {
        let axis = GridAxis::runs(runs.clone()).unwrap();
        let total: u64 = runs.iter().map(|(length, count)| length * count).sum();
        let grid = ChunkGrid::Rectilinear { axes: vec![axis] };
        prop_assert_eq!(grid.check(&[length]).is_ok(), length <= total);
        if length <= total {
            let mut covered = 0;
            for index in 0..grid.grid_shape(&[length])[0] {
                prop_assert_eq!(grid.chunk_origin(0, index), covered);
                prop_assert!(covered < length);
                prop_assert_eq!(grid.locate(0, covered), Some((index, 0)));
                covered += grid.chunk_len(0, index);
            }
            prop_assert!(covered >= length);
        }
    }

    #[test]
    fn chunk_keys_read_back(coordinates in prop::collection::vec(any::<u64>(), 0..5)) {
        for text in [
            "\"default\"",
            "\"v2\"",
            "\"fanout\"",
            r#"{"name": "fanout", "configuration": {"max_children": 3}}"#,
            r#"{"name": "suffix", "configuration": {"suffix": ".1", "base_encoding": "v2"}}"#,
        ] {
            let encoding = ChunkKeyEncoding::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap();
            let key = encoding.encode(&coordinates);
            prop_assert_eq!(encoding.decode(&key, coordinates.len()), Some(coordinates.clone()));
        }
    }

    #[test]
    fn paths_stay_inside(text in "[a._/]{0,10}") {
        if let Ok(path) = NodePath::new(&text) {
            prop_assert_eq!(NodePath::new(&path.to_string()), Ok(path.clone()));
            prop_assert!(!path.metadata_key().starts_with('/'));
            prop_assert!(path.names().all(|name| !name.bytes().all(|b| b == b'.')));
        }
    }
}
