use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Event, Layout, Region};
use zarr_codec_api::{
    Bound, ByteLen, CodecError, CodecErrorKind, CodecProvider, Completion, DeviceContext, DeviceSegment, DeviceSlot, Direction, Encoded,
    Limits, Placement, Representation, Segment, Stage, Ticket,
};
use zarr_meta::{Extension, Json};

use super::device::{World, own_queue};
use super::memory::{Gathered, Operand, Side};
use super::tracker::Touch;

/// Bytes of a decoded slot's status on the device.
const STATUS_SIZE: usize = 4;

/// Bytes of an encoded chunk's length on the device.
const LENGTH_SIZE: usize = 8;

/// The length of a chunk that could not be encoded.
const FAILED: u64 = u64::MAX;

/// The native codecs of a toy device: `zstd`, and `bytes` where it is the memory order of the host. It decodes both, in any run, and encodes
/// `bytes` and what stands behind it.
#[derive(Debug, Clone)]
pub struct ToyProvider {
    world: Arc<World>,
    codecs: Vec<String>,
    /// Codecs that it only decodes.
    decoded_only: Vec<String>,
    fuses: bool,
    scatters: bool,
}

impl ToyProvider {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, codecs: vec!["bytes".into(), "zstd".into()], decoded_only: Vec::new(), fuses: true, scatters: true }
    }

    /// Forgets a codec.
    #[must_use]
    pub fn without(mut self, codec: &str) -> Self {
        self.codecs.retain(|known| known != codec);
        self
    }

    /// Decodes a codec, but does not encode it: that is left to the host, with all that stands behind it.
    #[must_use]
    pub fn without_encoding(mut self, codec: &str) -> Self {
        self.decoded_only.push(codec.into());
        self
    }

    /// Takes one stage at a time, so that bytes lie on the device between two segments.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fuses = false;
        self
    }

    /// Decodes to contiguous destinations only, and encodes from contiguous sources.
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
            "zstd" => {
                let setting = |key| stage.codec.configuration.as_ref().and_then(|configuration| configuration.get(key));
                let level = setting("level").and_then(Json::as_i64).unwrap_or(0);
                let level = i32::try_from(level).map_err(|_| CodecError::metadata(name, format!("level {level}")))?;
                Ok(Some(Step::Zstd { level, checksum: setting("checksum").and_then(Json::as_bool).unwrap_or(false) }))
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

    /// Steps in the order of decoding, with the most bytes that each may decode to.
    fn decoding(&self, stages: &[Stage]) -> Result<Vec<(Step, usize)>, CodecError> {
        let mut steps = Vec::new();
        for stage in stages.iter().rev().take(self.most(stages)) {
            let Some(step) = self.step(stage)? else { break };
            steps.push((step, upper(stage, &stage.decoded)?));
        }
        Ok(steps)
    }

    /// Steps in the order of encoding, of which `bytes` is the first.
    fn encoding(&self, stages: &[Stage]) -> Result<Vec<Step>, CodecError> {
        let mut steps = Vec::new();
        for stage in stages.iter().take(self.most(stages)).take_while(|stage| !self.decoded_only.contains(&stage.codec.name)) {
            match self.step(stage)? {
                Some(step) if step == Step::Bytes || !steps.is_empty() => steps.push(step),
                _ => break,
            }
        }
        Ok(steps)
    }

    /// The most stages that one segment takes.
    fn most(&self, stages: &[Stage]) -> usize {
        if self.fuses { stages.len() } else { 1 }
    }
}

/// The most bytes that a side of a stage comes to.
fn upper(stage: &Stage, side: &Representation) -> Result<usize, CodecError> {
    let len = side.byte_len()?.map_or(0, ByteLen::upper);
    usize::try_from(len).map_err(|_| CodecError::limit(&stage.codec.name, usize::MAX))
}

/// One codec, as the kernel runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Bytes,
    Zstd { level: i32, checksum: bool },
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
            ("bytes", Representation::Array(array)) => Ok(array.byte_len()?.map(|len| Representation::Bytes(ByteLen::Exact(len as u64)))),
            ("zstd", Representation::Bytes(len)) => Ok(Some(Representation::Bytes(len.compressed()))),
            _ => Err(CodecError::metadata(&codec.name, "stands on the wrong side of the array to bytes codec")),
        }
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let (world, scatters) = (Arc::clone(&self.world), self.scatters);
        match direction {
            Direction::Decode => {
                let steps = self.decoding(stages)?;
                let consumed = steps.len();
                let segment = Segment::Device(Arc::new(ToyDecoder { world, steps: steps.into(), scatters }));
                Ok((consumed > 0).then_some(Bound { consumed, segment }))
            }
            Direction::Encode => {
                let steps = self.encoding(stages)?;
                let taken = stages.get(..steps.len()).unwrap_or_default();
                let [first, ..] = taken else { return Ok(None) };
                let last = taken.last().unwrap_or(first);
                let (len, room) = (upper(first, &first.decoded)?, upper(last, &last.encoded)?);
                let segment = Segment::Device(Arc::new(ToyEncoder { world, steps: steps.into(), len, room, scatters }));
                Ok(Some(Bound { consumed: taken.len(), segment }))
            }
        }
    }
}

