//! Copies of whole buffers.
//!
//! The driver copies pageable host memory with stops of its own: for such memory it makes the calling thread wait. So we stage it: pieces of
//! pinned memory, and the copy to and from them as host functions, which the driver runs on a thread of its own in the order of the stream.

use std::ops::Range;

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device, DeviceKind, Queue, enqueue};

use crate::CudaQueue;
use crate::driver::{self, Context, Stream};
use crate::memory::DeviceMemory;
use crate::staging::PinnedMemory;

/// Pageable memory is copied through pinned pieces of this length.
const PIECE: usize = 4 << 20;

/// Where bytes live, as copies have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the CUDA device of this ordinal.
    Device(i32),
    /// On the host, pinned.
    Pinned,
    /// On the host.
    Pageable,
}

impl CudaQueue {
    pub(crate) fn copy_bytes(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        if source.len() != destination.len() {
            let message = format!("copy of {} bytes to {}", source.len(), destination.len());
            return Err(BufferError::parameter(message).on(self.device()));
        }
        refuse_overlap(source, 0..source.len(), destination, 0..destination.len())?;
        let (from, to) = (self.place(source)?, self.place(destination)?);
        let here = Place::Device(self.device().ordinal);
        let elsewhere = |place: Place| matches!(place, Place::Device(_)) && place != here;
        if (elsewhere(from) && to != here) || (elsewhere(to) && from != here) {
            let message = format!("a copy from {} to {}, neither of which is here", source.device(), destination.device());
            return Err(BufferError::new(BufferErrorKind::Unsupported, message).on(self.device()));
        }
        if source.is_empty() {
            return Ok(());
        }
        enqueue(self, &[source], &[destination], || {
            let stream = self.open()?;
            match (from, to) {
                (Place::Pageable, Place::Device(_)) => self.upload_pieces(stream, source, destination),
                (Place::Device(_), Place::Pageable) => self.download_pieces(stream, source, destination),
                (Place::Device(there), Place::Device(here)) if there != here => self.copy_between_devices(stream, source, destination),
                (Place::Device(_), _) | (_, Place::Device(_)) => self.copy_direct(stream, source, destination),
                (_, _) => {
                    // The driver would make the caller wait for a copy from host to host.
                    let (read, write) = (HostSpan::of(source)?, HostSpan::of(destination)?);
                    // SAFETY: both are alive and used by nobody else until this is done: it runs within `enqueue` for both buffers, which do not
                    // overlap.
                    driver::run_on_host(stream, move || unsafe { read.copy_to(write) }).map_err(|error| self.cuda_device().error(error))
                }
            }
        })
    }

    /// Copies `bytes` to device memory. They may change as soon as this returns: the calling thread copies them to pinned memory.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when the lengths differ; [`BufferErrorKind::OutOfMemory`] when there is no pinned memory left; as
    /// [`Queue::copy`].
    pub fn upload(&self, bytes: &[u8], destination: &Buffer) -> Result<(), BufferError> {
        let staging = self.cuda_device().allocate_staging(bytes.len())?;
        staging.host_write()?.copy_from_slice(bytes);
        self.copy_bytes(&staging, destination)
    }

    /// Writes `value` to all bytes of a buffer of this device.
    ///
    /// # Errors
    /// [`BufferErrorKind::Unsupported`] when the bytes are elsewhere; [`BufferErrorKind::Borrowed`], [`BufferErrorKind::Device`] as [`enqueue`].
    pub fn fill_bytes(&self, destination: &Buffer, value: u8) -> Result<(), BufferError> {
        self.on_this_device(destination)?;
        if destination.is_empty() {
            return Ok(());
        }
        enqueue(self, &[], &[destination], || {
            let stream = self.open()?;
            // SAFETY: bytes of this device, alive and ours to write until an event behind this: we are within `enqueue`.
            unsafe { driver::fill(stream, destination.address(), value.into(), 1, destination.len()) }
                .map_err(|error| self.cuda_device().error(error))
        })
    }

    /// Where a buffer's bytes live.
    ///
    /// # Errors
    /// [`BufferErrorKind::Unsupported`] where no CUDA device reaches.
    pub(crate) fn place(&self, buffer: &Buffer) -> Result<Place, BufferError> {
        let here = self.device();
        match buffer.device().kind {
            DeviceKind::Cuda => return Ok(Place::Device(buffer.device().ordinal)),
            DeviceKind::CudaManaged => return Ok(Place::Device(here.ordinal)),
            _ => {}
        }
        let Some(pointer) = buffer.memory().host_pointer() else {
            let message = format!("bytes on {}, which CUDA cannot reach", buffer.device());
            return Err(BufferError::new(BufferErrorKind::Unsupported, message).on(here));
        };
        if buffer.memory().as_any().is::<PinnedMemory>() {
            return Ok(Place::Pinned);
        }
        let context = &self.cuda_device().shared().context;
        let pinned = !buffer.is_empty()
            && driver::is_pinned(context, pointer.as_ptr().wrapping_add(buffer.offset()), buffer.len())
                .map_err(|error| self.cuda_device().error(error))?;
        Ok(if pinned { Place::Pinned } else { Place::Pageable })
    }

    /// Fails unless a buffer's bytes live on this device.
    pub(crate) fn on_this_device(&self, buffer: &Buffer) -> Result<(), BufferError> {
        match self.place(buffer)? {
            Place::Device(ordinal) if ordinal == self.device().ordinal => Ok(()),
            place => {
                let message = format!("bytes elsewhere ({place:?}); only whole buffers are copied to and from there");
                Err(BufferError::new(BufferErrorKind::Unsupported, message).on(self.device()))
            }
        }
    }

