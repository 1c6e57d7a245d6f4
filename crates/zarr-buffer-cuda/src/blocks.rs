//! Memory that is slow to get and slow to give back, kept for reuse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, DeviceKind, Event};

use crate::CudaError;
use crate::driver::{Context, Exportable, Pinned};

/// A kind of memory. Its end may wait for the device.
pub(crate) trait Block: Sized + Send {
    /// What messages call it.
    const WHAT: &'static str;

    fn new(context: &Arc<Context>, len: usize) -> Result<Self, CudaError>;
    fn len(&self) -> usize;
    /// The length of the block that `len` bytes are taken from; `None` when no machine has as much.
    fn size_class(len: usize) -> Option<usize>;
}

impl Block for Pinned {
    const WHAT: &'static str = "pinned memory";

    fn new(context: &Arc<Context>, len: usize) -> Result<Self, CudaError> {
        Self::new(context, len)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn size_class(len: usize) -> Option<usize> {
        quarters(len, 4 << 10)
    }
}

impl Block for Exportable {
    const WHAT: &'static str = "device memory for other processes";

    fn new(context: &Arc<Context>, len: usize) -> Result<Self, CudaError> {
        Self::new(context, len)
    }

    fn len(&self) -> usize {
        self.len()
    }

    /// Whole pages of the device: of smaller allocations the driver would hand over the neighbours, too.
    fn size_class(len: usize) -> Option<usize> {
        const PAGE: usize = 2 << 20;
        quarters(len, PAGE)?.checked_next_multiple_of(PAGE)
    }
}

/// Four lengths to each power of two: what is asked for is rounded up by a quarter at most, and to `least`.
fn quarters(len: usize, least: usize) -> Option<usize> {
    const MOST: usize = 1 << 46;
    if len > MOST {
        return None;
    }
    if len <= least {
        return Some(least);
    }
    Some(len.next_multiple_of(len.next_power_of_two() / 8))
}

/// Blocks of one kind: those that nobody holds, by length, and how many bytes there are. Work may still use spare blocks.
#[derive(Debug)]
pub(crate) struct Blocks<B> {
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    spare: BTreeMap<usize, Vec<Spare<B>>>,
    /// Bytes of all blocks, held or spare.
    total: u64,
}

#[derive(Debug)]
struct Spare<B> {
    block: B,
    pending: Vec<Event>,
}

impl<B> Spare<B> {
    fn is_idle(&self) -> bool {
        // What failed is over, too.
        self.pending.iter().all(|event| !matches!(event.is_complete(), Ok(false)))
    }
}

impl<B> Default for Blocks<B> {
    fn default() -> Self {
        Self { state: Mutex::new(State { spare: BTreeMap::new(), total: 0 }) }
    }
}

impl<B: Block> Blocks<B> {
    /// A block of at least `len` bytes. All blocks together have at most `limit`.
    ///
    /// # Errors
    /// [`BufferErrorKind::OutOfMemory`].
    pub(crate) fn take(&self, context: &Arc<Context>, len: usize, limit: Option<u64>) -> Result<B, BufferError> {
        let full = || {
            let limit = limit.map_or(String::new(), |limit| format!(" within {limit} bytes"));
            BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} bytes of {}{limit}", B::WHAT))
                .on(DeviceId::new(DeviceKind::Cuda, context.ordinal()))
        };
        let rounded = B::size_class(len).ok_or_else(full)?;
        let mut state = self.state();
        if let Some(block) = state.reuse(rounded) {
            return Ok(block);
        }
        let mut freed = Vec::new();
        if let Some(limit) = limit {
            let keep = limit.checked_sub(rounded as u64).ok_or_else(full)?;
            state.make_room(keep, &mut freed);
            if state.total > keep {
                return Err(full());
            }
        }
        state.total += rounded as u64;
        drop(state);
        // Without the lock: to get and to give back take long.
        drop(freed);
        let mut block = B::new(context, rounded);
        if block.as_ref().is_err_and(CudaError::is_out_of_memory) {
            // What is spare in other lengths may do.
            self.trim();
            block = B::new(context, rounded);
        }
        block.map_err(|error| {
            self.state().total -= rounded as u64;
            if error.is_out_of_memory() { full().with_source(error) } else { error.on(context.ordinal()) }
        })
    }

    /// Takes back a block, to be lent again once `pending` is complete.
    pub(crate) fn put(&self, block: B, pending: Vec<Event>) {
        self.state().spare.entry(block.len()).or_default().push(Spare { block, pending });
    }

    /// Gives spare blocks that no work uses back to the system.
    pub(crate) fn trim(&self) {
        let mut freed = Vec::new();
        self.state().make_room(0, &mut freed);
    }
}

impl<B> Blocks<B> {
    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all blocks, held or spare.
    pub(crate) fn total(&self) -> u64 {
        self.state().total
    }
}

impl<B> Drop for Blocks<B> {
    fn drop(&mut self) {
        // The end of the device: nobody is left to free behind the work.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in state.spare.values().flatten().flat_map(|spare| &spare.pending) {
            let _ = event.wait();
        }
    }
}

impl<B: Block> State<B> {
    /// A spare block of `rounded` bytes, or up to twice that, that no work uses.
    fn reuse(&mut self, rounded: usize) -> Option<B> {
        for blocks in self.spare.range_mut(rounded..=rounded.saturating_mul(2)).map(|(_, blocks)| blocks) {
            if let Some(index) = blocks.iter().position(Spare::is_idle) {
                // The order stays: the one that is spare for longest is asked first.
                return Some(blocks.remove(index).block);
            }
        }
        None
    }

    /// Takes out spare blocks until at most `keep` bytes are left, or none that is idle.
    fn make_room(&mut self, keep: u64, freed: &mut Vec<Spare<B>>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_a_quarter_too_long_at_most() {
        for len in [1, 4095, 4096, 4097, 5000, 5121, 8192, 8193, 1 << 20, (1 << 20) + 1, 123_456_789] {
            let class = Pinned::size_class(len).unwrap();
            assert!(class >= len, "{class} for {len}");
            assert!(len < 4096 || class - len <= len / 4, "{class} for {len}");
            assert_eq!(Pinned::size_class(class), Some(class), "{len}");
            let class = Exportable::size_class(len).unwrap();
            assert!(class >= len && class.is_multiple_of(2 << 20), "{class} for {len}");
        }
        assert_eq!(Pinned::size_class(usize::MAX), None);
        assert_eq!(Exportable::size_class(usize::MAX), None);
    }
}
