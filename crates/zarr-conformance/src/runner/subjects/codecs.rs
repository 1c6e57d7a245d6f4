//! The codecs of `zarr-codecs-cpu`, each with the data types that it takes and the configurations that change what it does.

use std::sync::Arc;

use zarr_codec_api::{ByteLen, Representation};

use super::types::{COMPLEX, FLOATS, INTEGERS, TIMES, array, codec, data_type, numbers, numpy};
use super::{Entry, Unbuilt};
use crate::codec::CodecUnderTest;
use crate::runner::results::Place;
use crate::{Sample, samples};

/// Data types of fixed length.
pub(super) const FIXED: &[&[&str]] = &[
    &["bool", "int2", "int4", "uint2", "uint4", "bfloat16", "r24", "fixed_length_utf32", "null_terminated_bytes", "struct"],
    &["float8_e4m3", "float8_e5m2", "complex_bfloat16"],
    INTEGERS,
    FLOATS,
    COMPLEX,
    TIMES,
];

/// A codec in a configuration.
struct Line {
    /// Its name; others that mean the same follow after a bar.
    names: &'static str,
    /// Tells configurations of one codec apart; may be empty.
    label: &'static str,
    /// `{size}` is the size of an element, `{dtype}` the type in the words of numpy.
    configuration: &'static str,
    takes: Takes,
    types: &'static [&'static [&'static str]],
}

/// What a codec takes.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// Bytes; the data types say what is in them.
    Bytes,
    /// Arrays of any elements, losslessly.
    Arrays,
    /// Arrays of any elements, of which it keeps a part.
    Lossy,
    /// Arrays of small numbers, of which it may keep a part: its arithmetic does not take any bits.
    Numbers,
    /// Elements that are JSON text, losslessly.
    Json,
    /// Elements that are values in MessagePack, losslessly.
    MessagePack,
    /// Nothing: it is there to say why.
    Nothing,
}

