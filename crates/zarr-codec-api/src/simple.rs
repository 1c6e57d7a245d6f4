use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use zarr_meta::Extension;

use self::segment::{SimpleSegment, Step};
use crate::{
    ArrayRepresentation, Blocks, Bound, ByteLen, CodecError, CodecProvider, Direction, Limits, Pieces, Placement, Representation, Segment,
    Stage, VariableData,
};

mod segment;

/// A bytes→bytes codec on the host, one chunk at a time.
pub trait BytesToBytes: fmt::Debug + Send + Sync + 'static {
    /// How many bytes the codec makes of `decoded`. Compressors answer [`ByteLen::compressed`].
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen;

    /// Decodes to exactly `decoded.len()` bytes.
    ///
    /// # Errors
    /// When the bytes are not what the format allows, or decode to any other size.
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError>;

    /// Decodes to a size not known before: appends to the empty `decoded`, at most `limit` bytes. A size claimed by a header is not
    /// allocated before the bytes are there.
    ///
    /// # Errors
    /// When the bytes are not what the format allows, or decode to more than `limit`.
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError>;

    /// Appends the encoded bytes to the empty `encoded`.
    ///
    /// # Errors
    /// When the codec cannot take this much.
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError>;

    /// For checksums: the part of `encoded` that is the decoded bytes as they are, after checking it. `None` for codecs that transform.
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        let _ = encoded;
        None
    }

    /// For codecs that encode in blocks: those of a chunk of `decoded_len` bytes. `None` where there is but one, of which there is no [front](Blocks::decode_front), or something is
    /// wrong with them, which [`BytesToBytes::decode`] then tells.
    fn blocks<'a>(&self, encoded: &'a [u8], decoded_len: usize) -> Option<Box<dyn Blocks + 'a>> {
        let _ = (encoded, decoded_len);
        None
    }

    /// For codecs that decode from the start to the end: a decoder that takes a chunk of `decoded_len` bytes in pieces, for who wants the
    /// first `wanted` of them, and has no more room than for these. What it accepts of a whole chunk, that does, too, and, of bytes that keep to their format,
    /// decodes to the same.
    fn pieces(&self, decoded_len: usize, wanted: usize) -> Option<Box<dyn Pieces>> {
        let _ = (decoded_len, wanted);
        None
    }
}

/// An array→bytes codec on the host, one chunk at a time.
pub trait ArrayToBytes: fmt::Debug + Send + Sync + 'static {
    /// How many bytes the codec makes of a chunk; the place to refuse data types.
    ///
    /// # Errors
    /// Unsupported, when the codec does not take such data.
    fn encoded_len(&self, decoded: &ArrayRepresentation, limits: &Limits) -> Result<ByteLen, CodecError>;

    /// Decodes into C order, native byte order, of exactly `decoded.len()` bytes.
    ///
    /// # Errors
    /// When the bytes are not what the format allows, or not of the right size.
    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError>;

    /// Appends the encoded bytes to the empty `encoded`.
    ///
    /// # Errors
    /// When a value cannot be encoded.
    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Whether encoded and decoded bytes are the same for such data.
    fn is_verbatim(&self, representation: &ArrayRepresentation) -> bool {
        let _ = representation;
        false
    }

    /// For codecs that only rearrange within each element: makes decoded bytes of encoded ones in place. `false` when the codec cannot.
    fn decode_in_place(&self, representation: &ArrayRepresentation, bytes: &mut [u8]) -> bool {
        let _ = (representation, bytes);
        false
    }

    /// Whether [`ArrayToBytes::decode_in_place`] works for such data.
    fn is_in_place(&self, representation: &ArrayRepresentation) -> bool {
        let _ = representation;
        false
    }

    /// Decodes elements of variable length: appends to the empty `decoded`, together at most `limit` bytes.
    ///
    /// # Errors
    /// When the bytes are not what the format allows, or the number of elements is wrong; unsupported by default.
    fn decode_variable(
        &self,
        representation: &ArrayRepresentation,
        encoded: &[u8],
        decoded: &mut VariableData,
        limit: usize,
    ) -> Result<(), CodecError> {
        let _ = (encoded, decoded, limit);
        Err(CodecError::unsupported(
            "array to bytes",
            format!("elements of variable length ({}) are not supported", representation.data_type.name()),
        ))
    }

    /// Encodes elements of variable length.
    ///
    /// # Errors
    /// When a value cannot be encoded; unsupported by default.
    fn encode_variable(
        &self,
        representation: &ArrayRepresentation,
        decoded: &VariableData,
        encoded: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let _ = (decoded, encoded);
        Err(CodecError::unsupported(
            "array to bytes",
            format!("elements of variable length ({}) are not supported", representation.data_type.name()),
        ))
    }
}

/// An array→array codec on the host, one chunk at a time, for elements of fixed length.
pub trait ArrayToArray: fmt::Debug + Send + Sync + 'static {
    /// What the codec makes of a chunk, fill value included; the place to refuse data types.
    ///
    /// # Errors
    /// Unsupported, when the codec does not take such data; metadata, when the configuration does not fit it.
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError>;

    /// Decodes one chunk. `representation` is the decoded side; both slices have exactly the lengths that the representations say.
    ///
    /// # Errors
    /// When a value cannot be decoded.
    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError>;

    /// Encodes one chunk. `representation` is the decoded side; both slices have exactly the lengths that the representations say.
    ///
    /// # Errors
    /// When a value cannot be encoded.
    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError>;

    /// Whether each element depends only on itself and the shape stays, so that any part of a chunk can be decoded on its own.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Whether decoding changes nothing (bitround).
    fn decodes_verbatim(&self) -> bool {
        false
    }
}

