//! What the link between host and device gives.

use std::sync::Arc;

use zarr_buffer_api::{Device, Queue as _};
use zarr_buffer_cuda::CudaDevice;

use super::{Record, Result, median};

/// GB/s of copies between pinned memory and the device.
pub(super) struct Rates {
    pub(super) up: f64,
    pub(super) down: f64,
}

/// Bytes of a copy.
const LEN: usize = 512 << 20;

pub(super) fn rates(device: &Arc<CudaDevice>, runs: usize, record: &mut Record) -> Result<Rates> {
    let queue = device.queue()?;
    let (host, there) = (device.allocate_staging(LEN)?, device.allocate(LEN, &*queue)?);
    let mut measured = [Vec::new(), Vec::new()];
    // The first round is not counted.
    for run in 0..=runs {
        for (seconds, (from, to)) in measured.iter_mut().zip([(&host, &there), (&there, &host)]) {
            let start = queue.mark()?;
            queue.copy(from, to)?;
            let milliseconds = start.milliseconds_to(&queue.mark()?)?;
            if run > 0 {
                seconds.push(milliseconds / 1e3);
            }
        }
    }
    let [up, down] = measured;
    record.note("link", "to the device", LEN as u64, &up)?;
    record.note("link", "from the device", LEN as u64, &down)?;
    let rate = |seconds: &[f64]| LEN as f64 / median(seconds) / 1e9;
    Ok(Rates { up: rate(&up), down: rate(&down) })
}
