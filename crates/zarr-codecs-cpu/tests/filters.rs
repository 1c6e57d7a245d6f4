//! Against bytes of numcodecs, zarr-python, zfpy, pcodec, cast-value-rs and ml_dtypes; `vectors/make_filters.py` made them.
//!
//! Both ways: what we decode of theirs, and what we encode, byte for byte.
#![cfg(target_endian = "little")]

use zarr_codec_api::{
    ArrayRepresentation, Chain, Limits, Policy, Registry, Representation, Scratch, SimpleCodec, Source, Target, VariableData,
};
use zarr_codecs_cpu::provider;
use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, DataType, Extension, FillValue, Json};

struct Vectors {
    json: Json,
    bytes: Vec<Vec<u8>>,
}

impl Vectors {
    fn read() -> Self {
        let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/filters.json")).unwrap();
        let json = Json::parse(&text).unwrap();
        let bytes = json.get("bytes").unwrap().as_array().unwrap().iter().map(|text| base64(text.as_str().unwrap())).collect();
        Self { json, bytes }
    }

    fn list(&self, key: &str) -> impl Iterator<Item = Case<'_>> {
        let list = self.json.get(key).unwrap().as_array().unwrap();
        list.iter().enumerate().map(|(index, json)| Case { vectors: self, json, index })
    }
}

#[derive(Clone, Copy)]
struct Case<'a> {
    vectors: &'a Vectors,
    json: &'a Json,
    index: usize,
}

