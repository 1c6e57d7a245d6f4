//! The tensors of `zarr-buffer-dlpack`: of host memory, of a toy's memory that the host cannot dereference, and of CUDA's.

use std::sync::Arc;

use zarr_buffer_api::{Device, DeviceId, DeviceKind};

use super::devices::{cuda, options, schedules};
use super::{Entry, Unbuilt};
use crate::dlpack::{HostMemory, exports, exports_from, exports_on, imports, imports_on};
use crate::toy::OpaqueDevice;

pub(super) fn on_host() -> Vec<Entry> {
    let mut entries = vec![Entry::new("dlpack/exports", || Ok(exports())), Entry::new("dlpack/imports", || Ok(imports()))];
    for (label, schedule) in schedules() {
        entries.extend(both(&format!("toy-opaque/{label}"), move || Ok(OpaqueDevice::with_options(2, options(schedule)))));
    }
    entries
}

pub(super) fn on_cuda(ordinal: i32) -> Vec<Entry> {
    let mut entries = both("cuda", move || cuda(ordinal));
    entries.push(Entry::new("dlpack/exports/cuda-pinned", move || {
        let device = cuda(ordinal)?;
        let memory = HostMemory::named(DeviceId::new(DeviceKind::CudaHost, 0));
        Ok(exports_from(Arc::new(memory), move |bytes| {
            let buffer = device.allocate_staging(bytes.len())?;
            buffer.host_write()?.copy_from_slice(bytes);
            Ok(buffer)
        }))
    }));
    entries.into_iter().map(|entry| entry.in_lane("cuda")).collect()
}

/// Exports and imports of one device.
fn both<D: Device>(label: &str, device: impl Fn() -> Result<Arc<D>, Unbuilt> + Copy + Send + Sync + 'static) -> Vec<Entry> {
    vec![
        Entry::new(format!("dlpack/exports/{label}"), move || Ok(exports_on(device()?)?)),
        Entry::new(format!("dlpack/imports/{label}"), move || Ok(imports_on(device()?)?)),
    ]
}
