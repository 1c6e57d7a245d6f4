use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Event, Layout};
use zarr_codec_api::{
    Bound, CodecError, CodecErrorKind, CodecProvider, Completion, DeviceContext, DeviceSegment, DeviceSlot, Direction, Limits, Placement,
    Representation, Segment, Stage, Ticket,
};
use zarr_meta::Extension;

use super::device::{World, own_queue};
use super::memory::{Gathered, Operand, Side};
use super::tracker::Touch;

/// Bytes of a slot's status on the device.
const STATUS_SIZE: usize = 4;

/// The native codecs of a toy device: `zstd`, and `bytes` where it is the memory order of the host. It decodes both, in any run, and encodes
/// `bytes` alone.
#[derive(Debug, Clone)]
pub struct ToyProvider {
    world: Arc<World>,
    codecs: Vec<String>,
    fuses: bool,
    scatters: bool,
}

impl ToyProvider {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, codecs: vec!["bytes".into(), "zstd".into()], fuses: true, scatters: true }
    }

    /// Forgets a codec.
    #[must_use]
    pub fn without(mut self, codec: &str) -> Self {
        self.codecs.retain(|known| known != codec);
        self
    }

    /// Takes one stage at a time, so that bytes lie on the device between two segments.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fuses = false;
        self
    }

    /// Decodes to contiguous destinations only.
    #[must_use]
    pub fn contiguous_only(mut self) -> Self {
        self.scatters = false;
        self
    }

    /// What the device does for one stage, if it can.
    fn step(&self, stage: &Stage) -> Result<Option<Step>, CodecError> {
        let name = &stage.codec.name;
        if !self.codecs.contains(name) {
            return Ok(None);
        }
        match name.as_str() {
            "zstd" => Ok(Some(Step::Zstd)),
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

/// One codec, as the kernel runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Bytes,
    Zstd,
}

impl CodecProvider for ToyProvider {
    fn name(&self) -> &str {
        if self.world.unified { "unified" } else { "opaque" }
    }

    fn placement(&self) -> Placement {
        Placement::Device(self.world.id)
    }

    fn codecs(&self) -> Vec<String> {
        self.codecs.clone()
    }

    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        _: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        if !self.codecs.contains(&codec.name) {
            return Ok(None);
        }
        match (codec.name.as_str(), decoded) {
            ("bytes", Representation::Array(array)) => {
                Ok(array.byte_len()?.map(|len| Representation::Bytes(zarr_codec_api::ByteLen::Exact(len as u64))))
            }
            ("zstd", Representation::Bytes(len)) => Ok(Some(Representation::Bytes(len.compressed()))),
            _ => Err(CodecError::metadata(&codec.name, "stands on the wrong side of the array to bytes codec")),
        }
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let most = if self.fuses { stages.len() } else { 1 };
        let mut steps = Vec::new();
        match direction {
            Direction::Decode => {
                for stage in stages.iter().rev().take(most) {
                    let Some(step) = self.step(stage)? else { break };
                    let len = stage.decoded.byte_len()?.map_or(0, zarr_codec_api::ByteLen::upper);
                    steps.push((step, usize::try_from(len).map_err(|_| CodecError::limit(&stage.codec.name, usize::MAX))?));
                }
            }
            Direction::Encode => {
                if let Some(stage) = stages.first()
                    && self.step(stage)? == Some(Step::Bytes)
                {
                    steps.push((Step::Bytes, 0));
                }
            }
        }
        if steps.is_empty() {
            return Ok(None);
        }
        let consumed = steps.len();
        let segment = ToySegment { world: Arc::clone(&self.world), steps, scatters: self.scatters };
        Ok(Some(Bound { consumed, segment: Segment::Device(Arc::new(segment)) }))
    }
}

/// A run of stages on a toy device.
#[derive(Debug)]
struct ToySegment {
    world: Arc<World>,
    /// In the order of decoding, with the most bytes that each may decode to.
    steps: Vec<(Step, usize)>,
    scatters: bool,
}

/// What a slot came to, as the device writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Good = 0,
    Malformed = 1,
    WrongSize = 2,
}

/// One chunk, as the kernel sees it.
struct KernelSlot {
    from: Operand,
    from_layout: Layout,
    to: Operand,
    to_layout: Layout,
}

impl ToySegment {
    fn decode_one(&self, encoded: Vec<u8>, expected: usize) -> Result<Vec<u8>, Status> {
        let mut bytes = encoded;
        for &(step, limit) in &self.steps {
            if step == Step::Zstd {
                // The library takes nothing for no frames.
                if bytes.is_empty() {
                    return Err(Status::Malformed);
                }
                bytes = zstd::bulk::decompress(&bytes, limit).map_err(|_| Status::Malformed)?;
            }
        }
        if bytes.len() == expected { Ok(bytes) } else { Err(Status::WrongSize) }
    }

