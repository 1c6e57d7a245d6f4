//! Chunk key encodings: from chunk coordinates to store keys.

use std::fmt::Write as _;

use crate::{Extension, Json, JsonObject, MetadataError, read};

/// The character between coordinates in a chunk key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Separator {
    /// `/`
    Slash,
    /// `.`
    Dot,
}

impl Separator {
    /// The character.
    pub fn as_char(self) -> char {
        match self {
            Self::Slash => '/',
            Self::Dot => '.',
        }
    }

    /// Reads `"/"` or `"."`.
    ///
    /// # Errors
    /// [`MetadataError::Unexpected`] for any other value.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        match value.as_str() {
            Some("/") => Ok(Self::Slash),
            Some(".") => Ok(Self::Dot),
            _ => Err(MetadataError::unexpected("\"/\" or \".\"", value)),
        }
    }

    /// The character as a JSON string.
    pub fn to_json(self) -> Json {
        self.as_char().to_string().into()
    }
}

/// How the coordinates of a chunk become the last part of its key.
///
/// Specification: core 3.1, "Chunk key encoding", for `default` and `v2`. The others are proposals for the registry, and what is written with
/// them is read by few.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkKeyEncoding {
    /// `default`: `c/1/2`, and `c` for an array without dimensions. The separator is `/` unless
    /// the metadata say otherwise.
    Default {
        /// Between the `c` and the coordinates.
        separator: Separator,
    },
    /// `v2`: `1.2`, and `0` for an array without dimensions. The separator is `.` unless the
    /// metadata say otherwise.
    V2 {
        /// Between the coordinates.
        separator: Separator,
    },
    /// `fanout`: `d0/1/23/d1/4/c`, and `c` for an array without dimensions. Each coordinate is a path of its digits, so that no directory
    /// gets more entries than allowed.
    ///
    /// Specification: [zarr-extensions#31](https://github.com/zarr-developers/zarr-extensions/pull/31).
    Fanout {
        /// The most entries of a directory, at least 3, and 1001 unless the metadata say otherwise. Digits are in base `max_children - 1`.
        max_children: u64,
    },
    /// `suffix`: what another encoding gives, and a suffix: `c/1/2.tiff`.
    ///
    /// Specification: [zarr-extensions#28](https://github.com/zarr-developers/zarr-extensions/pull/28).
    Suffix {
        /// What stands before the suffix.
        base: Box<ChunkKeyEncoding>,
        /// The suffix: no `/`, no `\\` and no NUL.
        suffix: String,
    },
    /// `zarrs.default_suffix`: `suffix` on top of `default`, as
    /// [zarrs](https://docs.rs/zarrs/0.23.14/zarrs/array/chunk_key_encoding/struct.DefaultSuffixChunkKeyEncoding.html) writes it.
    DefaultSuffix {
        /// Between the `c` and the coordinates.
        separator: Separator,
        /// The suffix: no `/`, no `\\` and no NUL.
        suffix: String,
    },
}

/// The `max_children` of `fanout` that metadata need not name.
const FANOUT: u64 = 1001;

impl Default for ChunkKeyEncoding {
    fn default() -> Self {
        Self::Default { separator: Separator::Slash }
    }
}

impl ChunkKeyEncoding {
    /// The key of the chunk at `coordinates`, relative to the array.
    pub fn encode(&self, coordinates: &[u64]) -> String {
        let mut key = String::new();
        self.encode_into(coordinates, &mut key);
        key
    }

