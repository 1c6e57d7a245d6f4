//! Says what a metadata document describes, and converts version 2 arrays to version 3.
//!
//! ```text
//! cargo run -p zarr-meta --example inspect -- PATH/zarr.json
//! cargo run -p zarr-meta --example inspect -- PATH/.zarray
//! cargo run -p zarr-meta --example inspect            # a version 2 array from this file
//! ```

use std::error::Error;
use std::path::Path;

use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, GroupMetadataV3, NodeMetadata};

const SAMPLE: &str = r#"{
  "zarr_format": 2, "shape": [365, 721, 1440], "chunks": [1, 721, 1440], "dtype": ">f4",
  "compressor": {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 1, "blocksize": 0},
  "fill_value": "NaN", "order": "F", "filters": null, "dimension_separator": "/"
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(path) = std::env::args_os().nth(1) else {
        println!("a version 2 array:\n{SAMPLE}\n\nin version 3:");
        let array = ArrayMetadataV2::parse(SAMPLE.as_bytes(), None)?.to_v3()?;
        println!("{:#}\n", array.to_json()?);
        describe(&array);
        return Ok(());
    };
    let path = Path::new(&path);
    let text = std::fs::read(path)?;
    if path.ends_with(".zarray") {
        let attributes = std::fs::read(path.with_file_name(".zattrs")).ok();
        let array = ArrayMetadataV2::parse(&text, attributes.as_deref())?.to_v3()?;
        println!("{:#}\n", array.to_json()?);
        describe(&array);
    } else {
        match NodeMetadata::parse(&text)? {
            NodeMetadata::Array(array) => describe(&array),
            NodeMetadata::Group(group) => describe_group(&group),
            _ => println!("neither an array nor a group"),
        }
    }
    Ok(())
}

fn describe(array: &ArrayMetadataV3) {
    let grid = array.chunk_grid.grid_shape(&array.shape);
    let last: Vec<u64> = grid.iter().map(|count| count.saturating_sub(1)).collect();
    println!("shape       {:?} of {}", array.shape, array.data_type);
    println!("chunks      {grid:?}, the first of shape {:?}", array.chunk_grid.chunk_shape(&vec![0; grid.len()]));
    println!("last chunk  {}", array.chunk_key_encoding.encode(&last));
    println!("codecs      {}", array.codecs.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" -> "));
    println!("attributes  {}", array.attributes.keys().collect::<Vec<_>>().join(", "));
}

fn describe_group(group: &GroupMetadataV3) {
    println!("a group with attributes {}", group.attributes.keys().collect::<Vec<_>>().join(", "));
    for (path, _) in group.consolidated_metadata.iter().flat_map(|nodes| nodes.iter()) {
        println!("  {path}");
    }
}
