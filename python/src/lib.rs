//! The Python face: arrays, groups and tensors over the crate `zarr`.
//!
//! It adds no logic of its own but what Python asks for: selections from Python's indexing, exceptions, NumPy's names of data types, and the
//! protocols by which array libraries exchange memory. `unsafe` is in `capsule`, `cuda` and `memory`.

mod archive;
mod array;
mod capsule;
mod create;
mod cuda;
mod data_type;
mod device;
mod each;
mod error;
mod group;
mod memory;
mod node;
mod read;
mod selection;
mod tensor;
mod vindex;
mod wait;
mod write;

use pyo3::prelude::*;

/// The native module, which the package `zarrgpu` re-exports.
#[pymodule]
mod _zarrgpu {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::create::{create_array, create_group};
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