    /// Within `enqueue` for both: device memory, or pinned.
    fn copy_direct(&self, stream: &Stream, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        // SAFETY: alive, and ours to read and write until an event behind this: the caller is within `enqueue` for both, which do not overlap.
        unsafe { driver::copy(stream, destination.address(), source.address(), source.len()) }
            .map_err(|error| self.cuda_device().error(error))
    }

    /// Within `enqueue` for both: from device to device.
    fn copy_between_devices(&self, stream: &Stream, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        let memory = |buffer: &Buffer| buffer.memory().as_any().downcast_ref::<DeviceMemory>().map(|memory| memory.shared().clone());
        let (Some(from), Some(to)) = (memory(source), memory(destination)) else {
            // Memory of others: the driver knows its device by the address.
            return self.copy_direct(stream, source, destination);
        };
        let fail = |error| self.cuda_device().error(error);
        from.open_pool_to(&to.context).map_err(fail)?;
        to.open_pool_to(&from.context).map_err(fail)?;
        let (read, write): (&Context, &Context) = (&from.context, &to.context);
        // SAFETY: as in `copy_direct`; each address is of the context beside it.
        unsafe { driver::copy_peer(stream, (destination.address(), write), (source.address(), read), source.len()) }.map_err(fail)
    }

    /// Within `enqueue` for both: from pageable memory to the device.
    fn upload_pieces(&self, stream: &Stream, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        let written = source.ready().is_none_or(|event| matches!(event.is_complete(), Ok(true)));
        let piece = self.cuda_device().allocate_staging(source.len().min(PIECE))?;
        let (read, pinned) = (HostSpan::of(source)?, HostSpan::of(&piece)?);
        enqueue(self, &[], &[&piece], || {
            for start in (0..source.len()).step_by(PIECE) {
                let part = start..source.len().min(start + PIECE);
                let (from, to) = (read.part(part.clone()), pinned.part(0..part.len()));
                // The first piece is idle: where the source is written, it can be filled at once, by this thread.
                if written && start == 0 {
                    // SAFETY: the source is written, and nobody writes it while the caller is within `enqueue`; the piece is ours alone.
                    unsafe { from.copy_to(to) };
                } else {
                    // SAFETY: both are alive and used by nobody else at this point of the stream: the caller is within `enqueue` for both.
                    driver::run_on_host(stream, move || unsafe { from.copy_to(to) }).map_err(|error| self.cuda_device().error(error))?;
                }
                self.copy_direct(stream, &piece.slice(0..part.len())?, &destination.slice(part)?)?;
            }
            Ok(())
        })
    }

    /// Within `enqueue` for both: from the device to pageable memory.
    fn download_pieces(&self, stream: &Stream, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        let piece = self.cuda_device().allocate_staging(source.len().min(PIECE))?;
        let (write, pinned) = (HostSpan::of(destination)?, HostSpan::of(&piece)?);
        enqueue(self, &[], &[&piece], || {
            for start in (0..source.len()).step_by(PIECE) {
                let part = start..source.len().min(start + PIECE);
                let (from, to) = (pinned.part(0..part.len()), write.part(part.clone()));
                self.copy_direct(stream, &source.slice(part.clone())?, &piece.slice(0..part.len())?)?;
                // SAFETY: both are alive and used by nobody else at this point of the stream: the caller is within `enqueue` for both.
                driver::run_on_host(stream, move || unsafe { from.copy_to(to) }).map_err(|error| self.cuda_device().error(error))?;
            }
            Ok(())
        })
    }
}

/// Host bytes, as work on the driver's thread holds them.
#[derive(Debug, Clone, Copy)]
struct HostSpan {
    pointer: *mut u8,
    len: usize,
}

// SAFETY: a pointer to plain bytes that any host thread may use (contract of `Memory`), when the events say so.
unsafe impl Send for HostSpan {}

impl HostSpan {
    fn of(buffer: &Buffer) -> Result<Self, BufferError> {
        let base = buffer.memory().host_pointer().ok_or_else(|| {
            BufferError::new(BufferErrorKind::NotHostVisible, "the host cannot dereference these bytes").on(buffer.device())
        })?;
        Ok(Self { pointer: base.as_ptr().wrapping_add(buffer.offset()), len: buffer.len() })
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { pointer: self.pointer.wrapping_add(range.start), len: range.len().min(self.len.saturating_sub(range.start)) }
    }

    /// # Safety
    /// Both are alive, they do not overlap, and nobody else uses them now.
    unsafe fn copy_to(self, destination: Self) {
        let len = self.len.min(destination.len);
        // SAFETY: the caller's promise; both have as many bytes, initialised by the contract of `Memory`.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer, destination.pointer, len) };
    }
}

/// Refuses to read and write the same bytes in one call.
pub(crate) fn refuse_overlap(source: &Buffer, from: Range<usize>, destination: &Buffer, to: Range<usize>) -> Result<(), BufferError> {
    let from = source.offset() + from.start..source.offset() + from.end;
    let to = destination.offset() + to.start..destination.offset() + to.end;
    if source.shares_allocation(destination) && from.start < to.end && to.start < from.end {
        return Err(BufferError::parameter("source and destination of a copy overlap"));
    }
    Ok(())
}
