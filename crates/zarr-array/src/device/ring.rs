//! Memory for batches, used again and again within a budget.

use std::collections::VecDeque;

use zarr_buffer_api::{Buffer, BufferError};

/// Buffers of one kind of memory, given back while work still uses them.
#[derive(Debug)]
pub(super) struct Ring {
    /// The most bytes of all buffers, unless one alone has more.
    budget: usize,
    /// Bytes of all buffers: those that are lent, and those that came back.
    held: usize,
    /// Those that came back, the first one first.
    back: VecDeque<Buffer>,
}

impl Ring {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, held: 0, back: VecDeque::new() }
    }

    /// A buffer of `len` bytes or more that no work uses; `None` while there is none within the budget. Never waits.
    pub(super) fn take(
        &mut self,
        len: usize,
        allocate: impl FnOnce() -> Result<Buffer, BufferError>,
    ) -> Result<Option<Buffer>, BufferError> {
        while let Some(first) = self.back.front()
            && first.is_idle()?
        {
            let Some(buffer) = self.back.pop_front() else { break };
            if buffer.len() >= len {
                return Ok(Some(buffer));
            }
            // Too short: it makes room.
            self.held -= buffer.len();
        }
        if self.held > 0 && self.held.saturating_add(len) > self.budget {
            return Ok(None);
        }
        let buffer = allocate()?;
        self.held += buffer.len();
        Ok(Some(buffer))
    }

    /// Takes a buffer back, to be lent again when no work uses it any more.
    pub(super) fn give(&mut self, buffer: Buffer) {
        self.back.push_back(buffer);
    }

    /// Blocks the calling thread until the buffer that came back first is free.
    pub(super) fn wait(&self) -> Result<(), BufferError> {
        match self.back.front() {
            Some(first) if !first.is_idle()? => first.wait(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_stay_within_the_budget() {
        let mut ring = Ring::new(100);
        let new = |len: usize| move || Ok(Buffer::from_vec(vec![0; len]));
        let first = ring.take(60, new(60)).unwrap().unwrap();
        assert!(ring.take(60, new(60)).unwrap().is_none());
        let second = ring.take(40, new(40)).unwrap().unwrap();
        ring.give(second);
        // The short one makes room, but not enough.
        assert!(ring.take(50, new(50)).unwrap().is_none());
        ring.give(first);
        assert_eq!(ring.take(50, new(50)).unwrap().unwrap().len(), 60);
        // One that is larger than the budget comes alone.
        let mut ring = Ring::new(100);
        let large = ring.take(500, new(500)).unwrap().unwrap();
        assert!(ring.take(1, new(1)).unwrap().is_none());
        ring.give(large);
        assert_eq!(ring.take(1, new(1)).unwrap().unwrap().len(), 500);
    }
}
