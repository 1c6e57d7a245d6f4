//! A codec of one's own, bound in a chain behind another: a few functions and a name.

use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, BytesToBytes, Chain, CodecError, HostProvider, Limits, Policy, Registry, Scratch,
    SimpleCodec, Source, Target,
};
use zarr_meta::{DataType, Extension, FillValue};

/// Elements as they are in memory.
#[derive(Debug)]
struct AsIs;

impl ArrayToBytes for AsIs {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("as-is")? as u64))
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("as-is", decoded.len(), encoded.len()));
        }
        decoded.copy_from_slice(encoded);
        Ok(())
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend_from_slice(decoded);
        Ok(())
    }
}

/// Runs of a byte: its number, up to 255, and the byte.
#[derive(Debug)]
struct Runs;

impl Runs {
    fn unpack(encoded: &[u8], limit: usize, mut each: impl FnMut(u8, usize)) -> Result<(), CodecError> {
        let mut total = 0usize;
        for pair in encoded.chunks(2) {
            let [count @ 1..=u8::MAX, byte] = *pair else { return Err(CodecError::format("runs", "a run without a byte, or of none")) };
            total += usize::from(count);
            if total > limit {
                return Err(CodecError::limit("runs", limit));
            }
            each(byte, usize::from(count));
        }
        Ok(())
    }
}

impl BytesToBytes for Runs {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        ByteLen::AtMost(decoded.upper().saturating_mul(2))
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (mut at, len) = (0, decoded.len());
        Self::unpack(encoded, len, |byte, count| {
            decoded[at..at + count].fill(byte);
            at += count;
        })?;
        if at == len { Ok(()) } else { Err(CodecError::size("runs", len, at)) }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        Self::unpack(encoded, limit, |byte, count| decoded.extend(std::iter::repeat_n(byte, count)))
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        for run in decoded.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255)) {
            encoded.extend([run.len() as u8, run[0]]);
        }
        Ok(())
    }
}

fn main() -> Result<(), CodecError> {
    let provider = HostProvider::new("mine")
        .with("example.as-is", |_, _| Ok(SimpleCodec::array_to_bytes(AsIs)))
        .with("example.runs", |_, _| Ok(SimpleCodec::bytes_to_bytes(Runs)));
    let registry = Registry::new().with(provider);

    let data_type = DataType::UInt8;
    let chunk = ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: vec![2, 300] };
    let codecs = [Extension::new("example.as-is"), Extension::new("example.runs")];
    let chain = Chain::bind(&codecs, chunk, &registry, &Policy::Host)?;
    print!("{}", chain.explain());

    let elements = [vec![7u8; 300], vec![0; 300]].concat();
    let (mut encoded, mut scratch) = (Vec::new(), Scratch::new());
    chain.encode(Source::Bytes(&elements), &mut encoded, &mut scratch)?;
    println!("{} elements in {} bytes", elements.len(), encoded.len());
    let mut decoded = vec![1; elements.len()];
    chain.decode(&encoded, Target::Exact(&mut decoded), &mut scratch)?;
    assert_eq!(decoded, elements);

    encoded.push(255);
    println!("{}", chain.decode(&encoded, Target::Exact(&mut decoded), &mut scratch).expect_err("a run without a byte"));
    Ok(())
}
