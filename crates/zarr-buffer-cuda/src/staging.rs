//! Pinned host memory, reused: pinning is slow, and so is giving it back.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, DeviceKind, Event, Memory};

use crate::device::Shared;
use crate::driver::{Context, Pinned};

/// Blocks that nobody holds, by length. Work may still use them.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spare: BTreeMap<usize, Vec<Spare>>,
    /// Bytes of all blocks, held or spare.
    total: u64,
}

#[derive(Debug)]
struct Spare {
    block: Pinned,
    pending: Vec<Event>,
}

impl Spare {
    fn is_idle(&self) -> bool {
        // What failed is over, too.
        self.pending.iter().all(|event| !matches!(event.is_complete(), Ok(false)))
    }
}

impl Staging {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `len` bytes, at least one.
    fn take(&self, context: &Arc<Context>, len: usize, limit: Option<u64>) -> Result<Pinned, BufferError> {
        let full = || {
            let limit = limit.map_or(String::new(), |limit| format!(" within {limit} bytes"));
            BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes of pinned memory{limit}"))
                .on(DeviceId::new(DeviceKind::Cuda, context.ordinal()))
        };
        let rounded = size_class(len).ok_or_else(full)?;
        let mut state = self.state();
        if let Some(block) = state.reuse(rounded) {
            return Ok(block);
        }
        let mut freed = Vec::new();
        if let Some(limit) = limit {
            if rounded as u64 > limit {
                return Err(full());
            }
            state.make_room(limit - rounded as u64, &mut freed);
            if state.total > limit - rounded as u64 {
                return Err(full());
            }
        }
        state.total += rounded as u64;
        drop(state);
        // Without the lock: pinning takes long, and so does giving back.
        drop(freed);
        Pinned::new(context, rounded).map_err(|error| {
            self.state().total -= rounded as u64;
            if error.is_out_of_memory() { full().with_source(error) } else { error.on(context.ordinal()) }
        })
    }

    fn put(&self, block: Pinned, pending: Vec<Event>) {
        self.state().spare.entry(block.len()).or_default().push(Spare { block, pending });
    }

    /// Gives spare blocks that no work uses back to the system. Waits for the device while it does.
    pub(crate) fn trim(&self) {
        let mut freed = Vec::new();
        self.state().make_room(0, &mut freed);
    }

    /// Bytes of pinned memory, held or spare.
    pub(crate) fn total(&self) -> u64 {
        self.state().total
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The last of the device: nobody is left to free behind the work.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in state.spare.values().flatten().flat_map(|spare| &spare.pending) {
            let _ = event.wait();
        }
    }
}

impl State {
    /// A spare block of `rounded` bytes, or up to twice that, that no work uses.
    fn reuse(&mut self, rounded: usize) -> Option<Pinned> {
        for blocks in self.spare.range_mut(rounded..=rounded.saturating_mul(2)).map(|(_, blocks)| blocks) {
            if let Some(index) = blocks.iter().position(Spare::is_idle) {
                // The order stays: the one that waits longest is asked first.
                return Some(blocks.remove(index).block);
            }
        }
        None
    }

    /// Takes out spare blocks until at most `keep` bytes are left, or none that is idle.
    fn make_room(&mut self, keep: u64, freed: &mut Vec<Spare>) {
        for blocks in self.spare.values_mut() {
            while self.total > keep {
                let Some(index) = blocks.iter().position(Spare::is_idle) else { break };
                let spare = blocks.remove(index);
                self.total -= spare.block.len() as u64;
                freed.push(spare);
            }
        }
    }
}

/// Blocks come in four lengths to each power of two, from 4 KiB: what is asked for is rounded up by a quarter at most.
fn size_class(len: usize) -> Option<usize> {
    const LEAST: usize = 4 << 10;
    /// No machine has as much.
    const MOST: usize = 1 << 46;
    if len > MOST {
        return None;
    }
    if len <= LEAST {
        return Some(LEAST);
    }
    let step = len.next_power_of_two() / 8;
    Some(len.next_multiple_of(step))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_a_quarter_too_long_at_most() {
        for len in [1, 4095, 4096, 4097, 5000, 5121, 8192, 8193, 1 << 20, (1 << 20) + 1, 123_456_789] {
            let class = size_class(len).unwrap();
            assert!(class >= len, "{class} for {len}");
            assert!(len < 4096 || class - len <= len / 4, "{class} for {len}");
            assert_eq!(size_class(class), Some(class), "{len}");
        }
        assert_eq!(size_class(usize::MAX), None);
    }
}
