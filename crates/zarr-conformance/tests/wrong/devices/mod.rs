//! A right device over that of the host, method by method, so that a wrong one is right but for the methods that it replaces.

pub(crate) mod copies;
pub(crate) mod hazards;
pub(crate) mod memory;
pub(crate) mod queues;
mod toys;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, Event, EventState, HostDevice, Layout, Queue, QueueId, Region};
use zarr_conformance::device::DeviceUnderTest;

use crate::idle::Wrong;

/// What a device and its queues keep.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Memory that was given. It is kept, so that no other comes to its place.
    given: Mutex<Vec<(Buffer, Kind)>>,
    threads: Mutex<HashSet<ThreadId>>,
    once: Mutex<bool>,
    first: Mutex<Option<QueueId>>,
    /// Bytes that all work passes through.
    pub(crate) bounce: Mutex<(Option<Owner>, Vec<u8>)>,
    bounced: Condvar,
    pub(crate) count: Mutex<u64>,
    pub(crate) last: Mutex<Option<QueueId>>,
    pub(crate) late: Mutex<Option<(Buffer, Buffer)>>,
    pub(crate) shadows: Mutex<HashMap<u64, Vec<u8>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Staging,
    /// Memory that did not come from the device, or too much to be kept.
    Plain,
}

fn base(buffer: &Buffer) -> u64 {
    buffer.address() - buffer.offset() as u64
}

impl State {
    pub(crate) fn kind(&self, buffer: &Buffer) -> Kind {
        let given = self.given.lock().unwrap();
        given.iter().rev().find(|(given, _)| given.shares_allocation(buffer)).map_or(Kind::Plain, |(_, kind)| *kind)
    }

    fn note(&self, buffer: Buffer, kind: Kind) -> Buffer {
        if buffer.device() == DeviceId::CPU && buffer.len() < 2 << 20 {
            self.given.lock().unwrap().push((buffer.clone(), kind));
        }
        buffer
    }

    /// Whether this is called on more threads than `most`.
    pub(crate) fn is_crowded(&self, most: usize) -> bool {
        let mut threads = self.threads.lock().unwrap();
        threads.insert(thread::current().id());
        threads.len() > most
    }

    /// Whether nobody was told so before.
    pub(crate) fn is_once(&self) -> bool {
        !std::mem::replace(&mut self.once.lock().unwrap(), true)
    }

    /// The queue that came here first.
    pub(crate) fn first(&self, queue: QueueId) -> QueueId {
        *self.first.lock().unwrap().get_or_insert(queue)
    }

    /// Puts bytes in the bounce buffer and, if asked, waits until they are overwritten as expected; gives what is there then. Waits not for ever.
    pub(crate) fn bounce(&self, by: Owner, bytes: Vec<u8>, until: Option<&dyn Fn(Owner) -> bool>) -> Option<Vec<u8>> {
        let mut bounce = self.bounce.lock().unwrap();
        *bounce = (Some(by), bytes);
        self.bounced.notify_all();
        let until = until?;
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if bounce.0.is_some_and(until) {
                return Some(bounce.1.clone());
            }
            bounce = self.bounced.wait_timeout(bounce, Duration::from_millis(50)).unwrap().0;
        }
        None
    }
}

/// Who put bytes somewhere.
pub(crate) type Owner = (QueueId, ThreadId);

type Done = Result<(), BufferError>;
type Allocated = Result<Buffer, BufferError>;

/// What a device does; those of the device below, but for what is replaced.
pub(crate) struct Methods {
    pub(crate) is_unified: fn(&dyn Device) -> bool,
    pub(crate) allocate: fn(&State, &dyn Device, usize, &dyn Queue) -> Allocated,
    pub(crate) allocate_staging: fn(&State, &dyn Device, usize) -> Allocated,
    pub(crate) queue_device: fn(DeviceId) -> DeviceId,
    pub(crate) record: fn(&State, &dyn Queue) -> Result<Event, BufferError>,
    pub(crate) wait_for: fn(&dyn Queue, &Event) -> Done,
    pub(crate) copy: fn(&State, &dyn Queue, &Buffer, &Buffer) -> Done,
    pub(crate) copy_region: fn(&State, &dyn Queue, &Region, &Region) -> Done,
    pub(crate) fill_region: fn(&State, &dyn Queue, &Region, &[u8]) -> Done,
    /// What happens when a queue is dropped; its last copy is given.
    pub(crate) dropped: fn(&State, &Buffer, &Buffer),
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            is_unified: |device| device.is_unified(),
            allocate: |_, device, len, queue| device.allocate(len, queue),
            allocate_staging: |_, device, len| device.allocate_staging(len),
            queue_device: |device| device,
            record: |_, queue| queue.record(),
            wait_for: |queue, event| queue.wait_for(event),
            copy: |_, queue, source, destination| queue.copy(source, destination),
            copy_region: |_, queue, source, destination| queue.copy_region(source, destination),
            fill_region: |_, queue, destination, element| queue.fill_region(destination, element),
            dropped: |_, _, _| {},
        }
    }
}