    /// Enqueues one pass over all slots, from the one side to the other, and the copy of the statuses.
    fn enqueue(self: Arc<Self>, slots: &[DeviceSlot], context: &DeviceContext<'_>, direction: Direction) -> Result<Ticket, CodecError> {
        let queue = own_queue(&self.world, context.queue)?;
        let scratch = self.scratch_len(slots.len());
        if scratch > context.scratch_budget {
            let message = format!("{scratch} bytes of temporary memory, of a budget of {}", context.scratch_budget);
            return Err(CodecError::new(CodecErrorKind::Limit, "toy", message));
        }
        let mut work = Vec::with_capacity(slots.len());
        let mut touches: Vec<Touch> = Vec::new();
        let (mut reads, mut writes): (Vec<&Buffer>, Vec<&Buffer>) = (Vec::new(), Vec::new());
        for slot in slots {
            let kernel_slot = self.kernel_slot(slot, direction)?;
            touches.extend(kernel_slot.from.touch(&kernel_slot.from_layout, false));
            touches.extend(kernel_slot.to.touch(&kernel_slot.to_layout, true));
            work.push(kernel_slot);
            let (read, write) = match direction {
                Direction::Decode => (&slot.encoded, &slot.decoded.buffer),
                Direction::Encode => (&slot.decoded.buffer, &slot.encoded),
            };
            reads.push(read);
            writes.push(write);
        }
        let status_layout = Layout::contiguous(&[slots.len()], STATUS_SIZE)?;
        let on_host = context.device.allocate_staging(slots.len() * STATUS_SIZE)?;
        let on_device =
            if self.world.unified { on_host.clone() } else { context.device.allocate(slots.len() * STATUS_SIZE, context.queue)? };
        let statuses = Operand::new(&self.world, &on_device)?;
        touches.extend(statuses.touch(&status_layout, true));
        writes.push(&on_device);
        let segment = Arc::clone(&self);
        let run = move |world: &World| {
            let mut codes = Vec::with_capacity(work.len() * STATUS_SIZE);
            for slot in &work {
                let status = segment.run_slot(slot, world)?;
                codes.extend_from_slice(&(status as u32).to_le_bytes());
            }
            statuses.scatter(&status_layout, &Gathered::new(codes))
        };
        queue.launch(&reads, &writes, &touches, Box::new(run))?;
        self.world.tally.kernel_launches.add(1);
        self.world.tally.kernel_slots.add(slots.len() as u64);
        if !self.world.unified {
            queue.copy_statuses(&on_device, &on_host)?;
        }
        let event = zarr_buffer_api::Queue::record(queue)?;
        Ok(Ticket::new(ToyCompletion { event, statuses: on_host }))
    }

    fn kernel_slot(&self, slot: &DeviceSlot, direction: Direction) -> Result<KernelSlot, CodecError> {
        let (encoded, decoded) = (Operand::new(&self.world, &slot.encoded)?, Operand::new(&self.world, &slot.decoded.buffer)?);
        if encoded.side() != Side::Device || decoded.side() != Side::Device {
            return Err(CodecError::parameter("toy", "a slot whose bytes are not on the device"));
        }
        let layout = slot.decoded.layout.clone();
        layout.check_within(slot.decoded.buffer.len())?;
        if !self.scatters && !layout.is_contiguous() {
            return Err(CodecError::parameter("toy", "a strided destination, and the segment does not scatter"));
        }
        let bytes = Layout::contiguous(&[slot.encoded.len()], 1)?;
        match direction {
            Direction::Decode => Ok(KernelSlot { from: encoded, from_layout: bytes, to: decoded, to_layout: layout }),
            Direction::Encode if layout.len() * layout.item_size != slot.encoded.len() => {
                Err(CodecError::parameter("toy", "the room for the encoded bytes is not of their size"))
            }
            Direction::Encode => Ok(KernelSlot { from: decoded, from_layout: layout, to: encoded, to_layout: bytes }),
        }
    }

    fn run_slot(&self, slot: &KernelSlot, world: &World) -> Result<Status, BufferError> {
        let expected = slot.to_layout.len() * slot.to_layout.item_size;
        let encoded = slot.from.gather_checked(&slot.from_layout, world)?;
        let (bytes, status) = match self.decode_one(encoded.bytes, expected) {
            Ok(bytes) => (bytes, Status::Good),
            Err(status) => (vec![0; expected], status),
        };
        slot.to.scatter(&slot.to_layout, &Gathered::new(bytes))?;
        Ok(status)
    }
}

impl DeviceSegment for ToySegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        Arc::new(self.copy()).enqueue(slots, context, Direction::Decode)
    }

    fn scatters(&self) -> bool {
        self.scatters
    }

    fn encode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        if self.steps.iter().any(|(step, _)| *step != Step::Bytes) {
            return Err(CodecError::unsupported("toy", "only bytes is encoded on the device"));
        }
        Arc::new(self.copy()).enqueue(slots, context, Direction::Encode)
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        if self.world.unified { 0 } else { (slots * STATUS_SIZE) as u64 }
    }
}

impl ToySegment {
    /// For the work, which outlives the call.
    fn copy(&self) -> Self {
        Self { world: Arc::clone(&self.world), steps: self.steps.clone(), scatters: self.scatters }
    }
}

struct ToyCompletion {
    event: Event,
    statuses: Buffer,
}

impl fmt::Debug for ToyCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToyCompletion({:?})", self.event)
    }
}

impl Completion for ToyCompletion {
    fn event(&self) -> &Event {
        &self.event
    }

    fn statuses(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        let statuses = self.statuses.host_read()?;
        let decode = |code: &[u8]| match code.first().copied() {
            Some(code) if code == Status::Good as u8 => Ok(()),
            Some(code) if code == Status::WrongSize as u8 => {
                Err(CodecError::format("toy", "the chunk decodes to another size than expected"))
            }
            _ => Err(CodecError::format("zstd", "the chunk is malformed, or larger than expected")),
        };
        Ok(statuses.chunks_exact(STATUS_SIZE).map(decode).collect())
    }
}
