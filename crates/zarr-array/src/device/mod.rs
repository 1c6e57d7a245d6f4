//! Reading to and writing from a device, generic over the contracts.
//!
//! Bytes are fetched into staging memory, uploaded batch by batch, decoded on the device as far as the array's policy and the device's codecs
//! go, and scattered into the output. Where a blocking store reads straight to the device, bytes that the device decodes skip staging memory.
//! The host waits for the device only to reuse the memory of a batch, and when the caller asks for the outcome.

use std::sync::Arc;

use futures::stream::FuturesOrdered;
use futures::{StreamExt, TryStreamExt};
use zarr_buffer_api::{Buffer, Device, Layout, Queue, TileWriter};
use zarr_codec_api::Ticket;
use zarr_meta::DataType;
use zarr_store_api::AnyStore;

use crate::plan::{ChunkNode, Plan};
use crate::read::{Job, PIECE, read_blocking};
use crate::selection::{Positions, Resolved};
use crate::storage::block_on;
use crate::write::{Data, OwnedData};
use crate::{Array, ArrayError, ReadSet, Selection};

mod batch;
mod decode;
mod each;
mod encode;
mod fetch;
mod filling;
mod observe;
mod pipeline;
mod ring;
mod scatter;

pub use each::ReadEachToDevice;
pub(crate) use encode::Prepared;
use encode::Preparing;
pub use observe::{Observer, Stage};
use pipeline::{Answer, Host, Pipeline, answers};

/// A device, a queue on it, and how much memory a read may use on the way.
#[derive(Debug, Clone)]
pub struct DeviceTarget {
    /// Where results live.
    pub device: Arc<dyn Device>,
    /// Takes all work of a read or write, in order.
    pub queue: Arc<dyn Queue>,
    /// Host memory for bytes in flight, in bytes: some of it is filled while the rest is uploaded. As much memory of the device where a store reads
    /// straight to it.
    pub staging: usize,
    /// Device memory for encoded bytes and for the codecs' own use in one batch, in bytes.
    pub scratch: u64,
    /// Watches the stages of reads.
    pub observer: Option<Arc<dyn Observer>>,
}

impl DeviceTarget {
    /// A target with a new queue, 96 MiB of staging and 2 GiB of scratch.
    ///
    /// # Errors
    /// When the device refuses a queue.
    pub fn new(device: Arc<dyn Device>) -> Result<Self, ArrayError> {
        let queue = device.create_queue()?;
        Ok(Self { device, queue, staging: 96 << 20, scratch: 2 << 30, observer: None })
    }

    /// The same device and limits with another queue.
    #[must_use]
    pub fn with_queue(mut self, queue: Arc<dyn Queue>) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the host memory for bytes in flight.
    #[must_use]
    pub fn with_staging(mut self, staging: usize) -> Self {
        self.staging = staging;
        self
    }

    /// Sets the device memory for encoded bytes and for the codecs' own use in one batch.
    #[must_use]
    pub fn with_scratch(mut self, scratch: u64) -> Self {
        self.scratch = scratch;
        self
    }

    /// Lets somebody watch the stages of reads.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }
}

/// Elements on a device or on the host, in C order without gaps.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// The bytes. [`Buffer::ready`] is the event after which they are there.
    pub buffer: Buffer,
    /// Elements along each axis, slowest first.
    pub shape: Vec<u64>,
    /// The data type of the elements.
    pub data_type: DataType,
}

impl Tensor {
    /// Bytes from one element to the next along each axis.
    pub fn strides(&self) -> Vec<u64> {
        let mut next = self.data_type.fixed_size().unwrap_or(0) as u64;
        let mut strides = vec![0; self.shape.len()];
        for (stride, &len) in strides.iter_mut().zip(&self.shape).rev() {
            *stride = next;
            next = next.saturating_mul(len.max(1));
        }
        strides
    }
}

/// A read that is enqueued: the tensor, and the verdicts on its chunks, which come when the work is done.
#[derive(Debug)]
#[must_use = "a pending read that nobody waits for hides failed chunks"]
pub struct PendingTensor {
    tensor: Tensor,
    plan: Arc<Plan>,
    verdicts: Vec<Verdicts>,
    crossings: Crossings,
}

/// The verdicts on a batch of chunks.
#[derive(Debug)]
struct Verdicts {
    ticket: Ticket,
    /// The chunk of each slot.
    nodes: Arc<[ChunkNode]>,
}