    /// Appends the key of the chunk at `coordinates` to `key`, so that a caller with many chunks
    /// reuses one buffer.
    pub fn encode_into(&self, coordinates: &[u64], key: &mut String) {
        match self {
            Self::Default { separator } => {
                key.push('c');
                for coordinate in coordinates {
                    key.push(separator.as_char());
                    push_decimal(*coordinate, key);
                }
            }
            Self::V2 { separator } => {
                if coordinates.is_empty() {
                    key.push('0');
                }
                for (index, coordinate) in coordinates.iter().enumerate() {
                    if index > 0 {
                        key.push(separator.as_char());
                    }
                    push_decimal(*coordinate, key);
                }
            }
            Self::Fanout { max_children } => {
                for (dimension, coordinate) in coordinates.iter().enumerate() {
                    let _ = write!(key, "d{dimension}/");
                    for digit in digits(*coordinate, base(*max_children)) {
                        let _ = write!(key, "{digit}/");
                    }
                }
                key.push('c');
            }
            Self::Suffix { base, suffix } => {
                base.encode_into(coordinates, key);
                key.push_str(suffix);
            }
            Self::DefaultSuffix { separator, suffix } => {
                Self::Default { separator: *separator }.encode_into(coordinates, key);
                key.push_str(suffix);
            }
        }
    }

    /// The coordinates that a key, relative to the array, stands for; `None` if it is no chunk key
    /// of an array with `rank` dimensions.
    pub fn decode(&self, key: &str, rank: usize) -> Option<Vec<u64>> {
        let coordinates = match self {
            Self::Default { .. } if rank == 0 => Vec::new(),
            Self::V2 { .. } if rank == 0 => return (key == "0").then(Vec::new),
            Self::Default { separator } => split(key.strip_prefix('c')?.strip_prefix(separator.as_char())?, *separator)?,
            Self::V2 { separator } => split(key, *separator)?,
            Self::Fanout { max_children } => gather(key, base(*max_children))?,
            Self::Suffix { base, suffix } => return base.decode(key.strip_suffix(suffix.as_str())?, rank),
            Self::DefaultSuffix { separator, suffix } => {
                return Self::Default { separator: *separator }.decode(key.strip_suffix(suffix.as_str())?, rank);
            }
        };
        // Encoding again also refuses leading zeros and signs.
        (coordinates.len() == rank && self.encode(&coordinates) == key).then_some(coordinates)
    }

    /// The separator between coordinates; that of directories where there is no choice.
    pub(crate) fn separator(&self) -> Separator {
        match self {
            Self::Default { separator } | Self::V2 { separator } | Self::DefaultSuffix { separator, .. } => *separator,
            Self::Fanout { .. } => Separator::Slash,
            Self::Suffix { base, .. } => base.separator(),
        }
    }

    /// Reads the `chunk_key_encoding` of version 3 metadata. The separator defaults to `/` for
    /// `default` and to `.` for `v2`.
    ///
    /// # Errors
    /// [`MetadataError::Unknown`] for another encoding, other errors for a configuration that does
    /// not fit, and for `"must_understand": false`, which the specification does not support here.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        let extension = Extension::parse(value)?;
        if !extension.must_understand {
            return Err(MetadataError::inconsistent("a chunk key encoding must always be understood").within("must_understand"));
        }
        let none = JsonObject::new();
        let configuration = extension.configuration.as_ref().unwrap_or(&none);
        match Self::configured(&extension.name, configuration) {
            Ok(Some(encoding)) => Ok(encoding),
            Ok(None) => Err(MetadataError::unknown("chunk key encoding", &extension.name)),
            Err(error) => Err(error.within("configuration")),
        }
    }

    /// The encoding of a name; `None` if there is none.
    fn configured(name: &str, configuration: &JsonObject) -> Result<Option<Self>, MetadataError> {
        let only = |known: &[&str]| read::only(configuration, known);
        let separator = |default| {
            let separator = read::optional(configuration, "separator", Separator::parse)?;
            Ok(separator.unwrap_or(default))
        };
        let suffix = || read::required(configuration, "suffix", parse_suffix);
        Ok(Some(match name {
            "default" => {
                only(&["separator"])?;
                Self::Default { separator: separator(Separator::Slash)? }
            }
            "v2" => {
                only(&["separator"])?;
                Self::V2 { separator: separator(Separator::Dot)? }
            }
            "fanout" => {
                only(&["max_children"])?;
                Self::Fanout { max_children: read::optional(configuration, "max_children", parse_max_children)?.unwrap_or(FANOUT) }
            }
            "suffix" => {
                only(&["suffix", "base_encoding"])?;
                Self::Suffix { base: Box::new(read::required(configuration, "base_encoding", Self::parse)?), suffix: suffix()? }
            }
            "zarrs.default_suffix" => {
                only(&["separator", "suffix"])?;
                Self::DefaultSuffix { separator: separator(Separator::Slash)?, suffix: suffix()? }
            }
            _ => return Ok(None),
        }))
    }

    /// The `chunk_key_encoding` of version 3 metadata, the configuration always spelt out.
    pub fn to_json(&self) -> Json {
        let configuration = JsonObject::new();
        let (name, configuration) = match self {
            Self::Default { separator } => ("default", configuration.with("separator", separator.to_json())),
            Self::V2 { separator } => ("v2", configuration.with("separator", separator.to_json())),
            Self::Fanout { max_children } => ("fanout", configuration.with("max_children", *max_children)),
            Self::Suffix { base, suffix } => {
                ("suffix", configuration.with("suffix", suffix.as_str()).with("base_encoding", base.to_json()))
            }
            Self::DefaultSuffix { separator, suffix } => {
                ("zarrs.default_suffix", configuration.with("separator", separator.to_json()).with("suffix", suffix.as_str()))
            }
        };
        Extension::with_configuration(name, configuration).to_json()
    }
}

