use std::alloc;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{
    Buffer, BufferError, BufferErrorKind, CopyAxis, Device, DeviceId, Event, EventState, Layout, Memory, Offsets, Queue, QueueId, Region,
    copy_axes, fill_axes,
};

/// The host as a device: unified with itself. Its queues run at once, and so refuse bytes that other queues still work on
/// ([`BufferErrorKind::NotReady`]) rather than wait for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostDevice;

impl Device for HostDevice {
    fn id(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn name(&self) -> String {
        "host memory".into()
    }

    fn is_unified(&self) -> bool {
        true
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(Arc::new(HostQueue { id: QueueId::unique() }))
    }

    fn allocate(&self, len: usize, _: &dyn Queue) -> Result<Buffer, BufferError> {
        self.allocate_staging(len)
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        HostMemory::zeroed(len).map(Buffer::new)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Asks the system to back a large, not yet touched allocation with huge pages, so that first writes fault 512 times less often. Only advice:
/// it never changes the bytes, and does nothing for less than 4 MiB or where the system has no such thing.
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const HUGE_PAGE: usize = 2 << 20;
        let start = memory.as_mut_ptr() as usize;
        let end = start + size_of_val(memory);
        let first = start.next_multiple_of(4096);
        let last = end & !4095;
        if end - start >= 2 * HUGE_PAGE && first < last {
            // SAFETY: the range is whole pages inside a live allocation that we hold exclusively, and MADV_HUGEPAGE changes only how
            // the kernel backs them, never their contents.
            unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Host memory that it owns: a `Vec<u8>` taken apart, or zeroed bytes with the alignment that a device promises.
#[derive(Debug)]
pub(crate) struct HostMemory {
    pointer: NonNull<u8>,
    len: usize,
    /// What the allocator was asked for; of size 0 when it was not asked.
    allocated: alloc::Layout,
}

impl HostMemory {
    const ALIGN: usize = 256;

    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        let allocated = alloc::Layout::array::<u8>(bytes.capacity()).unwrap_or(alloc::Layout::new::<()>());
        Self { pointer: NonNull::new(bytes.as_mut_ptr()).unwrap_or(NonNull::dangling()), len: bytes.len(), allocated }
    }

    fn zeroed(len: usize) -> Result<Self, BufferError> {
        let no_room = || BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes")).on(DeviceId::CPU);
        let allocated = alloc::Layout::from_size_align(len, Self::ALIGN).map_err(|error| no_room().with_source(error))?;
        if len == 0 {
            return Ok(Self::new(Vec::new()));
        }
        // SAFETY: the size is not 0.
        let pointer = NonNull::new(unsafe { alloc::alloc_zeroed(allocated) }).ok_or_else(no_room)?;
        // SAFETY: `len` zeroed bytes that nobody else knows of, for as long as this borrow.
        advise_huge_pages(unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), len) });
        Ok(Self { pointer, len, allocated })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.allocated.size() != 0 {
            // SAFETY: allocated with this layout, by `zeroed` or by the `Vec` that `new` took apart, and nobody else frees it.
            unsafe { alloc::dealloc(self.pointer.as_ptr(), self.allocated) };
        }
    }
}

// SAFETY: the value owns its bytes like the `Vec` it came from.
unsafe impl Send for HostMemory {}
// SAFETY: shared access gives out only the address; who dereferences it is under the contract of `Memory`.
unsafe impl Sync for HostMemory {}

// SAFETY: the bytes came initialised, stay in place and are freed on drop; nothing here touches them.
unsafe impl Memory for HostMemory {
    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.pointer.as_ptr() as u64
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        Some(self.pointer)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct HostQueue {
    id: QueueId,
}

#[derive(Debug)]
struct Done(QueueId);

impl EventState for Done {
    fn queue(&self) -> QueueId {
        self.0
    }

    fn is_complete(&self) -> Result<bool, BufferError> {
        Ok(true)
    }

    fn wait(&self) -> Result<(), BufferError> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Queue for HostQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn record(&self) -> Result<Event, BufferError> {
        Ok(Event::new(Done(self.id)))
    }

    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        // This queue runs its work when it is enqueued, so that "later work waits" means waiting now.
        event.wait()
    }

    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        if source.len() != destination.len() {
            return Err(BufferError::parameter(format!("copy of {} bytes to {}", source.len(), destination.len())));
        }
        if source.shares_allocation(destination) {
            return Err(BufferError::parameter("copy within one allocation"));
        }
        let read = source.host_read()?;
        destination.host_write()?.copy_from_slice(&read);
        Ok(())
    }

    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        if source.layout.shape != destination.layout.shape || source.layout.item_size != destination.layout.item_size {
            return Err(BufferError::parameter(format!(
                "copy of {:?} x {} bytes to {:?} x {}",
                source.layout.shape, source.layout.item_size, destination.layout.shape, destination.layout.item_size
            )));
        }
        if source.buffer.shares_allocation(&destination.buffer) {
            return Err(BufferError::parameter("copy within one allocation"));
        }
        // A region's fields are public: it may have changed since it was checked.
        source.layout.check_within(source.buffer.len())?;
        destination.layout.check_within(destination.buffer.len())?;
        let read = source.buffer.host_read()?;
        let mut write = destination.buffer.host_write()?;
        let axes = paired_axes(&destination.layout, &source.layout);
        copy_axes(&mut write, destination.layout.offset, &read, source.layout.offset, &axes, source.layout.item_size)
    }

    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        if element.len() != destination.layout.item_size {
            let size = destination.layout.item_size;
            return Err(BufferError::parameter(format!("an element of {} bytes into elements of {size}", element.len())));
        }
        destination.layout.check_within(destination.buffer.len())?;
        let mut write = destination.buffer.host_write()?;
        let axes = paired_axes(&destination.layout, &destination.layout);
        fill_axes(&mut write, destination.layout.offset, &axes, element)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn paired_axes(destination: &Layout, source: &Layout) -> Vec<CopyAxis<'static>> {
    let strides = destination.strides.iter().zip(&source.strides);
    destination
        .shape
        .iter()
        .zip(strides)
        .map(|(&len, (&to, &from))| CopyAxis { len, destination: Offsets::Stride(to), source: Offsets::Stride(from) })
        .collect()
}