/// What a batch uses.
#[derive(Default)]
struct Batch<'a> {
    reads: Vec<&'a Buffer>,
    writes: Vec<&'a Buffer>,
    touches: Vec<Touch>,
}

impl<'a> Batch<'a> {
    fn reads(&mut self, buffer: &'a Buffer, operand: &Operand, layout: &Layout) {
        self.reads.push(buffer);
        self.touches.extend(operand.touch(layout, false));
    }

    fn writes(&mut self, buffer: &'a Buffer, operand: &Operand, layout: &Layout) {
        self.writes.push(buffer);
        self.touches.extend(operand.touch(layout, true));
    }

    /// Enqueues one pass over `chunks` chunks, which gives `size` bytes of verdict for each, and the copy of the verdicts to the host.
    fn enqueue(
        self,
        world: &Arc<World>,
        context: &DeviceContext<'_>,
        (chunks, size): (usize, usize),
        kernel: impl FnOnce(&World) -> Result<Vec<u8>, BufferError> + Send + 'static,
    ) -> Result<ToyCompletion, CodecError> {
        let queue = own_queue(world, context.queue)?;
        let len = chunks * size;
        let layout = Layout::contiguous(&[len], 1)?;
        let on_host = context.device.allocate_staging(len)?;
        let on_device = if world.unified { on_host.clone() } else { context.device.allocate(len, context.queue)? };
        let verdicts = Operand::new(world, &on_device)?;
        let mut batch: Batch<'_> = self;
        batch.writes(&on_device, &verdicts, &layout);
        let run = move |world: &World| verdicts.scatter(&layout, &Gathered::new(kernel(world)?));
        queue.launch(&batch.reads, &batch.writes, &batch.touches, Box::new(run))?;
        world.tally.kernel_launches.add(1);
        world.tally.kernel_slots.add(chunks as u64);
        if !world.unified {
            queue.copy_statuses(&on_device, &on_host)?;
        }
        let event = zarr_buffer_api::Queue::record(queue)?;
        Ok(ToyCompletion { event, verdicts: on_host })
    }
}

fn check_budget(needed: u64, context: &DeviceContext<'_>) -> Result<(), CodecError> {
    if needed > context.scratch_budget {
        let message = format!("{needed} bytes of temporary memory, of a budget of {}", context.scratch_budget);
        return Err(CodecError::new(CodecErrorKind::Limit, "toy", message));
    }
    Ok(())
}

/// Temporary memory for verdicts. On a unified device they are where the host reads them.
fn verdicts_len(world: &World, chunks: usize, size: usize) -> u64 {
    if world.unified { 0 } else { (chunks * size) as u64 }
}

/// The bytes of a chunk's elements.
fn operand(world: &Arc<World>, region: &Region, scatters: bool) -> Result<Operand, CodecError> {
    let Region { buffer, layout } = region;
    let operand = on_device(world, buffer)?;
    layout.check_within(buffer.len())?;
    if !scatters && !layout.is_contiguous() {
        return Err(CodecError::parameter("toy", "elements with gaps, and the segment does not scatter"));
    }
    Ok(operand)
}

fn on_device(world: &Arc<World>, buffer: &Buffer) -> Result<Operand, CodecError> {
    let operand = Operand::new(world, buffer)?;
    if operand.side() != Side::Device {
        return Err(CodecError::parameter("toy", "a chunk whose bytes are not on the device"));
    }
    Ok(operand)
}

/// Decodes a run of stages on a toy device.
#[derive(Debug)]
struct ToyDecoder {
    world: Arc<World>,
    /// In the order of decoding, with the most bytes that each may decode to.
    steps: Arc<[(Step, usize)]>,
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

impl KernelSlot {
    fn run(&self, steps: &[(Step, usize)], world: &World) -> Result<Status, BufferError> {
        let expected = self.to_layout.len() * self.to_layout.item_size;
        let encoded = self.from.gather_checked(&self.from_layout, world)?;
        let (bytes, status) = match decode(steps, encoded.bytes, expected) {
            Ok(bytes) => (bytes, Status::Good),
            Err(status) => (vec![0; expected], status),
        };
        self.to.scatter(&self.to_layout, &Gathered::new(bytes))?;
        Ok(status)
    }
}

fn decode(steps: &[(Step, usize)], encoded: Vec<u8>, expected: usize) -> Result<Vec<u8>, Status> {
    let mut bytes = encoded;
    for &(step, limit) in steps {
        if let Step::Zstd { .. } = step {
            // The library takes nothing for no frames.
            if bytes.is_empty() {
                return Err(Status::Malformed);
            }
            bytes = zstd::bulk::decompress(&bytes, limit).map_err(|_| Status::Malformed)?;
        }
    }
    if bytes.len() == expected { Ok(bytes) } else { Err(Status::WrongSize) }
}

impl DeviceSegment for ToyDecoder {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        check_budget(self.scratch_len(slots.len()), context)?;
        let mut work = Vec::with_capacity(slots.len());
        let mut batch = Batch::default();
        for slot in slots {
            let (from, to) = (on_device(&self.world, &slot.encoded)?, operand(&self.world, &slot.decoded, self.scatters)?);
            let (from_layout, to_layout) = (Layout::contiguous(&[slot.encoded.len()], 1)?, slot.decoded.layout.clone());
            batch.reads(&slot.encoded, &from, &from_layout);
            batch.writes(&slot.decoded.buffer, &to, &to_layout);
            work.push(KernelSlot { from, from_layout, to, to_layout });
        }
        let steps = Arc::clone(&self.steps);
        let kernel = move |world: &World| {
            let statuses = work.iter().map(|slot| Ok((slot.run(&steps, world)? as u32).to_le_bytes()));
            Ok(statuses.collect::<Result<Vec<_>, BufferError>>()?.concat())
        };
        Ok(Ticket::new(batch.enqueue(&self.world, context, (slots.len(), STATUS_SIZE), kernel)?))
    }