type Replace = fn(&mut Methods);

/// A wrong device over the host's, that one law finds.
pub(crate) fn wrong(law: &'static str, what: &str, replace: Replace) -> Wrong {
    by_several(&[law], what, replace)
}

/// A wrong device over the host's, that several laws find.
pub(crate) fn by_several(laws: &[&'static str], what: &str, replace: Replace) -> Wrong {
    Wrong::new(what, laws, move || over_the_host(replace))
}

pub(crate) fn over_the_host(replace: Replace) -> DeviceUnderTest {
    DeviceUnderTest::new(Arc::new(replaced(Arc::new(HostDevice), replace)))
}

pub(crate) fn replaced(inner: Arc<dyn Device>, replace: Replace) -> Replaced {
    let mut methods = Methods::default();
    replace(&mut methods);
    Replaced { inner, shared: Arc::new((methods, State::default())) }
}

/// A device with some methods replaced.
pub(crate) struct Replaced {
    inner: Arc<dyn Device>,
    shared: Arc<(Methods, State)>,
}

impl fmt::Debug for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Replaced")
    }
}

struct ReplacedQueue {
    inner: Arc<dyn Queue>,
    shared: Arc<(Methods, State)>,
    last: Mutex<Option<(Buffer, Buffer)>>,
}

impl fmt::Debug for ReplacedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplacedQueue")
    }
}

impl Device for Replaced {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }
    fn name(&self) -> String {
        "replaced".into()
    }
    fn is_unified(&self) -> bool {
        (self.shared.0.is_unified)(&*self.inner)
    }
    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(Arc::new(ReplacedQueue { inner: self.inner.create_queue()?, shared: Arc::clone(&self.shared), last: Mutex::default() }))
    }
    fn allocate(&self, len: usize, queue: &dyn Queue) -> Allocated {
        let queue = queue.as_any().downcast_ref::<ReplacedQueue>().unwrap();
        let (methods, state) = &*self.shared;
        Ok(state.note((methods.allocate)(state, &*self.inner, len, &*queue.inner)?, Kind::Device))
    }
    fn allocate_staging(&self, len: usize) -> Allocated {
        let (methods, state) = &*self.shared;
        Ok(state.note((methods.allocate_staging)(state, &*self.inner, len)?, Kind::Staging))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Queue for ReplacedQueue {
    fn id(&self) -> QueueId {
        self.inner.id()
    }
    fn device(&self) -> DeviceId {
        (self.shared.0.queue_device)(self.inner.device())
    }
    fn record(&self) -> Result<Event, BufferError> {
        (self.shared.0.record)(&self.shared.1, &*self.inner)
    }
    fn wait_for(&self, event: &Event) -> Done {
        (self.shared.0.wait_for)(&*self.inner, event)
    }
    fn copy(&self, source: &Buffer, destination: &Buffer) -> Done {
        (self.shared.0.copy)(&self.shared.1, &*self.inner, source, destination)?;
        *self.last.lock().unwrap() = Some((source.clone(), destination.clone()));
        Ok(())
    }
    fn copy_region(&self, source: &Region, destination: &Region) -> Done {
        (self.shared.0.copy_region)(&self.shared.1, &*self.inner, source, destination)
    }
    fn fill_region(&self, destination: &Region, element: &[u8]) -> Done {
        self.last.lock().unwrap().take();
        (self.shared.0.fill_region)(&self.shared.1, &*self.inner, destination, element)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for ReplacedQueue {
    fn drop(&mut self) {
        if let Some((source, destination)) = self.last.lock().unwrap().take() {
            (self.shared.0.dropped)(&self.shared.1, &source, &destination);
        }
    }
}

/// An event that says it is of another queue.
#[derive(Debug)]
pub(crate) struct Misplaced(pub(crate) Event, pub(crate) QueueId);

impl EventState for Misplaced {
    fn queue(&self) -> QueueId {
        self.1
    }
    fn is_complete(&self) -> Result<bool, BufferError> {
        self.0.is_complete()
    }
    fn wait(&self) -> Done {
        self.0.wait()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(crate) fn changed(region: &Region, change: impl FnOnce(&mut Layout)) -> Region {
    let mut region = region.clone();
    change(&mut region.layout);
    region
}
