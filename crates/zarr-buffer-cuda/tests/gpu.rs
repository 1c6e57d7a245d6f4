//! Tests on a real device; without one they are skipped, unless `ZARR_REQUIRE_GPU=1`.

fn main() {}
