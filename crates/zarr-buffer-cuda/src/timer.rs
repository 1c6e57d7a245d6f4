use std::fmt;

use zarr_buffer_api::{BufferError, Device};

use crate::driver::RawEvent;
use crate::{CudaDevice, CudaQueue};

/// A point in a queue that knows when it was passed. For measurements: events of [`zarr_buffer_api::Queue::record`] are cheaper.
pub struct CudaMark {
    event: RawEvent,
    device: CudaDevice,
}

impl CudaQueue {
    /// Marks the point after everything enqueued so far, with its time on the device.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver refuses.
    pub fn mark(&self) -> Result<CudaMark, BufferError> {
        let device = self.cuda_device();
        let stream = self.open()?;
        let mark = || {
            let event = RawEvent::new(stream.context(), RawEvent::TIMED)?;
            stream.record(&event)?;
            Ok(event)
        };
        Ok(CudaMark { event: mark().map_err(|error| device.error(error))?, device: device.clone() })
    }
}

impl CudaMark {
    /// Milliseconds on the device from this point to a later one of the same device. Blocks the calling thread until both are passed.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Parameter`] when the later one is of another device; [`zarr_buffer_api::BufferErrorKind::Device`]
    /// when the work before them failed.
    pub fn milliseconds_to(&self, later: &Self) -> Result<f64, BufferError> {
        if self.device.context() != later.device.context() {
            return Err(BufferError::parameter("two points of different devices").on(self.device.id()));
        }
        let elapsed = || {
            let _entered = self.device.shared().context.enter()?;
            self.event.synchronize()?;
            later.event.synchronize()?;
            self.event.elapsed_ms(&later.event)
        };
        elapsed().map(f64::from).map_err(|error| self.device.error(error))
    }
}

impl fmt::Debug for CudaMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaMark on {}", self.device.id())
    }
}
