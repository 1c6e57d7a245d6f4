use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUcontext, CUdevice};

pub(crate) use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::stream::RawEvent;
use super::{check, initialise};
use crate::CudaError;

/// How many devices there are.
pub(crate) fn device_count() -> Result<i32, CudaError> {
    initialise()?;
    let mut count: c_int = 0;
    // SAFETY: the driver is initialised; the pointer is valid for this call.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    Ok(count)
}

fn device(ordinal: i32) -> Result<CUdevice, CudaError> {
    initialise()?;
    let mut device: CUdevice = 0;
    // SAFETY: the driver is initialised; it checks the ordinal.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
    Ok(device)
}

pub(crate) fn device_attribute(ordinal: i32, attribute: Attribute) -> Result<i32, CudaError> {
    let device = device(ordinal)?;
    let mut value: c_int = 0;
    // SAFETY: a device that the driver gave; the pointer is valid for this call.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device) })?;
    Ok(value)
}

pub(crate) fn device_name(ordinal: i32) -> Result<String, CudaError> {
    let device = device(ordinal)?;
    let mut name = [0u8; 256];
    // SAFETY: the array has room for the length that is given, the zero at the end included.
    let result = unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), name.len() as c_int, device) };
    check("cuDeviceGetName", result)?;
    let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(name.get(..len).unwrap_or_default()).into_owned())
}

pub(crate) fn device_uuid(ordinal: i32) -> Result<[u8; 16], CudaError> {
    let device = device(ordinal)?;
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: a device that the driver gave; the pointer is valid for this call.
    check("cuDeviceGetUuid_v2", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) })?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

/// Bytes of memory in all.
pub(crate) fn device_memory(ordinal: i32) -> Result<u64, CudaError> {
    let device = device(ordinal)?;
    let mut bytes = 0usize;
    // SAFETY: a device that the driver gave; the pointer is valid for this call.
    check("cuDeviceTotalMem_v2", unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, device) })?;
    Ok(bytes as u64)
}

/// The primary context of a device, held.
#[derive(Debug)]
pub(crate) struct Context {
    raw: CUcontext,
    device: CUdevice,
    ordinal: i32,
    /// Events without an owner.
    events: Mutex<Vec<RawEvent>>,
}

// SAFETY: contexts may be used from any thread; the driver locks them.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The most events that are kept for reuse.
    const SPARE_EVENTS: usize = 1 << 16;

    pub(crate) fn retain(ordinal: i32) -> Result<Self, CudaError> {
        let device = device(ordinal)?;
        let mut raw = null_mut();
        // SAFETY: a device that the driver gave; released once, on drop.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        Ok(Self { raw, device, ordinal, events: Mutex::default() })
    }

    pub(crate) fn raw(&self) -> CUcontext {
        self.raw
    }

    pub(crate) fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// Makes this the context of the calling thread, until the guard goes. A thread that had none keeps it.
    pub(crate) fn enter(&self) -> Result<Entered, CudaError> {
        let mut current = null_mut();
        // SAFETY: the driver is initialised; the pointer is valid for this call.
        check("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&mut current) })?;
        if current == self.raw {
            return Ok(Entered { before: null_mut() });
        }
        set_current(self.raw)?;
        Ok(Entered { before: current })
    }

    /// An event, made or used before.
    pub(crate) fn event(self: &Arc<Self>) -> Result<RawEvent, CudaError> {
        let spare = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match spare {
            Some(event) => Ok(event),
            None => RawEvent::new(self, RawEvent::PLAIN),
        }
    }

    /// Takes back an event. Work that waits for its last mark goes on to wait for that.
    pub(crate) fn recycle(&self, event: RawEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < Self::SPARE_EVENTS {
            events.push(event);
        }
    }

    /// Bytes of device memory that are free, and in all.
    pub(crate) fn free_memory(&self) -> Result<(u64, u64), CudaError> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the context is current; the pointers are valid for this call.
        check("cuMemGetInfo_v2", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Whether kernels and copies of this device can reach memory of another.
    pub(crate) fn reaches(&self, other: &Self) -> Result<bool, CudaError> {
        let mut can: c_int = 0;
        // SAFETY: two devices that the driver gave; the pointer is valid for this call.
        check("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, self.device, other.device) })?;
        Ok(can != 0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(_entered) = self.enter() {
            self.events.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
        // SAFETY: retained once, and all that belongs to it and to this crate is gone.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

fn set_current(context: CUcontext) -> Result<(), CudaError> {
    // SAFETY: a context that is alive: held by the caller, or current on this thread before.
    check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })
}

/// The calling thread's time in a context.
#[derive(Debug)]
pub(crate) struct Entered {
    /// The context to go back to; null to stay.
    before: CUcontext,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !self.before.is_null() {
            let _ = set_current(self.before);
        }
    }
}
