use std::sync::Arc;

use zarr_codec_api::{Bound, ByteLen, CodecError, CodecProvider, Direction, Limits, Placement, Representation, Segment, Stage};
use zarr_meta::Extension;

use crate::codecs::zstd;
use crate::engine::Engine;
use crate::segment::{KernelSegment, Step};

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

    /// What the device does for one stage, if it can.
    fn step(stage: &Stage) -> Result<Option<Step>, CodecError> {
        let name = stage.codec.name.as_str();
        match name {
            "zstd" | "numcodecs.zstd" => {
                let len = stage.decoded.byte_len()?.map_or(u64::MAX, ByteLen::upper);
                Ok(zstd::takes(len).then_some(Step::Zstd { decoded: len }))
            }
            "bytes" => {
                let Some(array) = stage.decoded.as_array() else {
                    return Err(CodecError::metadata(name, "takes an array, and was given bytes"));
                };
                let big = stage.codec.to_json().to_text().contains("\"endian\":\"big\"");
                let plain = array.byte_len()?.is_some() && !big && cfg!(target_endian = "little");
                Ok(plain.then_some(Step::Bytes))
            }
            _ => Ok(None),
        }
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
        ["bytes", "zstd"].map(String::from).to_vec()
    }

    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        _: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        match (codec.name.as_str(), decoded) {
            ("bytes", Representation::Array(array)) => Ok(array.byte_len()?.map(|len| Representation::Bytes(ByteLen::Exact(len as u64)))),
            ("zstd", Representation::Bytes(len)) => Ok(Some(Representation::Bytes(len.compressed()))),
            ("bytes" | "zstd", _) => Err(CodecError::metadata(&codec.name, "stands on the wrong side of the array to bytes codec")),
            _ => Ok(None),
        }
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        if direction == Direction::Encode {
            return Ok(None);
        }
        let mut steps = Vec::new();
        for stage in stages.iter().rev() {
            let Some(step) = Self::step(stage)? else { break };
            steps.push(step);
        }
        if steps.is_empty() {
            return Ok(None);
        }
        let consumed = steps.len();
        let segment = KernelSegment::new(Arc::clone(&self.engine), steps);
        Ok(Some(Bound { consumed, segment: Segment::Device(Arc::new(segment)) }))
    }
}
