use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, Queue};
use zarr_codecs_cuda::{Engine, Kernel, KernelProvider, Launch};

use crate::scheduler::run_grid;

/// How kernels run on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostOptions {
    /// Where chance starts: which threads go first.
    pub seed: u64,
    /// How many multiprocessors to pretend: it decides how work is divided.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block may have; kernels that want more are refused.
    pub shared_memory: u32,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { seed: 0, multiprocessors: 2, shared_memory: u32::MAX }
    }
}

impl HostOptions {
    /// Sets where chance starts.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how many multiprocessors to pretend, at least 1.
    #[must_use]
    pub fn with_multiprocessors(mut self, multiprocessors: u32) -> Self {
        self.multiprocessors = multiprocessors.max(1);
        self
    }

    /// Sets how much shared memory a block may have, in bytes.
    #[must_use]
    pub fn with_shared_memory(mut self, shared_memory: u32) -> Self {
        self.shared_memory = shared_memory;
        self
    }
}

/// The codecs of `zarr-codecs-cuda` on the host, as the provider `cuda-host`, for [`zarr_buffer_api::HostDevice`].
pub fn host_provider(options: HostOptions) -> KernelProvider {
    KernelProvider::new(HostEngine { options, launches: AtomicU64::new(0) })
}

#[derive(Debug)]
struct HostEngine {
    options: HostOptions,
    launches: AtomicU64,
}

type EntryPoint = unsafe extern "C" fn(*const c_void);

macro_rules! entry_points {
    ($($variant:ident => $name:ident,)*) => {
        unsafe extern "C" {
            $(fn $name(params: *const c_void);)*
        }

        fn entry_point(kernel: Kernel) -> Option<EntryPoint> {
            match kernel {
                $(Kernel::$variant => Some($name),)*
                _ => None,
            }
        }
    };
}

entry_points! {
    ZstdPlan => zstd_plan,
    ZstdAssign => zstd_assign,
    ZstdList => zstd_list,
    ZstdLiterals => zstd_literals,
    ZstdSequences => zstd_sequences,
    ZstdResolve => zstd_resolve,
    ZstdCopy => zstd_copy,
    ZstdExecute => zstd_execute,
    ZstdExecuteWide => zstd_execute_wide,
    ZstdExecuteShared => zstd_execute_shared,
    ZstdChecksum => zstd_checksum,
    ZstdSerial => zstd_serial,
    ZstdFinish => zstd_finish,
    ZstdMatches => zstd_matches,
    ZstdCompress => zstd_compress,
    ZstdSums => zstd_sums,
    ZstdLayout => zstd_layout,
    ZstdPack => zstd_pack,
    BloscPlan => blosc_plan,
    BloscLz4 => blosc_lz4,
    BloscUnshuffle => blosc_unshuffle,
    DeflateDecode => deflate_decode,
    DeflateDecodeWide => deflate_decode_wide,
    Lz4Decode => lz4_decode,
    Lz4DecodeWide => lz4_decode_wide,
    ElementsScatter => elements_scatter,
    ElementsDecode => elements_decode,
    ElementsDecodeValues => elements_decode_values,
    ElementsEncode => elements_encode,
    ElementsEncodeValues => elements_encode_values,
    ElementsClear => elements_clear,
    Crc32cSum => crc32c_sum,
    Crc32cFinish => crc32c_finish,
}

// SAFETY: the scheduler runs every thread of the grid to its end, at once, which is the order of the host's queue.
unsafe impl Engine for HostEngine {
    fn name(&self) -> &'static str {
        "cuda-host"
    }

    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn multiprocessors(&self) -> u32 {
        self.options.multiprocessors
    }

    fn has_registers(&self) -> bool {
        false
    }

    fn shared_memory(&self) -> u32 {
        self.options.shared_memory
    }

    fn side_queue(&self, _: &dyn Queue) -> Option<&dyn Queue> {
        None
    }

    unsafe fn launch(&self, queue: &dyn Queue, kernel: Kernel, launch: Launch, params: &[u8]) -> Result<(), BufferError> {
        if queue.device() != DeviceId::CPU {
            return Err(BufferError::new(BufferErrorKind::Parameter, "a queue of another device").on(DeviceId::CPU));
        }
        let Some(entry) = entry_point(kernel) else {
            return Err(BufferError::new(BufferErrorKind::Unsupported, format!("no {} on the host", kernel.name())).on(DeviceId::CPU));
        };
        if launch.shared > self.options.shared_memory {
            let message = format!("{} wants {} bytes of shared memory, of {}", kernel.name(), launch.shared, self.options.shared_memory);
            return Err(BufferError::new(BufferErrorKind::Parameter, message).on(DeviceId::CPU));
        }
        let seed = self.options.seed.wrapping_add(self.launches.fetch_add(1, Ordering::Relaxed));
        // SAFETY: the entry point of this kernel, with the parameters that the caller promises.
        run_grid(launch, seed, || unsafe { entry(params.as_ptr().cast()) });
        Ok(())
    }
}
