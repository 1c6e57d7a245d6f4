use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use cudarc::driver::sys::{self, CUmemoryPool};

use super::check;
use super::context::Context;
use super::stream::Stream;
use crate::CudaError;

/// A pool of device memory that is allocated and freed in the order of streams.
#[derive(Debug)]
pub(crate) struct Pool {
    raw: CUmemoryPool,
    context: Arc<Context>,
}

// SAFETY: pools may be used from any thread; the driver locks them.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool that keeps up to `threshold` bytes that nobody uses.
    pub(crate) fn new(context: &Arc<Context>, threshold: u64) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let properties = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: location(context),
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = null_mut();
        // SAFETY: both pointers are valid for this call.
        check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut raw, &properties) })?;
        let pool = Self { raw, context: Arc::clone(context) };
        let mut threshold = threshold;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is alive; this attribute is a 64-bit number, read during this call.
        check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(raw, attribute, (&raw mut threshold).cast()) })?;
        Ok(pool)
    }

    /// Memory that work on `stream` may use at once.
    pub(crate) fn allocate(&self, len: usize, stream: &Stream) -> Result<u64, CudaError> {
        let _entered = self.context.enter()?;
        let mut address = 0;
        // SAFETY: pool and stream are alive; the pointer is valid for this call.
        check("cuMemAllocFromPoolAsync", unsafe { sys::cuMemAllocFromPoolAsync(&mut address, len, self.raw, stream.raw()) })?;
        Ok(address)
    }

    /// Frees memory once the work on `stream` so far is done.
    ///
    /// # Safety
    /// `address` came from [`Pool::allocate`], is freed once, and all work that uses it comes before this point of the stream.
    pub(crate) unsafe fn free(&self, address: u64, stream: &Stream) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        // SAFETY: the caller's promise.
        check("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(address, stream.raw()) })
    }

    /// Gives unused memory back to the system, but for `keep` bytes. Waits for nothing that is in use.
    pub(crate) fn trim(&self, keep: usize) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        // SAFETY: the pool is alive.
        check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.raw, keep) })
    }

    /// Bytes that the pool holds, used or not.
    pub(crate) fn reserved(&self) -> Result<u64, CudaError> {
        let _entered = self.context.enter()?;
        let mut bytes = 0u64;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the pool is alive; this attribute is a 64-bit number, written during this call.
        check("cuMemPoolGetAttribute", unsafe { sys::cuMemPoolGetAttribute(self.raw, attribute, (&raw mut bytes).cast()) })?;
        Ok(bytes)
    }

    /// Lets another device use the pool's memory where it is.
    pub(crate) fn share_with(&self, other: &Context) -> Result<(), CudaError> {
        let _entered = self.context.enter()?;
        let access = sys::CUmemAccessDesc { location: location(other), flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        // SAFETY: the pool is alive; the pointer is valid for one description during this call.
        check("cuMemPoolSetAccess", unsafe { sys::cuMemPoolSetAccess(self.raw, &access, 1) })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nobody uses the pool after this. The driver lets frees that are under way end first, without waiting here.
            let _ = unsafe { sys::cuMemPoolDestroy(self.raw) };
        }
    }
}

fn location(context: &Context) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: context.ordinal() as c_int }
}

/// Pinned host memory: cached, at the same address on all devices.
#[derive(Debug)]
pub(crate) struct Pinned {
    pointer: NonNull<u8>,
    len: usize,
    context: Arc<Context>,
}

// SAFETY: plain memory that the value owns.
unsafe impl Send for Pinned {}
// SAFETY: shared access gives out only the address.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Zeroed bytes, `len` of them, at least one.
    pub(crate) fn new(context: &Arc<Context>, len: usize) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let mut pointer = null_mut();
        // SAFETY: the context is current; the pointer is valid for this call.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut pointer, len, sys::CU_MEMHOSTALLOC_PORTABLE) })?;
        let Some(pointer) = NonNull::new(pointer.cast::<u8>()) else {
            return Err(CudaError::Driver { call: "cuMemHostAlloc", code: 2, name: "no address".into(), message: "out of memory".into() });
        };
        // SAFETY: `len` bytes that are ours alone.
        unsafe { pointer.as_ptr().write_bytes(0, len) };
        Ok(Self { pointer, len, context: Arc::clone(context) })
    }

    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: from `cuMemHostAlloc`, and nobody uses it after this.
            let _ = unsafe { sys::cuMemFreeHost(self.pointer.as_ptr().cast()) };
        }
    }
}

/// Device memory that other processes can open.
#[derive(Debug)]
pub(crate) struct Exportable {
    address: u64,
    len: usize,
    context: Arc<Context>,
}

impl Exportable {
    pub(crate) fn new(context: &Arc<Context>, len: usize) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let mut address = 0;
        // SAFETY: the context is current; the pointer is valid for this call.
        check("cuMemAlloc_v2", unsafe { sys::cuMemAlloc_v2(&mut address, len) })?;
        Ok(Self { address, len, context: Arc::clone(context) })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A handle for another process.
    pub(crate) fn export(&self) -> Result<[u8; 64], CudaError> {
        let _entered = self.context.enter()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: the start of an allocation that is alive; the pointer is valid for this call.
        check("cuIpcGetMemHandle", unsafe { sys::cuIpcGetMemHandle(&mut handle, self.address) })?;
        Ok(handle.reserved.map(|byte| byte as u8))
    }
}

