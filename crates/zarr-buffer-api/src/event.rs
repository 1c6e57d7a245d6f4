use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{BufferError, QueueId};

/// What a device implements for a point in one of its queues.
pub trait EventState: fmt::Debug + Send + Sync + 'static {
    /// The queue in which the point lies.
    fn queue(&self) -> QueueId;

    /// Whether everything enqueued before the point is done. Never blocks.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Device`] when the work before the point failed.
    fn is_complete(&self) -> Result<bool, BufferError>;

    /// Blocks the calling thread until everything enqueued before the point is done.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Device`] when the work before the point failed.
    fn wait(&self) -> Result<(), BufferError>;

    /// The implementation, for the device that made it (a CUDA queue waits for a CUDA event without the host).
    fn as_any(&self) -> &dyn Any;
}

/// A point in a queue: complete once everything enqueued before it is done. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Event(Arc<dyn EventState>);

impl Event {
    /// Wraps a device's own event.
    pub fn new(state: impl EventState) -> Self {
        Self(Arc::new(state))
    }
}

impl std::ops::Deref for Event {
    type Target = dyn EventState;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
