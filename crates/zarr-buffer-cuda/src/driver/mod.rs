//! The driver's functions, one wrapper each, and owners of its handles. The only place of this crate that calls the driver.

mod context;
mod launch;
mod memory;
mod stream;

use std::ffi::{CStr, c_int};
use std::ptr::null;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};

pub(crate) use context::{Attribute, Context, device_attribute, device_count, device_memory, device_name, device_uuid};
pub(crate) use launch::{Function, Module};
pub(crate) use memory::{Exportable, Imported, Pinned, Pool, copy, copy_peer, fill, is_pinned, run_on_host};
pub(crate) use stream::{RawEvent, Stream};

use crate::CudaError;

/// The least CUDA version of a driver: every function that is used here is in it.
const LEAST_VERSION: i32 = 12_000;

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

/// Opens and initialises the driver, once; gives its CUDA version.
pub(crate) fn initialise() -> Result<i32, CudaError> {
    static VERSION: OnceLock<Result<i32, CudaError>> = OnceLock::new();
    VERSION
        .get_or_init(|| {
            // SAFETY: opens the driver's library, whose initialisers are fit to be run at any time, and closes it again.
            if !unsafe { sys::is_culib_present() } {
                return Err(CudaError::NoDriver { library: LIBRARY });
            }
            let mut version: c_int = 0;
            // SAFETY: the library is there, and this function is in every version of it; it may be called before `cuInit`.
            check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
            if version < LEAST_VERSION {
                return Err(CudaError::OldDriver { found: version, least: LEAST_VERSION });
            }
            // SAFETY: the library is there; 0 is the one value that the flags may have.
            check("cuInit", unsafe { sys::cuInit(0) })?;
            Ok(version)
        })
        .clone()
}

/// An error unless a function succeeded.
fn check(call: &'static str, result: CUresult) -> Result<(), CudaError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = null();
    // SAFETY: gives a static string, or nothing for a number that it does not know. May be called at any time.
    let _ = unsafe { sys::cuGetErrorName(result, &mut name) };
    let mut message = null();
    // SAFETY: as above.
    let _ = unsafe { sys::cuGetErrorString(result, &mut message) };
    let mut message = text(message);
    if result == CUresult::CUDA_ERROR_NOT_INITIALIZED {
        // It was initialized, or there would be no call.
        message.push_str(
            " (CUDA does not work in a process that was forked from one that used it: start such processes anew, by spawn or forkserver)",
        );
    }
    Err(CudaError::Driver { call, code: result as u32, name: text(name), message })
}

/// A static string of the driver.
fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return "unknown error".into();
    }
    // SAFETY: not null; the driver's strings end with a zero and live as long as the library, which is never closed.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
