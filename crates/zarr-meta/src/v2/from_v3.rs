//! From version 3 to version 2, for arrays that are to be created in version 2.

use super::codecs::Kind;
use super::to_v3::filter_type;
use super::{ArrayMetadataV2, CodecV2, DataTypeV2, Order};
use crate::{ArrayMetadataV3, ChunkGrid, Endianness, Extension, Json, JsonObject, MetadataError};

impl ArrayMetadataV2 {
    /// The same array in version 2, with chunks of the same bytes: the way back from
    /// [`to_v3`](Self::to_v3). Chunk keys are those of version 2, with the separator of the
    /// original, or `/` where that has none. Names of dimensions become the attribute `_ARRAY_DIMENSIONS`.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for what version 2 lacks: other chunk grids, other
    /// permutations than the full reversal, data types and codecs of version 3 alone.
    pub fn from_v3(metadata: &ArrayMetadataV3) -> Result<Self, MetadataError> {
        let ChunkGrid::Regular { chunk_shape } = &metadata.chunk_grid else {
            return Err(MetadataError::unsupported("this chunk grid in version 2").within("chunk_grid"));
        };
        let mut order = Order::C;
        let (mut endianness, mut of_filter) = (Endianness::Little, None);
        let mut filters = Vec::new();
        for (index, codec) in metadata.codecs.iter().enumerate() {
            match codec.name.as_str() {
                "transpose" if index == 0 => {
                    check_reversal(codec, metadata.shape.len())?;
                    order = Order::F;
                }
                "bytes" => {
                    let named = codec.configuration.as_ref().and_then(|c| c.get("endian"));
                    if let Some(named) = named.and_then(Json::as_str).and_then(Endianness::from_name) {
                        endianness = named;
                    }
                }
                _ => {
                    let codec = translate(codec).map_err(|error| error.within_index(index).within("codecs"))?;
                    of_filter = of_filter.or_else(|| decoded_order(&codec));
                    filters.push(codec);
                }
            }
        }
        // Readers take what a filter gives for elements of the array, in the order that it names.
        let endianness = of_filter.unwrap_or(endianness);
        let data_type = DataTypeV2::from_data_type(&metadata.data_type, endianness).map_err(|error| error.within("data_type"))?;
        let mut array = Self::new(metadata.shape.clone(), chunk_shape.clone(), data_type);
        array.order = order;
        // What encodes objects stands among the filters, as do codecs that give arrays.
        array.compressor = match filters.pop() {
            Some(last) if last.kind() != Kind::BytesToBytes => {
                filters.push(last);
                None
            }
            last => last,
        };
        array.filters = filters;
        array.dimension_separator = metadata.chunk_key_encoding.separator();
        array.attributes = metadata.attributes.clone();
        if let Some(names) = &metadata.dimension_names
            && names.iter().all(Option::is_some)
            && !array.attributes.contains_key("_ARRAY_DIMENSIONS")
        {
            array.attributes.insert("_ARRAY_DIMENSIONS", names.clone());
        }
        array.set_fill_value(Some(&metadata.fill_value))?;
        array.check()?;
        Ok(array)
    }
}

/// The byte order that a filter names for what it decodes to.
fn decoded_order(codec: &CodecV2) -> Option<Endianness> {
    let key = if codec.id == "astype" { "decode_dtype" } else { "dtype" };
    let named = codec.configuration.get(key).filter(|_| codec.kind() == Kind::ArrayToArray)?;
    filter_type(named)?.endianness().ok()?
}

fn check_reversal(codec: &Extension, rank: usize) -> Result<(), MetadataError> {
    let order = codec.configuration.as_ref().and_then(|c| c.get("order"));
    let reversal: Json = (0..rank).rev().collect();
    if order == Some(&reversal) {
        Ok(())
    } else {
        Err(MetadataError::unsupported("a permutation other than the reversal in version 2").within_index(0).within("codecs"))
    }
}

fn translate(codec: &Extension) -> Result<CodecV2, MetadataError> {
    let mut configuration = codec.configuration.clone().unwrap_or_default();
    let id = match codec.name.as_str() {
        "zstd" => {
            // numcodecs before 0.13 knows no such key.
            if configuration.get("checksum").and_then(Json::as_bool) != Some(true) {
                configuration.remove("checksum");
            }
            "zstd"
        }
        "blosc" => {
            let shuffle = match configuration.get("shuffle").and_then(Json::as_str) {
                Some("noshuffle") => 0,
                Some("bitshuffle") => 2,
                _ => 1,
            };
            configuration.insert("shuffle", shuffle);
            // numcodecs takes it from the elements.
            configuration.remove("typesize");
            "blosc"
        }
        "crc32c" => {
            configuration = JsonObject::new().with("location", "end");
            "crc32c"
        }
        name @ ("gzip" | "bitround" | "vlen-utf8" | "vlen-bytes") => name,
        name => name.strip_prefix("numcodecs.").ok_or_else(|| MetadataError::unsupported(format!("codec {name:?} in version 2")))?,
    };
    Ok(CodecV2::new(id, configuration))
}