fn push_decimal(coordinate: u64, key: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = write!(key, "{coordinate}");
}

fn split(text: &str, separator: Separator) -> Option<Vec<u64>> {
    text.split(separator.as_char()).map(|part| part.parse().ok()).collect()
}

/// The base of the digits of `fanout`: one entry of a directory is no digit, but the next dimension or the chunk.
fn base(max_children: u64) -> u64 {
    max_children.saturating_sub(1).max(2)
}

/// The digits of a number, the most significant first.
fn digits(mut number: u64, base: u64) -> impl Iterator<Item = u64> {
    let mut digits = Vec::new();
    loop {
        digits.push(number % base);
        number /= base;
        if number == 0 {
            return digits.into_iter().rev();
        }
    }
}

/// The coordinates in a key of `fanout`, whose form is only looked at as far as that takes.
fn gather(key: &str, base: u64) -> Option<Vec<u64>> {
    let mut coordinates = Vec::new();
    for part in key.strip_suffix('c')?.split_terminator('/') {
        if part.starts_with('d') {
            coordinates.push(0);
            continue;
        }
        let coordinate: &mut u64 = coordinates.last_mut()?;
        *coordinate = coordinate.checked_mul(base)?.checked_add(part.parse().ok()?)?;
    }
    Some(coordinates)
}

/// A suffix stays within the last name of the key: with a `/` it could make keys that lie above the chunk, or are metadata.
fn parse_suffix(value: &Json) -> Result<String, MetadataError> {
    let suffix = read::string(value)?;
    if suffix.contains(['/', '\\', '\0']) {
        return Err(MetadataError::unexpected("a suffix without `/`, `\\` and NUL", value));
    }
    Ok(suffix.to_owned())
}

