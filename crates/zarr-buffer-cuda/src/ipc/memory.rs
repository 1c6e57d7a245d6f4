use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, Event, Memory};

use super::IpcDescriptor;
use crate::CudaError;
use crate::device::Shared;
use crate::driver::{Exportable, Imported, RawEvent};
use crate::memory::{Orphan, Rest};

/// Device memory that can be exported: the first bytes of a block.
#[derive(Debug)]
pub(super) struct ExportableMemory {
    shared: Arc<Shared>,
    /// There until the value is dropped.
    block: Option<Exportable>,
    address: u64,
    len: usize,
    pending: Vec<Event>,
}

impl ExportableMemory {
    pub(super) fn new(shared: &Arc<Shared>, len: usize) -> Result<Self, BufferError> {
        let full =
            |what: String| BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes: {what}")).on(shared.info.id());
        if len as u64 > shared.info.memory {
            return Err(full(format!("the device has {}", shared.info.memory)));
        }
        shared.sweep();
        shared.reserve(len as u64).map_err(|(used, limit)| full(format!("{used} of a budget of {limit} are in use")))?;
        // From here on, the drop of the value gives the reservation back.
        let mut memory = Self { shared: Arc::clone(shared), block: None, address: 0, len, pending: Vec::new() };
        let block = shared.exportable.take(&shared.context, len, None)?;
        memory.address = block.address();
        memory.block = Some(block);
        Ok(memory)
    }

    /// The handle, and bytes, of the whole allocation.
    pub(super) fn export(&self) -> Result<([u8; 64], u64), CudaError> {
        match &self.block {
            Some(block) => Ok((block.export()?, block.len() as u64)),
            None => Ok(([0; 64], 0)),
        }
    }
}

impl Drop for ExportableMemory {
    fn drop(&mut self) {
        self.shared.unreserve(self.len as u64);
        if let Some(block) = self.block.take() {
            self.shared.exportable.put(block, std::mem::take(&mut self.pending));
        }
    }
}

// SAFETY: the block has `len` bytes or more and is the value's until this is dropped; then it is lent out again only once the work that used it
// is complete. There is no host pointer. Nothing here touches the bytes but work that was enqueued with `zarr_buffer_api::enqueue`.
unsafe impl Memory for ExportableMemory {
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

/// Bytes of another process's allocation.
#[derive(Debug)]
pub(super) struct ImportedMemory {
    shared: Arc<Shared>,
    /// There until the value is dropped.
    memory: Option<Imported>,
    event: Option<RawEvent>,
    address: u64,
    len: usize,
    pending: Vec<Event>,
}

impl ImportedMemory {
    /// `memory` has the bytes that the descriptor says.
    pub(super) fn new(
        shared: Arc<Shared>,
        memory: Imported,
        event: Option<RawEvent>,
        descriptor: &IpcDescriptor,
    ) -> Result<Self, BufferError> {
        let len = usize::try_from(descriptor.bytes).map_err(|_| BufferError::parameter("a tensor larger than the address space"))?;
        let address = memory.address() + descriptor.offset;
        Ok(Self { shared, memory: Some(memory), event, address, len, pending: Vec::new() })
    }

    /// The event that came with the memory.
    pub(super) fn event(&self) -> Option<&RawEvent> {
        self.event.as_ref()
    }
}

impl Drop for ImportedMemory {
    fn drop(&mut self) {
        let (Some(memory), event) = (self.memory.take(), self.event.take()) else { return };
        if !self.pending.is_empty() {
            // Closing does not wait for work; it is for who comes later.
            let pending = std::mem::take(&mut self.pending);
            self.shared.orphans().push(Orphan { rest: Rest::Imported(memory, event), pending });
        }
    }
}

// SAFETY: the mapping stays until the value is dropped, or until the work is complete that uses it then; that its bytes stay is the promise of the
// process that exported them. There is no host pointer. Nothing here touches the bytes but work that was enqueued with
// `zarr_buffer_api::enqueue`.
unsafe impl Memory for ImportedMemory {
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
