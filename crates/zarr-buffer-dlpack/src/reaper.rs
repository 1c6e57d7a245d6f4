use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use zarr_buffer_api::Event;

/// Gives imported tensors back behind the device's work, so that the thread that drops the last buffer does not wait for it.
///
/// Without one, dropping an imported buffer that a queue still works on waits for that work. With one, the tensor is put aside, and given back in a
/// later [`Reaper::sweep`] (every import and every drop sweeps) once its events are complete. Handles share one list; the last to be
/// dropped waits.
#[derive(Clone, Default)]
pub struct Reaper(Arc<Waiting>);

#[derive(Default)]
struct Waiting(Mutex<Vec<Retired>>);

struct Retired {
    events: Vec<Event>,
    owner: Box<dyn Any + Send + Sync>,
}

impl Reaper {
    /// With nothing put aside.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back what no work uses any more. Never blocks for a device. Returns how many tensors still wait.
    pub fn sweep(&self) -> usize {
        // Deleters run without the lock: they may take others, as Python's do.
        let (done, left): (Vec<Retired>, usize) = {
            let mut waiting = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (done, rest) = std::mem::take(&mut *waiting).into_iter().partition(Retired::is_over);
            *waiting = rest;
            (done, waiting.len())
        };
        drop(done);
        left
    }

    /// Waits for the work on all that was put aside, and gives it back.
    pub fn wait(&self) {
        self.0.wait();
    }

    pub(crate) fn put_aside(&self, events: &[Event], owner: Box<dyn Any + Send + Sync>) {
        let retired = Retired { events: events.to_vec(), owner };
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
    }
}

impl Retired {
    /// Work that failed is over, too.
    fn is_over(&self) -> bool {
        self.events.iter().all(|event| !matches!(event.is_complete(), Ok(false)))
    }
}

impl Waiting {
    fn wait(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for retired in all {
            for event in &retired.events {
                // The work is over when it failed, too.
                let _ = event.wait();
            }
            drop(retired.owner);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.wait();
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reaper({} waiting)", self.0.0.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}
