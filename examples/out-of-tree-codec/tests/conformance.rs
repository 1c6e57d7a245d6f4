//! The laws, as tests: `cargo test --test conformance -- --list` names them.

use std::sync::Arc;

use zarr::codec_api::{ByteLen, Representation};
use zarr::meta::Extension;
use zarr_conformance::codec::CodecUnderTest;
use zarr_conformance::device::DeviceUnderTest;

zarr_conformance::conformance_main!(
    CodecUnderTest::new(Arc::new(example_rle::provider()), Extension::new(example_rle::NAME), Representation::Bytes(ByteLen::AtMost(1000)),),
    DeviceUnderTest::new(Arc::new(example_rle::Scratchpad)),
);