    fn scatters(&self) -> bool {
        self.scatters
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        verdicts_len(&self.world, slots, STATUS_SIZE)
    }
}

/// Encodes a run of stages on a toy device.
#[derive(Debug)]
struct ToyEncoder {
    world: Arc<World>,
    /// In the order of encoding.
    steps: Arc<[Step]>,
    /// Bytes of a chunk's elements.
    len: usize,
    /// The most bytes that a chunk may encode to.
    room: usize,
    scatters: bool,
}

fn encode(steps: &[Step], decoded: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let mut bytes = decoded;
    for &step in steps {
        if let Step::Zstd { level, checksum } = step {
            let mut compressor = zstd::bulk::Compressor::new(level)?;
            compressor.include_checksum(checksum)?;
            bytes = compressor.compress(&bytes)?;
        }
    }
    Ok(bytes)
}

impl DeviceSegment for ToyEncoder {
    fn decode(&self, _: &[DeviceSlot], _: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        Err(CodecError::unsupported("toy", "this segment encodes"))
    }

    fn encode(&self, chunks: &[Region], context: &DeviceContext<'_>) -> Result<Encoded, CodecError> {
        check_budget(self.scratch_len(chunks.len()), context)?;
        let mut work = Vec::with_capacity(chunks.len());
        let mut batch = Batch::default();
        for chunk in chunks {
            let source = operand(&self.world, chunk, self.scatters)?;
            let len = chunk.layout.len() * chunk.layout.item_size;
            if len != self.len {
                return Err(CodecError::parameter("toy", format!("a source of {len} bytes, of chunks of {}", self.len)));
            }
            batch.reads(&chunk.buffer, &source, &chunk.layout);
            work.push((source, chunk.layout.clone()));
        }
        let bytes = context.device.allocate(chunks.len() * self.room, context.queue)?;
        let output = on_device(&self.world, &bytes)?;
        batch.writes(&bytes, &output, &Layout::contiguous(&[bytes.len()], 1)?);
        let (steps, room) = (Arc::clone(&self.steps), self.room);
        let kernel = move |world: &World| {
            let (mut packed, mut lengths) = (Vec::new(), Vec::with_capacity(work.len() * LENGTH_SIZE));
            for (source, layout) in &work {
                let elements = source.gather_checked(layout, world)?;
                let encoded = encode(&steps, elements.bytes).ok().filter(|encoded| encoded.len() <= room);
                lengths.extend(encoded.as_ref().map_or(FAILED, |encoded| encoded.len() as u64).to_le_bytes());
                packed.extend(encoded.unwrap_or_default());
            }
            output.scatter(&Layout::contiguous(&[packed.len()], 1)?, &Gathered::new(packed))?;
            Ok(lengths)
        };
        let completion = batch.enqueue(&self.world, context, (chunks.len(), LENGTH_SIZE), kernel)?;
        Ok(Encoded { bytes, ticket: Ticket::new(completion) })
    }

    fn scatters(&self) -> bool {
        self.scatters
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        verdicts_len(&self.world, slots, LENGTH_SIZE) + (slots as u64).saturating_mul(self.room as u64)
    }
}

/// Verdicts that the device writes.
struct ToyCompletion {
    event: Event,
    verdicts: Buffer,
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
        let statuses = self.verdicts.host_read()?;
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

impl Completion<Range<usize>> for ToyCompletion {
    fn event(&self) -> &Event {
        &self.event
    }

    fn statuses(&self) -> Result<Vec<Result<Range<usize>, CodecError>>, BufferError> {
        let (lengths, mut end) = (self.verdicts.host_read()?, 0);
        let range = |length: &[u8; LENGTH_SIZE]| match u64::from_le_bytes(*length) {
            FAILED => Err(CodecError::format("toy", "the chunk could not be encoded")),
            length => {
                let start = end;
                end += length as usize;
                Ok(start..end)
            }
        };
        Ok(lengths.as_chunks().0.iter().map(range).collect())
    }
}
