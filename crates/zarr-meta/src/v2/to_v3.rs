//! From version 2 to version 3: the same chunks described by the other version's words.

use super::codecs::Kind;
use super::objects::Objects;
use super::{ArrayMetadataV2, CodecV2, DataTypeV2, Order};
use crate::{ArrayMetadataV3, DataType, Endianness, Extension, FillValue, Json, JsonObject, MetadataError};

/// The attribute in which xarray keeps the names of dimensions in version 2.
const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

impl ArrayMetadataV2 {
    /// The same array in version 3: the chunks stay where they are and as they are.
    ///
    /// Column-major order becomes `transpose`. Filters and the compressor become the registered
    /// codec of the same bytes where there is one (`zstd`, `gzip`, `blosc`, `crc32c`,
    /// `vlen-utf8`, `vlen-bytes`), else `numcodecs.<id>` with the same configuration. The byte
    /// order becomes that of `bytes`. A null fill value becomes the default of the data type. Names
    /// of dimensions are taken from the attribute `_ARRAY_DIMENSIONS`; attributes stay unchanged.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for structured types with fields of both byte orders, and
    /// for codecs in an order that version 3 lacks.
    pub fn to_v3(&self) -> Result<ArrayMetadataV3, MetadataError> {
        let data_type = self.element_type()?;
        let fill_value = self.fill_value()?.unwrap_or_else(|| FillValue::default_for(&data_type));
        let codecs = self.codecs_to_v3(&data_type)?;
        let mut metadata = ArrayMetadataV3::new(self.shape.clone(), data_type, self.chunk_grid(), fill_value, codecs);
        metadata.chunk_key_encoding = self.chunk_key_encoding();
        metadata.attributes = self.attributes.clone();
        metadata.dimension_names = self.dimension_names();
        metadata.check()?;
        Ok(metadata)
    }

    fn dimension_names(&self) -> Option<Vec<Option<String>>> {
        let names = self.attributes.get(ARRAY_DIMENSIONS)?.as_array()?;
        let names: Vec<Option<String>> = names.iter().map(|name| name.as_str().map(|n| Some(n.to_owned()))).collect::<Option<_>>()?;
        (names.len() == self.shape.len()).then_some(names)
    }

    fn codecs_to_v3(&self, data_type: &DataType) -> Result<Vec<Extension>, MetadataError> {
        let mut chain = Chain {
            codecs: Vec::new(),
            is_bytes: false,
            endianness: self.data_type.endianness().map_err(|error| error.within("dtype"))?,
            item_size: data_type.fixed_size(),
            sensitive: data_type.is_byte_order_sensitive(),
        };
        // Lists of any values are nested by the shape of the chunk, whatever its order in memory.
        let is_nested = matches!(self.objects(), Some(Objects::Json | Objects::MessagePack));
        if self.order == Order::F && self.shape.len() > 1 && !is_nested {
            let order: Json = (0..self.shape.len()).rev().collect();
            let configuration = JsonObject::new().with("order", order);
            chain.codecs.push(Extension::with_configuration("transpose", configuration));
        }
        for (index, filter) in self.filters.iter().enumerate() {
            chain.push(filter, filter.kind()).map_err(|error| error.within_index(index).within("filters"))?;
        }
        if let Some(compressor) = &self.compressor {
            let kind = match compressor.kind() {
                // What stands as a compressor and is not known compresses bytes.
                Kind::ArrayToArray => Kind::BytesToBytes,
                kind => kind,
            };
            chain.push(compressor, kind).map_err(|error| error.within("compressor"))?;
        }
        chain.lay_down();
        Ok(chain.codecs)
    }
}

/// The codecs so far, and what comes out of them.
struct Chain {
    codecs: Vec<Extension>,
    is_bytes: bool,
    /// The byte order in which the numbers are to be laid down.
    endianness: Option<Endianness>,
    /// The bytes of an element, where they are known.
    item_size: Option<usize>,
    sensitive: bool,
}

impl Chain {
    fn push(&mut self, codec: &CodecV2, kind: Kind) -> Result<(), MetadataError> {
        match kind {
            Kind::ArrayToArray | Kind::ArrayToBytes if self.is_bytes => {
                return Err(MetadataError::unsupported(format!("{:?} after a codec that gives bytes", codec.id)));
            }
            Kind::ArrayToArray => {
                self.codecs.push(translate(codec, self.item_size)?);
                self.follow(codec)?;
            }
            Kind::ArrayToBytes => {
                self.codecs.push(translate(codec, self.item_size)?);
                self.is_bytes = true;
                self.item_size = Some(1);
            }
            Kind::BytesToBytes => {
                self.lay_down();
                self.codecs.push(translate(codec, self.item_size)?);
                // What follows sees bytes, no longer elements.
                self.item_size = Some(1);
            }
        }
        Ok(())
    }