/// One configured codec, of any of the three kinds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SimpleCodec {
    /// Array to array.
    ArrayToArray(Arc<dyn ArrayToArray>),
    /// Array to bytes.
    ArrayToBytes(Arc<dyn ArrayToBytes>),
    /// Bytes to bytes.
    BytesToBytes(Arc<dyn BytesToBytes>),
}

impl SimpleCodec {
    /// Wraps an array→array codec.
    pub fn array_to_array(codec: impl ArrayToArray) -> Self {
        Self::ArrayToArray(Arc::new(codec))
    }

    /// Wraps an array→bytes codec.
    pub fn array_to_bytes(codec: impl ArrayToBytes) -> Self {
        Self::ArrayToBytes(Arc::new(codec))
    }

    /// Wraps a bytes→bytes codec.
    pub fn bytes_to_bytes(codec: impl BytesToBytes) -> Self {
        Self::BytesToBytes(Arc::new(codec))
    }

    /// What the codec makes of `decoded`.
    ///
    /// # Errors
    /// When the codec does not take such data.
    pub fn encoded_representation(&self, name: &str, decoded: &Representation, limits: &Limits) -> Result<Representation, CodecError> {
        match (self, decoded) {
            (Self::ArrayToArray(codec), Representation::Array(array)) => codec.encoded_representation(array).map(Representation::Array),
            (Self::ArrayToBytes(codec), Representation::Array(array)) => codec.encoded_len(array, limits).map(Representation::Bytes),
            (Self::BytesToBytes(codec), Representation::Bytes(len)) => Ok(Representation::Bytes(codec.encoded_len(*len))),
            (Self::BytesToBytes(_), Representation::Array(_)) => {
                Err(CodecError::metadata(name, "a bytes to bytes codec stands before the array to bytes codec"))
            }
            (_, Representation::Bytes(_)) => {
                Err(CodecError::metadata(name, "a codec that takes an array stands behind the array to bytes codec"))
            }
        }
    }
}

/// Makes a codec of its configuration. The representation is what it is to encode, for codecs that depend on it.
type Factory = Box<dyn Fn(&Extension, &Representation) -> Result<SimpleCodec, CodecError> + Send + Sync>;

/// A provider of per-chunk codecs on the host: give it a name and a function for each codec.
pub struct HostProvider {
    name: String,
    factories: BTreeMap<String, Arc<Factory>>,
}

impl HostProvider {
    /// A provider with no codecs, to be known by `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), factories: BTreeMap::new() }
    }

    /// Adds a codec: `make` turns the metadata's configuration into it.
    #[must_use]
    pub fn with(
        self,
        codec: &str,
        make: impl Fn(&Extension, &Representation) -> Result<SimpleCodec, CodecError> + Send + Sync + 'static,
    ) -> Self {
        self.with_names(&[codec], make)
    }

    /// Adds a codec under several names.
    #[must_use]
    pub fn with_names(
        mut self,
        codecs: &[&str],
        make: impl Fn(&Extension, &Representation) -> Result<SimpleCodec, CodecError> + Send + Sync + 'static,
    ) -> Self {
        let factory: Arc<Factory> = Arc::new(Box::new(make));
        for codec in codecs {
            self.factories.insert((*codec).to_owned(), Arc::clone(&factory));
        }
        self
    }

    /// The codec that the metadata asks for; `None` when its name is not known here.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn codec(&self, codec: &Extension, decoded: &Representation) -> Result<Option<SimpleCodec>, CodecError> {
        self.factories.get(&codec.name).map(|make| make(codec, decoded)).transpose()
    }
}

impl fmt::Debug for HostProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostProvider").field("name", &self.name).field("codecs", &self.factories.keys()).finish()
    }
}

impl CodecProvider for HostProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        Placement::Host
    }

    fn codecs(&self) -> Vec<String> {
        self.factories.keys().cloned().collect()
    }

    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        self.codec(codec, decoded)?.map(|simple| simple.encoded_representation(&codec.name, decoded, limits)).transpose()
    }

    fn is_elementwise(&self, codec: &Extension, decoded: &Representation) -> bool {
        matches!(self.codec(codec, decoded), Ok(Some(SimpleCodec::ArrayToArray(codec))) if codec.is_elementwise())
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let mut steps = Vec::new();
        let mut take = |stage: &Stage| -> Result<bool, CodecError> {
            let Some(codec) = self.codec(&stage.codec, &stage.decoded)? else {
                return Ok(false);
            };
            steps.push(Step::new(stage, codec)?);
            Ok(true)
        };
        match direction {
            Direction::Decode => {
                for stage in stages.iter().rev() {
                    if !take(stage)? {
                        break;
                    }
                }
                steps.reverse();
            }
            Direction::Encode => {
                for stage in stages {
                    if !take(stage)? {
                        break;
                    }
                }
            }
        }
        let consumed = steps.len();
        Ok((consumed > 0).then(|| Bound { consumed, segment: Segment::Host(Arc::new(SimpleSegment::new(steps))) }))
    }
}
