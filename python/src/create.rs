//! Creating arrays and groups.

use std::convert::Infallible;

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use zarr::meta::{Extension, Json, JsonObject};
use zarr::{ArrayBuilder, ArrayError, DataType, FillValue, GroupBuilder, Version};
use zarr_codec_api::CodecErrorKind;

use crate::array::Array;
use crate::data_type;
use crate::error::{Failure, Outcome, parameter};
use crate::group::Group;
use crate::node::{Origin, object};
use crate::wait::wait_unless;

/// Creates an array at a path or URL, open to read and write. No group above it is made: `Group.create_array` does that.
///
/// `dtype`: what NumPy takes for one, a dtype of torch, or Zarr's name; `str` and `bytes` have any length. `chunks`: elements of a chunk along each axis, of an inner chunk where there
/// are `shards`; by default up to 4 MiB, the last axes whole. `fill_value`: what absent elements are; by default zero, false or empty. `filters`, `serializer`,
/// `compressors`: codecs, each a name, a dictionary as in metadata, or a codec of zarr-python; by default chunks are compressed by zstd, and by nothing with
/// `compressors=None`. `zarr_format`: 2 or 3. `overwrite`: removes all that is at the path. `storage_options`: as for `open`.
#[pyfunction]
#[pyo3(signature = (path, *, shape, dtype, chunks=None, shards=None, fill_value=None, filters=None, serializer=None, compressors=Codecs::Default,
    dimension_names=None, attributes=None, zarr_format=3, overwrite=false, storage_options=None))]
#[expect(clippy::too_many_arguments, reason = "Python's have names")]
pub(crate) fn create_array(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    shape: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    chunks: Option<&Bound<'_, PyAny>>,
    shards: Option<&Bound<'_, PyAny>>,
    fill_value: Option<&Bound<'_, PyAny>>,
    filters: Option<&Bound<'_, PyAny>>,
    serializer: Option<&Bound<'_, PyAny>>,
    compressors: Codecs<'_>,
    dimension_names: Option<Vec<Option<String>>>,
    attributes: Option<&Bound<'_, PyAny>>,
    zarr_format: u8,
    overwrite: bool,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Outcome<Array> {
    let description =
        Description { shape, dtype, chunks, shards, fill_value, filters, serializer, compressors, dimension_names, attributes };
    let builder = description.builder()?.version(version(zarr_format)?).overwrite(overwrite);
    let origin = Origin::new(path, true, storage_options)?;
    let options = origin.options()?;
    let create = async {
        let (store, inside) = origin.locate(true)?;
        builder.create_async(store, &inside, &options).await.map_err(wrong)
    };
    let array = wait_unless(py, overwrite, create)??;
    let path = array.path().to_string();
    Ok(Array::new(array, origin.shared(path)))
}

/// Creates a group at a path or URL, open to read and write. `overwrite` removes all that is at the path. `storage_options`: as for `open`.
#[pyfunction]
#[pyo3(signature = (path, *, attributes=None, zarr_format=3, overwrite=false, storage_options=None))]
pub(crate) fn create_group(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    attributes: Option<&Bound<'_, PyAny>>,
    zarr_format: u8,
    overwrite: bool,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Outcome<Group> {
    let builder = GroupBuilder::new().attributes(object_or_empty(attributes)?).version(version(zarr_format)?).overwrite(overwrite);
    let origin = Origin::new(path, true, storage_options)?;
    let options = origin.options()?;
    let create = async {
        let (store, inside) = origin.locate(true)?;
        Ok::<_, Failure>(builder.create_async(store, &inside, &options).await?)
    };
    let group = wait_unless(py, overwrite, create)??;
    let path = group.path().to_string();
    Ok(Group::new(group, origin.shared(path)))
}

/// What Python says of a new array.
pub(crate) struct Description<'a, 'py> {
    pub(crate) shape: &'a Bound<'py, PyAny>,
    pub(crate) dtype: &'a Bound<'py, PyAny>,
    pub(crate) chunks: Option<&'a Bound<'py, PyAny>>,
    pub(crate) shards: Option<&'a Bound<'py, PyAny>>,
    pub(crate) fill_value: Option<&'a Bound<'py, PyAny>>,
    pub(crate) filters: Option<&'a Bound<'py, PyAny>>,
    pub(crate) serializer: Option<&'a Bound<'py, PyAny>>,
    pub(crate) compressors: Codecs<'py>,
    pub(crate) dimension_names: Option<Vec<Option<String>>>,
    pub(crate) attributes: Option<&'a Bound<'py, PyAny>>,
}

impl Description<'_, '_> {
    pub(crate) fn builder(self) -> Outcome<ArrayBuilder> {
        let data_type = data_type::parse(self.dtype)?;
        let fill_value = self.fill_value.map(|value| fill_value(value, &data_type)).transpose()?;
        let mut builder = ArrayBuilder::new(lengths(self.shape, "shape")?, data_type)
            .optional_dimension_names(self.dimension_names)
            .attributes(object_or_empty(self.attributes)?);
        if let Some(chunks) = self.chunks {
            builder = builder.chunks(lengths(chunks, "chunks")?);
        }
        if let Some(shards) = self.shards {
            builder = builder.shards(lengths(shards, "shards")?);
        }
        if let Some(value) = fill_value {
            builder = builder.fill_value(value);
        }
        if let Some(filters) = self.filters {
            builder = builder.filters(codecs(filters, "filters")?);
        }
        if let Some(serializer) = self.serializer {
            let [codec] =
                <[Extension; 1]>::try_from(codecs(serializer, "serializer")?).map_err(|_| parameter("serializer= is one codec"))?;
            builder = builder.array_to_bytes(codec);
        }
        if let Codecs::Given(compressors) = self.compressors {
            builder = builder.compressors(codecs(&compressors, "compressors")?);
        }
        Ok(builder)
    }
}

/// What `compressors=` is given: `None` is not the default.
pub(crate) enum Codecs<'py> {
    Default,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Codecs<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self::Given(object.to_owned()))
    }
}

