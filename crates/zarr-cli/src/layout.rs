//! How a copy is to be stored: from an array and what was asked for to the metadata of the new array.

use zarr::meta::{ArrayMetadataV2, ArrayMetadataV3, ChunkGrid, ChunkKeyEncoding, Endianness, Extension, Json, JsonObject};
use zarr::{Array, DataType, StoredMetadata, Version};

use crate::codecs::{CodecSpec, Kind, array_to_bytes, kind};
use crate::error::{Context as _, Failure, Result};
use crate::units;

/// The length of a chunk along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// As long as the axis.
    Whole,
    Elements(u64),
}

/// Lengths of chunks or shards: of every axis in order, or of axes by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lengths {
    Each(Vec<Length>),
    Named(Vec<(String, Length)>),
}

/// Shards, or that there shall be none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shards {
    None,
    Of(Lengths),
}

pub(crate) fn parse_lengths(text: &str) -> Result<Lengths, String> {
    let length = |text: &str| match text.trim() {
        "all" | "-1" => Ok(Length::Whole),
        "0" => Err("a chunk has at least one element along each axis".to_owned()),
        number => number.parse().map(Length::Elements).map_err(|_| format!("`{number}` is neither a number of elements nor `all`")),
    };
    let parts = || text.split([',', '×', 'x']).filter(|_| !text.trim().is_empty());
    if text.contains('=') {
        let named = text.split(',').map(|part| match part.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), length(value)?)),
            None => Err(format!("`{part}` has no name, and others have")),
        });
        return named.collect::<Result<_, String>>().map(Lengths::Named);
    }
    parts().map(length).collect::<Result<_, String>>().map(Lengths::Each)
}

pub(crate) fn parse_shards(text: &str) -> Result<Shards, String> {
    if text.trim() == "none" { Ok(Shards::None) } else { parse_lengths(text).map(Shards::Of) }
}

impl Lengths {
    /// The lengths for an array; `None` when they are not meant for it. `current` holds for axes that are not named.
    pub(crate) fn resolve(&self, shape: &[u64], names: Option<&[Option<String>]>, current: &[u64]) -> Option<Vec<u64>> {
        let of = |length: Length, axis: u64| match length {
            Length::Whole => axis.max(1),
            Length::Elements(elements) => elements,
        };
        match self {
            Self::Each(lengths) => {
                (lengths.len() == shape.len()).then(|| lengths.iter().zip(shape).map(|(&length, &axis)| of(length, axis)).collect())
            }
            Self::Named(named) => {
                let wanted =
                    |name: &Option<String>| named.iter().find(|(wanted, _)| Some(wanted) == name.as_ref()).map(|(_, length)| *length);
                let wanted: Vec<Option<Length>> = names?.iter().map(wanted).collect();
                if wanted.iter().all(Option::is_none) {
                    return None;
                }
                let axes = wanted.iter().zip(shape.iter().zip(current));
                Some(axes.map(|(wanted, (&axis, &current))| wanted.map_or(current, |length| of(length, axis))).collect())
            }
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let named: &[(String, Length)] = match self {
            Self::Named(named) => named,
            Self::Each(_) => &[],
        };
        named.iter().map(|(name, _)| name.as_str())
    }
}

/// What is to change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relayout {
    pub(crate) chunks: Option<Lengths>,
    pub(crate) shards: Option<Shards>,
    pub(crate) codecs: Option<CodecSpec>,
    pub(crate) version: Option<Version>,
}

/// The metadata of the array that a copy makes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) stored: StoredMetadata,
    /// Whether stored chunks can be copied as they are.
    pub(crate) same_chunks: bool,
}

impl Relayout {
    /// How `array` is stored anew. `alone`: it is the only array, so that lengths that do not fit it are an error.
    pub(crate) fn apply(&self, array: &Array, alone: bool) -> Result<Target> {
        let source = array.metadata();
        let version = self.version.unwrap_or(array.version());
        if self.chunks.is_none() && self.shards.is_none() && self.codecs.is_none() && version == array.version() {
            return Ok(Target { stored: array.stored_metadata().clone(), same_chunks: true });
        }
        let (chunk_grid, codecs) = self.chain(array, version, alone)?;
        let mut target = source.clone();
        target.chunk_grid = chunk_grid;
        target.codecs = codecs;
        let stored = match version {
            Version::V3 => {
                if array.version() == Version::V2 {
                    target.chunk_key_encoding = ChunkKeyEncoding::default();
                    // Version 3 has a place of its own for the names of dimensions.
                    if target.dimension_names.is_some() {
                        target.attributes.remove("_ARRAY_DIMENSIONS");
                    }
                }
                StoredMetadata::ArrayV3(Box::new(target))
            }
            Version::V2 => StoredMetadata::ArrayV2(Box::new(to_v2(&target, array.stored_metadata())?)),
        };
        let now = in_terms_of_v3(&stored)?;
        now.check()?;
        let same_chunks = now.codecs == source.codecs && now.chunk_grid == source.chunk_grid && now.data_type == source.data_type;
        Ok(Target { stored, same_chunks })
    }

