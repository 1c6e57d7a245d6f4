//! Chunk grids from and to the `chunk_grid` of version 3 metadata.

use super::{ChunkGrid, GridAxis};
use crate::{Extension, Json, JsonObject, MetadataError, read};

impl ChunkGrid {
    /// Reads the `chunk_grid` of version 3 metadata. Whether it fits the array is for
    /// [`check`](Self::check) to say.
    ///
    /// # Errors
    /// [`MetadataError::Unknown`] for another grid, other errors for a configuration that does not
    /// fit, and for `"must_understand": false`, which the specification does not support here.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        let extension = Extension::parse(value)?;
        if !extension.must_understand {
            return Err(MetadataError::inconsistent("a chunk grid must always be understood").within("must_understand"));
        }
        let none = JsonObject::new();
        let configuration = extension.configuration.as_ref().unwrap_or(&none);
        let grid = match extension.name.as_str() {
            "regular" => regular(configuration),
            "rectilinear" => rectilinear(configuration),
            other => return Err(MetadataError::unknown("chunk grid", other)),
        };
        grid.map_err(|error| error.within("configuration"))
    }

    /// The `chunk_grid` of version 3 metadata.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Regular { chunk_shape } => {
                Extension::with_configuration("regular", JsonObject::new().with("chunk_shape", chunk_shape.clone()))
            }
            Self::Rectilinear { axes } => Extension::with_configuration(
                "rectilinear",
                JsonObject::new().with("kind", "inline").with("chunk_shapes", axes.iter().map(axis_to_json).collect::<Json>()),
            ),
        }
        .to_json()
    }
}

fn regular(configuration: &JsonObject) -> Result<ChunkGrid, MetadataError> {
    read::only(configuration, &["chunk_shape"])?;
    let chunk_shape = read::required(configuration, "chunk_shape", read::unsigned_list)?;
    Ok(ChunkGrid::Regular { chunk_shape })
}

fn rectilinear(configuration: &JsonObject) -> Result<ChunkGrid, MetadataError> {
    read::only(configuration, &["kind", "chunk_shapes"])?;
    read::required(configuration, "kind", |kind| match kind.as_str() {
        Some("inline") => Ok(()),
        _ => Err(MetadataError::unexpected("\"inline\"", kind)),
    })?;
    let axes = read::required(configuration, "chunk_shapes", |axes| read::list(axes, "an array with one entry per dimension", parse_axis))?;
    Ok(ChunkGrid::Rectilinear { axes })
}

fn parse_axis(value: &Json) -> Result<GridAxis, MetadataError> {
    if let Json::Number(_) = value {
        return GridAxis::step(read::unsigned(value)?).ok_or_else(|| MetadataError::unexpected("an integer from 1 up", value));
    }
    let runs = read::list(value, "a chunk length or an array of them", |edge| match edge {
        Json::Array(run) => match run.as_slice() {
            [length, count] => Ok((positive(length)?, positive(count)?)),
            _ => Err(MetadataError::unexpected("a pair of chunk length and count", edge)),
        },
        _ => Ok((positive(edge)?, 1)),
    })?;
    GridAxis::runs(runs).ok_or_else(|| MetadataError::inconsistent("the chunks end beyond 2^64 elements"))
}

fn positive(value: &Json) -> Result<u64, MetadataError> {
    value.as_u64().filter(|&length| length > 0).ok_or_else(|| MetadataError::unexpected("an integer from 1 up", value))
}

/// Runs of one chunk as plain lengths, longer ones as pairs.
fn axis_to_json(axis: &GridAxis) -> Json {
    match axis.as_step() {
        Some(length) => length.into(),
        None => axis
            .as_runs()
            .map(|(length, count)| match count {
                1 => Json::from(length),
                _ => Json::from(vec![length, count]),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ChunkGrid, MetadataError> {
        Json::parse(text.as_bytes()).and_then(|value| ChunkGrid::parse(&value))
    }

    #[test]
    fn grids_read_back() {
        for text in [
            r#"{"name":"regular","configuration":{"chunk_shape":[1,0,18446744073709551615]}}"#,
            r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[4,[1,2,3],[[4,2]],[[1,3],3],[]]}}"#,
        ] {
            assert_eq!(parse(text).map(|grid| grid.to_json().to_text()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn the_example_of_the_registry() {
        let grid = parse(
            r#"{"name":"rectilinear","configuration":{"kind":"inline",
                "chunk_shapes":[4,[1,2,3],[[4,2]],[[1,3],3],[4,4,4]]}}"#,
        );
        let Ok(grid) = grid else { panic!("{grid:?}") };
        assert_eq!(grid.check(&[6; 5]), Ok(()));
        assert_eq!(grid.grid_shape(&[6; 5]), [2, 3, 2, 4, 2]);
        assert_eq!(grid.chunk_shape(&[1, 2, 1, 3, 0]), [4, 3, 4, 3, 4]);
        assert!(grid.check(&[6, 7, 6, 6, 6]).is_err());
    }

    #[test]
    fn malformed_grids_are_refused() {
        for text in [
            "\"regular\"",
            r#"{"name":"regular","configuration":{}}"#,
            r#"{"name":"regular","configuration":{"chunk_shape":[-1]}}"#,
            r#"{"name":"regular","configuration":{"chunk_shape":[1.0]}}"#,
            r#"{"name":"regular","configuration":{"chunk_shape":[1],"x":1}}"#,
            r#"{"name":"regular","configuration":{"chunk_shape":[18446744073709551616]}}"#,
            r#"{"name":"regular","configuration":{"chunk_shape":[1]},"must_understand":false}"#,
            r#"{"name":"hexagonal"}"#,
            r#"{"name":"rectilinear","configuration":{"chunk_shapes":[1]}}"#,
            r#"{"name":"rectilinear","configuration":{"kind":"file","chunk_shapes":[1]}}"#,
            r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[0]}}"#,
            r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[1,2,3]]]}}"#,
            r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[18446744073709551615,2]]]}}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
