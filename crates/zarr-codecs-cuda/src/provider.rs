use std::sync::Arc;

use zarr_codec_api::{Bound, ByteLen, CodecError, CodecProvider, Direction, Limits, Placement, Representation, Segment, Stage};
use zarr_meta::Extension;

use crate::codecs;
use crate::engine::Engine;
use crate::recipe::Recipe;
use crate::segment::KernelSegment;

/// The codecs whose kernels an [`Engine`] runs.
#[derive(Debug, Clone)]
pub struct KernelProvider {
    engine: Arc<dyn Engine>,
}

impl KernelProvider {
    /// The codecs, run by `engine`.
    pub fn new(engine: impl Engine) -> Self {
        Self { engine: Arc::new(engine) }
    }
}

impl CodecProvider for KernelProvider {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn placement(&self) -> Placement {
        Placement::Device(self.engine.device())
    }

    fn codecs(&self) -> Vec<String> {
        codecs::NAMES.iter().map(|name| (*name).to_owned()).collect()
    }

    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        _: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        let name = codec.name.as_str();
        match (name, decoded) {
            ("bytes" | "endian", Representation::Array(array)) => {
                Ok(array.byte_len()?.map(|len| Representation::Bytes(ByteLen::Exact(len as u64))))
            }
            (
                "zstd" | "numcodecs.zstd" | "blosc" | "numcodecs.blosc" | "gzip" | "numcodecs.gzip" | "numcodecs.zlib" | "numcodecs.lz4",
                Representation::Bytes(len),
            ) => Ok(Some(Representation::Bytes(len.compressed()))),
            ("crc32c" | "numcodecs.crc32c", Representation::Bytes(len)) => Ok(Some(Representation::Bytes(len.plus(4)))),
            ("numcodecs.shuffle", Representation::Bytes(len)) => Ok(Some(Representation::Bytes(*len))),
            (
                "bytes" | "endian" | "zstd" | "numcodecs.zstd" | "blosc" | "numcodecs.blosc" | "gzip" | "numcodecs.gzip" | "numcodecs.zlib"
                | "numcodecs.lz4" | "crc32c" | "numcodecs.crc32c" | "numcodecs.shuffle",
                _,
            ) => Err(CodecError::metadata(name, "stands on the wrong side of the array to bytes codec")),
            // What becomes of data types and fill values the host's implementation says.
            _ => Ok(None),
        }
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let recipe = Recipe::take(stages, direction);
        let consumed = recipe.names.len();
        if consumed == 0 || cfg!(target_endian = "big") {
            return Ok(None);
        }
        let segment = KernelSegment::new(Arc::clone(&self.engine), recipe, direction);
        Ok(Some(Bound { consumed, segment: Segment::Device(Arc::new(segment)) }))
    }
}
