//! Rust types for elements.

use bytemuck::{NoUninit, Pod};
use half::{bf16, f16};
use num_complex::Complex;
use zarr_buffer_api::{TileWriter, unwritten};
use zarr_codec_api::VariableData;
use zarr_meta::DataType;
use zarr_store_api::AnyStore;

use crate::array::Array;
use crate::data::{ArrayData, Elements};
use crate::read::{Job, read_blocking};
use crate::storage::block_on;
use crate::{ArrayError, Selection};

/// A Rust type that is an element of some data types.
///
/// Implemented for `bool`, the integers and floats of the usual widths, [`half::f16`], [`half::bf16`], complex numbers, `String` and `Vec<u8>`.
pub trait Element: Sized + Clone + Send + Sync + 'static {
    /// Whether the type holds the elements of `data_type`.
    fn matches(data_type: &DataType) -> bool;

    /// Reads a selection of an array whose data type matches.
    #[doc(hidden)]
    fn read(array: &Array, selection: &Selection) -> Result<Vec<Self>, ArrayError> {
        Self::from_data(array.read(selection)?)
    }

    /// Reads a selection of an array whose data type matches, to where other elements were.
    #[doc(hidden)]
    fn read_into(array: &Array, selection: &Selection, output: &mut [Self]) -> Result<Vec<u64>, ArrayError> {
        let data = array.read(selection)?;
        let shape = data.shape.clone();
        let elements = Self::from_data(data)?;
        if elements.len() != output.len() {
            let (expected, found) = (elements.len(), output.len());
            return Err(ArrayError::parameter(format!("the selection has {expected} elements, and {found} were given")));
        }
        output.iter_mut().zip(elements).for_each(|(to, element)| *to = element);
        Ok(shape)
    }

    /// Writes a selection of an array whose data type matches.
    #[doc(hidden)]
    fn write(array: &Array, selection: &Selection, elements: &[Self]) -> Result<(), ArrayError>;

    /// Takes the elements of data whose data type matches.
    #[doc(hidden)]
    fn from_data(data: ArrayData) -> Result<Vec<Self>, ArrayError>;

    /// The bytes of elements.
    #[doc(hidden)]
    fn to_owned_data(elements: &[Self]) -> Elements;
}

pub(crate) fn check_type<T: Element>(data_type: &DataType) -> Result<(), ArrayError> {
    if T::matches(data_type) {
        return Ok(());
    }
    Err(ArrayError::parameter(format!("elements of {} are not {}", data_type.name(), std::any::type_name::<T>())))
}

/// Reads straight into a vector of the element type.
fn read_plain<T: Pod>(array: &Array, selection: &Selection) -> Result<Vec<T>, ArrayError> {
    let AnyStore::Blocking(store) = &array.storage.0 else {
        return from_bytes(block_on(array.read_async(selection))?);
    };
    let resolved = selection.resolve(array.shape(), array.chunk_grid())?;
    if let Some(whole) = array.whole_chunk(&resolved)? {
        let mut output = array.options().pool.unwritten::<T>(whole.byte_len() / size_of::<T>(), false)?;
        array.read_whole(&**store, &whole, bytemuck::cast_slice_mut(&mut output))?;
        return Ok(output);
    }
    let plan = array.resolved_plan(&resolved)?;
    let layout = plan.output_layout()?;
    let mut output = array.options().pool.unwritten::<T>(layout.len(), plan.is_spread(&layout))?;
    let tiles = TileWriter::new(bytemuck::cast_slice_mut(&mut output), layout, plan.tiles())?;
    read_blocking(&[Job { plan: &plan, store: &**store, sink: &tiles }], &array.options().pool)?;
    drop(tiles);
    Ok(output)
}

fn from_bytes<T: Pod>(data: ArrayData) -> Result<Vec<T>, ArrayError> {
    match data.elements {
        Elements::Fixed(bytes) => {
            // The bytes of a `Vec<u8>` may be aligned less than `T` needs.
            let mut elements = unwritten::<T>(bytes.len() / size_of::<T>())?;
            bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes);
            Ok(elements)
        }
        Elements::Variable(_) => Err(ArrayError::parameter("elements of variable length")),
    }
}