impl Case<'_> {
    fn bytes_of(&self, place: &Json) -> &[u8] {
        &self.vectors.bytes[usize::try_from(place.as_u64().unwrap()).unwrap()]
    }

    fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.json.get(key).map(|place| self.bytes_of(place))
    }

    fn name(&self) -> &str {
        self.json.get("name").unwrap().as_str().unwrap()
    }

    fn label(&self) -> String {
        let text = |key| self.json.get(key).map(Json::to_text).unwrap_or_default();
        format!("case {}: {} {} of {} {}", self.index, self.name(), text("configuration"), text("data_type"), text("shape"))
    }

    /// The codec and the array it takes.
    fn codec(&self, shape: Vec<u64>) -> (SimpleCodec, ArrayRepresentation) {
        let data_type = DataType::parse(self.json.get("data_type").unwrap()).unwrap();
        let fill_value = match self.bytes("fill") {
            Some(bytes) => FillValue::from_bytes(bytes, &data_type).unwrap(),
            None => FillValue::default_for(&data_type),
        };
        let decoded = ArrayRepresentation { data_type, shape, fill_value };
        let configuration = self.json.get("configuration").unwrap().as_object().unwrap().clone();
        let extension = Extension::with_configuration(self.name(), configuration);
        let codec = provider().codec(&extension, &Representation::Array(decoded.clone()));
        (codec.unwrap_or_else(|error| panic!("{}: {error}", self.label())).unwrap(), decoded)
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte).unwrap() as u32;
        let bits = group.iter().fold(0, |bits, byte| bits << 6 | digit(byte)) << (6 * (4 - group.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    out
}

/// Equal bytes; of floating point numbers a NaN is as good as another, as no implementation promises its bits after arithmetic.
fn same(data_type: &DataType, left: &[u8], right: &[u8]) -> bool {
    let number = data_type.complex_component().unwrap_or_else(|| data_type.clone());
    let nan = |bytes: &[u8]| match number {
        DataType::Float16 => u16::from_ne_bytes(bytes.try_into().unwrap()) & 0x7fff > 0x7c00,
        DataType::Float32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        DataType::Float64 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let size = number.fixed_size().unwrap_or(1);
    left.len() == right.len() && left.chunks(size).zip(right.chunks(size)).all(|(left, right)| left == right || (nan(left) && nan(right)))
}

#[test]
fn arrays_are_encoded_and_decoded_as_the_references_do() {
    let vectors = Vectors::read();
    let mut failures = Vec::new();
    let mut done = 0;
    for case in vectors.list("cases") {
        if case.name() == "numcodecs.pcodec" && cfg!(not(feature = "pcodec")) {
            continue;
        }
        done += 1;
        let shape = case.json.get("shape").unwrap().as_array().unwrap().iter().map(|length| length.as_u64().unwrap()).collect();
        let (codec, decoded) = case.codec(shape);
        let (original, encoded) = (case.bytes("decoded").unwrap(), case.bytes("encoded").unwrap());
        let back = case.bytes("back").unwrap_or(original);
        let must_fail = case.json.get("error").is_some();
        let one_way = case.json.get("one_way").is_some();
        let mut output = vec![0xa5; decoded.fixed_len("test").unwrap()];
        let (got_encoded, got_back, encoded_type) = match &codec {
            SimpleCodec::ArrayToArray(codec) => {
                let representation = codec.encoded_representation(&decoded).unwrap_or_else(|error| panic!("{}: {error}", case.label()));
                let mut buffer = vec![0xa5; representation.fixed_len("test").unwrap()];
                let result = codec.encode(&decoded, original, &mut buffer).map(|()| buffer);
                let back = if must_fail || one_way { Ok(()) } else { codec.decode(&decoded, encoded, &mut output) };
                (result, back, representation.data_type)
            }
            SimpleCodec::ArrayToBytes(codec) => {
                codec.encoded_len(&decoded, &Limits::default()).unwrap();
                let mut buffer = Vec::new();
                let result = codec.encode(&decoded, original, &mut buffer).map(|()| buffer);
                (result, codec.decode(&decoded, encoded, &mut output), DataType::UInt8)
            }
            _ => unreachable!("takes bytes"),
        };
        match got_encoded {
            Err(_) if must_fail => continue,
            Err(error) => failures.push(format!("{}: encoding: {error}", case.label())),
            Ok(_) if must_fail => failures.push(format!("{}: encoding should fail", case.label())),
            Ok(bytes) if !same(&encoded_type, &bytes, encoded) => {
                failures.push(format!("{}: encoded\n  {bytes:02x?}\n  {encoded:02x?}", case.label()));
            }
            Ok(_) => {}
        }
        match got_back {
            Err(error) => failures.push(format!("{}: decoding: {error}", case.label())),
            Ok(()) if !one_way && !same(&decoded.data_type, &output, back) => {
                failures.push(format!("{}: decoded\n  {output:02x?}\n  {back:02x?}", case.label()));
            }
            Ok(()) => {}
        }
    }
    failures.iter().take(20).for_each(|failure| println!("{failure}"));
    assert_eq!(failures.len(), 0, "of {done}");
    assert!(done > 1000, "{done}");
}

#[test]
fn elements_of_variable_length_are_encoded_and_decoded_as_numcodecs_does() {
    let vectors = Vectors::read();
    for case in vectors.list("variable") {
        let elements: VariableData =
            case.json.get("elements").unwrap().as_array().unwrap().iter().map(|place| case.bytes_of(place)).collect();
        let (codec, representation) = case.codec(vec![elements.len() as u64]);
        let SimpleCodec::ArrayToBytes(codec) = codec else { panic!("{}", case.label()) };
        let mut encoded = Vec::new();
        codec.encode_variable(&representation, &elements, &mut encoded).unwrap();
        assert_eq!(encoded, case.bytes("encoded").unwrap(), "{}", case.label());
        let mut decoded = VariableData::new();
        codec.decode_variable(&representation, &encoded, &mut decoded, 1 << 20).unwrap();
        assert_eq!(decoded, elements, "{}", case.label());
    }
}

#[test]
#[cfg(all(feature = "pcodec", feature = "gzip", feature = "zlib", feature = "zstd"))]
fn whole_chunks_of_zarr_python_in_both_versions() {
    let registry = Registry::new().with(provider());
    let mut scratch = Scratch::new();
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/filter_chains.json")).unwrap();
    for case in Json::parse(&text).unwrap().as_array().unwrap() {
        let json = case.get("metadata").unwrap();
        let metadata = match json.get("zarr_format").unwrap().as_u64() {
            Some(2) => ArrayMetadataV2::parse(json.to_text().as_bytes(), None).unwrap().to_v3().unwrap(),
            _ => ArrayMetadataV3::parse(json.to_text().as_bytes()).unwrap(),
        };
        let representation = ArrayRepresentation {
            data_type: metadata.data_type.clone(),
            shape: metadata.shape.clone(),
            fill_value: metadata.fill_value.clone(),
        };
        let chain =
            Chain::bind(&metadata.codecs, representation, &registry, &Policy::Host).unwrap_or_else(|error| panic!("{json}: {error}"));
        let bytes = |key: &str| base64(case.get(key).unwrap().as_str().unwrap());
        let chunk = bytes("chunk");
        let mut again = Vec::new();
        if let Some(strings) = case.get("strings") {
            let strings: VariableData = strings.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
            let mut decoded = VariableData::new();
            chain.decode(&chunk, Target::Variable { elements: &mut decoded, limit: 1000 }, &mut scratch).unwrap();
            assert_eq!(decoded, strings, "{json}");
            chain.encode(Source::Variable(&decoded), &mut again, &mut scratch).unwrap();
            decoded.clear();
            chain.decode(&again, Target::Variable { elements: &mut decoded, limit: 1000 }, &mut scratch).unwrap();
            assert_eq!(decoded, strings, "{json}");
        } else {
            let expected = bytes("decoded");
            let mut decoded = vec![0xa5; expected.len()];
            chain.decode(&chunk, Target::Exact(&mut decoded), &mut scratch).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(decoded, expected, "{json}");
            // What was lost is lost: coding again changes nothing more, but for zfp.
            chain.encode(Source::Bytes(&decoded), &mut again, &mut scratch).unwrap();
            decoded.fill(0);
            chain.decode(&again, Target::Exact(&mut decoded), &mut scratch).unwrap();
            assert!(decoded == expected || json.to_text().contains("zfpy"), "{json}");
        }
    }
}
