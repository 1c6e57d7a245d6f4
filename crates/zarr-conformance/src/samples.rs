//! Chunks to try codecs on.

mod special;
mod types;

use zarr_codec_api::{ByteLen, CodecError, Representation, VariableData};
use zarr_meta::DataType;

pub use types::{data_types, representations, shapes};

/// A decoded chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sample {
    /// Bytes, or elements of fixed length in C order and native byte order.
    Bytes(Vec<u8>),
    /// Elements of variable length.
    Variable(VariableData),
}

impl Sample {
    /// Bytes of all elements.
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Variable(elements) => elements.byte_len(),
        }
    }
}

/// Numbers that look random and are the same everywhere (xorshift).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
}

/// Chunks of `representation`: all zeros, a ramp, repeats, noise (which does not compress), of elements the values that are easily lost (ends of
/// integers, subnormals, infinities, -0.0, NaN with payloads), and for bytes of no certain number several lengths. Every element is one that
/// its data type permits.
///
/// # Errors
/// When the representation does not fit the address space.
pub fn samples(representation: &Representation) -> Result<Vec<Sample>, CodecError> {
    match representation {
        Representation::Bytes(ByteLen::Exact(len)) => Ok(bytes(usize::try_from(*len).unwrap_or(usize::MAX), 1)),
        Representation::Bytes(ByteLen::AtMost(len)) => {
            let len = usize::try_from(*len).unwrap_or(usize::MAX);
            Ok([0, 1, len / 2, len].into_iter().flat_map(|len| bytes(len, 1)).collect())
        }
        Representation::Array(array) => {
            let elements = array.elements()?;
            let Some(len) = array.byte_len()? else {
                return Ok(variable(&array.data_type, elements));
            };
            let mut chunks = bytes(len, array.data_type.fixed_size().unwrap_or(1));
            chunks.extend(special::fixed(&array.data_type, len).map(Sample::Bytes));
            for chunk in &mut chunks {
                if let Sample::Bytes(bytes) = chunk {
                    permit(&array.data_type, bytes);
                }
            }
            Ok(chunks)
        }
    }
}

fn bytes(len: usize, item_size: usize) -> Vec<Sample> {
    let item_size = item_size.max(1);
    // Neighbouring elements differ little, as measurements do.
    let ramp = (0..len).map(|i| if i % item_size == 0 { (i / item_size) as u8 } else { ((i / item_size) >> 8) as u8 }).collect();
    let repeats = b"zarr chunk ".iter().copied().cycle().take(len).collect();
    [vec![0; len], ramp, repeats, Random::new(7).bytes(len)].into_iter().map(Sample::Bytes).collect()
}

/// Makes each element one that the data type permits.
fn permit(data_type: &DataType, bytes: &mut [u8]) {
    let mask = match data_type {
        DataType::Bool => 1,
        DataType::UInt2 => 3,
        DataType::UInt4 | DataType::Float4E2M1FN | DataType::ComplexFloat4E2M1FN => 15,
        DataType::Float6E2M3FN | DataType::Float6E3M2FN | DataType::ComplexFloat6E2M3FN | DataType::ComplexFloat6E3M2FN => 63,
        DataType::Int2 => return bytes.iter_mut().for_each(|byte| *byte = ((*byte << 6) as i8 >> 6) as u8),
        DataType::Int4 => return bytes.iter_mut().for_each(|byte| *byte = ((*byte << 4) as i8 >> 4) as u8),
        // Code points of ASCII.
        DataType::FixedLengthUtf32 { .. } => {
            return bytes.chunks_exact_mut(4).for_each(|unit| {
                let point = u32::from(unit[0] & 0x7F);
                unit.copy_from_slice(&point.to_ne_bytes());
            });
        }
        DataType::Struct(fields) => {
            let size = data_type.fixed_size().unwrap_or(1).max(1);
            for element in bytes.chunks_exact_mut(size) {
                let mut rest = element;
                for field in fields {
                    let (this, behind) = rest.split_at_mut(field.data_type.fixed_size().unwrap_or(0).min(rest.len()));
                    permit(&field.data_type, this);
                    rest = behind;
                }
            }
            return;
        }
        DataType::SubArray { element, .. } => return permit(element, bytes),
        _ => return,
    };
    bytes.iter_mut().for_each(|byte| *byte &= mask);
}

fn variable(data_type: &DataType, elements: usize) -> Vec<Sample> {
    let mut random = Random::new(9);
    let text = (0..elements).map(|_| "höhe über Null, 高さ".chars().take(random.below(18)).collect::<String>()).collect();
    let same = (0..elements).map(|_| "same").collect();
    let empty = (0..elements).map(|_| "").collect();
    vec![Sample::Variable(empty), Sample::Variable(same), Sample::Variable(text), special::variable(data_type, elements)]
}