    /// Lays the array down as bytes, unless that is done.
    fn lay_down(&mut self) {
        if self.is_bytes {
            return;
        }
        self.is_bytes = true;
        let endianness = self.endianness.filter(|_| self.sensitive);
        self.codecs.push(match endianness {
            Some(endianness) => Extension::with_configuration("bytes", JsonObject::new().with("endian", endianness.name())),
            None => Extension::new("bytes"),
        });
    }

    /// Takes over the type that an array->array filter gives.
    fn follow(&mut self, codec: &CodecV2) -> Result<(), MetadataError> {
        let key = match codec.id.as_str() {
            "packbits" => {
                (self.endianness, self.item_size, self.sensitive) = (None, Some(1), false);
                return Ok(());
            }
            "astype" => "encode_dtype",
            "categorize" if !codec.configuration.contains_key("astype") => {
                (self.endianness, self.item_size, self.sensitive) = (None, Some(1), false);
                return Ok(());
            }
            _ if codec.configuration.contains_key("astype") => "astype",
            _ => "dtype",
        };
        let Some(value) = codec.configuration.get(key) else { return Ok(()) };
        if value.is_null() {
            return Ok(());
        }
        // What cannot be read here is left for the codec itself to refuse.
        let Some(data_type) = filter_type(value) else { return Ok(()) };
        self.endianness = data_type.endianness()?;
        if let Some(data_type) = data_type.data_type() {
            self.item_size = data_type.fixed_size();
            self.sensitive = data_type.is_byte_order_sensitive();
        }
        Ok(())
    }
}

/// The data type in the configuration of a filter. Hand-written metadata leave out the byte order,
/// which numpy takes for that of the machine.
pub(super) fn filter_type(value: &Json) -> Option<DataTypeV2> {
    DataTypeV2::parse(value).ok().or_else(|| {
        let name = value.as_str()?;
        DataTypeV2::parse(&format!("<{name}").into()).ok()
    })
}

/// The codec's counterpart in version 3, for elements of `item_size` bytes.
fn translate(codec: &CodecV2, item_size: Option<usize>) -> Result<Extension, MetadataError> {
    let configuration = &codec.configuration;
    let integer = |key: &str, default: i64| match configuration.get(key) {
        None | Some(Json::Null) => Ok(default),
        Some(value) => value.as_i64().ok_or_else(|| MetadataError::unexpected("an integer", value).within(key)),
    };
    let registered = match codec.id.as_str() {
        "zstd" => {
            let checksum = match configuration.get("checksum") {
                None | Some(Json::Null) => false,
                Some(value) => value.as_bool().ok_or_else(|| MetadataError::unexpected("true or false", value).within("checksum"))?,
            };
            JsonObject::new().with("level", integer("level", 0)?).with("checksum", checksum)
        }
        "gzip" => {
            // -1 is zlib's own default, which is 6; version 3 has 0 to 9.
            let level = match integer("level", 1)? {
                level @ 0..=9 => level,
                _ => 6,
            };
            JsonObject::new().with("level", level)
        }
        "blosc" => blosc(configuration, integer("shuffle", 1)?, item_size)?
            .with("clevel", integer("clevel", 5)?)
            .with("blocksize", integer("blocksize", 0)?),
        "crc32c" if configuration.get("location").is_none_or(|l| l.as_str() == Some("end")) => {
            return Ok(Extension::new("crc32c"));
        }
        "vlen-utf8" | "vlen-bytes" => return Ok(Extension::new(codec.id.as_str())),
        other => {
            let name = format!("numcodecs.{other}");
            return Ok(Extension::with_configuration(name, configuration.clone()));
        }
    };
    Ok(Extension::with_configuration(codec.id.as_str(), registered))
}

fn blosc(configuration: &JsonObject, shuffle: i64, item_size: Option<usize>) -> Result<JsonObject, MetadataError> {
    let cname = match configuration.get("cname") {
        None => "lz4",
        Some(value) => crate::read::string(value).map_err(|error| error.within("cname"))?,
    };
    // Blosc holds the size in one byte, and takes larger elements for bytes.
    let item_size = item_size.filter(|size| (1..=255).contains(size)).unwrap_or(1);
    let shuffle = match shuffle {
        0 => "noshuffle",
        1 => "shuffle",
        2 => "bitshuffle",
        // "Automatic" in numcodecs.
        -1 if item_size == 1 => "bitshuffle",
        -1 => "shuffle",
        other => {
            return Err(MetadataError::unexpected("-1, 0, 1 or 2", &Json::from(other)).within("shuffle"));
        }
    };
    let typesize = match configuration.get("typesize").and_then(Json::as_u64) {
        Some(typesize) => typesize,
        None => u64::try_from(item_size).unwrap_or(1),
    };
    Ok(JsonObject::new().with("cname", cname).with("shuffle", shuffle).with("typesize", typesize))
}
