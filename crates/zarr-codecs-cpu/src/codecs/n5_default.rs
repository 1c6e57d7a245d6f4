//! `n5_default`: the blocks of N5, in its default mode.
//!
//! * Specification: [zarr-extensions, n5_default](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default), which
//!   quotes the block format of [N5 4.0.0](https://github.com/saalfeldlab/n5). An array→bytes codec.
//! * Configuration: `codecs`: a `transpose` that reverses all axes, `bytes` in big endian order, and at most one bytes→bytes codec.
//! * Data types: integers of 8 to 64 bits, `float32` and `float64`.
//!
//! A block is a header, mode (0) and number of axes in 16 bits each, the length of each axis in 32 bits, all big endian, and what the codecs make
//! of an array of that shape. Blocks at the edge of an array may be cut short: elements that a block lacks are the fill value. A block that is
//! longer than the chunk along an axis is an error, so that a header decides on no more memory than the metadata. Chunks are written whole, as
//! tensorstore and zarr-python write them.

use serde::Deserialize;
use zarr_buffer_api::{CopyAxis, Offsets, copy_axes};
use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, Chain, CodecError, HostProvider, Limits, Policy, Registry, Scratch, SimpleCodec, Source,
    Target,
};
use zarr_meta::{DataType, Extension};

use crate::{config, filter};

const NAME: &str = "n5_default";
/// Mode and number of axes.
const FIXED_HEADER: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    codecs: Vec<Extension>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let array = filter::array(codec, decoded)?;
        let supported = matches!(
            array.data_type,
            DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Float32
                | DataType::Float64
        );
        if !supported {
            return Err(filter::unsupported(codec, &array.data_type));
        }
        check(&config.codecs, array)?;
        let whole = bind(&config.codecs, array, &array.shape)?;
        Ok(SimpleCodec::array_to_bytes(N5Default { codecs: config.codecs, whole }))
    })
}

/// Refuses chains that are not those of N5.
fn check(codecs: &[Extension], array: &ArrayRepresentation) -> Result<(), CodecError> {
    #[derive(Deserialize)]
    struct Transpose {
        order: Vec<usize>,
    }
    #[derive(Deserialize)]
    struct Bytes {
        endian: Option<String>,
    }
    let wrong = |message: String| CodecError::metadata(NAME, message);
    let [transpose, bytes, rest @ ..] = codecs else {
        return Err(wrong("codecs must begin with transpose and bytes".into()));
    };
    if transpose.name != "transpose" || bytes.name != "bytes" || rest.len() > 1 {
        let names: Vec<&str> = codecs.iter().map(|codec| codec.name.as_str()).collect();
        return Err(wrong(format!("codecs must be transpose, bytes and at most one more, not {}", names.join(", "))));
    }
    let order = config::read::<Transpose>(transpose)?.order;
    if !order.iter().copied().eq((0..array.shape.len()).rev()) {
        return Err(wrong(format!("transpose must reverse the {} axes, not order them {order:?}", array.shape.len())));
    }
    let endian = bytes.configuration.as_ref().map_or(Ok(None), |_| config::read::<Bytes>(bytes).map(|bytes| bytes.endian))?;
    match endian.as_deref() {
        Some("big") => Ok(()),
        None if array.data_type.fixed_size() == Some(1) => Ok(()),
        _ => Err(wrong("bytes must be big endian".into())),
    }
}

/// The codecs, over a block of `shape`.
fn bind(codecs: &[Extension], chunk: &ArrayRepresentation, shape: &[u64]) -> Result<Chain, CodecError> {
    let block = ArrayRepresentation { shape: shape.to_vec(), ..chunk.clone() };
    Chain::bind(codecs, block, &Registry::new().with(crate::provider()), &Policy::Host)
}

#[derive(Debug)]
struct N5Default {
    codecs: Vec<Extension>,
    /// The codecs, over a block that is not cut short.
    whole: Chain,
}

impl N5Default {
    /// The shape that the header claims, no larger than `most` along any axis, and what is behind the header.
    fn header<'a>(encoded: &'a [u8], most: &[u64]) -> Result<(Vec<u64>, &'a [u8]), CodecError> {
        let short = || CodecError::format(NAME, format!("{} bytes do not hold the header of a block", encoded.len()));
        let (fixed, rest) = encoded.split_first_chunk::<FIXED_HEADER>().ok_or_else(short)?;
        let [mode_high, mode_low, rank_high, rank_low] = *fixed;
        let (mode, rank) = (u16::from_be_bytes([mode_high, mode_low]), u16::from_be_bytes([rank_high, rank_low]));
        if mode != 0 {
            return Err(CodecError::format(NAME, format!("the block is of mode {mode}, not the default one")));
        }
        if usize::from(rank) != most.len() {
            return Err(CodecError::format(NAME, format!("the block has {rank} axes, the chunk {}", most.len())).at(2));
        }
        let (lens, rest) = rest.split_at_checked(most.len().saturating_mul(4)).ok_or_else(short)?;
        let (lens, _) = lens.as_chunks::<4>();
        let shape: Vec<u64> = lens.iter().map(|len| u32::from_be_bytes(*len).into()).collect();
        if shape.iter().zip(most).any(|(len, most)| len > most) {
            return Err(CodecError::format(NAME, format!("a block of shape {shape:?} in a chunk of shape {most:?}")).at(4));
        }
        Ok((shape, rest))
    }
}

