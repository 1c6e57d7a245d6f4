use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, MutexGuard};

use crate::hazards::{HazardCell, Hazards};
use crate::{BufferError, BufferErrorKind, DeviceId, Event};

/// One allocation, as a device implements it.
///
/// # Safety
/// While the value lives, [`Memory::len`] bytes at [`Memory::address`] belong to it. If [`Memory::host_pointer`] is `Some`, that pointer is
/// valid for reads and writes of [`Memory::len`] initialised bytes by any host thread until the value is dropped, and it never
/// changes, not even when the value moves. The implementation itself does not read or write them except in work that the buffer's events describe.
pub unsafe trait Memory: fmt::Debug + Send + Sync + 'static {
    /// The device that the bytes live on.
    fn device(&self) -> DeviceId;

    /// Bytes.
    fn len(&self) -> usize;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address on the device. The host must not dereference it.
    fn address(&self) -> u64;

    /// The address on the host, where the host may dereference it.
    fn host_pointer(&self) -> Option<NonNull<u8>>;

    /// The implementation, for the device that made it.
    fn as_any(&self) -> &dyn std::any::Any;

    /// Called once, right before the value is dropped, with the events of work that may still use the bytes: the memory must outlive that work.
    ///
    /// By default the dropping thread waits. A device that can free behind its work (a stream-ordered pool, a list swept
    /// later) does so instead, and must if its queues drop buffers themselves.
    fn retire(&mut self, pending: &[Event]) {
        for event in pending {
            // The work is over when it failed, too.
            let _ = event.wait();
        }
    }
}

/// Bytes on a device: part of an allocation, shared, with the events that order work on it.
///
/// Cloning and slicing share the allocation and its events: two slices of one allocation exclude each other like the same bytes. The host reaches the bytes only through [`Buffer::host_read`] and
/// [`Buffer::host_write`], which refuse, rather than wait, while work on the bytes is pending.
#[derive(Clone)]
pub struct Buffer {
    allocation: Arc<Allocation>,
    start: usize,
    len: usize,
}

pub(crate) struct Allocation {
    memory: ManuallyDrop<Box<dyn Memory>>,
    pub(crate) hazards: HazardCell,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let Some(pending) = self.hazards.pending() else {
            // Work that nobody can wait for may still use the bytes: better lost than used after they are freed.
            return;
        };
        if !pending.is_empty() {
            self.memory.retire(&pending);
        }
        // SAFETY: the value is dropped here and nowhere else, and the allocation is gone after this.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

impl Buffer {
    /// Takes a device's allocation.
    pub fn new(memory: impl Memory) -> Self {
        let len = memory.len();
        let allocation = Allocation { memory: ManuallyDrop::new(Box::new(memory)), hazards: HazardCell::default() };
        Self { allocation: Arc::new(allocation), start: 0, len }
    }

    /// Host memory, without a copy. Plain host memory cannot be freed behind work: dropping the last of it while a queue uses it waits.
    /// [`crate::Device::allocate_staging`] gives memory without that cost.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self::new(crate::host::HostMemory::new(bytes))
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that the bytes live on.
    pub fn device(&self) -> DeviceId {
        self.allocation.memory.device()
    }

    /// Whether the host may dereference the bytes.
    pub fn is_host_visible(&self) -> bool {
        self.allocation.memory.host_pointer().is_some()
    }

    /// The device's address of the first byte. Not for the host to dereference.
    pub fn address(&self) -> u64 {
        self.allocation.memory.address() + self.start as u64
    }

    /// Where in its allocation this buffer starts, in bytes.
    pub fn offset(&self) -> usize {
        self.start
    }

    /// The whole allocation, for the device that made it.
    pub fn memory(&self) -> &dyn Memory {
        &**self.allocation.memory
    }

