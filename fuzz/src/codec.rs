//! Codecs: any bytes decode or fail, within the memory that metadata tells; what is encoded decodes.

use std::sync::LazyLock;

use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Scratch, Source, Target, VariableData};
use zarr_meta::{DataType, Extension, FillValue, Json};

/// A data type, a chunk shape and a codec chain, as in metadata.
struct Configuration(&'static str, &'static [u64], &'static str);

/// Every codec, with the settings that change how it decodes. The place in the list is the first byte of an input: add at the end.
const CONFIGURATIONS: &[Configuration] = &[
    Configuration(r#""int16""#, &[6, 7], r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#),
    Configuration(
        r#""int32""#,
        &[3, 4, 5],
        r#"[{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "zstd", "configuration": {"level": 1, "checksum": true}}]"#),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "gzip", "configuration": {"level": 1}}]"#),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "numcodecs.zlib", "configuration": {"level": 1}}]"#),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}]"#),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "numcodecs.bz2", "configuration": {"level": 1}}]"#),
    Configuration(
        r#""uint8""#,
        &[100],
        r#"["bytes", {"name": "numcodecs.lzma", "configuration": {"format": 1, "check": -1, "preset": null, "filters": null}}]"#,
    ),
    Configuration(r#""uint8""#, &[100], r#"["bytes", "crc32c"]"#),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "numcodecs.adler32"}]"#),
    Configuration(r#""uint8""#, &[101], r#"["bytes", {"name": "numcodecs.fletcher32"}]"#),
    Configuration(r#""uint8""#, &[101], r#"["bytes", {"name": "numcodecs.crc32"}]"#),
    Configuration(r#""uint8""#, &[101], r#"["bytes", {"name": "numcodecs.jenkins_lookup3"}]"#),
    Configuration(r#""uint8""#, &[104], r#"["bytes", {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}]"#),
    Configuration(
        r#""float32""#,
        &[8, 8],
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}]"#,
    ),
    Configuration(
        r#""float64""#,
        &[64, 16],
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 8, "blocksize": 0}}]"#,
    ),
    Configuration(r#""string""#, &[9], r#"["vlen-utf8"]"#),
    Configuration(r#""bytes""#, &[9], r#"["vlen-bytes"]"#),
    Configuration(r#""bytes""#, &[9], r#"[{"name": "numcodecs.vlen-array", "configuration": {"dtype": "<i4"}}]"#),
    Configuration(r#""bool""#, &[99], r#"[{"name": "packbits"}]"#),
    Configuration(
        r#""float32""#,
        &[25],
        r#"[{"name": "bitround", "configuration": {"keepbits": 5}}, {"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]"#,
    ),
    Configuration(
        r#""float64""#,
        &[25],
        r#"[{"name": "numcodecs.fixedscaleoffset", "configuration": {"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "<u2"}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""int64""#,
        &[25],
        r#"[{"name": "numcodecs.delta", "configuration": {"dtype": "<i8", "astype": "<i4"}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""float32""#,
        &[25],
        r#"[{"name": "numcodecs.quantize", "configuration": {"digits": 2, "dtype": "<f4"}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""float64""#,
        &[25],
        r#"[{"name": "numcodecs.astype", "configuration": {"encode_dtype": "<i2", "decode_dtype": "<f8"}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""float64""#,
        &[25],
        r#"[{"name": "scale_offset", "configuration": {"offset": 5, "scale": 0.1}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""float64""#,
        &[25],
        r#"[{"name": "cast_value", "configuration": {"data_type": "uint8", "rounding": "nearest-even", "out_of_range": "clamp", "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""int32""#,
        &[6, 4],
        r#"[{"name": "reshape", "configuration": {"shape": [[0, 1]]}}, {"name": "bytes", "configuration": {"endian": "little"}}]"#,
    ),
    Configuration(
        r#""uint8""#,
        &[100],
        r#"["bytes", {"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 33, "preset": 1}]}}]"#,
    ),
    Configuration(r#""float32""#, &[300], r#"[{"name": "numcodecs.pcodec", "configuration": {"level": 8}}]"#),
    Configuration(
        r#""int64""#,
        &[300],
        r#"[{"name": "numcodecs.pcodec", "configuration": {"delta_spec": "try_lookback", "equal_pages_up_to": 100}}]"#,
    ),
    Configuration(r#""uint16""#, &[300], r#"[{"name": "numcodecs.pcodec", "configuration": {"delta_encoding_order": 2}}]"#),
    Configuration(
        r#"{"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}"#,
        &[30],
        r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#,
    ),
    Configuration(r#""int4""#, &[30], r#"["bytes"]"#),
    Configuration(
        r#""complex64""#,
        &[30],
        r#"[{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "blosc", "configuration": {"cname": "snappy", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 64}}]"#,
    ),
    Configuration(
        r#""uint8""#,
        &[100],
        r#"["bytes", {"name": "conditional", "configuration": {"codecs": [{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}, {"name": "zstd", "configuration": {"level": 1}}]}}]"#,
    ),
    Configuration(
        r#""int16""#,
        &[4, 5],
        r#"[{"name": "n5_default", "configuration": {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip", "configuration": {"level": 1}}]}}]"#,
    ),
    Configuration(r#""string""#, &[2, 3], r#"[{"name": "numcodecs.json2", "configuration": {"indent": 1}}]"#),
    Configuration(r#""bytes""#, &[2, 3], r#"[{"name": "numcodecs.msgpack2"}]"#),
    Configuration(
        r#""string""#,
        &[9],
        r#"[{"name": "numcodecs.categorize", "configuration": {"labels": ["a", "Zarr"], "dtype": "|O", "astype": ">i2"}}]"#,
    ),
    Configuration(
        r#"{"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}"#,
        &[9],
        r#"[{"name": "numcodecs.categorize", "configuration": {"labels": ["a", "Zarr"], "dtype": "<U2", "astype": "|u1"}}, "bytes"]"#,
    ),
    Configuration(r#""uint8""#, &[100], r#"["bytes", {"name": "numcodecs.base64"}]"#),
    Configuration(r#""float32""#, &[5, 6, 7], r#"[{"name": "zfp", "configuration": {"mode": "reversible"}}]"#),
    Configuration(r#""float64""#, &[5, 9], r#"[{"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 0.01}}]"#),
    Configuration(r#""uint16""#, &[3, 4, 5, 2], r#"[{"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": 7.5}}]"#),
    Configuration(r#""int64""#, &[70], r#"[{"name": "numcodecs.zfpy", "configuration": {"mode": 3, "precision": 20}}]"#),
    Configuration(r#""float32""#, &[9, 7], r#"[{"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": -1}}]"#),
];

fn bind(data_type: &str, shape: &[u64], codecs: &str) -> Result<Chain, String> {
    let data_type = DataType::parse(&Json::parse(data_type.as_bytes()).expect("JSON")).expect("a data type");
    let codecs = Json::parse(codecs.as_bytes()).expect("JSON");
    let codecs: Vec<Extension> = codecs.as_array().expect("a list").iter().map(|codec| Extension::parse(codec).expect("a codec")).collect();
    chain(data_type, shape, &codecs)
}

/// Binds a chain for the default fill value.
fn chain(data_type: DataType, shape: &[u64], codecs: &[Extension]) -> Result<Chain, String> {
    let fill_value = FillValue::default_for(&data_type);
    let representation = ArrayRepresentation { data_type, shape: shape.to_vec(), fill_value };
    Chain::bind(codecs, representation, &crate::registry(), &Policy::Host).map_err(|error| error.to_string())
}

/// The chains under test, by the first byte of an input.
pub fn chains() -> &'static [Result<Chain, String>] {
    static CHAINS: LazyLock<Vec<Result<Chain, String>>> =
        LazyLock::new(|| CONFIGURATIONS.iter().map(|Configuration(data_type, shape, codecs)| bind(data_type, shape, codecs)).collect());
    &CHAINS
}

/// The codecs of each chain, as text.
pub fn chain_texts() -> impl Iterator<Item = &'static str> {
    CONFIGURATIONS.iter().map(|Configuration(_, _, codecs)| *codecs)
}

fn decode(chain: &Chain, encoded: &[u8]) -> Option<Decoded> {
    let mut scratch = Scratch::new();
    if let Some(len) = chain.representation().byte_len().expect("a small chunk") {
        let mut decoded = vec![0; len];
        let result = chain.decode(encoded, Target::Exact(&mut decoded), &mut scratch);
        if let Some(blocks) = chain.blocks(encoded) {
            let mut by_block = vec![0; len];
            let mut parts = by_block.chunks_mut(blocks.block_len()).enumerate();
            let every = parts.try_for_each(|(index, part)| blocks.decode(index, part));
            assert_eq!(every.is_ok(), result.is_ok(), "blocks decode each on its own, and all at once");
            assert!(every.is_err() || by_block == decoded, "the same comes out");
            for (index, block) in by_block.chunks(blocks.block_len()).enumerate() {
                let len = encoded.len() % (block.len() + 1);
                let front = [0, 0xFF].map(|before| {
                    let mut front = vec![before; len];
                    blocks.decode_front(index, &mut front).map(|done| done.is_ok().then_some(front))
                });
                assert!(front[0] == front[1], "what the memory held before is no part of the front of a block");
            }
        }
        if let Some(mut pieces) = chain.pieces(len) {
            let mut in_pieces = Vec::new();
            let every = encoded.chunks(7).try_for_each(|piece| pieces.decode(piece, &mut |bytes| in_pieces.extend_from_slice(bytes)));
            assert!(in_pieces.len() <= len, "no more than the chunk");
            if every.and_then(|()| pieces.finish()).is_ok() {
                assert!(result.is_ok() && in_pieces == decoded, "what pieces accept, the whole is");
            }
        }
        let wanted = encoded.len() % (len + 1);
        if let Some(mut pieces) = chain.pieces(wanted) {
            let mut front = Vec::new();
            let every = encoded.chunks(11).try_for_each(|piece| pieces.decode(piece, &mut |bytes| front.extend_from_slice(bytes)));
            assert!(front.len() <= len, "no more than the chunk");
            assert!(!pieces.is_done() || every.is_err() || front.len() >= wanted, "all that is wanted");
            if result.is_ok() && every.and_then(|()| pieces.finish()).is_ok() {
                assert!(decoded.starts_with(&front), "the front of the chunk");
            }
        }
        result.ok()?;
        Some(Decoded::Fixed(decoded))
    } else {
        let mut elements = VariableData::new();
        chain.decode(encoded, Target::Variable { elements: &mut elements, limit: 1 << 20 }, &mut scratch).ok()?;
        assert!(elements.byte_len() <= 1 << 20, "more than the limit");
        assert_eq!(Ok(elements.len()), chain.representation().elements().map_err(|_| ()), "not as many elements as the chunk has");
        Some(Decoded::Variable(elements))
    }
}

#[derive(Debug, PartialEq)]
enum Decoded {
    Fixed(Vec<u8>),
    Variable(VariableData),
}

impl Decoded {
    fn encode(&self, chain: &Chain) -> Option<Vec<u8>> {
        let source = match self {
            Self::Fixed(bytes) => Source::Bytes(bytes),
            Self::Variable(elements) => Source::Variable(elements),
        };
        let mut encoded = Vec::new();
        chain.encode(source, &mut encoded, &mut Scratch::new()).ok()?;
        Some(encoded)
    }
}

/// The first byte picks the chain; the rest is an encoded chunk.
pub fn codec_decode(data: &[u8]) {
    if let Some((&first, encoded)) = data.split_first()
        && let Some(Ok(chain)) = chains().get(usize::from(first))
    {
        decode(chain, encoded);
    }
}

/// The first byte picks the chain; the rest are elements, again from the start when there are too few. What is encoded decodes, to the same
/// where the codec loses nothing.
pub fn codec_round_trip(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let Some(Ok(chain)) = chains().get(usize::from(first)) else { return };
    if rest.is_empty() {
        return;
    }
    let original = match chain.representation().byte_len().expect("a small chunk") {
        Some(len) => Decoded::Fixed(rest.iter().copied().cycle().take(len).collect()),
        None => {
            let count = chain.representation().elements().expect("a small chunk");
            let mut elements: Vec<&[u8]> = rest.splitn(count, |&byte| byte == 0).collect();
            elements.resize(count, b"");
            Decoded::Variable(elements.into_iter().collect())
        }
    };
    // Values that a codec refuses.
    let Some(encoded) = original.encode(chain) else { return };
    let decoded = decode(chain, &encoded).expect("what is encoded decodes");
    if is_lossless(chain) {
        assert_eq!(decoded, original);
    }
}

/// Whether all codecs give back what they took. An element of a type narrower than a byte may come with other upper bits.
fn is_lossless(chain: &Chain) -> bool {
    const LOSSY: [&str; 12] = [
        "bitround",
        "numcodecs.fixedscaleoffset",
        "numcodecs.delta",
        "numcodecs.quantize",
        "numcodecs.astype",
        "numcodecs.categorize",
        // White space, and the order of keys.
        "numcodecs.json2",
        "scale_offset",
        "cast_value",
        "packbits",
        // But for the reversible mode.
        "numcodecs.zfpy",
        "zfp",
    ];
    let is_reversible =
        |codec: &Extension| codec.configuration.as_ref().is_some_and(|of| of.get("mode") == Some(&Json::from("reversible")));
    chain.representation().data_type.name() != "int4"
        && chain.stages().iter().all(|stage| !LOSSY.contains(&stage.codec.name.as_str()) || is_reversible(&stage.codec))
}

/// Metadata's list of codecs for a chunk of one of a few data types, which the first byte picks. A chain that binds encodes or refuses a chunk of the
/// fill value, and decodes what it encoded.
pub fn codec_chain(data: &[u8]) {
    const TYPES: [&str; 8] = ["float32", "int16", "uint8", "bool", "complex64", "string", "bytes", "int4"];
    let Some((&first, text)) = data.split_first() else { return };
    let Ok(Json::Array(list)) = Json::parse(text) else { return };
    let Ok(codecs) = list.iter().map(Extension::parse).collect::<Result<Vec<_>, _>>() else { return };
    let name = TYPES[usize::from(first) % TYPES.len()];
    let data_type = DataType::parse(&Json::from(name)).expect("a data type");
    let Ok(chain) = chain(data_type, &[4, 6], &codecs) else { return };
    let zeros = match chain.representation().byte_len().expect("a small chunk") {
        Some(len) => Decoded::Fixed(vec![0; len]),
        None => Decoded::Variable(std::iter::repeat_n(b"", 24).collect()),
    };
    if let Some(encoded) = zeros.encode(&chain) {
        decode(&chain, &encoded).expect("what is encoded decodes");
    }
}

/// A chunk of one codec: exactly as long as the metadata says, and behind a size that it does not say.
fn one(exact: &Chain, growing: &Chain, encoded: &[u8]) {
    decode(exact, encoded);
    decode(growing, encoded);
}

macro_rules! one_codec {
    ($(#[$doc:meta] $name:ident: $codecs:literal, $growing:literal;)*) => {$(
        #[$doc]
        pub fn $name(encoded: &[u8]) {
            static CHAINS: LazyLock<[Chain; 2]> = LazyLock::new(|| {
                [bind(r#""int32""#, &[64, 64], $codecs), bind(r#""int32""#, &[64, 64], $growing)].map(|chain| chain.expect("a codec"))
            });
            let [exact, growing] = &*CHAINS;
            one(exact, growing, encoded);
        }
    )*};
}

one_codec! {
    /// A blosc container, of any codec inside.
    codec_blosc:
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}]"#,
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}}]"#;
    /// Members of gzip.
    codec_gzip:
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}]"#,
        r#"[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}, {"name": "gzip", "configuration": {"level": 1}}]"#;
}

/// Frames of zstd, to 16 KiB, and to as many bytes as libzstd says that they are: they decode to what it makes of them.
pub fn codec_zstd(encoded: &[u8]) {
    const LEN: usize = 1 << 14;
    const CODECS: &str = r#"["bytes", {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]"#;
    static CHAINS: LazyLock<[Chain; 2]> = LazyLock::new(|| {
        let growing = r#"["bytes", {"name": "gzip", "configuration": {"level": 1}}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]"#;
        [CODECS, growing].map(|codecs| bind(r#""uint8""#, &[LEN as u64], codecs).expect("a codec"))
    });
    let [exact, growing] = &*CHAINS;
    decode(growing, encoded);
    let told = |len: usize| {
        let mut decoded = vec![0; len];
        let written = zstd_safe::decompress(&mut decoded[..], encoded).ok().filter(|_| !encoded.is_empty())?;
        decoded.truncate(written);
        Some(Decoded::Fixed(decoded))
    };
    let whole = |told: &Decoded, len: usize| matches!(told, Decoded::Fixed(bytes) if bytes.len() == len);
    assert_eq!(decode(exact, encoded), told(LEN).filter(|told| whole(told, LEN)), "as libzstd");
    if let Some(Decoded::Fixed(told)) = told(16 * LEN)
        && !told.is_empty()
    {
        let chain = bind(r#""uint8""#, &[told.len() as u64], CODECS).expect("a codec");
        assert!(decode(&chain, encoded) == Some(Decoded::Fixed(told)), "as libzstd");
    }
}
