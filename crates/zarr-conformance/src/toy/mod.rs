//! Two toy devices, for tests on machines without a real one.
//!
//! [`OpaqueDevice`] has memory that the host cannot dereference, as a discrete GPU does. [`UnifiedDevice`] has memory that both see. Both run
//! their queues later, each on a thread of its own, and both count what they are asked to do ([`Counters`]). They decode and encode `zstd` and
//! little-endian `bytes` natively ([`ToyProvider`]) and lack all other codecs.
//!
//! A toy device notes what its users did wrong ([`Violation`]): work on the same bytes by two queues that nothing orders, reads of
//! bytes never written, memory freed under pending work. Races are found from the order of calls, not from lucky or unlucky timing: each piece of
//! work knows which points of other queues it comes after.
//!
//! ```
//! use zarr_buffer_api::{Buffer, Device};
//! use zarr_conformance::toy::OpaqueDevice;
//!
//! let device = OpaqueDevice::new(0);
//! let queue = device.create_queue()?;
//! let there = device.allocate(3, &*queue)?;
//! queue.copy(&Buffer::from_vec(vec![1, 2, 3]), &there)?;
//! assert!(there.host_read().is_err());
//! let back = device.allocate_staging(3)?;
//! queue.copy(&there, &back)?;
//! back.wait()?;
//! assert_eq!(&*back.host_read()?, &[1, 2, 3]);
//! assert_eq!(device.counters().host_to_device.copies, 1);
//! assert!(device.violations().is_empty());
//! # Ok::<(), zarr_buffer_api::BufferError>(())
//! ```

mod counters;
mod device;
#[expect(unsafe_code, reason = "host-visible bytes that the thread of a queue uses")]
mod memory;
mod queue;
mod segment;
mod tracker;

pub use counters::{Counters, Moved};
pub use device::{OpaqueDevice, Schedule, ToyFault, ToyOptions, UnifiedDevice};
pub use segment::ToyProvider;
pub use tracker::{Violation, ViolationKind};