    /// Whether two buffers are parts of one allocation.
    pub fn shares_allocation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.allocation, &other.allocation)
    }

    /// The bytes in `range`, counted from the start of this buffer.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when the range is not inside.
    pub fn slice(&self, range: Range<usize>) -> Result<Self, BufferError> {
        if range.start > range.end || range.end > self.len {
            return Err(BufferError::parameter(format!("bytes {range:?} of a buffer of {}", self.len)));
        }
        Ok(Self { allocation: Arc::clone(&self.allocation), start: self.start + range.start, len: range.end - range.start })
    }

    /// The event of the last write, complete or not; `None` when the bytes were never written by a queue.
    pub fn ready(&self) -> Option<Event> {
        self.hazards().last_write.clone()
    }

    /// Blocks the calling thread until all work on the bytes, reads and writes, is done.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when that work failed.
    pub fn wait(&self) -> Result<(), BufferError> {
        let events: Vec<Event> = self.hazards().events()?;
        for event in events {
            if !event.is_complete()? {
                event.wait()?;
            }
        }
        Ok(())
    }

    /// Whether all work on the bytes is done. Never blocks.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when that work failed.
    pub fn is_idle(&self) -> Result<bool, BufferError> {
        self.hazards().done(true)
    }

    /// Whether the events are complete that such work must come after. Says nothing of calls of [`crate::enqueue`] under way.
    pub(crate) fn events_done(&self, write: bool) -> Result<bool, BufferError> {
        self.hazards().events_done(write)
    }

    /// The bytes, for the host to read.
    ///
    /// # Errors
    /// [`BufferErrorKind::NotHostVisible`]; [`BufferErrorKind::NotReady`] while a write is pending (call [`Buffer::wait`] first);
    /// [`BufferErrorKind::Borrowed`] while a [`HostWrite`] lives.
    pub fn host_read(&self) -> Result<HostRead<'_>, BufferError> {
        let pointer = self.host_pointer()?;
        let mut hazards = self.hazards();
        if hazards.guards < 0 {
            return Err(borrowed(self, "read by the host"));
        }
        if !hazards.done(false)? {
            return Err(self.not_ready());
        }
        hazards.guards += 1;
        Ok(HostRead { buffer: self, pointer })
    }

    /// The bytes, for the host to write.
    ///
    /// # Errors
    /// [`BufferErrorKind::NotHostVisible`]; [`BufferErrorKind::NotReady`] while any work is pending (call [`Buffer::wait`] first);
    /// [`BufferErrorKind::Borrowed`] while another guard lives on the same allocation.
    pub fn host_write(&self) -> Result<HostWrite<'_>, BufferError> {
        let pointer = self.host_pointer()?;
        let mut hazards = self.hazards();
        if hazards.guards != 0 {
            return Err(borrowed(self, "written by the host"));
        }
        if !hazards.done(true)? {
            return Err(self.not_ready());
        }
        hazards.guards = -1;
        Ok(HostWrite { buffer: self, pointer })
    }

    /// As [`Buffer::host_write`], with a guard that owns its share of the allocation: for futures and threads that outlive the caller's borrow.
    ///
    /// # Errors
    /// As [`Buffer::host_write`].
    pub fn host_write_owned(&self) -> Result<OwnedHostWrite, BufferError> {
        // The claim outlives this guard, in the one that owns.
        let pointer = ManuallyDrop::new(self.host_write()?).pointer;
        Ok(OwnedHostWrite { buffer: self.clone(), pointer })
    }

    pub(crate) fn host_pointer(&self) -> Result<NonNull<u8>, BufferError> {
        let base = self.allocation.memory.host_pointer().ok_or_else(|| {
            BufferError::new(BufferErrorKind::NotHostVisible, "the host cannot dereference these bytes; copy them to the host")
                .on(self.device())
        })?;
        // SAFETY: `start` was checked against the allocation's length when the slice was made, and `Memory` promises that many bytes there.
        Ok(unsafe { base.add(self.start) })
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    fn hazards(&self) -> MutexGuard<'_, Hazards> {
        self.allocation.hazards.lock()
    }

    pub(crate) fn not_ready(&self) -> BufferError {
        BufferError::new(BufferErrorKind::NotReady, "work on these bytes is pending; wait for the buffer first").on(self.device())
    }
}

pub(crate) fn borrowed(buffer: &Buffer, wish: &str) -> BufferError {
    BufferError::new(BufferErrorKind::Borrowed, format!("the bytes cannot be {wish}: they are held")).on(buffer.device())
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes on {} at {:#x})", self.len, self.device(), self.address())
    }
}

/// Shared access of the host to a buffer's bytes.
#[derive(Debug)]
pub struct HostRead<'a> {
    buffer: &'a Buffer,
    pointer: NonNull<u8>,
}

