use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute as Attribute;
use zarr_buffer_api::{BufferError, Device};

use crate::driver::{Function, Module};
use crate::{CudaDevice, CudaQueue};

/// Compiled kernels on a device. They are unloaded with the last of the module and its functions, which may wait for the device: keep them.
#[derive(Clone)]
pub struct CudaModule {
    module: Arc<Module>,
}

impl CudaModule {
    /// Loads a fatbin.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Parameter`] when `image` is not one; [`zarr_buffer_api::BufferErrorKind::Device`] when it holds nothing for this device, or the driver
    /// is too old for it.
    pub fn load(device: &CudaDevice, image: &'static [u8]) -> Result<Self, BufferError> {
        if fatbin_len(image) != Some(image.len()) {
            return Err(BufferError::parameter(format!("{} bytes that are not a fatbin", image.len())).on(device.id()));
        }
        // SAFETY: a fatbin, as long as its header says.
        let module = unsafe { Module::load(&device.shared().context, image) }.map_err(|error| device.error(error))?;
        Ok(Self { module: Arc::new(module) })
    }

    /// The kernel with this entry name.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when there is none.
    pub fn function(&self, name: &str) -> Result<CudaFunction, BufferError> {
        let fail = |error: crate::CudaError| {
            let mut error = error.on(self.module.context().ordinal());
            error.message = format!("kernel {name}: {}", error.message);
            error
        };
        Ok(CudaFunction { function: Arc::new(self.module.function(name).map_err(fail)?), name: name.into() })
    }
}

impl fmt::Debug for CudaModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaModule on cuda:{}", self.module.context().ordinal())
    }
}

/// The length that a fatbin says it has: of its header and of what comes behind.
fn fatbin_len(image: &[u8]) -> Option<usize> {
    const MAGIC: u32 = 0xBA55_ED50;
    let magic = u32::from_le_bytes(*image.first_chunk()?);
    let header = u16::from_le_bytes(*image.get(6..)?.first_chunk()?);
    let body = u64::from_le_bytes(*image.get(8..)?.first_chunk()?);
    (magic == MAGIC).then_some(())?;
    usize::try_from(body).ok()?.checked_add(header.into())
}

/// A kernel. Cheap to clone.
#[derive(Clone)]
pub struct CudaFunction {
    function: Arc<Function>,
    name: Arc<str>,
}

impl CudaFunction {
    /// The entry name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The most threads that a block of this kernel may have.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails.
    pub fn max_block(&self) -> Result<u32, BufferError> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    }

    /// Registers of a thread.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails.
    pub fn registers(&self) -> Result<u32, BufferError> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of shared memory that the kernel has of itself, for each block.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails.
    pub fn static_shared_bytes(&self) -> Result<u32, BufferError> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    }

    /// Bytes of memory of a thread for what does not fit registers.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails.
    pub fn local_bytes(&self) -> Result<u32, BufferError> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// How many blocks of `block` threads and `shared_bytes` of dynamic shared memory run on one multiprocessor at a time.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails, or a block can not have as much.
    pub fn blocks_per_multiprocessor(&self, block: u32, shared_bytes: u32) -> Result<u32, BufferError> {
        let blocks = || {
            self.function.raise_shared(shared_bytes)?;
            self.function.blocks_per_multiprocessor(block, shared_bytes)
        };
        blocks().map_err(|error| error.on(self.function.context().ordinal()))
    }

    fn attribute(&self, attribute: Attribute) -> Result<u32, BufferError> {
        let value = self.function.attribute(attribute).map_err(|error| error.on(self.function.context().ordinal()))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl fmt::Debug for CudaFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaFunction({} on cuda:{})", self.name, self.function.context().ordinal())
    }
}

impl CudaQueue {
    /// The most bytes of parameters that every driver and device takes.
    pub const MAX_PARAMETERS: usize = 4096;

    /// Enqueues a kernel: `grid` blocks (x, y, z) of `block` threads, with `shared_bytes` of dynamic shared memory each (a limit above 48 KiB is
    /// raised as needed). `params` are the bytes of the kernel's one parameter, a `repr(C)` struct passed by value. A grid without blocks is no work.
    ///
    /// Call it from within [`zarr_buffer_api::enqueue`] for all the buffers that the kernel uses: that orders it, and keeps their memory.
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Parameter`] for more than [`CudaQueue::MAX_PARAMETERS`] bytes of parameters, or a kernel of another device;
    /// [`zarr_buffer_api::BufferErrorKind::Device`] when the driver refuses, or brings an earlier failure to light.
    ///
    /// # Safety
    /// `params` has the size and layout of the kernel's parameter. Launched so, the kernel keeps to memory of this device (or pinned, or of
    /// peers) that it may read or write, until the queue is past this point; other work on what it writes is ordered before or behind it.
    pub unsafe fn launch(
        &self,
        function: &CudaFunction,
        grid: [u32; 3],
        block: u32,
        shared_bytes: u32,
        params: &[u8],
    ) -> Result<(), BufferError> {
        let id = self.cuda_device().info().id();
        if params.len() > Self::MAX_PARAMETERS {
            return Err(BufferError::parameter(format!("{} bytes of parameters for {}", params.len(), function.name)).on(id));
        }
        let stream = self.open()?;
        if function.function.context().raw() != stream.context().raw() {
            return Err(BufferError::parameter(format!("{function:?} on a queue of another device")).on(id));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        let fail = |error: crate::CudaError| {
            let mut error = error.on(id.ordinal);
            error.message = format!(
                "launch of {} with {grid:?} blocks of {block} threads and {shared_bytes} bytes of shared memory: {}",
                function.name, error.message
            );
            error
        };
        function.function.raise_shared(shared_bytes).map_err(fail)?;
        // SAFETY: the caller's promise.
        unsafe { function.function.launch(stream, grid, block, shared_bytes, params) }.map_err(fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatbin_says_how_long_it_is() {
        let mut image = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7];
        assert_eq!(fatbin_len(&image), Some(image.len()));
        assert_eq!(fatbin_len(&image[..15]), None);
        image[0] = 0;
        assert_eq!(fatbin_len(&image), None);
    }
}
