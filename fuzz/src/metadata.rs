//! Metadata: what is read can be written, and read again the same.

use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, ConsolidatedMetadataV2, GroupMetadataV2, Json, NodeMetadata};

/// A JSON document.
pub fn json(data: &[u8]) {
    let Ok(value) = Json::parse(data) else { return };
    for text in [value.to_text(), value.to_text_pretty()] {
        let again = Json::parse(text.as_bytes()).expect("what is written can be read");
        // Numbers that are not finite are written as strings: from then on the text stays.
        assert_eq!(Json::parse(again.to_text().as_bytes()).expect("what is written can be read"), again);
    }
}

/// A `zarr.json`.
pub fn metadata_v3(data: &[u8]) {
    let Ok(node) = NodeMetadata::parse(data) else { return };
    if let Ok(bytes) = node.to_bytes() {
        let again = NodeMetadata::parse(&bytes).expect("what is written can be read");
        assert_eq!(again.to_bytes().expect("what was written once can be written again"), bytes);
    }
    if let NodeMetadata::Array(array) = node {
        use_array(&array);
        let _ = ArrayMetadataV2::from_v3(&array);
    }
}

/// What an array's metadata is asked for before any chunk is.
fn use_array(array: &ArrayMetadataV3) {
    let _ = array.check();
    let grid = array.chunk_grid.grid_shape(&array.shape);
    for chunk in [vec![0; grid.len()], grid.iter().map(|len| len.saturating_sub(1)).collect()] {
        let _ = array.chunk_grid.chunk_shape(&chunk);
        let key = array.chunk_key_encoding.encode(&chunk);
        assert_eq!(array.chunk_key_encoding.decode(&key, chunk.len()), Some(chunk), "a key is that of one chunk");
    }
    let _ = array.data_type.fixed_size();
}

/// A `.zarray` and a `.zattrs`, split at the first NUL; as a group and as a `.zmetadata` too.
pub fn metadata_v2(data: &[u8]) {
    let (document, attributes) = match data.iter().position(|&byte| byte == 0) {
        Some(at) => (&data[..at], Some(&data[at + 1..])),
        None => (data, None),
    };
    let _ = GroupMetadataV2::parse(document, attributes);
    let _ = ConsolidatedMetadataV2::parse(document);
    let Ok(array) = ArrayMetadataV2::parse(document, attributes) else { return };
    let bytes = array.to_bytes().expect("what was read can be written");
    let attributes = array.attributes_to_bytes();
    let again = ArrayMetadataV2::parse(&bytes, Some(&attributes)).expect("what is written can be read");
    assert_eq!(again.to_bytes().expect("what was written once can be written again"), bytes);
    if let Ok(converted) = array.to_v3() {
        use_array(&converted);
        let _ = ArrayMetadataV2::from_v3(&converted);
    }
}