fn to_bytes<T: NoUninit>(elements: &[T]) -> Elements {
    Elements::Fixed(bytemuck::cast_slice(elements).to_vec())
}

macro_rules! plain {
    ($($type:ty: $($data_type:pat_param)|+,)+) => {$(
        impl Element for $type {
            fn matches(data_type: &DataType) -> bool {
                matches!(data_type, $($data_type)|+)
            }

            fn read(array: &Array, selection: &Selection) -> Result<Vec<Self>, ArrayError> {
                read_plain(array, selection)
            }

            fn read_into(array: &Array, selection: &Selection, output: &mut [Self]) -> Result<Vec<u64>, ArrayError> {
                array.read_into(selection, bytemuck::cast_slice_mut(output))
            }

            fn write(array: &Array, selection: &Selection, elements: &[Self]) -> Result<(), ArrayError> {
                array.write(selection, bytemuck::cast_slice(elements))
            }

            fn from_data(data: ArrayData) -> Result<Vec<Self>, ArrayError> {
                from_bytes(data)
            }

            fn to_owned_data(elements: &[Self]) -> Elements {
                to_bytes(elements)
            }
        }
    )+};
}

plain! {
    i8: DataType::Int8 | DataType::Int4 | DataType::Int2,
    i16: DataType::Int16,
    i32: DataType::Int32,
    i64: DataType::Int64 | DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. },
    u8: DataType::UInt8 | DataType::UInt4 | DataType::UInt2,
    u16: DataType::UInt16,
    u32: DataType::UInt32,
    u64: DataType::UInt64,
    f16: DataType::Float16,
    bf16: DataType::BFloat16,
    f32: DataType::Float32,
    f64: DataType::Float64,
    Complex<f32>: DataType::Complex64 | DataType::ComplexFloat32,
    Complex<f64>: DataType::Complex128 | DataType::ComplexFloat64,
}

impl Element for bool {
    fn matches(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Bool)
    }

    fn write(array: &Array, selection: &Selection, elements: &[Self]) -> Result<(), ArrayError> {
        array.write(selection, bytemuck::cast_slice(elements))
    }

    /// Any byte but 0 is true, as in NumPy.
    fn from_data(data: ArrayData) -> Result<Vec<Self>, ArrayError> {
        match data.elements {
            Elements::Fixed(bytes) => Ok(bytes.into_iter().map(|byte| byte != 0).collect()),
            Elements::Variable(_) => Err(ArrayError::parameter("elements of variable length")),
        }
    }

    fn to_owned_data(elements: &[Self]) -> Elements {
        to_bytes(elements)
    }
}

macro_rules! variable {
    ($type:ty, $data_type:pat, $convert:expr) => {
        impl Element for $type {
            fn matches(data_type: &DataType) -> bool {
                matches!(data_type, $data_type)
            }

            fn write(array: &Array, selection: &Selection, elements: &[Self]) -> Result<(), ArrayError> {
                let elements: VariableData = elements.iter().collect();
                array.write_variable(selection, &elements)
            }

            fn from_data(data: ArrayData) -> Result<Vec<Self>, ArrayError> {
                match data.elements {
                    Elements::Variable(elements) => elements.iter().map($convert).collect(),
                    Elements::Fixed(_) => Err(ArrayError::parameter("elements of fixed length")),
                }
            }

            fn to_owned_data(elements: &[Self]) -> Elements {
                Elements::Variable(elements.iter().collect())
            }
        }
    };
}

variable!(String, DataType::String, |bytes: &[u8]| String::from_utf8(bytes.to_vec())
    .map_err(|_| ArrayError::parameter("an element of string is not UTF-8")));
variable!(Vec<u8>, DataType::Bytes, |bytes: &[u8]| Ok(bytes.to_vec()));
