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
/// Specification: core 3.1, "Chunk key encoding".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
}

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
        let (separator, mut first) = match self {
            Self::Default { separator } => {
                key.push('c');
                (separator.as_char(), false)
            }
            Self::V2 { separator } => {
                if coordinates.is_empty() {
                    key.push('0');
                }
                (separator.as_char(), true)
            }
        };
        for coordinate in coordinates {
            if !first {
                key.push(separator);
            }
            first = false;
            // Writing to a `String` cannot fail.
            let _ = write!(key, "{coordinate}");
        }
    }

    /// The coordinates that a key, relative to the array, stands for; `None` if it is no chunk key
    /// of an array with `rank` dimensions.
    pub fn decode(&self, key: &str, rank: usize) -> Option<Vec<u64>> {
        let coordinates: Vec<u64> = match (self, rank) {
            (Self::Default { .. }, 0) => Vec::new(),
            (Self::V2 { .. }, 0) => return (key == "0").then(Vec::new),
            (Self::Default { separator }, _) => {
                let rest = key.strip_prefix('c')?.strip_prefix(separator.as_char())?;
                split(rest, *separator)?
            }
            (Self::V2 { separator }, _) => split(key, *separator)?,
        };
        // Encoding again also refuses leading zeros and signs.
        (coordinates.len() == rank && self.encode(&coordinates) == key).then_some(coordinates)
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
        let separator = || {
            read::only(configuration, &["separator"])
                .and_then(|()| read::optional(configuration, "separator", Separator::parse))
                .map_err(|error| error.within("configuration"))
        };
        match extension.name.as_str() {
            "default" => Ok(Self::Default { separator: separator()?.unwrap_or(Separator::Slash) }),
            "v2" => Ok(Self::V2 { separator: separator()?.unwrap_or(Separator::Dot) }),
            other => Err(MetadataError::unknown("chunk key encoding", other)),
        }
    }

    /// The `chunk_key_encoding` of version 3 metadata, the separator always spelt out.
    pub fn to_json(&self) -> Json {
        let (name, separator) = match self {
            Self::Default { separator } => ("default", separator),
            Self::V2 { separator } => ("v2", separator),
        };
        let configuration = JsonObject::new().with("separator", separator.to_json());
        Extension::with_configuration(name, configuration).to_json()
    }
}

fn split(text: &str, separator: Separator) -> Option<Vec<u64>> {
    text.split(separator.as_char()).map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(ChunkKeyEncoding, &str, &str); 4] = [
        (ChunkKeyEncoding::Default { separator: Separator::Slash }, "c/1/23/0", "c"),
        (ChunkKeyEncoding::Default { separator: Separator::Dot }, "c.1.23.0", "c"),
        (ChunkKeyEncoding::V2 { separator: Separator::Slash }, "1/23/0", "0"),
        (ChunkKeyEncoding::V2 { separator: Separator::Dot }, "1.23.0", "0"),
    ];

    #[test]
    fn keys_and_back() {
        for (encoding, key, scalar) in ALL {
            assert_eq!(encoding.encode(&[1, 23, 0]), key);
            assert_eq!(encoding.encode(&[]), scalar);
            assert_eq!(encoding.decode(key, 3), Some(vec![1, 23, 0]));
            assert_eq!(encoding.decode(scalar, 0), Some(vec![]));
            assert_eq!(encoding.decode(key, 2), None);
            for other in ["", "x", "c/01", "c", "01", "+1", "zarr.json", "c/1/", "1.2.3.4"] {
                assert_eq!(encoding.decode(other, 3), None, "{other}");
            }
            assert_eq!(ChunkKeyEncoding::parse(&encoding.to_json()), Ok(encoding));
        }
    }

    #[test]
    fn separators_default_by_name() {
        let parse = |text: &str| Json::parse(text.as_bytes()).and_then(|value| ChunkKeyEncoding::parse(&value));
        assert_eq!(parse("\"default\""), Ok(ALL[0].0));
        assert_eq!(parse(r#"{"name":"v2"}"#), Ok(ALL[3].0));
        assert_eq!(parse(r#"{"name":"v2","configuration":{"separator":"/"}}"#), Ok(ALL[2].0));
        for bad in [
            "\"n5\"",
            r#"{"name":"v2","configuration":{"separator":"-"}}"#,
            r#"{"name":"v2","configuration":{"sep":"."}}"#,
            r#"{"name":"v2","must_understand":false}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