fn parse_max_children(value: &Json) -> Result<u64, MetadataError> {
    match read::unsigned(value)? {
        0..=2 => Err(MetadataError::unexpected("at least 3", value)),
        most => Ok(most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: ChunkKeyEncoding = ChunkKeyEncoding::Default { separator: Separator::Slash };
    const V2: ChunkKeyEncoding = ChunkKeyEncoding::V2 { separator: Separator::Dot };

    fn all() -> Vec<(ChunkKeyEncoding, &'static str, &'static str)> {
        let suffix = || ".tiff".to_owned();
        vec![
            (DEFAULT, "c/1/23/0", "c"),
            (ChunkKeyEncoding::Default { separator: Separator::Dot }, "c.1.23.0", "c"),
            (ChunkKeyEncoding::V2 { separator: Separator::Slash }, "1/23/0", "0"),
            (V2, "1.23.0", "0"),
            (ChunkKeyEncoding::Fanout { max_children: 11 }, "d0/1/d1/2/3/d2/0/c", "c"),
            (ChunkKeyEncoding::Suffix { base: Box::new(DEFAULT), suffix: suffix() }, "c/1/23/0.tiff", "c.tiff"),
            (ChunkKeyEncoding::Suffix { base: Box::new(V2), suffix: suffix() }, "1.23.0.tiff", "0.tiff"),
            (ChunkKeyEncoding::Suffix { base: Box::new(V2), suffix: "0".to_owned() }, "1.23.00", "00"),
            (ChunkKeyEncoding::DefaultSuffix { separator: Separator::Slash, suffix: suffix() }, "c/1/23/0.tiff", "c.tiff"),
            (ChunkKeyEncoding::DefaultSuffix { separator: Separator::Dot, suffix: suffix() }, "c.1.23.0.tiff", "c.tiff"),
        ]
    }

    #[test]
    fn keys_and_back() {
        for (encoding, key, scalar) in all() {
            assert_eq!(encoding.encode(&[1, 23, 0]), key);
            assert_eq!(encoding.encode(&[]), scalar);
            assert_eq!(encoding.decode(key, 3), Some(vec![1, 23, 0]));
            assert_eq!(encoding.decode(scalar, 0), Some(vec![]));
            assert_eq!(encoding.decode(key, 2), None);
            for other in ["", "x", "c/01", "c", "01", "+1", "zarr.json", "c/1/", "1.2.3.4", "d0/c", "d0/1/d1/2/3/d2/c", "1/c"] {
                assert_eq!(encoding.decode(other, 3), None, "{other}");
            }
            assert_eq!(ChunkKeyEncoding::parse(&encoding.to_json()), Ok(encoding));
        }
    }

    #[test]
    fn separators_default_by_name() {
        let parse = |text: &str| Json::parse(text.as_bytes()).and_then(|value| ChunkKeyEncoding::parse(&value));
        assert_eq!(parse("\"default\""), Ok(DEFAULT));
        assert_eq!(parse(r#"{"name":"v2"}"#), Ok(V2));
        assert_eq!(parse(r#"{"name":"v2","configuration":{"separator":"/"}}"#), Ok(ChunkKeyEncoding::V2 { separator: Separator::Slash }));
        for bad in [
            "\"n5\"",
            r#"{"name":"v2","configuration":{"separator":"-"}}"#,
            r#"{"name":"v2","configuration":{"sep":"."}}"#,
            r#"{"name":"v2","must_understand":false}"#,
            r#"{"name":"fanout","configuration":{"max_children":2}}"#,
            r#"{"name":"suffix","configuration":{"suffix":".x"}}"#,
            r#"{"name":"suffix","configuration":{"suffix":"/../x","base_encoding":"v2"}}"#,
            r#"{"name":"suffix","configuration":{"suffix":".x","base_encoding":"n5"}}"#,
            r#"{"name":"zarrs.default_suffix"}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    /// The examples of [zarr-extensions#31](https://github.com/zarr-developers/zarr-extensions/pull/31).
    #[test]
    fn fanout_as_proposed() {
        let encoding = ChunkKeyEncoding::Fanout { max_children: 101 };
        for (coordinates, key) in [(&[][..], "c"), (&[123], "d0/1/23/c"), (&[1234, 5, 67890], "d0/12/34/d1/5/d2/6/78/90/c")] {
            assert_eq!(encoding.encode(coordinates), key);
            assert_eq!(encoding.decode(key, coordinates.len()).as_deref(), Some(coordinates));
        }
        for other in ["d0/1/123/c", "d0/01/23/c", "d1/1/23/c", "d0/1/23/cc", "d0/1/23c", "d0//1/23/c", "d/1/23/c", "d0/1/23"] {
            assert_eq!(encoding.decode(other, 1), None, "{other}");
        }
        assert_eq!(ChunkKeyEncoding::parse(&"fanout".into()), Ok(ChunkKeyEncoding::Fanout { max_children: 1001 }));
    }
}