/// The error of a description that does not hold together is the caller's.
pub(crate) fn wrong(error: ArrayError) -> Failure {
    match &error {
        ArrayError::Metadata { key, source } if key == "new array" => parameter(source.to_string()),
        ArrayError::Codecs { source, .. } if source.kind() == CodecErrorKind::Metadata => parameter(source.to_string()),
        _ => error.into(),
    }
}

fn version(zarr_format: u8) -> Outcome<Version> {
    match zarr_format {
        2 => Ok(Version::V2),
        3 => Ok(Version::V3),
        _ => Err(parameter(format!("zarr_format={zarr_format}: there are 2 and 3"))),
    }
}

pub(crate) fn object_or_empty(attributes: Option<&Bound<'_, PyAny>>) -> Outcome<JsonObject> {
    attributes.map_or_else(|| Ok(JsonObject::new()), object)
}

/// A length along each axis; a number stands for one axis.
pub(crate) fn lengths(given: &Bound<'_, PyAny>, what: &str) -> Outcome<Vec<u64>> {
    let wrong = |_: PyErr| parameter(format!("{what}={given} is no length for each axis"));
    if let Ok(items) = given.try_iter() {
        return items.map(|item| item?.extract()).collect::<PyResult<_>>().map_err(wrong);
    }
    Ok(vec![given.extract().map_err(wrong)?])
}

fn codecs(given: &Bound<'_, PyAny>, what: &str) -> Outcome<Vec<Extension>> {
    let text: String = given.py().import("zarrgpu._numpy")?.call_method1("codecs", (given,))?.extract()?;
    let list = Json::parse(text.as_bytes());
    let codecs = list.and_then(|list| list.as_array().unwrap_or_default().iter().map(Extension::parse).collect());
    codecs.map_err(|error| parameter(format!("{what}={given}: {error}")))
}

fn fill_value(value: &Bound<'_, PyAny>, data_type: &DataType) -> Outcome<FillValue> {
    let wrong = |error: zarr_meta::MetadataError| parameter(format!("fill_value={value}: {error}"));
    let bytes: Vec<u8> = match data_type {
        DataType::String => value.cast::<PyString>().map_err(PyErr::from)?.to_cow()?.as_bytes().to_vec(),
        DataType::Bytes => value.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec(),
        fixed => {
            let numpy = value.py().import("zarrgpu._numpy")?;
            numpy.call_method1("element_bytes", (value, data_type::dtype(value.py(), fixed)?))?.extract()?
        }
    };
    FillValue::from_bytes(bytes, data_type).map_err(wrong)
}
