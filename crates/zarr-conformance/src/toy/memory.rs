//! The memory of the toy devices. The only place with `unsafe`: host-visible bytes that the thread of a queue uses.

use std::alloc;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, CopyAxis, DeviceId, Event, Layout, Memory, Offsets, copy_axes};

use super::device::World;
use super::queue::ToyEvent;
use super::tracker::{Clock, Touch, ViolationKind};

/// What fresh memory holds, so that nobody takes it for zeros.
const POISON: u8 = 0xA5;
const ALIGN: usize = 256;

/// Bytes as the queues see them. Work holds on to the block, so that memory freed too early is a violation rather than a crash.
#[derive(Debug)]
enum Block {
    Opaque(Mutex<Cells>),
    Shared(SharedBlock),
}

struct Cells {
    bytes: Vec<u8>,
    /// For each byte, 1 if it was ever written.
    written: Vec<u8>,
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

/// Aligned host memory.
#[derive(Debug)]
struct SharedBlock {
    pointer: NonNull<u8>,
    layout: alloc::Layout,
}

impl SharedBlock {
    fn new(len: usize) -> Option<Self> {
        // A block of no bytes still has an address of its own.
        let layout = alloc::Layout::from_size_align(len.max(1), ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let pointer = NonNull::new(unsafe { alloc::alloc(layout) })?;
        // SAFETY: freshly allocated, of that size, and nobody else knows of it.
        unsafe { pointer.as_ptr().write_bytes(POISON, layout.size()) };
        Some(Self { pointer, layout })
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { alloc::dealloc(self.pointer.as_ptr(), self.layout) };
    }
}

// SAFETY: the block owns its bytes; who may use them when is what the buffer's events say.
unsafe impl Send for SharedBlock {}
// SAFETY: as above.
unsafe impl Sync for SharedBlock {}

/// The device memory that is there, by address: imported buffers have nothing else to be known by.
#[derive(Debug, Default)]
pub(super) struct Blocks(Mutex<BTreeMap<u64, (usize, Weak<Block>)>>);

impl Blocks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (usize, Weak<Block>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block that the bytes lie in, its address, and where in it they start.
    fn find(&self, address: u64, len: usize) -> Option<(Arc<Block>, u64, usize)> {
        let blocks = self.lock();
        let (&start, (block_len, block)) = blocks.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (offset.checked_add(len)? <= *block_len).then_some((block.upgrade()?, start, offset))
    }
}

/// One allocation of a toy device.
#[derive(Debug)]
pub(super) struct ToyMemory {
    world: Arc<World>,
    device: DeviceId,
    block: Arc<Block>,
    address: u64,
    len: usize,
    staging: bool,
    pending: Vec<Event>,
}

impl ToyMemory {
    /// Memory at an address that no host can dereference.
    pub(super) fn opaque(world: &Arc<World>, len: usize) -> Result<Self, BufferError> {
        /// No canonical address of any 64-bit machine of today, and no two allocations side by side.
        static NEXT: AtomicU64 = AtomicU64::new(0x8000_0000_0000_0000);
        let mut cells = Cells { bytes: Vec::new(), written: Vec::new() };
        cells.bytes.try_reserve_exact(len).map_err(|error| no_room(world, len).with_source(error))?;
        cells.bytes.resize(len, POISON);
        cells.written = vec![0; len];
        let address = NEXT.fetch_add((len as u64).next_multiple_of(4096) + 4096, Ordering::Relaxed);
        Self::new(world, world.id, Block::Opaque(Mutex::new(cells)), address, len, false)
    }

    /// Memory that the host sees too.
    pub(super) fn shared(world: &Arc<World>, device: DeviceId, len: usize, staging: bool) -> Result<Self, BufferError> {
        let block = SharedBlock::new(len).ok_or_else(|| no_room(world, len))?;
        let address = block.pointer.as_ptr() as u64;
        Self::new(world, device, Block::Shared(block), address, len, staging)
    }

