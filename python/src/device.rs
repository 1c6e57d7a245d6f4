//! Names of devices.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use zarr_buffer_api::{DeviceId, DeviceKind};

use crate::error::{Outcome, parameter};

/// The device that `device=` names. `auto` is the first GPU, or the host where there is none.
pub(crate) fn parse(name: &str) -> Outcome<DeviceId> {
    let wrong = || parameter(format!("no device is called {name:?}: \"cpu\", \"cuda\", \"cuda:N\" and \"auto\" are"));
    match name.split_once(':') {
        None if name == "cpu" => Ok(DeviceId::CPU),
        None if name == "cuda" => Ok(DeviceId::new(DeviceKind::Cuda, 0)),
        None if name == "auto" => Ok(if any_gpu() { DeviceId::new(DeviceKind::Cuda, 0) } else { DeviceId::CPU }),
        Some(("cuda", number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(DeviceId::new(DeviceKind::Cuda, number.parse().map_err(|_| wrong())?))
        }
        _ => Err(wrong()),
    }
}

fn any_gpu() -> bool {
    zarr::cuda::devices().is_ok_and(|found| !found.is_empty())
}

/// The devices that `read(device=...)` takes, as dictionaries: `id` and `name`; of GPUs also `memory` (bytes), `compute_capability`,
/// `multiprocessors`, `uuid` and `driver` (the CUDA version of the driver). Without a driver there is the host alone.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Outcome<Bound<'_, PyList>> {
    let host = PyDict::new(py);
    host.set_item("id", "cpu")?;
    host.set_item("name", "host memory")?;
    let list = PyList::new(py, [host])?;
    for info in py.detach(zarr::cuda::devices).unwrap_or_default() {
        let gpu = PyDict::new(py);
        gpu.set_item("id", info.id().to_string())?;
        gpu.set_item("name", &info.name)?;
        gpu.set_item("memory", info.memory)?;
        gpu.set_item("compute_capability", info.compute_capability)?;
        gpu.set_item("multiprocessors", info.multiprocessors)?;
        gpu.set_item("uuid", &info.uuid)?;
        gpu.set_item("driver", info.driver_version)?;
        list.append(gpu)?;
    }
    Ok(list)
}
