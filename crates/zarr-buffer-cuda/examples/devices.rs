//! What CUDA devices are there, and what they are like.

use zarr_buffer_cuda::{CudaDevice, devices, driver_version};

fn main() -> Result<(), zarr_buffer_api::BufferError> {
    let found = match devices() {
        Ok(found) => found,
        Err(error) => {
            println!("no CUDA device: {error}");
            return Ok(());
        }
    };
    if found.is_empty() {
        println!("there is a driver, and no device");
    } else {
        let (major, minor) = driver_version()?;
        println!("driver of CUDA {major}.{minor}");
    }
    for info in found {
        let (major, minor) = info.compute_capability;
        println!("{}: {} ({})", info.id(), info.name, info.uuid);
        println!("  compute capability {major}.{minor}, {} multiprocessors", info.multiprocessors);
        println!("  shared memory: {} KiB for a block at most", info.shared_memory_per_block >> 10);
        println!("  second-level cache: {} MiB", info.l2_cache >> 20);
        let (free, total) = CudaDevice::new(info.ordinal)?.free_memory()?;
        println!("  memory: {} MiB, of which {} MiB are free", total >> 20, free >> 20);
    }
    Ok(())
}
