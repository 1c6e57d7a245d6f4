//! The plan alone: which bytes of a real array would be asked for, step by step, and nothing decoded.

use std::sync::Arc;

use zarr_array::{Array, Options, Selection};
use zarr_codec_api::Registry;
use zarr_store::FilesystemStore;
use zarr_store_api::{AnyStore, ReadableStore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/north_america.zarr");
    let store = Arc::new(FilesystemStore::new(path)?);
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let array = Array::open(AnyStore::blocking(Arc::clone(&store)), "/air_temperature", &options)?;
    let mut plan = array.plan(&Selection::parse("30:40, 10, :", 3)?)?;
    println!("a result of shape {:?}, {} bytes", plan.shape(), plan.output_len());
    while !plan.is_done() {
        for request in plan.next_requests(16)? {
            println!("fetch {} {:?}", request.key, request.ranges);
            let bytes = store.get_ranges(&request.key, &request.ranges)?;
            for job in plan.supply(request.id, bytes)? {
                println!("  then decode {} bytes", job.encoded().map_or(0, |bytes| bytes.len()));
            }
        }
    }
    Ok(())
}
