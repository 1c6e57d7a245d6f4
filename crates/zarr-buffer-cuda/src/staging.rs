//! Pinned host memory.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_api::{BufferError, DeviceId, DeviceKind, Event, Memory};

use crate::device::Shared;
use crate::driver::Pinned;

/// Staging memory: the first bytes of a block.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    shared: Arc<Shared>,
    /// There until the value is dropped, unless there are no bytes.
    block: Option<Pinned>,
    len: usize,
    pending: Vec<Event>,
}

impl PinnedMemory {
    pub(crate) fn new(shared: &Arc<Shared>, len: usize) -> Result<Self, BufferError> {
        let block = match len {
            0 => None,
            _ => Some(shared.staging.take(&shared.context, len, shared.options.staging_limit)?),
        };
        Ok(Self { shared: Arc::clone(shared), block, len, pending: Vec::new() })
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.shared.staging.put(block, std::mem::take(&mut self.pending));
        }
    }
}

// SAFETY: the block has `len` bytes or more, initialised when it was made, stays in place, and is the value's until this is dropped; then it is
// lent out again only once the work that used it is complete. Nothing here touches the bytes but work that was enqueued with
// `zarr_buffer_api::enqueue`.
unsafe impl Memory for PinnedMemory {
    fn device(&self) -> DeviceId {
        DeviceId::new(DeviceKind::CudaHost, 0)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.pointer().as_ptr() as u64)
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        Some(self.block.as_ref().map_or(NonNull::dangling(), Pinned::pointer))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, pending: &[Event]) {
        self.pending = pending.to_vec();
    }
}