const fn line(
    names: &'static str,
    label: &'static str,
    configuration: &'static str,
    takes: Takes,
    types: &'static [&'static [&'static str]],
) -> Line {
    Line { names, label, configuration, takes, types }
}

/// One data type of each size, and those with their own way through a shuffle.
const SIZES: &[&[&str]] = &[&["uint8", "int16", "float32", "float64", "complex128", "r24"]];
const ONE: &[&[&str]] = &[&["float32"]];

use Takes::{Arrays, Bytes, Lossy, MessagePack, Nothing, Numbers};

/// Types of less than a byte, or with few values.
const NARROW: &[&str] = &["int4", "float8_e4m3", "float8_e5m2"];

const LINES: &[Line] = &[
    line("bytes|endian", "little", r#"{"endian":"little"}"#, Arrays, FIXED),
    line("bytes", "big", r#"{"endian":"big"}"#, Arrays, FIXED),
    line(
        "packbits",
        "",
        "{}",
        Arrays,
        &[&["bool", "int2", "uint2", "uint4", "bfloat16", "complex_bfloat16"], NARROW, INTEGERS, FLOATS, COMPLEX, TIMES],
    ),
    line("packbits", "first_byte", r#"{"padding_encoding":"first_byte"}"#, Arrays, &[&["bool", "int4", "uint16", "float32"]]),
    line("packbits", "last_byte", r#"{"padding_encoding":"last_byte"}"#, Arrays, &[&["bool", "int4", "uint16", "float32"]]),
    line("numcodecs.packbits", "", "{}", Arrays, &[&["bool"]]),
    line("vlen-utf8|numcodecs.vlen-utf8", "", "{}", Arrays, &[&["string"]]),
    line("vlen-bytes|numcodecs.vlen-bytes", "", "{}", Arrays, &[&["bytes"]]),
    line("zarrs.vlen_v2|https://codec.zarrs.dev/array_to_bytes/vlen_v2", "", "{}", Arrays, &[&["string", "bytes"]]),
    line("numcodecs.vlen-array", "", r#"{"dtype":"|u1"}"#, Arrays, &[&["bytes"]]),
    line("numcodecs.json2", "", "{}", Takes::Json, &[&["string"]]),
    line("numcodecs.msgpack2", "", "{}", MessagePack, &[&["bytes"]]),
    line("numcodecs.pickle", "", "{}", Nothing, &[]),
    line("numcodecs.categorize", "objects", r#"{"labels":["a","b",""],"dtype":"|O","astype":">u2"}"#, Lossy, &[&["string"]]),
    line("numcodecs.categorize", "fixed", r#"{"labels":["a","b",""],"dtype":"<U4","astype":"<i4"}"#, Lossy, &[&["fixed_length_utf32"]]),
    line(
        "zfp|zarrs.zfp|https://codec.zarrs.dev/array_to_bytes/zfp",
        "reversible",
        r#"{"mode":"reversible"}"#,
        Arrays,
        &[&["int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "float64"], TIMES],
    ),
    line(
        "zfp|zarrs.zfp|https://codec.zarrs.dev/array_to_bytes/zfp",
        "reversible",
        r#"{"mode":"reversible"}"#,
        Numbers,
        &[&["uint32", "uint64", "bfloat16", "float16"]],
    ),
    line("zfp", "rate-16", r#"{"mode":"fixed_rate","rate":16}"#, Numbers, &[&["int32", "float32", "float64"]]),
    line(
        "numcodecs.zfpy|https://codec.zarrs.dev/array_to_bytes/zfpy",
        "reversible",
        r#"{"mode":4,"tolerance":-1}"#,
        Arrays,
        &[&["int32", "int64", "float32", "float64"]],
    ),
    line(
        "numcodecs.pcodec|https://codec.zarrs.dev/array_to_bytes/pcodec",
        "",
        "{}",
        Arrays,
        &[&["int16", "int32", "int64", "uint16", "uint32", "uint64"], FLOATS, TIMES],
    ),
    line("numcodecs.pcodec", "lookback", r#"{"delta_spec":"try_lookback","equal_pages_up_to":20}"#, Arrays, &[&["int64"], FLOATS]),
    line(
        "n5_default",
        "gzip",
        r#"{"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"gzip","configuration":{"level":5}}]}"#,
        Arrays,
        &[INTEGERS, &["float32", "float64"]],
    ),
    line("transpose", "", r#"{"order":[1,0]}"#, Arrays, FIXED),
    line("reshape", "", r#"{"shape":[[0,1]]}"#, Arrays, FIXED),
    line("zarrs.squeeze", "", "{}", Arrays, ONE),
    line(
        "bitround|numcodecs.bitround|https://codec.zarrs.dev/array_to_bytes/bitround",
        "keep-3",
        r#"{"keepbits":3}"#,
        Lossy,
        &[&["bfloat16", "complex_bfloat16"], INTEGERS, FLOATS, COMPLEX, TIMES],
    ),
    line(
        "cast_value",
        "to-float64",
        r#"{"data_type":"float64"}"#,
        Numbers,
        &[&["bfloat16", "int2", "uint2", "uint4"], NARROW, INTEGERS, FLOATS],
    ),
    line(
        "cast_value",
        "to-int16-clamped",
        r#"{"data_type":"int16","rounding":"towards-zero","out_of_range":"clamp"}"#,
        Numbers,
        &[INTEGERS, FLOATS],
    ),
    line("scale_offset", "", r#"{"offset":2,"scale":4}"#, Numbers, &[&["int8", "int16", "int32", "int64", "bfloat16"], NARROW, FLOATS]),
    line("numcodecs.delta", "", r#"{"dtype":"{dtype}"}"#, Numbers, &[INTEGERS, FLOATS, COMPLEX, TIMES]),
    line(
        "numcodecs.astype",
        "to-float64",
        r#"{"encode_dtype":"<f8","decode_dtype":"{dtype}"}"#,
        Numbers,
        &[&["bool"], INTEGERS, FLOATS, COMPLEX, TIMES],
    ),
    line(
        "numcodecs.fixedscaleoffset",
        "",
        r#"{"offset":2,"scale":4,"dtype":"{dtype}","astype":"<i4"}"#,
        Numbers,
        &[&["bool"], INTEGERS, FLOATS, TIMES],
    ),
    line("numcodecs.quantize", "digits-1", r#"{"digits":1,"dtype":"{dtype}"}"#, Numbers, &[FLOATS]),
    line("zstd", "level-1", r#"{"level":1,"checksum":false}"#, Bytes, FIXED),
    line("zstd|numcodecs.zstd", "level-19-checked", r#"{"level":19,"checksum":true}"#, Bytes, SIZES),
    line("zstd", "level--5", r#"{"level":-5,"checksum":false}"#, Bytes, SIZES),
    line("gzip|numcodecs.gzip", "level-5", r#"{"level":5}"#, Bytes, SIZES),
    line("gzip", "level-0", r#"{"level":0}"#, Bytes, ONE),
    line("numcodecs.zlib", "level-1", r#"{"level":1}"#, Bytes, SIZES),
    line("numcodecs.lz4", "", r#"{"acceleration":1}"#, Bytes, SIZES),
    line("numcodecs.bz2", "level-1", r#"{"level":1}"#, Bytes, SIZES),
    line("numcodecs.lzma", "xz", r#"{"preset":0}"#, Bytes, ONE),
    line("numcodecs.lzma", "raw", r#"{"format":3,"filters":[{"id":3,"dist":4},{"id":33,"preset":0}]}"#, Bytes, ONE),
    line("blosc", "lz4-shuffle", r#"{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":{size},"blocksize":0}"#, Bytes, FIXED),
    line("blosc", "lz4hc-shuffle", r#"{"cname":"lz4hc","clevel":5,"shuffle":"shuffle","typesize":{size},"blocksize":0}"#, Bytes, SIZES),
    line("blosc", "zstd-bitshuffle", r#"{"cname":"zstd","clevel":1,"shuffle":"bitshuffle","typesize":{size},"blocksize":0}"#, Bytes, SIZES),
    line("blosc", "blosclz-shuffle", r#"{"cname":"blosclz","clevel":9,"shuffle":"shuffle","typesize":{size},"blocksize":0}"#, Bytes, SIZES),
    line("blosc", "zlib-blocks", r#"{"cname":"zlib","clevel":1,"shuffle":"shuffle","typesize":{size},"blocksize":256}"#, Bytes, SIZES),
    line("blosc", "lz4-blocks", r#"{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":{size},"blocksize":1024}"#, Bytes, SIZES),
    line("blosc", "snappy-noshuffle", r#"{"cname":"snappy","clevel":1,"shuffle":"noshuffle","blocksize":0}"#, Bytes, SIZES),
    line("numcodecs.blosc", "defaults", "{}", Bytes, SIZES),
    line("conditional", "zstd", r#"{"codecs":[{"name":"zstd","configuration":{"level":1,"checksum":false}}]}"#, Bytes, SIZES),
    line("crc32c|numcodecs.crc32c", "", "{}", Bytes, SIZES),
    line("numcodecs.base64", "", "{}", Bytes, ONE),
    line("numcodecs.crc32", "", "{}", Bytes, ONE),
    line("numcodecs.crc32", "at-end", r#"{"location":"end"}"#, Bytes, ONE),
    line("numcodecs.adler32", "", "{}", Bytes, ONE),
    line("numcodecs.fletcher32|https://codec.zarrs.dev/bytes_to_bytes/fletcher32", "", "{}", Bytes, ONE),
    line("numcodecs.jenkins_lookup3", "", r#"{"initval":0,"prefix":null}"#, Bytes, ONE),
    line("numcodecs.shuffle", "", r#"{"elementsize":{size}}"#, Bytes, SIZES),
];

/// The shape of the arrays: odd lengths along both axes. The bytes of one are what codecs of bytes are given.
const SHAPE: &[u64] = &[15, 17];

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in LINES {
        for name in line.names.split('|') {
            for data_type in line.types.iter().copied().flatten() {
                entries.push(entry(line, name, data_type, SHAPE, ""));
            }
            // Chunks of one element without dimensions, which msgpack2 does not take, and of none, which the header of zfpy cannot say.
            if ![Bytes, Nothing].contains(&line.takes) && !["n5_default", "transpose", "reshape", "zarrs.squeeze"].contains(&name) {
                let data_type = line.types.iter().copied().flatten().next_back().copied().unwrap_or("uint8");
                if line.takes != MessagePack {
                    entries.push(entry(line, name, data_type, &[], "/scalar"));
                }
                if !name.ends_with("zfpy") {
                    entries.push(entry(line, name, data_type, &[3, 0], "/empty"));
                }
            }
        }
    }
    entries
}

fn entry(line: &'static Line, name: &'static str, data_type: &'static str, shape: &'static [u64], what: &str) -> Entry {
    let label = if line.label.is_empty() { String::new() } else { format!(".{}", line.label) };
    let place = Place::new("cpu", name, data_type);
    Entry::new(format!("cpu/{name}{label}/{data_type}{what}"), move || subject(line, name, data_type, shape)).at(place)
}

fn subject(line: &Line, name: &str, type_name: &str, shape: &[u64]) -> Result<CodecUnderTest, Unbuilt> {
    let data_type = data_type(type_name)?;
    let size = data_type.fixed_size().unwrap_or(1);
    let configuration = line.configuration.replace("{size}", &size.to_string()).replace("{dtype}", numpy(type_name));
    let codec = codec(&format!(r#"{{"name":"{name}","configuration":{configuration}}}"#))?;
    let shape = if name == "zarrs.squeeze" { &[1, 15, 1] } else { shape };
    let of_arrays = Representation::Array(array(data_type, shape));
    let provider = Arc::new(zarr_codecs_cpu::provider());
    Ok(match line.takes {
        Bytes => {
            let of_bytes = samples(&of_arrays)?;
            let len = of_bytes.first().map_or(0, Sample::byte_len) as u64;
            CodecUnderTest::new(provider, codec, Representation::Bytes(ByteLen::Exact(len))).with_samples(of_bytes)
        }
        Arrays | Nothing => CodecUnderTest::new(provider, codec, of_arrays),
        Takes::Json | MessagePack => {
            let values: &[&[u8]] = match line.takes {
                MessagePack => &[b"\xc0", b"\x2a", b"\xa3foo", b"\x92\x01\xc4\x02\xff\x00", b"\x81\xa1a\xcb\x3f\xf8\0\0\0\0\0\0"],
                _ => &[b"null", b"42", b"\"foo\"", "[1,\"\u{e9}\u{1f600}\\n\"]".as_bytes(), b"{\"a\":1.5,\"b\":{}}", b"-0.0", b"NaN"],
            };
            let count = shape.iter().product::<u64>() as usize;
            let elements = values.iter().cycle().take(count).collect();
            CodecUnderTest::new(provider, codec, of_arrays).with_samples(vec![Sample::Variable(elements)])
        }
        Lossy => CodecUnderTest::new(provider, codec, of_arrays).lossy(),
        Numbers => {
            let count = shape.iter().product::<u64>() as usize;
            let some = numbers(type_name, count).ok_or_else(|| format!("no numbers of {type_name}"))?;
            let zeros = vec![0; some.len()];
            let numbers = vec![Sample::Bytes(some), Sample::Bytes(zeros)];
            CodecUnderTest::new(provider, codec, of_arrays).with_samples(numbers).lossy()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use zarr_codec_api::{CodecProvider as _, Direction, Limits, Stage};

    use super::*;
    use crate::codec::CodecSubject as _;

    /// The names in the list are those of the provider, and each codec takes the data types that its lines name, and no others.
    #[test]
    fn every_codec_and_every_type_that_it_takes_is_here() {
        let provider = zarr_codecs_cpu::provider();
        let listed: BTreeSet<String> = LINES.iter().flat_map(|line| line.names.split('|')).map(str::to_owned).collect();
        let known: BTreeSet<String> = provider.codecs().into_iter().collect();
        assert_eq!(listed, known);
        let types: BTreeSet<&str> = FIXED.iter().copied().flatten().copied().chain(["string", "bytes"]).collect();
        let mut wrong = Vec::new();
        for name in listed {
            let lines: Vec<&Line> = LINES.iter().filter(|line| line.names.split('|').any(|one| one == name)).collect();
            // Those that say of which size and which type their elements are look at bytes; one data type stands for the others there.
            if lines.iter().any(|line| line.takes == Bytes || line.types == ONE) {
                continue;
            }
            let declared: BTreeSet<&str> = lines.iter().flat_map(|line| line.types.iter().copied().flatten().copied()).collect();
            let takes = |data_type: &&str| {
                lines.iter().any(|line| {
                    let subject = subject(&Line { takes: Arrays, ..**line }, &name, data_type, SHAPE).expect("a configuration");
                    let encoded = provider.encoded_representation(subject.codec(), subject.decoded(), &Limits::default());
                    let Ok(Some(encoded)) = encoded else { return false };
                    let stage = Stage { codec: subject.codec().clone(), decoded: subject.decoded().clone(), encoded };
                    provider.bind(&[stage], Direction::Decode).is_ok()
                })
            };
            let taken: BTreeSet<&str> = types.iter().copied().filter(takes).collect();
            // Names that mean the same share the types of all lines of the first one.
            let missing: Vec<_> = taken.difference(&declared).collect();
            let refused: Vec<_> = declared.difference(&taken).collect();
            if !missing.is_empty() || !refused.is_empty() {
                wrong.push(format!("{name}: takes {missing:?} too, refuses {refused:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
