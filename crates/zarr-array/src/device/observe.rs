//! Who watches a read: profilers and time lines.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::Queue;

/// A stage of the way of chunks onto a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Indexes of shards are read, and requests made. By threads of the pool.
    Plan,
    /// Stored bytes come to staging memory, or to the device if the store reads to it. By threads of the pool.
    Fetch,
    /// Bytes are copied from staging memory to the device.
    Upload,
    /// A batch of chunks is decoded on the device.
    Decode,
    /// Elements are copied to their places, or filled with the fill value, on the device.
    Scatter,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Fetch => "fetch",
            Self::Upload => "upload",
            Self::Decode => "decode",
            Self::Scatter => "scatter",
        })
    }
}

/// Is told when stages of a read begin and end. Called on the threads that do the work, many at a time.
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// A stage begins on this thread. What this gives is dropped, on this thread, when it ends there: work for a device is enqueued on `queue` by then, not
    /// done. `bytes` are those to be moved, or to be decoded to, as far as they are known.
    fn begin(&self, stage: Stage, bytes: u64, queue: Option<&Arc<dyn Queue>>) -> Box<dyn Any>;
}
