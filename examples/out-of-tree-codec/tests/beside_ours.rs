//! The codec in a chain with the project's own: an array is written to the store, and read to the host and to the device.

use std::sync::Arc;

use zarr::meta::Extension;
use zarr::store_api::AnyStore;
use zarr::{Array, ArrayBuilder, DataType, DeviceTarget, Options, Selection};

#[test]
fn a_chain_of_both() -> Result<(), Box<dyn std::error::Error>> {
    let store = AnyStore::blocking(example_rle::Shelf::default());
    let options = Options::new(zarr::registry().with(example_rle::provider()));
    let written = ArrayBuilder::new([60, 50], DataType::UInt16)
        .chunks([10, 10])
        .shards([20, 50])
        .compressors([Extension::new(example_rle::NAME), Extension::new("zstd")])
        .create(store.clone(), "/", &options)?;
    let steps: Vec<u16> = (0..3000).map(|i| i / 100).collect();
    written.write_elements(&Selection::all(), &steps)?;

    let array = Array::open(store, "/", &options)?;
    assert_eq!(array.read_elements::<u16>(&Selection::all())?, steps);
    assert!(array.explain().to_string().contains("example"), "{}", array.explain());

    let there = array.read_to_device(&Selection::parse("10:20, :", 2)?, &DeviceTarget::new(Arc::new(example_rle::Scratchpad))?)?;
    let expected: Vec<u8> = steps[500..1000].iter().flat_map(|step| step.to_ne_bytes()).collect();
    assert_eq!(*there.buffer.host_read()?, *expected);
    Ok(())
}
