//! Decode alone: a chain bound from metadata, over bytes that came from anywhere.

use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Source, Target};
use zarr_meta::{DataType, Extension, FillValue, Json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new().with(zarr_codecs_cpu::provider());
    let codecs = br#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"zstd","configuration":{"level":3,"checksum":true}}]"#;
    let codecs: Vec<Extension> = match Json::parse(codecs)? {
        Json::Array(list) => list.iter().map(Extension::parse).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    let data_type = DataType::Int32;
    let representation = ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: vec![4, 4] };
    let chain = Chain::bind(&codecs, representation, &registry, &Policy::Host)?;
    print!("{}", chain.explain());

    let mut scratch = Scratch::new();
    let elements: Vec<u8> = (0..16i32).flat_map(i32::to_ne_bytes).collect();
    let mut encoded = Vec::new();
    chain.encode(Source::Bytes(&elements), &mut encoded, &mut scratch)?;
    let mut decoded = vec![0; elements.len()];
    chain.decode(&encoded, Target::Exact(&mut decoded), &mut scratch)?;
    assert_eq!(decoded, elements);
    println!("{} bytes encoded, {} decoded", encoded.len(), decoded.len());

    encoded.truncate(encoded.len() / 2);
    let error = chain.decode(&encoded, Target::Exact(&mut decoded), &mut scratch).expect_err("a truncated chunk");
    println!("half of it: {error}");
    Ok(())
}
