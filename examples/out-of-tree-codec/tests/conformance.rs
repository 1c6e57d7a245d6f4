//! The laws, as tests: `cargo test --test conformance -- --list` names them.

use std::sync::Arc;

use zarr::codec_api::{ByteLen, Representation};
use zarr::meta::Extension;
use zarr::store_api::AnyStore;
use zarr_conformance::codec::CodecUnderTest;
use zarr_conformance::device::DeviceUnderTest;
use zarr_conformance::store::StoreUnderTest;

zarr_conformance::conformance_main!(
    CodecUnderTest::new(Arc::new(example_rle::provider()), Extension::new(example_rle::NAME), Representation::Bytes(ByteLen::AtMost(1000)),),
    StoreUnderTest::writable("shelf", || AnyStore::blocking(example_rle::Shelf::default())),
    DeviceUnderTest::new(Arc::new(example_rle::Scratchpad)),
);
