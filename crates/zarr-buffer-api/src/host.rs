use std::alloc;
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    Buffer, BufferError, BufferErrorKind, CopyAxis, Device, DeviceId, Event, EventState, Layout, Memory, Offsets, Queue, QueueId, Region,
    copy_axes, enqueue, fill_axes,
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
        Ok(Arc::new(HostQueue { id: QueueId::unique(), turn: Mutex::default() }))
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
    /// Held while work runs.
    turn: Mutex<()>,
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
        self.transfer(source, 0..source.len(), destination, 0..destination.len(), |read, write| {
            write.copy_from_slice(read);
            Ok(())
        })
    }

    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        let (from, to) = (&source.layout, &destination.layout);
        if from.shape != to.shape || from.item_size != to.item_size {
            let message = format!("copy of {:?} x {} bytes to {:?} x {}", from.shape, from.item_size, to.shape, to.item_size);
            return Err(BufferError::parameter(message));
        }
        // A region's fields are public: it may have changed since it was checked.
        from.check_within(source.buffer.len())?;
        to.check_within(destination.buffer.len())?;
        let (start, end) = (from.span()?, to.span()?);
        self.transfer(&source.buffer, start.clone(), &destination.buffer, end.clone(), |read, write| {
            copy_axes(write, to.offset - end.start, read, from.offset - start.start, &paired_axes(to, from), from.item_size)
        })
    }

    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        let layout = &destination.layout;
        if element.len() != layout.item_size {
            return Err(BufferError::parameter(format!("an element of {} bytes into elements of {}", element.len(), layout.item_size)));
        }
        layout.check_within(destination.buffer.len())?;
        let nothing = Buffer::from_vec(Vec::new());
        self.transfer(&nothing, 0..0, &destination.buffer, 0..destination.buffer.len(), |_, write| {
            fill_axes(write, layout.offset, &paired_axes(layout, layout), element)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostQueue {
    /// Runs `work` now, on bytes of `source` and of `destination`.
    fn transfer(
        &self,
        source: &Buffer,
        from: Range<usize>,
        destination: &Buffer,
        to: Range<usize>,
        work: impl FnOnce(&[u8], &mut [u8]) -> Result<(), BufferError>,
    ) -> Result<(), BufferError> {
        let (source, destination) = (source.slice(from)?, destination.slice(to)?);
        let (from, to) = (source.host_pointer()?, destination.host_pointer()?);
        let end = |buffer: &Buffer| buffer.offset() + buffer.len();
        if source.shares_allocation(&destination) && source.offset() < end(&destination) && destination.offset() < end(&source) {
            return Err(BufferError::parameter("source and destination of a copy overlap"));
        }
        // In order, whichever threads enqueue.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for (buffer, write) in [(&source, false), (&destination, true)] {
            if !buffer.events_done(write)? {
                return Err(buffer.not_ready());
            }
        }
        enqueue(self, &[&source], &[&destination], || {
            // SAFETY: initialised and alive by the contract of `Memory`. `enqueue` keeps out the host's writes and the work of other queues, the
            // turn that of this queue, and the destination is elsewhere.
            let read = unsafe { std::slice::from_raw_parts(from.as_ptr(), source.len()) };
            // SAFETY: as above, and `enqueue` keeps out the host's reads, too.
            let write = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), destination.len()) };
            work(read, write)
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(buffer: &Buffer) -> Region {
        Region::new(buffer.clone(), Layout::contiguous(&[buffer.len()], 1).unwrap()).unwrap()
    }

    #[test]
    fn memory_is_aligned_and_zero() {
        let queue = HostDevice.create_queue().unwrap();
        for len in [0, 1, 1000, 9 << 20] {
            let buffer = HostDevice.allocate(len, &*queue).unwrap();
            assert!(len == 0 || buffer.address().is_multiple_of(256));
            assert!(buffer.host_read().unwrap().iter().all(|&byte| byte == 0));
        }
        assert_eq!(HostDevice.allocate_staging(usize::MAX).unwrap_err().kind, BufferErrorKind::OutOfMemory);
        assert_eq!(HostDevice.allocate_staging(isize::MAX as usize - 4096).unwrap_err().kind, BufferErrorKind::OutOfMemory);
    }

    #[test]
    fn a_vector_with_room_to_spare_is_freed_as_it_was_made() {
        let mut bytes = Vec::with_capacity(100);
        bytes.push(1);
        let buffer = Buffer::from_vec(bytes);
        assert_eq!(&*buffer.host_read().unwrap(), &[1]);
        drop(Buffer::from_vec(Vec::with_capacity(7)));
        drop(Buffer::from_vec(Vec::new()));
    }

    #[test]
    fn copies_within_one_allocation_must_not_overlap() {
        let queue = HostDevice.create_queue().unwrap();
        let buffer = Buffer::from_vec((0..8).collect());
        let part = |start, end| buffer.slice(start..end).unwrap();
        queue.copy(&part(0, 4), &part(4, 8)).unwrap();
        assert_eq!(&*buffer.host_read().unwrap(), &[0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(queue.copy(&part(0, 4), &part(3, 7)).unwrap_err().kind, BufferErrorKind::Parameter);
    }

    #[test]
    fn threads_share_an_allocation() {
        let output = Buffer::from_vec(vec![0; 4096]);
        let common = HostDevice.create_queue().unwrap();
        std::thread::scope(|scope| {
            for index in 0..4u8 {
                let (output, common) = (&output, &common);
                scope.spawn(move || {
                    let own = HostDevice.create_queue().unwrap();
                    let queue = if index < 2 { &own } else { common };
                    let start = usize::from(index) * 1024;
                    let part = whole(&output.slice(start..start + 1024).unwrap());
                    (0..200).for_each(|_| queue.fill_region(&part, &[index]).unwrap());
                });
            }
        });
        let expected: Vec<u8> = (0..4096).map(|position| (position / 1024) as u8).collect();
        assert_eq!(*output.host_read().unwrap(), *expected);
    }
}
