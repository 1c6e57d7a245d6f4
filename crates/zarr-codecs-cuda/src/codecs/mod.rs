//! The codecs, one module each, as in zarr-codecs-cpu, which defines what they do; and the passes over elements that they share.

pub(crate) mod astype;
pub(crate) mod bitround;
pub(crate) mod blosc;
pub(crate) mod bytes;
pub(crate) mod cast_value;
pub(crate) mod crc32c;
pub(crate) mod deflate;
pub(crate) mod elements;
pub(crate) mod fixedscaleoffset;
pub(crate) mod lz4;
pub(crate) mod quantize;
pub(crate) mod scale_offset;
pub(crate) mod scatter;
pub(crate) mod shuffle;
pub(crate) mod spans;
pub(crate) mod transpose;
pub(crate) mod zstd;
pub(crate) mod zstd_encode;

use zarr_codec_api::{ByteLen, Direction, Stage};

use crate::recipe::{Compression, Step};

/// The names of all codecs.
pub(crate) const NAMES: &[&str] = &[
    "bytes",
    "endian",
    "zstd",
    "numcodecs.zstd",
    "blosc",
    "numcodecs.blosc",
    "gzip",
    "numcodecs.gzip",
    "numcodecs.zlib",
    "numcodecs.lz4",
    "crc32c",
    "numcodecs.crc32c",
    "numcodecs.shuffle",
    "transpose",
    "bitround",
    "numcodecs.bitround",
    "scale_offset",
    "numcodecs.fixedscaleoffset",
    "cast_value",
    "numcodecs.astype",
    "numcodecs.quantize",
];

/// Chunks of more bytes are left to the host: kernels count in 32 bits.
const MAX_BYTES: u64 = 1 << 31;

/// What the device does for one stage. `None` where it cannot, and where something is wrong with the configuration, which the host then says.
pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let len = |side: &zarr_codec_api::Representation| side.byte_len().ok().flatten().map(ByteLen::upper);
    let name = stage.codec.name.as_str();
    if !matches!(name, "zstd" | "numcodecs.zstd") && len(&stage.decoded)?.max(len(&stage.encoded)?) > MAX_BYTES {
        return None;
    }
    match name {
        "bytes" | "endian" => bytes::step(stage),
        "zstd" | "numcodecs.zstd" => {
            let decoded = len(&stage.decoded).filter(|&len| zstd::takes(len))?;
            let checksum = match direction {
                Direction::Decode => false,
                Direction::Encode => zstd_encode::checksum(stage)?,
            };
            Some(Step::Compressed { compression: Compression::Zstd { checksum }, decoded })
        }
        "blosc" | "numcodecs.blosc" => match direction {
            Direction::Decode => {
                let compression = blosc::compression(stage)?;
                let decoded = len(&stage.decoded).filter(|&len| compression != Compression::BloscZstd || zstd::takes(len))?;
                Some(Step::Compressed { compression, decoded })
            }
            Direction::Encode => None,
        },
        "gzip" | "numcodecs.gzip" | "numcodecs.zlib" => match direction {
            Direction::Decode => Some(Step::Compressed { compression: deflate::compression(stage)?, decoded: len(&stage.decoded)? }),
            Direction::Encode => None,
        },
        "numcodecs.lz4" => match direction {
            Direction::Decode => Some(Step::Compressed { compression: lz4::compression(stage)?, decoded: len(&stage.decoded)? }),
            Direction::Encode => None,
        },
        "crc32c" | "numcodecs.crc32c" => crc32c::step(stage),
        "numcodecs.shuffle" => shuffle::step(stage),
        "transpose" => transpose::step(stage),
        "bitround" | "numcodecs.bitround" => bitround::step(stage, direction),
        "scale_offset" => scale_offset::step(stage, direction),
        "numcodecs.fixedscaleoffset" => fixedscaleoffset::step(stage, direction),
        "cast_value" => cast_value::step(stage, direction),
        "numcodecs.astype" => astype::step(stage, direction),
        "numcodecs.quantize" => quantize::step(stage, direction),
        _ => None,
    }
}

/// The numbers of a codec of numcodecs: those that it encodes, by its `dtype` or the array's data type, and those that it encodes to.
pub(crate) fn numpy_numbers(stage: &Stage, dtype: Option<&str>) -> Option<(u32, u32)> {
    let (decoded, encoded) = (stage.decoded.as_array()?, stage.encoded.as_array()?);
    let decoded = match dtype {
        None => crate::number::numpy_number_of(&decoded.data_type),
        Some(text) => {
            crate::number::parse_numpy(text).filter(|&number| decoded.data_type.fixed_size() == Some(crate::number::size_of_number(number)))
        }
    };
    Some((decoded?, crate::number::numpy_number_of(&encoded.data_type)?))
}
