//! `bytes` and `transpose` against one element at a time, and through a bound chain.

use std::sync::Arc;

use proptest::prelude::*;
use zarr_codec_api::{
    ArrayRepresentation, ArrayToArray, ArrayToBytes, ByteLen, Chain, CodecError, CodecErrorKind, Limits, Policy, Registry, Representation,
    Scratch, SimpleCodec, Source, Target,
};
use zarr_meta::{DataType, Extension, FillValue, Json, StructField};

fn array(data_type: &DataType, shape: &[u64]) -> ArrayRepresentation {
    ArrayRepresentation { data_type: data_type.clone(), shape: shape.to_vec(), fill_value: FillValue::default_for(data_type) }
}

fn extension(metadata: &str) -> Extension {
    Extension::parse(&Json::parse(metadata.as_bytes()).unwrap()).unwrap()
}

fn make(metadata: &str, array: &ArrayRepresentation) -> Result<SimpleCodec, CodecError> {
    Ok(zarr_codecs_cpu::provider().codec(&extension(metadata), &Representation::Array(array.clone()))?.unwrap())
}

fn bytes(metadata: &str, array: &ArrayRepresentation) -> Arc<dyn ArrayToBytes> {
    match make(metadata, array).unwrap() {
        SimpleCodec::ArrayToBytes(codec) => codec,
        _ => panic!("another kind of codec"),
    }
}