    fn new(world: &Arc<World>, device: DeviceId, block: Block, address: u64, len: usize, staging: bool) -> Result<Self, BufferError> {
        let (level, limit) = match staging {
            true => (&world.tally.staging_bytes, u64::MAX),
            false => (&world.tally.device_bytes, world.options.memory_limit.unwrap_or(u64::MAX)),
        };
        if !level.raise(len as u64, limit) {
            return Err(no_room(world, len));
        }
        let block = Arc::new(block);
        if device == world.id {
            world.blocks.lock().insert(address, (len, Arc::downgrade(&block)));
        }
        Ok(Self { world: Arc::clone(world), device, block, address, len, staging, pending: Vec::new() })
    }
}

fn no_room(world: &World, len: usize) -> BufferError {
    BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes")).on(world.id)
}

impl Drop for ToyMemory {
    fn drop(&mut self) {
        let level = if self.staging { &self.world.tally.staging_bytes } else { &self.world.tally.device_bytes };
        level.lower(self.len as u64);
        if self.device == self.world.id {
            self.world.blocks.lock().remove(&self.address);
        }
        let clocks: Vec<&Clock> =
            self.pending.iter().filter_map(|event| Some(event.as_any().downcast_ref::<ToyEvent>()?.clock())).collect();
        self.world.tracker().free(self.address, &clocks);
    }
}

// SAFETY: the bytes of a shared block are initialised when it is made, stay in place and live as long as the value (or longer, in pending
// work). They are used by queues only, in work that was enqueued with `zarr_buffer_api::enqueue`. An opaque block has no host pointer.
unsafe impl Memory for ToyMemory {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        match &*self.block {
            Block::Opaque(_) => None,
            Block::Shared(block) => Some(block.pointer),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, pending: &[Event]) {
        // Work holds on to the block: nothing to wait for.
        self.pending = pending.to_vec();
    }
}

/// Where the bytes of an operand live, as a direction of copies has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Host,
    Device,
}

/// A buffer as pending work holds it: the bytes, not the buffer, so that the end of work never frees a buffer.
///
/// Made and used only within work that was enqueued with [`zarr_buffer_api::enqueue`] for the buffer: that keeps the host, other queues
/// and the end of the memory away until the work is complete.
#[derive(Debug)]
pub(super) struct Operand {
    place: Place,
    side: Side,
    /// Bytes of the block.
    range: Range<usize>,
    /// Address of the allocation, where the device made it.
    allocation: Option<u64>,
}

#[derive(Debug)]
enum Place {
    Block(Arc<Block>),
    /// Host memory of somebody else.
    Foreign(NonNull<u8>),
}

// SAFETY: a pointer to plain bytes that any host thread may use (contract of `Memory`), when the events say so.
unsafe impl Send for Place {}

/// Elements in C order without gaps, and which of their bytes were ever written.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    written: Vec<u8>,
}

impl Gathered {
    /// Bytes that are there.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { written: vec![1; bytes.len()], bytes }
    }
}

