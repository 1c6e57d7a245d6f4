//! Copying arrays and hierarchies.
//!
//! **What may be found half-way.** The chunks of an array are stored before its metadata, and groups after all that is in them. A copy that was cut off has no metadata
//! at its root, so that nobody takes it for a whole one; what it has besides are whole chunks, and the [marker] that says what is being copied.
//!
//! **Resuming.** A chunk that is there was stored in one step, by a copy of the same source with the same settings (the marker says so), and is not copied again. Chunks
//! that hold only the fill value are not stored, and are looked at again.
//!
//! **Memory.** Arrays that are stored anew go through memory in [regions] of whole chunks of the destination, sized to the budget.

mod array;
mod marker;
mod regions;

pub(crate) use array::{ArrayCopy, Copied};
pub(crate) use marker::{Digest, MARKER, Marker, documents, is_stored};