    fn chain(&self, array: &Array, version: Version, alone: bool) -> Result<(ChunkGrid, Vec<Extension>)> {
        let mut source = array.metadata().clone();
        source.codecs = for_version(array, version);
        let source = &source;
        let sharded = !array.shard_levels().is_empty();
        let (shape, names) = (array.shape(), array.dimension_names());
        let resolve = |lengths: &Lengths, what: &str, current: &[u64]| {
            let found = lengths.resolve(shape, names, current);
            match (found, lengths) {
                (None, Lengths::Each(lengths)) if alone => Err(Failure::usage(format!(
                    "--{what} has {}, and the array {}",
                    units::count(lengths.len() as u64, "length"),
                    units::count(shape.len() as u64, "axe").replace("1 axe", "1 axis")
                ))),
                (None, Lengths::Named(_)) if alone => {
                    let named = names.unwrap_or_default().iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
                    Err(Failure::usage(format!("--{what} names no axis of the array")).hint(if named.is_empty() {
                        "its axes have no names".to_owned()
                    } else {
                        format!("its axes are {named}")
                    }))
                }
                (found, _) => Ok(found),
            }
        };
        let inner_now = array.inner_chunk_shape();
        let chunks = self.chunks.as_ref().map(|lengths| resolve(lengths, "chunks", &inner_now)).transpose()?.flatten();
        let outer_now = array.chunk_grid().uniform_chunk_shape();
        let current = outer_now.clone().unwrap_or_else(|| inner_now.clone());
        let shards = match &self.shards {
            Some(Shards::Of(lengths)) => {
                if version == Version::V2 {
                    return Err(Failure::usage("version 2 of the format has no shards").hint("--version 3, or --shards none"));
                }
                resolve(lengths, "shards", &current)?.map(Some)
            }
            Some(Shards::None) => sharded.then_some(None),
            None => (sharded && version == Version::V2).then_some(None),
        };
        let given = innermost(&source.codecs);
        let keep_layout = chunks.is_none() && shards.is_none();
        let chain = match &self.codecs {
            None if keep_layout => return Ok((source.chunk_grid.clone(), source.codecs.clone())),
            None => given,
            Some(spec) => {
                // Elements of variable length have several array->bytes codecs, of which only the source's is sure to fit.
                let own = given.iter().find(|codec| kind(codec) == Kind::ArrayToBytes).filter(|_| array.item_size().is_none());
                spec.chain(array.data_type(), shape.len(), own)
            }
        };
        if keep_layout {
            let codecs = if sharded { vec![shard(source, &inner_now, &chain)] } else { chain };
            return Ok((source.chunk_grid.clone(), codecs));
        }
        let inner = chunks.unwrap_or(inner_now);
        let outer = match shards {
            Some(outer) => outer,
            None if sharded => Some(outer_now.ok_or_else(|| {
                Failure::usage("the shards of the array differ in length").hint("give the new ones with --shards, or --shards none")
            })?),
            None => None,
        };
        let Some(outer) = outer else { return Ok((ChunkGrid::regular(inner), chain)) };
        if let Some(axis) = outer.iter().zip(&inner).position(|(&outer, &inner)| inner == 0 || !outer.is_multiple_of(inner)) {
            return Err(Failure::usage(format!(
                "shards of {} cannot be made of chunks of {}: {} is no multiple of {} along axis {axis}",
                units::shape(&outer),
                units::shape(&inner),
                outer[axis],
                inner[axis]
            ))
            .hint("give --chunks and --shards that fit, or --shards none"));
        }
        let codecs = vec![shard(source, &inner, &chain)];
        Ok((ChunkGrid::regular(outer), codecs))
    }
}

/// The codecs of the array, without those that in version 3 nothing else reads: filters of version 2 that make bytes of strings.
fn for_version(array: &Array, version: Version) -> Vec<Extension> {
    let codecs = &array.metadata().codecs;
    if version == Version::V2 || array.version() == Version::V3 {
        return codecs.clone();
    }
    let other = |codec: &Extension| match codec.name.as_str() {
        "numcodecs.json2" | "numcodecs.msgpack2" => Some(array_to_bytes(array.data_type())),
        "numcodecs.categorize" if kind(codec) == Kind::ArrayToBytes => Some(array_to_bytes(array.data_type())),
        "numcodecs.categorize" => None,
        _ => Some(codec.clone()),
    };
    codecs.iter().filter_map(other).collect()
}

/// The chain of the innermost chunks, with the array->array codecs that stand around shards.
fn innermost(codecs: &[Extension]) -> Vec<Extension> {
    let Some(at) = codecs.iter().position(|codec| codec.name == "sharding_indexed") else { return codecs.to_vec() };
    let (before, rest) = codecs.split_at(at);
    let inner = rest.first().and_then(|shard| shard.configuration.as_ref()?.get("codecs")?.as_array()).unwrap_or_default();
    let inner: Vec<Extension> = inner.iter().filter_map(|codec| Extension::parse(codec).ok()).collect();
    before.iter().cloned().chain(innermost(&inner)).collect()
}

