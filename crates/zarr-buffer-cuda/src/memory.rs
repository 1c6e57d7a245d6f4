//! Device memory from a stream-ordered pool.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, Event, Memory};

use crate::device::Shared;
use crate::driver::{Imported, RawEvent, Stream};
use crate::event::CudaEvent;

/// An allocation of a device's pool.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    shared: Arc<Shared>,
    /// 0 if there are no bytes.
    address: u64,
    len: usize,
    /// Work that may still use the bytes when the value is dropped.
    pending: Vec<Event>,
}

impl DeviceMemory {
    pub(crate) fn new(shared: &Arc<Shared>, len: usize, stream: &Stream) -> Result<Self, BufferError> {
        let id = shared.info.id();
        let mut memory = Self { shared: Arc::clone(shared), address: 0, len: 0, pending: Vec::new() };
        if len == 0 {
            return Ok(memory);
        }
        let full = |what: String| BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes: {what}")).on(id);
        if len as u64 > shared.info.memory {
            return Err(full(format!("the device has {}", shared.info.memory)));
        }
        shared.sweep();
        shared.reserve(len as u64).map_err(|(used, limit)| full(format!("{used} of a budget of {limit} are in use")))?;
        // From here on, the drop of the value gives the reservation back.
        memory.len = len;
        memory.address = match shared.pool.allocate(len, stream) {
            Err(error) if error.is_out_of_memory() => {
                // What the pool keeps in pieces may do as a whole.
                let _ = shared.trim_pool(0);
                shared.pool.allocate(len, stream)
            }
            result => result,
        }
        .map_err(|error| error.on(id.ordinal))?;
        Ok(memory)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.shared.unreserve(self.len as u64);
        if self.address != 0 {
            // SAFETY: the bytes are this value's, which ends here; `pending` is all the work that may use them (contract of `Memory::retire`).
            unsafe { self.shared.free_behind(self.address, std::mem::take(&mut self.pending)) };
        }
    }
}

// SAFETY: the bytes belong to the value until it is dropped, and are freed behind the work that uses them. There is no host pointer. Nothing
// here touches the bytes but work that was enqueued with `zarr_buffer_api::enqueue`.
unsafe impl Memory for DeviceMemory {
    fn device(&self) -> DeviceId {
        self.shared.info.id()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, pending: &[Event]) {
        self.pending = pending.to_vec();
    }
}

/// What is to be freed once events are complete that no stream can wait for, or that no stream can free.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) rest: Rest,
    pub(crate) pending: Vec<Event>,
}

#[derive(Debug)]
pub(crate) enum Rest {
    /// An allocation of the pool.
    Pool(u64),
    /// Memory of another process, and the event that came with it.
    Imported(#[expect(dead_code, reason = "held to be dropped")] Imported, #[expect(dead_code, reason = "likewise")] Option<RawEvent>),
}

impl Shared {
    /// Counts `len` bytes against the budget; gives what is used and the limit if they do not fit.
    pub(crate) fn reserve(&self, len: u64) -> Result<(), (u64, u64)> {
        use std::sync::atomic::Ordering::Relaxed;
        let limit = self.options.memory_limit.unwrap_or(u64::MAX);
        let more = |used: u64| used.checked_add(len).filter(|&sum| sum <= limit);
        self.used.fetch_update(Relaxed, Relaxed, more).map(drop).map_err(|used| (used, limit))
    }

    pub(crate) fn unreserve(&self, len: u64) {
        self.used.fetch_sub(len, std::sync::atomic::Ordering::Relaxed);
    }

    /// Frees memory of the pool behind `pending`, without waiting.
    ///
    /// # Safety
    /// `address` came from the pool and is freed once; no work uses it but what comes before `pending`.
    unsafe fn free_behind(&self, address: u64, pending: Vec<Event>) {
        let events: Vec<&CudaEvent> = pending.iter().filter_map(|event| event.as_any().downcast_ref()).collect();
        if events.len() < pending.len() {
            self.orphans().push(Orphan { rest: Rest::Pool(address), pending });
            return;
        }
        let stream = match events.as_slice() {
            [] => &self.idle,
            // In the stream itself: what is allocated there next can have the bytes at once. Only while it surely lives.
            [first, rest @ ..]
                if first.stream().is_owned()
                    && first.stream().context().raw() == self.context.raw()
                    && rest.iter().all(|event| Arc::ptr_eq(event.stream(), first.stream())) =>
            {
                first.stream()
            }
            events => {
                for event in events {
                    if event.hold(&self.behind).is_err() {
                        // Better lost than used after it is freed. Only a lost context refuses.
                        return;
                    }
                }
                &self.behind
            }
        };
        // SAFETY: the caller's promise: everything that uses the bytes is complete, or comes before this point of the stream.
        let _ = unsafe { self.pool.free(address, stream) };
    }

    /// Frees orphans whose time has come.
    pub(crate) fn sweep(&self) {
        let mut orphans = self.orphans();
        if orphans.is_empty() {
            return;
        }
        // An event that failed is over, too.
        let over = |orphan: &mut Orphan| orphan.pending.iter().all(|event| !matches!(event.is_complete(), Ok(false)));
        let ripe: Vec<Orphan> = orphans.extract_if(.., over).collect();
        drop(orphans);
        for orphan in ripe {
            if let Rest::Pool(address) = orphan.rest {
                // SAFETY: from `free_behind`, and taken out of the list; all its events are complete.
                unsafe { self.free_behind(address, Vec::new()) };
            }
        }
    }
}