/// How the bytes of a read came to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Crossings {
    /// Copies from staging memory to the device. Where the two share memory there are none.
    pub uploads: u64,
    /// Bytes of those copies.
    pub uploaded: u64,
    /// Batches that the store read straight to the device.
    pub direct_batches: u64,
}

impl Crossings {
    fn note(&mut self, uploads: usize, bytes: u64) {
        self.uploads += uploads as u64;
        self.uploaded += bytes;
    }
}

impl PendingTensor {
    /// Whether the work is done. Never blocks.
    ///
    /// # Errors
    /// When the device failed.
    pub fn is_complete(&self) -> Result<bool, ArrayError> {
        for verdicts in &self.verdicts {
            if !verdicts.ticket.is_complete()? {
                return Ok(false);
            }
        }
        Ok(self.tensor.buffer.is_idle()?)
    }

    /// Waits for the verdicts and gives the tensor if all chunks are good. Where no chunk was decoded on the device there is nothing to wait for: the
    /// tensor's last copies may still be under way, as [`Buffer::ready`] says.
    ///
    /// # Errors
    /// The first chunk that failed.
    pub fn wait(self) -> Result<Tensor, ArrayError> {
        for Verdicts { ticket, nodes } in self.verdicts {
            let statuses = ticket.wait()?;
            if statuses.len() != nodes.len() {
                return Err(ArrayError::parameter(format!("a ticket with {} statuses for {} chunks", statuses.len(), nodes.len())));
            }
            for (status, node) in statuses.into_iter().zip(nodes.iter()) {
                status.map_err(|error| self.plan.error(node, error))?;
            }
        }
        Ok(self.tensor)
    }

    /// How the bytes came to the device.
    pub fn crossings(&self) -> Crossings {
        self.crossings
    }

    /// The tensor without a look at the verdicts: the chunks of failed slots hold zeros.
    pub fn into_unchecked(self) -> Tensor {
        self.tensor
    }
}

impl Array {
    /// Reads to a device, and waits until every chunk is known to be good.
    ///
    /// # Errors
    /// As [`Array::read`]; when the device fails.
    pub fn read_to_device(&self, selection: &Selection, target: &DeviceTarget) -> Result<Tensor, ArrayError> {
        self.enqueue_read(selection, target)?.wait()
    }

    /// As [`Array::read_to_device`], on the threads of the pool: the calling task never blocks.
    ///
    /// # Errors
    /// As [`Array::read_to_device`].
    pub async fn read_to_device_async(&self, selection: &Selection, target: &DeviceTarget) -> Result<Tensor, ArrayError> {
        let begun = Begun::new(self, selection)?;
        let output = target.device.allocate(begun.len()?, &*target.queue)?;
        let pending = self.enqueue(begun, &output, target, Host::Pool).await?;
        self.options().pool.compute(move || pending.wait()).await
    }

    /// Fetches, and enqueues all work on the device. The host waits only where staging memory is reused.
    ///
    /// # Errors
    /// As [`Array::read`] for what the host does; when the device refuses work.
    pub fn enqueue_read(&self, selection: &Selection, target: &DeviceTarget) -> Result<PendingTensor, ArrayError> {
        Begun::new(self, selection)?.enqueue(self, target)
    }

    /// As [`Array::enqueue_read`], into a buffer of the caller's: exactly as long as the selection.
    ///
    /// # Errors
    /// As [`Array::enqueue_read`]; [`ArrayError::Parameter`] when the length differs.
    pub fn enqueue_read_into(&self, selection: &Selection, output: &Buffer, target: &DeviceTarget) -> Result<PendingTensor, ArrayError> {
        block_on(self.enqueue(Begun::new(self, selection)?, output, target, Host::Caller))
    }

    async fn enqueue(&self, begun: Begun, output: &Buffer, target: &DeviceTarget, host: Host) -> Result<PendingTensor, ArrayError> {
        let Begun { plan, answers } = begun;
        let layout = plan.output_layout()?;
        let len = layout.span()?.len();
        if output.len() != len {
            return Err(ArrayError::parameter(format!("the selection has {len} bytes, and the buffer {}", output.len())));
        }
        let tensor = Tensor { buffer: output.clone(), shape: plan.cut.result_shape(), data_type: self.data_type().clone() };
        if output.is_host_visible() && !self.decodes_on_device() {
            self.read_in_place(&plan, output, layout, host).await?;
            return Ok(PendingTensor { tensor, plan, verdicts: Vec::new(), crossings: Crossings::default() });
        }
        let (verdicts, crossings) = Pipeline::new(self, &plan, output, target)?.run(host, answers).await?;
        Ok(PendingTensor { tensor, plan, verdicts, crossings })
    }

