//! Opens a hierarchy by path or URL, and reads a little of each array: `cargo run -p zarr --example open [PATH]`.

use zarr::{Node, Selection};

fn main() -> Result<(), zarr::ArrayError> {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/north_america.zarr");
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let nodes = match zarr::open(&path)? {
        Node::Group(group) => group.walk()?,
        array => vec![Ok(array)],
    };
    for node in nodes {
        let Some(array) = node?.into_array() else { continue };
        let first = vec![0..1; array.shape().len()];
        let data = array.read(&Selection::ranges(first))?;
        println!("{} {:?} {}: the first element is {:?}", array.path(), array.shape(), array.data_type().name(), data.elements);
    }
    Ok(())
}
