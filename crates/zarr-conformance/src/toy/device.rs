use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, DeviceKind, Layout, Queue};

use super::counters::{Counters, Tally};
use super::memory::{Blocks, Operand, ToyMemory};
use super::queue::ToyQueue;
use super::segment::ToyProvider;
use super::tracker::{Tracker, Violation};

/// When the queues of a toy device run their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Schedule {
    /// As soon as their threads get to it.
    #[default]
    Soon,
    /// Each piece of work up to 0.3 ms later than it could, by chance.
    Delayed {
        /// Where chance starts.
        seed: u64,
    },
    /// As late as can be: work starts only once a host thread waits for an event behind it, or the queue is dropped. Who only polls polls for ever.
    WhenWaitedFor,
}

/// A deliberate mistake of a toy device, to see that tests find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToyFault {
    /// A queue does not wait for the events that it is told to wait for.
    IgnoresWaits,
    /// Work on device memory is not noted on the buffers.
    ForgetsEvents,
    /// A copy of whole buffers leaves out the last byte.
    CopiesShort,
}

/// How a toy device behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToyOptions {
    /// When work runs.
    pub schedule: Schedule,
    /// The most bytes of device memory; no limit if `None`.
    pub memory_limit: Option<u64>,
    /// A deliberate mistake.
    pub fault: Option<ToyFault>,
}

/// What a toy device, its queues and its buffers share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) id: DeviceId,
    pub(super) unified: bool,
    pub(super) options: ToyOptions,
    pub(super) tally: Tally,
    pub(super) blocks: Blocks,
    tracker: Mutex<Tracker>,
    queues: AtomicU64,
}

impl World {
    fn new(ordinal: i32, unified: bool, options: ToyOptions) -> Arc<Self> {
        Arc::new(Self {
            id: DeviceId::new(DeviceKind::ExtDev, ordinal),
            unified,
            options,
            tally: Tally::default(),
            blocks: Blocks::default(),
            tracker: Mutex::default(),
            queues: AtomicU64::new(0),
        })
    }

    pub(super) fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create_queue(world: &Arc<World>) -> Result<Arc<dyn Queue>, BufferError> {
    world.tally.queues.add(1);
    Ok(Arc::new(ToyQueue::new(world, world.queues.fetch_add(1, Ordering::Relaxed))?))
}

/// The toy queue behind `queue`, if it belongs to `world`.
pub(super) fn own_queue<'a>(world: &Arc<World>, queue: &'a dyn Queue) -> Result<&'a ToyQueue, BufferError> {
    queue
        .as_any()
        .downcast_ref::<ToyQueue>()
        .filter(|queue| Arc::ptr_eq(queue.world(), world))
        .ok_or_else(|| BufferError::parameter("a queue of another device").on(world.id))
}

fn assert_clean(world: &World) {
    let violations = world.tracker().take_violations();
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{} was misused:\n{}", world.id, lines.join("\n"));
}

macro_rules! toy_device {
    ($device:ident) => {
        impl $device {
            /// The `ordinal`-th toy device. Both kinds share their ordinals: use different ones where two meet.
            pub fn new(ordinal: i32) -> Arc<Self> {
                Self::with_options(ordinal, ToyOptions::default())
            }

            /// Its native codecs, to be put in a registry.
            pub fn provider(&self) -> ToyProvider {
                ToyProvider::new(Arc::clone(&self.0))
            }

            /// What it was asked to do so far.
            pub fn counters(&self) -> Counters {
                self.0.tally.get()
            }

            /// What its users did wrong so far.
            pub fn violations(&self) -> Vec<Violation> {
                self.0.tracker().violations().to_vec()
            }

            /// Panics if its users did anything wrong, with all of it in the message.
            #[track_caller]
            pub fn assert_clean(&self) {
                assert_clean(&self.0);
            }
        }
    };
}

/// A device whose memory the host cannot dereference.
///
/// Addresses lie where no memory is. Contents are kept in a table on the side, together with which bytes were ever
/// written. Staging memory is host memory.
#[derive(Debug)]
pub struct OpaqueDevice(Arc<World>);

toy_device!(OpaqueDevice);

impl OpaqueDevice {
    /// The `ordinal`-th toy device, with options.
    pub fn with_options(ordinal: i32, options: ToyOptions) -> Arc<Self> {
        Arc::new(Self(World::new(ordinal, false, options)))
    }
}

impl Device for OpaqueDevice {
    fn id(&self) -> DeviceId {
        self.0.id
    }

    fn name(&self) -> String {
        "toy device with opaque memory".into()
    }

    fn is_unified(&self) -> bool {
        false
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        create_queue(&self.0)
    }

    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        let queue = own_queue(&self.0, queue)?;
        let buffer = Buffer::new(ToyMemory::opaque(&self.0, len)?);
        self.0.tally.allocations.add(1);
        // In the order of the queue, as a pool does it: to other queues, the memory is there only after this event.
        let touch = Operand::new(&self.0, &buffer)?.touch(&Layout::contiguous(&[len], 1)?, true);
        queue.launch(&[], &[&buffer], touch.as_slice(), Box::new(|_| Ok(())))?;
        Ok(buffer)
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        let memory = ToyMemory::shared(&self.0, DeviceId::CPU, len, true)?;
        self.0.tally.staging_allocations.add(1);
        Ok(Buffer::new(memory))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A device whose memory the host sees as well. Staging memory is device memory.
#[derive(Debug)]
pub struct UnifiedDevice(Arc<World>);

toy_device!(UnifiedDevice);

impl UnifiedDevice {
    /// The `ordinal`-th toy device, with options. Without a fault: where the host sees the memory, those of [`ToyFault`] do not apply.
    pub fn with_options(ordinal: i32, options: ToyOptions) -> Arc<Self> {
        Arc::new(Self(World::new(ordinal, true, ToyOptions { fault: None, ..options })))
    }
}

impl Device for UnifiedDevice {
    fn id(&self) -> DeviceId {
        self.0.id
    }

    fn name(&self) -> String {
        "toy device with unified memory".into()
    }

    fn is_unified(&self) -> bool {
        true
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        create_queue(&self.0)
    }

    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        own_queue(&self.0, queue)?;
        let memory = ToyMemory::shared(&self.0, self.0.id, len, false)?;
        self.0.tally.allocations.add(1);
        Ok(Buffer::new(memory))
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        let memory = ToyMemory::shared(&self.0, self.0.id, len, false)?;
        self.0.tally.allocations.add(1);
        self.0.tally.staging_allocations.add(1);
        Ok(Buffer::new(memory))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