    /// Whether a device does something about chunks, or about their bytes.
    fn decodes_on_device(&self) -> bool {
        self.chunks.bound(&self.inner_chunk_shape()).is_ok_and(|bound| bound.chain.device().is_some() && !bound.verbatim)
    }

    /// The host decodes straight into memory that it shares with the device. For an async store, whose reads own their memory, that is one copy.
    async fn read_in_place(&self, plan: &Arc<Plan>, output: &Buffer, layout: Layout, host: Host) -> Result<(), ArrayError> {
        let fetched = match &self.storage.0 {
            AnyStore::Blocking(_) => None,
            AnyStore::Async(_) => Some(self.read_bytes_of(Arc::clone(plan), Vec::new(), 0).await?),
        };
        let (array, plan, output) = (self.clone(), Arc::clone(plan), output.clone());
        let fill = move || -> Result<(), ArrayError> {
            // Earlier work on a buffer of the caller's; on a fresh one there is none.
            if !output.is_idle()? {
                output.wait()?;
            }
            let mut bytes = output.host_write()?;
            match (&array.storage.0, fetched) {
                (AnyStore::Blocking(store), _) => {
                    let tiles = TileWriter::new(&mut bytes, layout, plan.tiles())?;
                    read_blocking(&[Job { plan: &plan, store: &**store, sink: &tiles }], &array.options().pool)?;
                }
                (AnyStore::Async(_), fetched) => bytes.copy_from_slice(&fetched.unwrap_or_default()),
            }
            Ok(())
        };
        match host {
            Host::Caller => fill(),
            Host::Pool => self.options().pool.compute(fill).await,
        }
    }

    fn device_plan(&self, selection: &Selection) -> Result<Plan, ArrayError> {
        if self.item_size().is_none() {
            return Err(ArrayError::parameter(format!("elements of variable length ({}) stay on the host", self.data_type().name())));
        }
        let mut plan = self.internal_plan(selection)?;
        if let (AnyStore::Blocking(_), None) = (self.store(), self.options().coalescing) {
            // Requests are what the threads share out.
            plan.coalescing.request = PIECE as u64;
        }
        Ok(plan)
    }

    /// Writes elements that lie on a device, in C order over the selection, without gaps, in pieces of the staging size (at least a row of chunks each). Of
    /// chunks that are written whole, the device encodes what its codecs take from the array's side, as [`Array::explain`] says; what comes out is downloaded once
    /// for each piece, and the host encodes the rest. It stores a piece while the device is at the next one. Memory that the host shares is read from where it is.
    ///
    /// # Errors
    /// As [`Array::write`]; when the device fails.
    pub fn write_from_device(&self, selection: &Selection, source: &Buffer, target: &DeviceTarget) -> Result<(), ArrayError> {
        let resolved = self.check_source(selection, source)?;
        let mut start = 0;
        let mut ready = None;
        for piece in self.pieces_from(&resolved, source, target)? {
            let begin = |start: usize| {
                let plan = block_on(self.look_outside(self.resolved_plan(&piece)?))?;
                let len = plan.output_layout()?.span()?.len();
                let begun = self.begin_piece(&plan, &source.slice(start..start + len)?, target)?;
                Ok::<_, ArrayError>((plan, begun, len))
            };
            let begun = begin(start);
            // What is there is stored, whatever becomes of the next.
            if let Some((plan, piece)) = ready.take() {
                self.write_piece(plan, piece)?;
            }
            let (plan, begun, len) = begun?;
            let piece = begun.finish(&plan, target)?;
            ready = Some((plan, piece));
            start += len;
        }
        ready.map_or(Ok(()), |(plan, piece)| self.write_piece(plan, piece))
    }

    fn write_piece(&self, plan: Plan, piece: Piece) -> Result<(), ArrayError> {
        match piece {
            Piece::Prepared(chunks) => self.write_plan(plan, Data::Prepared(&chunks), || OwnedData::Prepared(Arc::clone(&chunks))),
            Piece::Elements(elements) => {
                let bytes = elements.host_read()?;
                self.write_plan(plan, Data::Fixed(&bytes), || OwnedData::Fixed(bytes::Bytes::copy_from_slice(&bytes)))
            }
        }
    }

