//! Bytes on any device: the contract between Zarr arrays, codecs and devices.
//!
//! This crate says what a device is to the rest of the workspace:
//!
//! * [`DeviceId`] names one device, with the numbers of [DLPack].
//! * [`Device`] allocates [`Buffer`]s and creates [`Queue`]s.
//! * A [`Queue`] runs copies, fills and codec work in order, later. Nothing waits for it in secret: an [`Event`] marks a
//!   point in a queue, and waiting for one is a call with that name.
//! * A [`Buffer`] is bytes on a device. It knows the event of its last write and of the reads since, so that whoever
//!   enqueues work on it can order that work: [`enqueue`] does.
//! * [`TileWriter`] lends disjoint regions of one host output to many threads, so that callers need no `unsafe`.
//! * [`copy_axes`] is the strided N-dimensional copy on the host.
//!
//! It does no I/O, starts no threads and knows no codec: see `zarr-codec-api` for codecs, `zarr-store-api` for stores. CUDA is one
//! implementation of these traits and lives in its own crate.
//!
//! ```
//! use zarr_buffer_api::{Buffer, Device, HostDevice};
//!
//! let device = HostDevice;
//! let queue = device.create_queue()?;
//! let source = Buffer::from_vec(vec![1, 2, 3, 4]);
//! let target = device.allocate(4, &*queue)?;
//! queue.copy(&source, &target)?;
//! target.wait()?; // explicit: the queue of the host runs at once, others do not
//! assert_eq!(&*target.host_read()?, &[1, 2, 3, 4]);
//! # Ok::<(), zarr_buffer_api::BufferError>(())
//! ```
//!
//! [DLPack]: https://dmlc.github.io/dlpack/latest/c_api.html

mod buffer;
mod copy;
mod device;
mod error;
mod event;
mod fresh;
mod hazards;
mod host;
mod layout;
mod tiles;

pub use buffer::{Buffer, HostRead, HostWrite, Memory, OwnedHostWrite};
pub use copy::{CopyAxis, Offsets, copy_axes, fill_axes};
pub use device::{Device, DeviceId, DeviceKind, Queue, QueueId, Region};
pub use error::{BufferError, BufferErrorKind};
pub use event::{Event, EventState};
pub use fresh::{FreshPart, unwritten, unwritten_shared};
pub use hazards::enqueue;
pub use host::{HostDevice, advise_huge_pages};
pub use layout::Layout;
pub use tiles::{AxisTiles, OwnedTiles, TileMut, TileWriter};
