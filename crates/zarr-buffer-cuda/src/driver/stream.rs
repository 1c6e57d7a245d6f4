use std::ffi::c_uint;
use std::ptr::null_mut;
use std::sync::{Arc, Weak};

use cudarc::driver::sys::{self, CUevent, CUresult, CUstream};

use super::check;
use super::context::Context;
use crate::CudaError;

/// A stream, of our own or of somebody else.
#[derive(Debug)]
pub(crate) struct Stream {
    raw: CUstream,
    owned: bool,
    context: Arc<Context>,
}

// SAFETY: streams may be used from any thread; the driver locks them.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream that does not wait for the default stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let mut raw = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: the context is current; the pointer is valid for this call.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut raw, flags) })?;
        Ok(Self { raw, owned: true, context: Arc::clone(context) })
    }

    /// A stream that somebody else owns.
    ///
    /// # Safety
    /// `raw` is a stream of this context, or a special handle (0, 1, 2), and lives as long as anything is called here.
    pub(crate) unsafe fn borrowed(context: &Arc<Context>, raw: CUstream) -> Self {
        Self { raw, owned: false, context: Arc::clone(context) }
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Whether the stream lives as long as this value.
    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether the stream belongs to the context that it was given with.
    pub(crate) fn is_of_context(&self) -> Result<bool, CudaError> {
        let _entered = self.context.enter()?;
        let mut context = null_mut();
        // SAFETY: the stream is alive; the pointer is valid for this call.
        check("cuStreamGetCtx", unsafe { sys::cuStreamGetCtx(self.raw, &mut context) })?;
        Ok(context == self.context.raw())
    }

    pub(crate) fn wait_event(&self, event: &RawEvent) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        // SAFETY: both handles are alive. The driver takes the event's mark of now; the event may be used anew afterwards.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    pub(crate) fn record(&self, event: &RawEvent) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        // SAFETY: both handles are alive, and of one context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event.raw, self.raw) })
    }

    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let (true, Ok(_entered)) = (self.owned, self.context.enter()) {
            // SAFETY: made by `new`, and nobody uses it after this. The driver lets its work end first, without waiting here.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// An event of the driver. Whoever asks it something has entered its context.
#[derive(Debug)]
pub(crate) struct RawEvent {
    raw: CUevent,
    /// Not held: contexts keep events for reuse.
    context: Weak<Context>,
}

// SAFETY: events may be used from any thread; the driver locks them.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    pub(crate) const PLAIN: c_uint = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
    pub(crate) const TIMED: c_uint = sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint;
    pub(crate) const INTERPROCESS: c_uint = Self::PLAIN | sys::CUevent_flags::CU_EVENT_INTERPROCESS as c_uint;

    /// A new event.
    pub(crate) fn new(context: &Arc<Context>, flags: c_uint) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the context is current; the pointer is valid for this call.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
        Ok(Self { raw, context: Arc::downgrade(context) })
    }

    /// Whether what was marked last is done.
    pub(crate) fn is_complete(&self) -> Result<bool, CudaError> {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Milliseconds from this event's mark to that of another. Both were made to take time, and are complete.
    pub(crate) fn elapsed_ms(&self, later: &Self) -> Result<f32, CudaError> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive; the pointer is valid for this call.
        check("cuEventElapsedTime", unsafe { sys::cuEventElapsedTime(&mut milliseconds, self.raw, later.raw) })?;
        Ok(milliseconds)
    }

    /// A handle for another process, of an event made with [`RawEvent::INTERPROCESS`].
    pub(crate) fn export(&self) -> Result<[u8; 64], CudaError> {
        let mut handle = sys::CUipcEventHandle { reserved: [0; 64] };
        // SAFETY: the event is alive; the pointer is valid for this call.
        check("cuIpcGetEventHandle", unsafe { sys::cuIpcGetEventHandle(&mut handle, self.raw) })?;
        Ok(handle.reserved.map(|byte| byte as u8))
    }

    /// Another process's event.
    pub(crate) fn import(context: &Arc<Context>, handle: [u8; 64]) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let handle = sys::CUipcEventHandle { reserved: handle.map(|byte| byte as std::ffi::c_char) };
        let mut raw = null_mut();
        // SAFETY: the driver checks the handle; the pointer is valid for this call.
        check("cuIpcOpenEventHandle", unsafe { sys::cuIpcOpenEventHandle(&mut raw, handle) })?;
        Ok(Self { raw, context: Arc::downgrade(context) })
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        // A context that is being dropped has entered itself.
        let context = self.context.upgrade();
        let _entered = context.as_ref().map(|context| context.enter());
        // SAFETY: made or imported here, and nobody uses it after this. The driver lets pending marks end first, without waiting here.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}
