//! Arrays of Python's objects, against bytes of numcodecs; `vectors/make_objects.py` made them.
//!
//! Both ways: what we decode of theirs, and what we encode, byte for byte.
#![cfg(target_endian = "little")]

use zarr_codec_api::{ArrayRepresentation, Representation, SimpleCodec, VariableData};
use zarr_codecs_cpu::provider;
use zarr_meta::{DataType, Extension, FillValue, Json};

fn hexadecimal(text: &Json) -> Vec<u8> {
    let digits: Vec<u32> = text.as_str().unwrap().chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

#[test]
fn objects_are_encoded_and_decoded_as_numcodecs_does() {
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/objects.json")).unwrap();
    let json = Json::parse(&text).unwrap();
    let cases = json.get("cases").unwrap().as_array().unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let list = |key: &str| case.get(key).map(|list| list.as_array().unwrap().iter().map(hexadecimal).collect::<Vec<_>>());
        let name = case.get("name").unwrap().as_str().unwrap();
        let configuration = case.get("configuration").unwrap().as_object().unwrap().clone();
        let label = format!("{name} {} of {}", case.get("configuration").unwrap(), case.get("shape").unwrap());
        let data_type = DataType::parse(case.get("data_type").unwrap()).unwrap();
        let shape = case.get("shape").unwrap().as_array().unwrap().iter().map(|length| length.as_u64().unwrap()).collect();
        let decoded = ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape };
        let extension = Extension::with_configuration(name, configuration);
        let codec = provider().codec(&extension, &Representation::Array(decoded.clone()));
        let codec = codec.unwrap_or_else(|error| panic!("{label}: {error}")).unwrap();
        let elements = list("elements").unwrap();
        let back = list("back").unwrap_or_else(|| elements.clone());
        let expected = hexadecimal(case.get("encoded").unwrap());
        match codec {
            SimpleCodec::ArrayToBytes(codec) => {
                let (mut encoded, mut read) = (Vec::new(), VariableData::new());
                codec.encode_variable(&decoded, &elements.iter().collect(), &mut encoded).unwrap();
                assert_eq!(String::from_utf8_lossy(&encoded), String::from_utf8_lossy(&expected), "{label}");
                assert_eq!(encoded, expected, "{label}");
                codec.decode_variable(&decoded, &expected, &mut read, 1 << 20).unwrap();
                let read: Vec<Vec<u8>> = read.iter().map(<[u8]>::to_vec).collect();
                assert_eq!(read, back, "{label}");
            }
            SimpleCodec::ArrayToArray(codec) => {
                let mut encoded = vec![0xa5; expected.len()];
                codec.encode(&decoded, &elements[0], &mut encoded).unwrap();
                assert_eq!(encoded, expected, "{label}");
                let mut read = vec![0xa5; back[0].len()];
                codec.decode(&decoded, &expected, &mut read).unwrap();
                assert_eq!(read, back[0], "{label}");
            }
            _ => panic!("{label}"),
        }
    }
}
