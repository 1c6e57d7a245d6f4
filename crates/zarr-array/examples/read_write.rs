//! Creates a sharded array in memory, writes a part, reads another.

use zarr_array::{ArrayBuilder, Options, Selection};
use zarr_codec_api::Registry;
use zarr_meta::DataType;
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

fn main() -> Result<(), zarr_array::ArrayError> {
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let store = AnyStore::blocking(MemoryStore::new());
    let array = ArrayBuilder::new([1000, 1000], DataType::Float32).chunks([100, 100]).shards([500, 500]).create(store, "/", &options)?;
    let row: Vec<f32> = (0..1000).map(|x| x as f32).collect();
    array.write_elements(&Selection::parse("42", 2)?, &row)?;
    let corner: Vec<f32> = array.read_elements(&Selection::ranges([40..44, 996..1000]))?;
    println!("{corner:?}");
    println!("{}", array.explain());
    Ok(())
}