impl Operand {
    /// `buffer`, to be used by work on a queue of `world`.
    pub(super) fn new(world: &Arc<World>, buffer: &Buffer) -> Result<Self, BufferError> {
        let range = buffer.offset()..buffer.offset() + buffer.len();
        if let Some(memory) = buffer.memory().as_any().downcast_ref::<ToyMemory>()
            && Arc::ptr_eq(&memory.world, world)
        {
            let side = if memory.device == world.id { Side::Device } else { Side::Host };
            return Ok(Self { place: Place::Block(Arc::clone(&memory.block)), side, range, allocation: Some(memory.address) });
        }
        let memory = buffer.memory();
        if memory.device() == world.id {
            // Imported from somebody who had it from this device.
            if let Some((block, start, offset)) = world.blocks.find(memory.address(), memory.len()) {
                let range = range.start + offset..range.end + offset;
                return Ok(Self { place: Place::Block(block), side: Side::Device, range, allocation: Some(start) });
            }
            if buffer.is_empty() {
                return Ok(Self { place: Place::Foreign(NonNull::dangling()), side: Side::Device, range: 0..0, allocation: None });
            }
        }
        let pointer = memory.host_pointer().ok_or_else(|| {
            let message = format!("bytes on {}, which this device cannot reach", buffer.device());
            BufferError::new(BufferErrorKind::Unsupported, message).on(world.id)
        })?;
        Ok(Self { place: Place::Foreign(pointer), side: Side::Host, range, allocation: None })
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// What the tracker is to know of the use of `layout`'s bytes.
    pub(super) fn touch(&self, layout: &Layout, write: bool) -> Option<Touch> {
        let span = layout.span().ok()?;
        let bytes = self.range.start + span.start..self.range.start + span.end;
        Some(Touch { allocation: self.allocation?, bytes, write })
    }

    /// Reads elements. `layout` was checked against the buffer.
    pub(super) fn gather(&self, layout: &Layout) -> Result<Gathered, BufferError> {
        let len = layout.len() * layout.item_size;
        let mut gathered = Gathered::new(vec![0; len]);
        let packed = Layout::contiguous(&layout.shape, layout.item_size)?;
        match &self.place {
            Place::Block(block) => match &**block {
                Block::Opaque(cells) => {
                    let cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
                    transfer(&mut gathered.bytes, &packed, &cells.bytes[self.range.clone()], layout)?;
                    transfer(&mut gathered.written, &packed, &cells.written[self.range.clone()], layout)?;
                }
                Block::Shared(block) => {
                    // SAFETY: the block's bytes are initialised; the range lies in it. Nobody writes them: this work was enqueued for the buffer.
                    let bytes =
                        unsafe { std::slice::from_raw_parts(block.pointer.as_ptr().wrapping_add(self.range.start), self.range.len()) };
                    transfer(&mut gathered.bytes, &packed, bytes, layout)?;
                }
            },
            Place::Foreign(pointer) => {
                // SAFETY: initialised bytes by the contract of `Memory`, alive and not written by others: this work was enqueued for the buffer.
                let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr().wrapping_add(self.range.start), self.range.len()) };
                transfer(&mut gathered.bytes, &packed, bytes, layout)?;
            }
        }
        Ok(gathered)
    }

    /// Reads elements for somebody who looks at them: bytes that were never written are reported.
    pub(super) fn gather_checked(&self, layout: &Layout, world: &World) -> Result<Gathered, BufferError> {
        let gathered = self.gather(layout)?;
        if gathered.written.contains(&0) {
            let first = gathered.written.iter().take_while(|&&written| written != 0).count();
            let message = format!("byte {first} of a box at {:#x}", self.allocation.unwrap_or(0) + self.range.start as u64);
            world.tracker().report(ViolationKind::UninitialisedRead, message);
        }
        Ok(gathered)
    }

    /// Writes elements. `layout` was checked against the buffer.
    pub(super) fn scatter(&self, layout: &Layout, elements: &Gathered) -> Result<(), BufferError> {
        let packed = Layout::contiguous(&layout.shape, layout.item_size)?;
        match &self.place {
            Place::Block(block) => match &**block {
                Block::Opaque(cells) => {
                    let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
                    transfer(&mut cells.bytes[self.range.clone()], layout, &elements.bytes, &packed)?;
                    transfer(&mut cells.written[self.range.clone()], layout, &elements.written, &packed)
                }
                Block::Shared(block) => {
                    // SAFETY: the range lies in the block. Nobody else uses the bytes: this work was enqueued for the buffer, as a write.
                    let bytes =
                        unsafe { std::slice::from_raw_parts_mut(block.pointer.as_ptr().wrapping_add(self.range.start), self.range.len()) };
                    transfer(bytes, layout, &elements.bytes, &packed)
                }
            },
            Place::Foreign(pointer) => {
                // SAFETY: valid by the contract of `Memory`, alive and not used by others: this work was enqueued for the buffer, as a write.
                let bytes = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr().wrapping_add(self.range.start), self.range.len()) };
                transfer(bytes, layout, &elements.bytes, &packed)
            }
        }
    }
}

fn transfer(to: &mut [u8], to_layout: &Layout, from: &[u8], from_layout: &Layout) -> Result<(), BufferError> {
    let strides = to_layout.strides.iter().zip(&from_layout.strides);
    let axes: Vec<CopyAxis<'_>> = to_layout
        .shape
        .iter()
        .zip(strides)
        .map(|(&len, (&to, &from))| CopyAxis { len, destination: Offsets::Stride(to), source: Offsets::Stride(from) })
        .collect();
    copy_axes(to, to_layout.offset, from, from_layout.offset, &axes, to_layout.item_size)
}