// SAFETY: the guard gives shared access to plain bytes that any thread may read (contract of `Memory`).
unsafe impl Send for HostRead<'_> {}
// SAFETY: as above; `&HostRead` gives only `&[u8]`.
unsafe impl Sync for HostRead<'_> {}

impl Deref for HostRead<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `pointer` is valid for `len` initialised bytes while the buffer lives (contract of `Memory`), no `HostWrite` exists
        // (guard count), and no enqueued write is pending or can be enqueued (`enqueue` looks at the count under the same lock).
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.buffer.len) }
    }
}

impl Drop for HostRead<'_> {
    fn drop(&mut self) {
        self.buffer.hazards().guards -= 1;
    }
}

/// Exclusive access of the host to a buffer's bytes.
#[derive(Debug)]
pub struct HostWrite<'a> {
    buffer: &'a Buffer,
    pointer: NonNull<u8>,
}

// SAFETY: the guard owns exclusive access to plain bytes that any thread may use (contract of `Memory`).
unsafe impl Send for HostWrite<'_> {}
// SAFETY: `&HostWrite` gives only `&[u8]`.
unsafe impl Sync for HostWrite<'_> {}

impl Deref for HostWrite<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: valid and initialised by the contract of `Memory`; exclusive by the guard count of the allocation.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.buffer.len) }
    }
}

impl DerefMut for HostWrite<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: valid and initialised by the contract of `Memory`; exclusive by the guard count of the allocation and `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.buffer.len) }
    }
}

impl Drop for HostWrite<'_> {
    fn drop(&mut self) {
        self.buffer.hazards().guards = 0;
    }
}

/// Exclusive access of the host to a buffer's bytes, as [`HostWrite`], that keeps them alive.
#[derive(Debug)]
pub struct OwnedHostWrite {
    buffer: Buffer,
    pointer: NonNull<u8>,
}

// SAFETY: the guard owns exclusive access to plain bytes that any thread may use (contract of `Memory`).
unsafe impl Send for OwnedHostWrite {}
// SAFETY: `&OwnedHostWrite` gives only `&[u8]`.
unsafe impl Sync for OwnedHostWrite {}

impl Deref for OwnedHostWrite {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: valid and initialised by the contract of `Memory`; exclusive by the guard count of the allocation.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.buffer.len) }
    }
}

impl DerefMut for OwnedHostWrite {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: valid and initialised by the contract of `Memory`; exclusive by the guard count of the allocation and `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.buffer.len) }
    }
}

impl AsMut<[u8]> for OwnedHostWrite {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Drop for OwnedHostWrite {
    fn drop(&mut self) {
        self.buffer.hazards().guards = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_exclude_each_other() {
        let buffer = Buffer::from_vec(vec![0; 8]);
        let read = buffer.host_read().unwrap();
        assert_eq!(buffer.host_write().unwrap_err().kind, BufferErrorKind::Borrowed);
        let second = buffer.host_read().unwrap();
        drop((read, second));
        let write = buffer.host_write().unwrap();
        assert_eq!(buffer.slice(0..2).unwrap().host_read().unwrap_err().kind, BufferErrorKind::Borrowed);
        drop(write);
        assert!(buffer.host_read().is_ok());
    }

    #[test]
    fn an_owned_guard_goes_to_other_threads_and_keeps_the_bytes() {
        let buffer = Buffer::from_vec(vec![0; 8]);
        let mut guard = buffer.slice(2..4).unwrap().host_write_owned().unwrap();
        assert_eq!(buffer.host_write_owned().unwrap_err().kind, BufferErrorKind::Borrowed);
        let guard = std::thread::spawn(move || {
            guard.as_mut().fill(7);
            guard
        });
        let guard = guard.join().unwrap();
        assert_eq!(buffer.host_read().unwrap_err().kind, BufferErrorKind::Borrowed);
        drop(guard);
        assert_eq!(&*buffer.host_read().unwrap(), &[0, 0, 7, 7, 0, 0, 0, 0]);
        let mut last = buffer.host_write_owned().unwrap();
        drop(buffer);
        last.fill(1);
        assert_eq!(*last, [1; 8]);
    }

    #[test]
    fn slices_are_checked() {
        let buffer = Buffer::from_vec((0..8).collect());
        let part = buffer.slice(2..6).unwrap().slice(1..3).unwrap();
        assert_eq!(&*part.host_read().unwrap(), &[3, 4]);
        assert!(part.slice(0..3).is_err());
    }
}
