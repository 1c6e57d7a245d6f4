use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, DeviceKind, Event, HostDevice, Memory, Queue, QueueId, Region};

/// A device whose memory the host sees: its queues are the host's, its buffers say where they live.
#[derive(Debug)]
pub struct Scratchpad;

impl Scratchpad {
    const ID: DeviceId = DeviceId::new(DeviceKind::ExtDev, 7);
}

impl Device for Scratchpad {
    fn id(&self) -> DeviceId {
        Self::ID
    }
    fn name(&self) -> String {
        "scratchpad".into()
    }
    fn is_unified(&self) -> bool {
        true
    }
    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(Arc::new(InOrder(HostDevice.create_queue()?)))
    }
    fn allocate(&self, len: usize, _: &dyn Queue) -> Result<Buffer, BufferError> {
        self.allocate_staging(len)
    }
    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        Ok(Buffer::new(Pad(HostDevice.allocate_staging(len)?)))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The host's bytes, under another device's name.
#[derive(Debug)]
struct Pad(Buffer);

// SAFETY: the host's memory lives as long as `self.0`, is initialised, and stays where it is; nobody else has that buffer.
unsafe impl Memory for Pad {
    fn device(&self) -> DeviceId {
        Scratchpad::ID
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn address(&self) -> u64 {
        self.0.address()
    }
    fn host_pointer(&self) -> Option<NonNull<u8>> {
        self.0.memory().host_pointer()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The host's queue, that runs work when it is enqueued.
#[derive(Debug)]
struct InOrder(Arc<dyn Queue>);

impl Queue for InOrder {
    fn id(&self) -> QueueId {
        self.0.id()
    }
    fn device(&self) -> DeviceId {
        Scratchpad::ID
    }
    fn record(&self) -> Result<Event, BufferError> {
        self.0.record()
    }
    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        self.0.wait_for(event)
    }
    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        self.0.copy(source, destination)
    }
    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        self.0.copy_region(source, destination)
    }
    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        self.0.fill_region(destination, element)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