fn transpose(order: &str, array: &ArrayRepresentation) -> Result<Arc<dyn ArrayToArray>, CodecError> {
    match make(&format!(r#"{{"name": "transpose", "configuration": {{"order": {order}}}}}"#), array)? {
        SimpleCodec::ArrayToArray(codec) => Ok(codec),
        _ => panic!("another kind of codec"),
    }
}

const BIG: &str = r#"{"name": "bytes", "configuration": {"endian": "big"}}"#;
const LITTLE: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
const NO_ENDIAN: &str = r#"{"name": "bytes"}"#;

/// Decodes and encodes in every way that the codec offers.
fn check_bytes(metadata: &str, data_type: &DataType, encoded: &[u8], decoded: &[u8]) {
    let size = data_type.fixed_size().unwrap();
    let array = array(data_type, &[(decoded.len() / size) as u64]);
    let codec = bytes(metadata, &array);
    assert_eq!(codec.encoded_len(&array, &Limits::default()).unwrap(), ByteLen::Exact(decoded.len() as u64));
    let mut out = vec![0xA5; decoded.len()];
    codec.decode(&array, encoded, &mut out).unwrap();
    assert_eq!(out, decoded, "{metadata} {data_type}");
    out.copy_from_slice(encoded);
    assert!(codec.is_in_place(&array) && codec.decode_in_place(&array, &mut out));
    assert_eq!(out, decoded, "{metadata} {data_type}, in place");
    assert_eq!(codec.is_verbatim(&array), codec.is_verbatim(&array) && encoded == decoded, "{metadata} {data_type}");
    for wrong in [decoded.len() + 1, decoded.len().saturating_sub(1)] {
        assert!(wrong == decoded.len() || codec.decode(&array, encoded, &mut vec![0; wrong]).is_err());
    }
}

fn check_both_ways(metadata: &str, data_type: &DataType, encoded: &[u8], decoded: &[u8]) {
    check_bytes(metadata, data_type, encoded, decoded);
    let array = array(data_type, &[(decoded.len() / data_type.fixed_size().unwrap()) as u64]);
    let mut out = Vec::new();
    bytes(metadata, &array).encode(&array, decoded, &mut out).unwrap();
    assert_eq!(out, encoded, "{metadata} {data_type}");
}

#[test]
fn numbers_in_either_byte_order() {
    check_both_ways(BIG, &DataType::UInt16, &[0x12, 0x34, 0xff, 0xfe], &[0x1234u16, 0xfffe].map(u16::to_ne_bytes).concat());
    check_both_ways(LITTLE, &DataType::UInt16, &[0x34, 0x12, 0xfe, 0xff], &[0x1234u16, 0xfffe].map(u16::to_ne_bytes).concat());
    // A signalling NaN with a payload.
    check_both_ways(BIG, &DataType::Float32, &[0x7f, 0xa0, 0x00, 0x01], &0x7fa0_0001u32.to_ne_bytes());
    check_both_ways(BIG, &DataType::Float64, &1.5f64.to_be_bytes(), &1.5f64.to_ne_bytes());
    let complex = [[1.5f32.to_be_bytes(), (-2f32).to_be_bytes()].concat(), [1.5f32.to_ne_bytes(), (-2f32).to_ne_bytes()].concat()];
    check_both_ways(BIG, &DataType::Complex64, &complex[0], &complex[1]);
    let text: Vec<u32> = "añ🦀".chars().map(u32::from).chain([0]).collect();
    let text_bytes = |of: fn(u32) -> [u8; 4]| text.iter().flat_map(|char| of(*char)).collect::<Vec<u8>>();
    let utf32 = DataType::FixedLengthUtf32 { length_bytes: 16 };
    check_both_ways(BIG, &utf32, &text_bytes(u32::to_be_bytes), &text_bytes(u32::to_ne_bytes));
    check_both_ways(BIG, &DataType::Raw { bits: 64 }, b"as it is", b"as it is");
}

#[test]
fn structs_are_swapped_by_field() {
    let field = |name: &str, data_type| StructField { name: name.into(), data_type };
    let data_type = DataType::Struct(vec![
        field("a", DataType::UInt8),
        field("b", DataType::Float64),
        field("c", DataType::Int16),
        field("d", DataType::Int4),
    ]);
    let row = |of: fn(u16) -> [u8; 2], number: [u8; 8], last: u8| [&[7][..], &number, &of(0x0102), &[last]].concat();
    let encoded = [row(u16::to_be_bytes, 2.5f64.to_be_bytes(), 0xff), row(u16::to_be_bytes, 0.5f64.to_be_bytes(), 0x3)].concat();
    let decoded = [row(u16::to_ne_bytes, 2.5f64.to_ne_bytes(), 0xff), row(u16::to_ne_bytes, 0.5f64.to_ne_bytes(), 0x3)].concat();
    check_both_ways(BIG, &data_type, &encoded, &decoded);
}

#[test]
fn upper_bits_are_ignored() {
    check_bytes(NO_ENDIAN, &DataType::Int4, &[0x0f, 0xff, 0xf7, 0x28], &[0xff, 0xff, 0x07, 0xf8]);
    check_bytes(NO_ENDIAN, &DataType::UInt4, &[0x0f, 0xff, 0xf7, 0x28], &[0x0f, 0x0f, 0x07, 0x08]);
    check_bytes(NO_ENDIAN, &DataType::Int2, &[0x02, 0xfd], &[0xfe, 0x01]);
    check_bytes(BIG, &DataType::Float6E2M3FN, &[0xff, 0x40], &[0x3f, 0x00]);
    check_bytes(NO_ENDIAN, &DataType::ComplexFloat4E2M1FN, &[0xff, 0x21], &[0x0f, 0x01]);
    // Anything goes into a bool, and comes back.
    check_both_ways(NO_ENDIAN, &DataType::Bool, &[0, 1, 2, 255], &[0, 1, 2, 255]);
}

#[test]
fn endian_is_required_where_it_matters() {
    let kind = |metadata: &str, data_type: &DataType| make(metadata, &array(data_type, &[4])).map(drop).map_err(|error| error.kind());
    assert_eq!(kind(NO_ENDIAN, &DataType::Int16), Err(CodecErrorKind::Metadata));
    assert_eq!(kind(r#"{"name": "bytes", "configuration": {"endian": "middle"}}"#, &DataType::Int8), Err(CodecErrorKind::Metadata));
    assert_eq!(kind(r#"{"name": "bytes", "configuration": {"endianness": "big"}}"#, &DataType::Int8), Err(CodecErrorKind::Metadata));
    for fine in
        [NO_ENDIAN, LITTLE, BIG, r#"{"name": "bytes", "configuration": {"endian": null}}"#, r#"{"name": "bytes", "configuration": {}}"#]
    {
        assert_eq!(kind(fine, &DataType::Int8), Ok(()), "{fine}");
    }
    assert_eq!(kind(r#"{"name": "endian", "configuration": {"endian": "little"}}"#, &DataType::Int32), Ok(()));
}

#[test]
fn orders_are_permutations() {
    let array = array(&DataType::UInt8, &[2, 3, 4]);
    for bad in ["[0, 1]", "[0, 1, 3]", "[0, 1, 1]", "[0, 1, 2, 3]", "[-1, 0, 1]", "\"A\"", "1", "null"] {
        assert_eq!(transpose(bad, &array).map(drop).map_err(|error| error.kind()), Err(CodecErrorKind::Metadata), "{bad}");
    }
    let shape = |order: &str| transpose(order, &array).unwrap().encoded_representation(&array).unwrap().shape;
    assert_eq!(shape("[1, 2, 0]"), [3, 4, 2]);
    assert_eq!(shape("\"F\""), [4, 3, 2]);
    assert_eq!(shape("\"C\""), [2, 3, 4]);
    assert!(transpose("\"C\"", &array).unwrap().decodes_verbatim());
    assert!(!transpose("\"F\"", &array).unwrap().decodes_verbatim());
}

proptest! {
    #[test]
    fn transposes_agree_with_one_element_at_a_time(
        shape in prop::collection::vec(0u64..12, 0..5),
        shuffled in Just((0..5usize).collect::<Vec<_>>()).prop_shuffle(),
        data_type in prop::sample::select(vec![DataType::UInt8, DataType::Int16, DataType::Float32, DataType::Complex128, DataType::Raw { bits: 24 }]),
    ) {
        let order: Vec<usize> = shuffled.into_iter().filter(|axis| *axis < shape.len()).collect();
        let size = data_type.fixed_size().unwrap();
        let array = array(&data_type, &shape);
        let codec = transpose(&format!("{order:?}"), &array).unwrap();
        let encoded_shape = codec.encoded_representation(&array).unwrap().shape;
        let elements = array.elements().unwrap();
        let decoded: Vec<u8> = (0..elements * size).map(|index| (index * 31 + index / 256) as u8).collect();
        let mut expected = vec![0; decoded.len()];
        for index in 0..elements {
            // Digits of the index, by decoded axis.
            let (mut rest, mut digits) = (index as u64, vec![0; shape.len()]);
            for axis in (0..shape.len()).rev() {
                digits[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            let to = order.iter().zip(&encoded_shape).fold(0, |to, (&axis, len)| to * len + digits[axis]) as usize;
            expected[to * size..][..size].copy_from_slice(&decoded[index * size..][..size]);
        }
        let mut encoded = vec![0xA5; decoded.len()];
        codec.encode(&array, &decoded, &mut encoded).unwrap();
        prop_assert_eq!(&encoded, &expected);
        let mut back = vec![0xA5; decoded.len()];
        codec.decode(&array, &encoded, &mut back).unwrap();
        prop_assert_eq!(&back, &decoded);
    }
}

#[test]
fn a_chain_of_them() {
    let registry = Registry::new().with(zarr_codecs_cpu::provider());
    let codecs = [
        extension(r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#),
        extension(BIG),
        extension(r#"{"name": "zstd", "configuration": {"level": 1}}"#),
        extension(r#"{"name": "crc32c"}"#),
    ];
    let chain = Chain::bind(&codecs, array(&DataType::UInt16, &[2, 3]), &registry, &Policy::Host).unwrap();
    let decoded: Vec<u8> = (1..=6u16).flat_map(u16::to_ne_bytes).collect();
    let (mut encoded, mut scratch) = (Vec::new(), Scratch::new());
    chain.encode(Source::Bytes(&decoded), &mut encoded, &mut scratch).unwrap();
    let mut out = vec![0; decoded.len()];
    chain.decode(&encoded, Target::Exact(&mut out), &mut scratch).unwrap();
    assert_eq!(out, decoded);
    // What the last codec guards: a raw block would show the big-endian columns.
    let frame = &encoded[..encoded.len() - 4];
    assert!(frame.windows(4).any(|window| window == [0, 1, 0, 4]), "{frame:?}");
    encoded[5] ^= 1;
    let error = chain.decode(&encoded, Target::Exact(&mut out), &mut scratch).unwrap_err();
    assert_eq!((error.kind(), error.codec()), (CodecErrorKind::Format, "crc32c"));
}