impl ArrayToBytes for N5Default {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        let header = FIXED_HEADER.saturating_add(decoded.shape.len().saturating_mul(4));
        let body = self.whole.encoded().byte_len()?;
        // A block that is cut short is smaller, but its compressed bytes need not be.
        Ok(ByteLen::AtMost(body.map_or(0, ByteLen::upper).saturating_add(header as u64)))
    }

    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (shape, body) = Self::header(encoded, &representation.shape)?;
        let mut scratch = Scratch::new();
        if shape == representation.shape {
            return self.whole.decode(body, Target::Exact(decoded), &mut scratch);
        }
        let chain = bind(&self.codecs, representation, &shape)?;
        let item_size = representation.data_type.fixed_size().unwrap_or(1);
        let mut block = scratch.try_take_len(chain.representation().fixed_len(NAME)?, NAME)?;
        chain.decode(body, Target::Exact(&mut block), &mut scratch)?;
        decoded.chunks_exact_mut(item_size).for_each(|element| element.copy_from_slice(representation.fill_value.as_bytes()));
        let (mut outer, mut inner) = (item_size as isize, item_size as isize);
        let mut axes = Vec::with_capacity(shape.len());
        for (&len, &chunk) in shape.iter().zip(&representation.shape).rev() {
            let wrong = || CodecError::limit(NAME, usize::MAX);
            let (len, chunk) = (usize::try_from(len).map_err(|_| wrong())?, isize::try_from(chunk).map_err(|_| wrong())?);
            axes.push(CopyAxis { len, destination: Offsets::Stride(outer), source: Offsets::Stride(inner) });
            (outer, inner) = (outer.saturating_mul(chunk), inner.saturating_mul(len as isize));
        }
        axes.reverse();
        Ok(copy_axes(decoded, 0, &block, 0, &axes, item_size)?)
    }

    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let too_large = || CodecError::parameter(NAME, format!("a chunk of shape {:?} is too large for a block", representation.shape));
        encoded.extend([0, 0]);
        encoded.extend(u16::try_from(representation.shape.len()).map_err(|_| too_large())?.to_be_bytes());
        for &len in &representation.shape {
            encoded.extend(u32::try_from(len).map_err(|_| too_large())?.to_be_bytes());
        }
        let mut body = Vec::new();
        self.whole.encode(Source::Bytes(decoded), &mut body, &mut Scratch::new())?;
        encoded.extend(body);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zarr_codec_api::CodecErrorKind;
    use zarr_meta::FillValue;

    use crate::testing::ArrayCodec;

    use super::*;

    const PLAIN: &str =
        r#"{"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}}]}"#;

    fn codec(configuration: &str) -> Result<ArrayCodec, CodecError> {
        let fill = FillValue::from_bytes(9i16.to_ne_bytes(), &DataType::Int16).unwrap();
        ArrayCodec::with_fill(NAME, configuration, &DataType::Int16, &[2, 3], fill)
    }

    fn native(values: &[i16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    /// The block of N5's own example of the format: the first axis runs fastest, numbers are big endian.
    #[test]
    fn blocks_are_those_of_n5() {
        let codec = codec(PLAIN).unwrap();
        let block = [0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6];
        let decoded = native(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(codec.encode(&decoded).unwrap(), block);
        assert_eq!(codec.decode(&block).unwrap(), decoded);
    }

    #[test]
    fn short_blocks_are_filled_up() {
        let block = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 2];
        assert_eq!(codec(PLAIN).unwrap().decode(&block).unwrap(), native(&[1, 2, 9, 9, 9, 9]));
        let empty = [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(codec(PLAIN).unwrap().decode(&empty).unwrap(), native(&[9; 6]));
    }

    #[test]
    fn bad_blocks_are_refused() {
        let codec = codec(PLAIN).unwrap();
        let good = codec.encode(&native(&[1, 2, 3, 4, 5, 6])).unwrap();
        for (at, byte) in [(1, 1), (1, 2), (3, 1), (7, 3), (8, 255), (11, 2)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(codec.decode(&bad).unwrap_err().kind(), CodecErrorKind::Format, "byte {at}");
        }
        (0..good.len()).for_each(|len| assert!(codec.decode(&good[..len]).is_err()));
    }

    #[test]
    fn other_chains_are_refused() {
        let order = |order: &str, endian: &str| {
            format!(
                r#"{{"codecs":[{{"name":"transpose","configuration":{{"order":{order}}}}},{{"name":"bytes","configuration":{{"endian":"{endian}"}}}}]}}"#
            )
        };
        for bad in [order("[0,1]", "big"), order("[1,0]", "little"), r#"{"codecs":["bytes"]}"#.into(), r#"{"codecs":[]}"#.into()] {
            assert_eq!(codec(&bad).err().unwrap().kind(), CodecErrorKind::Metadata, "{bad}");
        }
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn compressed_blocks() {
        let configuration = PLAIN.replace("\"big\"}}]", "\"big\"}},{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]");
        let codec = codec(&configuration).unwrap();
        let decoded = native(&[1, -2, 3, 4, 5, 6]);
        assert_eq!(codec.decode(&codec.encode(&decoded).unwrap()).unwrap(), decoded);
    }
}