    /// As [`Array::write_from_device`], on the threads of the pool, and one piece after the other.
    ///
    /// # Errors
    /// As [`Array::write_from_device`].
    pub async fn write_from_device_async(&self, selection: &Selection, source: &Buffer, target: &DeviceTarget) -> Result<(), ArrayError> {
        let resolved = self.check_source(selection, source)?;
        let mut start = 0;
        for piece in self.pieces(&resolved, target.staging)? {
            let plan = self.look_outside(self.resolved_plan(&piece)?).await?;
            let len = plan.output_layout()?.span()?.len();
            let (array, part, target) = (self.clone(), source.slice(start..start + len)?, target.clone());
            let fetch = move || -> Result<(Plan, OwnedData), ArrayError> {
                let data = match array.begin_piece(&plan, &part, &target)?.finish(&plan, &target)? {
                    Piece::Prepared(chunks) => OwnedData::Prepared(chunks),
                    Piece::Elements(elements) => OwnedData::Fixed(elements.host_read()?.to_vec().into()),
                };
                Ok((plan, data))
            };
            let (plan, data) = self.options().pool.compute(fetch).await?;
            self.write_owned(plan, data).await?;
            start += len;
        }
        Ok(())
    }

    /// The pieces in which elements are fetched: one, where the host reads them from where they are.
    fn pieces_from(&self, resolved: &Resolved, source: &Buffer, target: &DeviceTarget) -> Result<Vec<Resolved>, ArrayError> {
        let on_device = self.chunks.bound(&self.inner_chunk_shape()).is_ok_and(|bound| bound.chain.device_encode().is_some());
        if source.is_host_visible() && !on_device { Ok(vec![resolved.clone()]) } else { self.pieces(resolved, target.staging) }
    }

    /// Enqueues what the device has to do for a piece.
    fn begin_piece(&self, plan: &Plan, source: &Buffer, target: &DeviceTarget) -> Result<BegunPiece, ArrayError> {
        if let Some(chunks) = encode::begin(plan, source, self.empty().keep, target)? {
            return Ok(BegunPiece::Chunks(chunks));
        }
        Ok(BegunPiece::Elements(source.clone()))
    }

    /// Checks that a buffer is as long as a selection.
    fn check_source(&self, selection: &Selection, source: &Buffer) -> Result<Resolved, ArrayError> {
        let len = self.device_plan(selection)?.output_layout()?.span()?.len();
        if source.len() != len {
            return Err(ArrayError::parameter(format!("the selection has {len} bytes, and the buffer {}", source.len())));
        }
        selection.resolve(self.shape(), self.chunk_grid())
    }

    /// Cuts a selection along its first axis, at the borders of chunks, into pieces of about `bytes` bytes: each is one run of the data.
    fn pieces(&self, resolved: &Resolved, bytes: usize) -> Result<Vec<Resolved>, ArrayError> {
        let plan = self.resolved_plan(resolved)?;
        let total = plan.output_layout()?.span()?.len();
        let (Resolved::Product(axes), true) = (resolved, total > bytes) else { return Ok(vec![resolved.clone()]) };
        let Some((Positions::Steps { start, step, len, keep }, rest)) = axes.split_first() else { return Ok(vec![resolved.clone()]) };
        let crate::geometry::Cut::Product(cut) = &plan.cut else { return Ok(vec![resolved.clone()]) };
        let row = total / usize::try_from(*len).unwrap_or(1).max(1);
        let mut pieces = Vec::new();
        let (mut from, mut to) = (0u64, 0u64);
        let mut push = |from: u64, to: u64| {
            if to > from {
                let first = Positions::Steps {
                    start: start.wrapping_add_signed(step.wrapping_mul(from as i64)),
                    step: *step,
                    len: to - from,
                    keep: *keep,
                };
                pieces.push(Resolved::Product(std::iter::once(first).chain(rest.iter().cloned()).collect()));
            }
        };
        for axis in cut.iter().take(1) {
            for (_, parts) in &axis.chunks {
                let rows: u64 = parts.iter().filter_map(|&part| axis.parts.get(part)).map(|part| part.elements.len() as u64).sum();
                if to > from && (to + rows - from).saturating_mul(row as u64) > bytes as u64 {
                    push(from, to);
                    from = to;
                }
                to += rows;
            }
        }
        push(from, to);
        Ok(pieces)
    }
}

/// A piece of a write on its way to the host.
enum BegunPiece {
    /// Chunks that the device encodes, wholly or in part.
    Chunks(Preparing),
    /// Elements.
    Elements(Buffer),
}

