//! The implementation of this workspace, in this process.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use zarr_array::{Array, ArrayBuilder, ArrayData, Elements, Options, Selection, StoredMetadata, Version};
use zarr_codec_api::{Registry, VariableData};
use zarr_meta::{ArrayMetadataV2, ArrayMetadataV3, DataType, Endianness, Json};
use zarr_store::FilesystemStore;
use zarr_store_api::{AnyStore, StoreKey, WritableStore};

use super::{Implementation, ReadJob, Trouble, WriteJob};
use crate::vectors::{Element, split};

/// `zarr-array` over some registry of codecs.
#[derive(Debug, Clone)]
pub struct Ours {
    name: String,
    options: Options,
}

/// `zarr-array` with every codec of `zarr-codecs-cpu`: the reference implementation.
pub fn ours() -> Arc<dyn Implementation> {
    Arc::new(Ours::new("zarr", Options::new(Registry::new().with(zarr_codecs_cpu::provider()))))
}

impl Ours {
    /// `zarr-array` with `options`, called `name`: with a registry of yours, its codecs are checked on every vector.
    pub fn new(name: impl Into<String>, options: Options) -> Self {
        Self { name: name.into(), options }
    }

    /// Reads from any store.
    ///
    /// # Errors
    /// [`Trouble::Refused`].
    pub fn read_store(&self, store: AnyStore, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
        let array = Array::open(store, &format!("/{}", job.node), &self.options).map_err(|error| refused(&error))?;
        let selection = job.part.map_or_else(Selection::all, |ranges| Selection::ranges(ranges.to_vec()));
        let data = array.read(&selection).map_err(|error| refused(&error))?;
        Ok(plain(array.data_type(), data))
    }

    fn create(&self, job: &WriteJob<'_>) -> Result<Array, Box<dyn Error>> {
        let files = FilesystemStore::new(job.store)?;
        let document = Json::parse(job.metadata.as_bytes())?;
        if document.get("zarr_format").and_then(Json::as_u64) == Some(3) {
            let metadata = ArrayMetadataV3::parse(job.metadata.as_bytes())?;
            let builder = ArrayBuilder::new(metadata.shape.clone(), metadata.data_type.clone())
                .chunk_grid(metadata.chunk_grid.clone())
                .chunk_key_encoding(metadata.chunk_key_encoding)
                .fill_value(metadata.fill_value.clone())
                .codecs(metadata.codecs.clone())
                .version(Version::V3);
            return Ok(builder.create(AnyStore::blocking(files), "/", &self.options)?);
        }
        // As it was parsed: a null fill value has no form in version 3.
        let metadata = ArrayMetadataV2::parse(job.metadata.as_bytes(), None)?;
        files.set(&StoreKey::new(".zarray")?, metadata.to_bytes()?.into())?;
        let stored = StoredMetadata::ArrayV2(metadata.into());
        Ok(Array::from_metadata(AnyStore::blocking(files), "/", stored, &self.options)?)
    }
}

impl Implementation for Ours {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Result<String, Trouble> {
        Ok(format!("zarr-array {}", env!("CARGO_PKG_VERSION")))
    }

    fn read(&self, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
        self.read_store(files(job.store)?, job)
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<(), Trouble> {
        let array = self.create(job).map_err(|error| refused(&*error))?;
        let written = match job.element {
            Element::Size(_) => array.write(&Selection::all(), &swapped(array.data_type(), job.data.to_vec())),
            Element::Variable => {
                let elements = split(job.data, job.element).ok_or_else(|| Trouble::Broke("the data end within an element".into()))?;
                let elements: VariableData = elements.iter().map(|element| element.get(4..).unwrap_or_default()).collect();
                array.write_variable(&Selection::all(), &elements)
            }
        };
        written.map_err(|error| refused(&error))
    }
}

fn files(store: &Path) -> Result<AnyStore, Trouble> {
    Ok(AnyStore::blocking(FilesystemStore::new(store).map_err(|error| refused(&error))?))
}

/// Elements in the form of vectors.
fn plain(data_type: &DataType, data: ArrayData) -> Vec<u8> {
    match data.elements {
        Elements::Fixed(bytes) => swapped(data_type, bytes),
        Elements::Variable(elements) => {
            let lengths = elements.iter().map(|element| (u32::try_from(element.len()).unwrap_or(u32::MAX).to_le_bytes(), element));
            lengths.flat_map(|(len, element)| [&len[..], element].concat()).collect()
        }
    }
}

/// From native to little-endian bytes, or back.
fn swapped(data_type: &DataType, mut bytes: Vec<u8>) -> Vec<u8> {
    if Endianness::NATIVE == Endianness::Big
        && let Some(size) = data_type.fixed_size()
    {
        for element in bytes.chunks_mut(size) {
            for run in data_type.swap_units() {
                element[run.offset..run.offset + run.width * run.count].chunks_mut(run.width).for_each(<[u8]>::reverse);
            }
        }
    }
    bytes
}

fn refused(error: &dyn Error) -> Trouble {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    Trouble::Refused(text)
}
