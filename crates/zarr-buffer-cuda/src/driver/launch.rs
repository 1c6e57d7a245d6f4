use std::ffi::{CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule};

use super::check;
use super::context::Context;
use super::stream::Stream;
use crate::CudaError;

/// Compiled kernels, loaded into a context.
#[derive(Debug)]
pub(crate) struct Module {
    raw: CUmodule,
    context: Arc<Context>,
}

// SAFETY: modules may be used from any thread; the driver locks them.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a fatbin, a cubin, or PTX that ends with a zero.
    ///
    /// # Safety
    /// `image` is one of these, whole: it says itself how long it is.
    pub(crate) unsafe fn load(context: &Arc<Context>, image: &[u8]) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the caller's promise about the image; the driver copies what it needs.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) })?;
        Ok(Self { raw, context: Arc::clone(context) })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The kernel with this entry name.
    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Result<Function, CudaError> {
        let _entered = self.context.enter()?;
        let entry = CString::new(name).unwrap_or_default();
        let mut raw = null_mut();
        // SAFETY: the module is alive; the name ends with a zero; the pointer is valid for this call.
        check("cuModuleGetFunction", unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, entry.as_ptr()) })?;
        let mut statically: c_int = 0;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        // SAFETY: the function was just found in a module that is alive; the pointer is valid for this call.
        check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut statically, attribute, raw) })?;
        let unasked = Function::UNASKED_SHARED.saturating_sub(statically.unsigned_abs());
        Ok(Function { raw, module: Arc::clone(self), dynamic_shared: AtomicU32::new(unasked) })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: loaded once; the functions of it hold it, so that nobody uses it after this.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel, with the module that it is in.
#[derive(Debug)]
pub(crate) struct Function {
    raw: CUfunction,
    module: Arc<Module>,
    /// The most dynamic shared memory that a launch may have as yet.
    dynamic_shared: AtomicU32,
}

// SAFETY: functions may be used from any thread; the driver locks them.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Shared memory, static and dynamic, that every block may have without asking.
    const UNASKED_SHARED: u32 = 48 << 10;

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.module.context
    }

    pub(crate) fn attribute(&self, attribute: CUfunction_attribute) -> Result<i32, CudaError> {
        let _entered = self.module.context.enter()?;
        let mut value: c_int = 0;
        // SAFETY: the function's module is held; the pointer is valid for this call.
        check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.raw) })?;
        Ok(value)
    }

    /// Lets launches have this much dynamic shared memory.
    pub(crate) fn raise_shared(&self, bytes: u32) -> Result<(), CudaError> {
        if bytes <= self.dynamic_shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _entered = self.module.context.enter()?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function's module is held; the driver checks the value.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.raw, attribute, bytes as c_int) })?;
        self.dynamic_shared.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// How many blocks of this shape fit one multiprocessor.
    pub(crate) fn blocks_per_multiprocessor(&self, block: u32, shared: u32) -> Result<u32, CudaError> {
        let _entered = self.module.context.enter()?;
        let mut blocks: c_int = 0;
        // SAFETY: the function's module is held; the pointer is valid for this call.
        let result = unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.raw, block as c_int, shared as usize) };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", result)?;
        Ok(blocks as u32)
    }

    /// Launches the kernel with the bytes of its parameters.
    ///
    /// # Safety
    /// `params` are the kernel's parameters as it lays them out, and the kernel, launched so, touches only memory that it may until the stream is
    /// past this point.
    pub(crate) unsafe fn launch(&self, stream: &Stream, grid: [u32; 3], block: u32, shared: u32, params: &[u8]) -> Result<(), CudaError> {
        let _entered = stream.context().enter()?;
        let [x, y, z] = grid;
        let mut len = params.len();
        let mut extra: [*mut c_void; 5] = [
            without_provenance_mut(sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize),
            params.as_ptr().cast_mut().cast(),
            without_provenance_mut(sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize),
            (&raw mut len).cast(),
            without_provenance_mut(sys::CU_LAUNCH_PARAM_END_AS_INT as usize),
        ];
        // SAFETY: function and stream are alive; the driver copies the parameters during this call, and only reads them. The rest is the
        // caller's promise.
        let result = unsafe { sys::cuLaunchKernel(self.raw, x, y, z, block, 1, 1, shared, stream.raw(), null_mut(), extra.as_mut_ptr()) };
        check("cuLaunchKernel", result)
    }
}
