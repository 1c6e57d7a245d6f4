use std::fmt;

use zarr_buffer_api::{BufferError, DeviceId, Queue};

/// What runs the kernels of this crate: CUDA, or the host in `zarr-codecs-cuda-host`. For the authors of engines; users of codecs meet providers.
///
/// # Safety
/// An engine runs a kernel as it was written: `grid` blocks of `threads` threads each, with `shared` bytes of shared memory a block, all of them to
/// their end, and with effects in the order of the queue.
pub unsafe trait Engine: fmt::Debug + Send + Sync + 'static {
    /// The name of the provider.
    fn name(&self) -> &'static str;

    /// The device whose memory the kernels reach.
    fn device(&self) -> DeviceId;

    /// How many blocks of threads are worth having at a time, per block that fits a multiprocessor alone.
    fn multiprocessors(&self) -> u32;

    /// Whether kernels that want more threads and registers are worth having where there is room for them.
    fn has_registers(&self) -> bool;

    /// The most bytes of shared memory that one block may have.
    fn shared_memory(&self) -> u32;

    /// Another queue of the device, for kernels that may run beside those of `queue`. `None` where nothing runs side by side.
    fn side_queue(&self, queue: &dyn Queue) -> Option<&dyn Queue>;

    /// Enqueues a kernel with `params`, the bytes of its one parameter.
    ///
    /// # Errors
    /// When the queue is not one of this device, or the device refuses.
    ///
    /// # Safety
    /// The kernel keeps its promises for these parameters: every address in them is memory of the device, as large as the kernel's comment asks, and
    /// the buffers behind them are held by a call of [`zarr_buffer_api::enqueue`] around this one, whose queue is this one or is made to wait for it.
    unsafe fn launch(&self, queue: &dyn Queue, kernel: Kernel, launch: Launch, params: &[u8]) -> Result<(), BufferError>;
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of threads.
    pub grid: u32,
    /// Threads of a block, a multiple of 32.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kernels. Their comments in `kernels/` say what each wants and does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kernel {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Kernel {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Kernel] = &[$(Kernel::$variant,)*];

            /// The name of the entry point.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kernel::$variant => $name,)*
                }
            }
        }
    };
}

kernels! {
    ZstdPlan = "zstd_plan",
    ZstdAssign = "zstd_assign",
    ZstdList = "zstd_list",
    ZstdLiterals = "zstd_literals",
    ZstdSequences = "zstd_sequences",
    ZstdResolve = "zstd_resolve",
    ZstdCopy = "zstd_copy",
    ZstdExecute = "zstd_execute",
    ZstdExecuteWide = "zstd_execute_wide",
    ZstdExecuteShared = "zstd_execute_shared",
    ZstdChecksum = "zstd_checksum",
    ZstdSerial = "zstd_serial",
    ZstdFinish = "zstd_finish",
    ZstdMatches = "zstd_matches",
    ZstdCompress = "zstd_compress",
    ZstdSums = "zstd_sums",
    ZstdLayout = "zstd_layout",
    ZstdPack = "zstd_pack",
    BloscPlan = "blosc_plan",
    BloscLz4 = "blosc_lz4",
    BloscUnshuffle = "blosc_unshuffle",
    DeflateDecode = "deflate_decode",
    DeflateDecodeWide = "deflate_decode_wide",
    Lz4Decode = "lz4_decode",
    Lz4DecodeWide = "lz4_decode_wide",
    ElementsScatter = "elements_scatter",
    ElementsDecode = "elements_decode",
    ElementsDecodeValues = "elements_decode_values",
    ElementsEncode = "elements_encode",
    ElementsEncodeValues = "elements_encode_values",
    ElementsClear = "elements_clear",
    Crc32cSum = "crc32c_sum",
    Crc32cFinish = "crc32c_finish",
}