impl BegunPiece {
    /// Brings it to the host, and waits for it.
    fn finish(self, plan: &Plan, target: &DeviceTarget) -> Result<Piece, ArrayError> {
        match self {
            Self::Chunks(chunks) => Ok(Piece::Prepared(Arc::new(chunks.finish(plan, target)?))),
            Self::Elements(source) => {
                let elements = if source.is_host_visible() { source } else { download(&source, target)? };
                elements.wait()?;
                Ok(Piece::Elements(elements))
            }
        }
    }
}

/// What the host has of a piece of a write.
enum Piece {
    /// Chunks that the device encoded, wholly or in part.
    Prepared(Arc<Prepared>),
    /// Elements.
    Elements(Buffer),
}

/// Enqueues the copy of a buffer to staging memory.
fn download(source: &Buffer, target: &DeviceTarget) -> Result<Buffer, ArrayError> {
    let staging = target.device.allocate_staging(source.len())?;
    target.queue.copy(source, &staging)?;
    Ok(staging)
}

/// A read to a device of which nothing is enqueued yet.
struct Begun {
    plan: Arc<Plan>,
    /// Of an async store that was asked ahead: its answers.
    answers: Option<Vec<Answer>>,
}

impl Begun {
    fn new(array: &Array, selection: &Selection) -> Result<Self, ArrayError> {
        Ok(Self { plan: Arc::new(array.device_plan(selection)?), answers: None })
    }

    /// Asks an async store ahead, unless there is too much to keep.
    async fn ahead(mut self, array: &Array, target: &DeviceTarget, most: usize) -> Result<Self, ArrayError> {
        let in_place = target.device.is_unified() && !array.decodes_on_device();
        if matches!(array.storage.0, AnyStore::Async(_)) && !in_place && self.len()? <= most {
            self.answers = Some(answers(array, &self.plan, array.gate()).try_collect().await?);
        }
        Ok(self)
    }

    /// Bytes of the result.
    fn len(&self) -> Result<usize, ArrayError> {
        Ok(self.plan.output_layout()?.span()?.len())
    }

    fn enqueue(self, array: &Array, target: &DeviceTarget) -> Result<PendingTensor, ArrayError> {
        let output = target.device.allocate(self.len()?, &*target.queue)?;
        block_on(array.enqueue(self, &output, target, Host::Caller))
    }
}

/// Enqueues reads one after the other, while an async store is asked for the next ones, as far as the [`Options`](crate::Options) of the first array let it. `each` says
/// whether to go on.
fn enqueue_each(
    reads: impl Iterator<Item = (Array, Selection)>,
    target: &DeviceTarget,
    mut each: impl FnMut(Result<PendingTensor, ArrayError>) -> bool,
) {
    let mut reads = reads.peekable();
    let Some((first, _)) = reads.peek() else { return };
    let (gate, most) = (first.gate(), first.options().in_flight_bytes);
    let at_once = if matches!(first.store(), AnyStore::Async(_)) { gate.requests() } else { 1 };
    let (mut begun, mut bytes, mut held_back) = (FuturesOrdered::new(), 0usize, None);
    loop {
        while begun.len() < at_once
            && let Some((read, array, len)) = held_back.take().or_else(|| {
                let (array, selection) = reads.next()?;
                let read = Begun::new(&array, &selection);
                let len = read.as_ref().ok().and_then(|read| read.len().ok()).unwrap_or(0).min(most);
                Some((read, array, len))
            })
        {
            if !begun.is_empty() && bytes.saturating_add(len) > most {
                held_back = Some((read, array, len));
                break;
            }
            bytes = bytes.saturating_add(len);
            let asked = array.behind(&gate);
            // A read that is not asked ahead asks while the others are not polled: by a gate of its own, that of `array`.
            begun.push_back(async move {
                let read = match read {
                    Ok(read) => read.ahead(&asked, target, most).await,
                    Err(error) => Err(error),
                };
                (read, array, len)
            });
        }
        let Some((read, array, len)) = block_on(begun.next()) else { return };
        bytes -= len;
        if !each(read.and_then(|read| read.enqueue(&array, target))) {
            return;
        }
    }
}

impl ReadSet {
    /// Reads every selection to a device: all work is enqueued before the first verdict is waited for.
    ///
    /// # Errors
    /// As [`Array::read_to_device`].
    pub fn read_to_device(&self, target: &DeviceTarget) -> Result<Vec<Tensor>, ArrayError> {
        let mut pending = Vec::with_capacity(self.len());
        enqueue_each(self.reads().cloned(), target, |read| {
            let good = read.is_ok();
            pending.push(read);
            good
        });
        pending.into_iter().map(|read| read?.wait()).collect()
    }
}