impl Drop for Exportable {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: from `cuMemAlloc`, and nobody uses it after this.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Another process's memory, opened here.
#[derive(Debug)]
pub(crate) struct Imported {
    address: u64,
    context: Arc<Context>,
}

impl Imported {
    pub(crate) fn open(context: &Arc<Context>, handle: [u8; 64]) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        let handle = sys::CUipcMemHandle { reserved: handle.map(|byte| byte as c_char) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as c_uint;
        let mut address = 0;
        // SAFETY: the context is current; the driver checks the handle; the pointer is valid for this call.
        check("cuIpcOpenMemHandle_v2", unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, flags) })?;
        Ok(Self { address, context: Arc::clone(context) })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes of the allocation there are from its start.
    pub(crate) fn len(&self) -> Result<usize, CudaError> {
        let _entered = self.context.enter()?;
        let (mut base, mut len) = (0, 0usize);
        // SAFETY: the pointers are valid for this call.
        check("cuMemGetAddressRange_v2", unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut len, self.address) })?;
        Ok(len.saturating_sub((self.address - base) as usize))
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: opened once, and nobody uses it after this.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.address) };
        }
    }
}

/// Whether `len` bytes of host memory are pinned, so that the driver copies them without a stop.
pub(crate) fn is_pinned(context: &Context, pointer: *const u8, len: usize) -> Result<bool, CudaError> {
    let _entered = context.enter()?;
    let (mut kind, mut start, mut size) = (0u32, 0u64, 0usize);
    let mut attributes = [
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    ];
    let mut data: [*mut c_void; 3] = [(&raw mut kind).cast(), (&raw mut start).cast(), (&raw mut size).cast()];
    // SAFETY: each of the three pointers is valid for the type of its attribute: an unsigned int, a device pointer, a size. The address may be
    // anything: it is looked up, not followed.
    let result =
        unsafe { sys::cuPointerGetAttributes(attributes.len() as u32, attributes.as_mut_ptr(), data.as_mut_ptr(), pointer as u64) };
    if check("cuPointerGetAttributes", result).is_err() {
        // Memory that CUDA never heard of.
        return Ok(false);
    }
    let end = (pointer as u64).checked_add(len as u64);
    let inside = start <= pointer as u64 && end.is_some_and(|end| end - start <= size as u64);
    Ok(kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32 && inside)
}

/// Copies bytes between device and pinned host memory, in the order of a stream.
///
/// # Safety
/// Until the stream is past this point: `len` bytes at `from` may be read, `len` bytes at `to` written, by the device, and nobody else
/// touches `to`. Host memory is pinned, and one side is device memory.
pub(crate) unsafe fn copy(stream: &Stream, to: u64, from: u64, len: usize) -> Result<(), CudaError> {
    let _entered = stream.context().enter()?;
    // SAFETY: the caller's promise.
    check("cuMemcpyAsync", unsafe { sys::cuMemcpyAsync(to, from, len, stream.raw()) })
}

/// Copies bytes from one device to another, in the order of a stream.
///
/// # Safety
/// As [`copy`]; `to` and `from` are device memory of the contexts beside them.
pub(crate) unsafe fn copy_peer(stream: &Stream, to: (u64, &Context), from: (u64, &Context), len: usize) -> Result<(), CudaError> {
    let _entered = stream.context().enter()?;
    // SAFETY: the caller's promise; the contexts are held.
    let result = unsafe { sys::cuMemcpyPeerAsync(to.0, to.1.raw(), from.0, from.1.raw(), len, stream.raw()) };
    check("cuMemcpyPeerAsync", result)
}

/// Writes `count` elements of `width` bytes (1, 2 or 4) that all are `value`, in the order of a stream.
///
/// # Safety
/// Until the stream is past this point, the bytes at `to` may be written by the device, and nobody else touches them. `to` is a multiple of
/// `width`.
pub(crate) unsafe fn fill(stream: &Stream, to: u64, value: u32, width: usize, count: usize) -> Result<(), CudaError> {
    let _entered = stream.context().enter()?;
    match width {
        1 => {
            // SAFETY: the caller's promise.
            check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(to, value as u8, count, stream.raw()) })
        }
        2 => {
            // SAFETY: the caller's promise.
            check("cuMemsetD16Async", unsafe { sys::cuMemsetD16Async(to, value as u16, count, stream.raw()) })
        }
        _ => {
            // SAFETY: the caller's promise.
            check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(to, value, count, stream.raw()) })
        }
    }
}

/// Runs `work` on a thread of the driver, in the order of a stream. `work` must not call the driver, wait for a device or panic. If an
/// error of the device comes before it, it is never run, and never dropped.
pub(crate) fn run_on_host<W: FnOnce() + Send + 'static>(stream: &Stream, work: W) -> Result<(), CudaError> {
    extern "C" fn run<W: FnOnce()>(work: *mut c_void) {
        // SAFETY: the box that was given up below; the driver calls this once.
        let work = unsafe { Box::from_raw(work.cast::<W>()) };
        work();
    }
    let _entered = stream.context().enter()?;
    let work = Box::into_raw(Box::new(work));
    // SAFETY: the stream is alive; `run` takes what `work` points to.
    let result = unsafe { sys::cuLaunchHostFunc(stream.raw(), Some(run::<W>), work.cast()) };
    if let Err(error) = check("cuLaunchHostFunc", result) {
        // SAFETY: refused, so that the driver will not call `run` for it.
        drop(unsafe { Box::from_raw(work) });
        return Err(error);
    }
    Ok(())
}
