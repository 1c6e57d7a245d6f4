//! Writing for the peers.

use std::ops::Range;

use zarr_array::{Array, ArrayBuilder, Selection, StoredMetadata, Version};
use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, FillValue};
use zarr_store::FilesystemStore;
use zarr_store_api::{AnyStore, StoreKey, WritableStore};

use crate::case::Element;
use crate::read::read;
use crate::values::{gather, split};
use crate::{Failure, Job};

/// Creates the array, writes its values and reads them again.
pub(crate) fn write(job: &Job<'_>) -> Result<(), Failure> {
    let (input, element) = (job.raw("input")?, job.case.element());
    let array = create(job)?;
    let elements = split(&input, element)?;
    for part in parts(array.shape(), !job.case.whole && job.case.number() % 2 == 1) {
        let chosen = gather(&elements, array.shape(), &part);
        let selection = Selection::ranges(part);
        match element {
            Element::Size(_) => array.write(&selection, &chosen.concat())?,
            Element::Variable => array.write_variable(&selection, &chosen.into_iter().collect())?,
        }
    }
    read(job)
}

/// Every other case is written in two parts that meet off the edges of the chunks, so that chunks and shards are read, modified and written.
fn parts(shape: &[u64], in_two: bool) -> Vec<Vec<Range<u64>>> {
    let whole: Vec<_> = shape.iter().map(|&len| 0..len).collect();
    match shape {
        [len, ..] if in_two && *len > 1 => {
            [0..len / 2, len / 2..*len].map(|half| std::iter::once(half).chain(whole.iter().skip(1).cloned()).collect()).to_vec()
        }
        _ => vec![whole],
    }
}

/// Format 3 goes through the builder. So does every other case of format 2, which is converted there and back; the others, and those whose null fill
/// value format 3 cannot express, are stored as they were parsed.
fn create(job: &Job<'_>) -> Result<Array, Failure> {
    let files = FilesystemStore::new(&job.array)?;
    let document = job.case.metadata.to_string();
    if job.case.metadata["zarr_format"] == 3 {
        let metadata = ArrayMetadataV3::parse(document.as_bytes())?;
        return Ok(builder(&metadata, Version::V3).create(AnyStore::blocking(files), "/", job.options)?);
    }
    let metadata = ArrayMetadataV2::parse(document.as_bytes(), None)?;
    let fill: Option<FillValue> = metadata.fill_value()?;
    if fill.is_some() && job.case.number() % 4 < 2 {
        return Ok(builder(&metadata.to_v3()?, Version::V2).create(AnyStore::blocking(files), "/", job.options)?);
    }
    files.set(&StoreKey::new(".zarray")?, metadata.to_bytes()?.into())?;
    let stored = StoredMetadata::ArrayV2(metadata.into());
    Ok(Array::from_metadata(AnyStore::blocking(files), "/", stored, job.options)?)
}

fn builder(metadata: &ArrayMetadataV3, version: Version) -> ArrayBuilder {
    ArrayBuilder::new(metadata.shape.clone(), metadata.data_type.clone())
        .chunk_grid(metadata.chunk_grid.clone())
        .chunk_key_encoding(metadata.chunk_key_encoding.clone())
        .fill_value(metadata.fill_value.clone())
        .codecs(metadata.codecs.clone())
        .version(version)
}