/// The sharding codec around a chain; its index is stored as the source's is, if that has one.
fn shard(source: &ArrayMetadataV3, inner: &[u64], chain: &[Extension]) -> Extension {
    let list = |codecs: &[Extension]| codecs.iter().map(Extension::to_json).collect::<Json>();
    let before = source.codecs.iter().find(|codec| codec.name == "sharding_indexed").and_then(|codec| codec.configuration.clone());
    let endian = JsonObject::new().with("endian", Endianness::Little.name());
    let index = [Extension::with_configuration("bytes", endian), Extension::new("crc32c")];
    let mut configuration = before.unwrap_or_else(|| {
        JsonObject::new()
            .with("chunk_shape", Json::Null)
            .with("codecs", Json::Null)
            .with("index_codecs", list(&index))
            .with("index_location", "end")
    });
    configuration.insert("chunk_shape", inner.to_vec());
    configuration.insert("codecs", list(chain));
    Extension::with_configuration("sharding_indexed", configuration)
}

fn to_v2(target: &ArrayMetadataV3, source: &StoredMetadata) -> Result<ArrayMetadataV2> {
    let mut array = ArrayMetadataV2::from_v3(target)
        .context(|| "the array cannot be expressed in version 2".to_owned())
        .map_err(|failure| failure.hint("choose a codec that version 2 has, such as --codec zstd:5, or keep version 3"))?;
    if let StoredMetadata::ArrayV2(source) = source {
        array.attributes = source.attributes.clone();
        array.unknown = source.unknown.clone();
        if source.fill_value.is_null() {
            array.fill_value = Json::Null;
        }
    }
    Ok(array)
}

/// Array metadata in the terms of version 3.
pub(crate) fn in_terms_of_v3(stored: &StoredMetadata) -> Result<ArrayMetadataV3> {
    match stored {
        StoredMetadata::ArrayV3(array) => Ok((**array).clone()),
        StoredMetadata::ArrayV2(array) => Ok(array.to_v3()?),
        StoredMetadata::GroupV2(_) | StoredMetadata::GroupV3(_) => Err(Failure::new("a group where an array was expected")),
    }
}

/// Reads a data type: a name of version 3, NumPy's notation, or JSON.
pub(crate) fn parse_data_type(text: &str) -> Result<DataType, String> {
    let text = text.trim();
    if text.starts_with('{') {
        return Json::parse(text.as_bytes()).and_then(|json| DataType::parse(&json)).map_err(|error| error.to_string());
    }
    if let Ok(data_type) = DataType::parse(&text.into()) {
        return Ok(data_type);
    }
    let numpy = match text {
        "str" => return Ok(DataType::String),
        "float" => "<f8".to_owned(),
        "int" => "<i8".to_owned(),
        other => match other.strip_prefix("datetime64").or(other.strip_prefix("M8")) {
            Some(unit) => format!("<M8{unit}"),
            None => match other.strip_prefix("timedelta64").or(other.strip_prefix("m8")) {
                Some(unit) => format!("<m8{unit}"),
                None if other.starts_with(['<', '>', '|', '=']) => other.replace('=', "<"),
                None if other.starts_with(['S', 'V']) => format!("|{other}"),
                None => format!("<{other}"),
            },
        },
    };
    let parsed = zarr::meta::DataTypeV2::parse(&numpy.as_str().into()).ok().and_then(|data_type| data_type.data_type());
    parsed.ok_or_else(|| format!("`{text}` is no data type; examples are float32, int16, bool, complex64, datetime64[ns], U10, S4, string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(parse_lengths("3,all,-1"), Ok(Lengths::Each(vec![Length::Elements(3), Length::Whole, Length::Whole])));
        let named = parse_lengths("time=64, x=all").unwrap();
        let names = [Some("time".to_owned()), None, Some("x".to_owned())];
        assert_eq!(named.resolve(&[100, 5, 7], Some(&names), &[1, 2, 3]), Some(vec![64, 2, 7]));
        assert_eq!(named.resolve(&[100], None, &[1]), None);
        assert_eq!(parse_lengths("3,4").unwrap().resolve(&[10], None, &[1]), None);
        assert_eq!(parse_lengths("").unwrap().resolve(&[], None, &[]), Some(vec![]));
        assert!(parse_lengths("0").is_err() && parse_lengths("a").is_err() && parse_lengths("a=1,2").is_err());
    }

    #[test]
    fn data_types() {
        for (text, name) in [
            ("float32", "float32"),
            ("f4", "float32"),
            (">i2", "int16"),
            ("float", "float64"),
            ("datetime64[ns]", "numpy.datetime64"),
            ("U10", "fixed_length_utf32"),
            ("S4", "null_terminated_bytes"),
            ("r16", "r16"),
            ("str", "string"),
            (r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"}]}}"#, "struct"),
        ] {
            assert_eq!(parse_data_type(text).map(|data_type| data_type.name()), Ok(name.to_owned()), "{text}");
        }
        assert!(parse_data_type("flaot32").unwrap_err().contains("`flaot32` is no data type"));
    }
}
