//! Exports and imports keep the laws of DLPack.

use zarr_conformance::assert_conforms;
use zarr_conformance::dlpack::{exports, imports};

#[test]
fn exports_are_right() {
    assert_conforms(exports());
}

#[test]
fn imports_are_right() {
    assert_conforms(imports());
}
