//! The Python face: arrays, groups and tensors over the crate `zarr`.
//!
//! It adds no logic of its own but what Python asks for: selections from Python's indexing, exceptions, NumPy's names of data types, and the
//! protocols by which array libraries exchange memory. `unsafe` is in `capsule` and `cuda`.

mod array;
mod capsule;
mod cuda;
mod data_type;
mod device;
mod each;
mod error;
mod group;
mod node;
mod selection;
mod tensor;
mod wait;

use pyo3::prelude::*;

/// The native module, which the package `zarrgpu` re-exports.
#[pymodule]
mod _zarrgpu {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::device::devices;
    #[pymodule_export]
    use crate::group::Group;
    #[pymodule_export]
    use crate::node::{_reopen, open};
    #[pymodule_export]
    use crate::tensor::{Tensor, open_ipc};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
