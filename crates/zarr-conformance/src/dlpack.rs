//! The laws of DLPack producers and consumers, over pointers to its C structures.
//!
//! A producer makes tensors of what it is asked for ([`Wanted`]), legacy and versioned, and knows how many of them were not given back yet:
//! [`ProducerUnderTest`]. A consumer takes tensors over, and says what it has seen ([`Seen`]): [`ConsumerUnderTest`]. The laws hold them to
//! [DLPack's C API] and to the rules of `__dlpack__` in the [array API standard]. Tensors lie in host memory, or in that of whatever device the
//! subject names with how to read it: [`TensorMemory`]. The rules of streams are checked on numbers.
//!
//! [DLPack's C API]: https://dmlc.github.io/dlpack/latest/c_api.html
//! [array API standard]: https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html

mod consumer;
mod foreign;
mod memory;
mod ours;
mod producer;
mod streams;
mod taken;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use zarr_buffer_dlpack::Synchronize;
use zarr_buffer_dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, code};
use zarr_meta::DataType;

use crate::suite::{Subject, Suite};
pub use consumer::cases as consumer_cases;
pub use memory::{DeviceMemory, HostMemory, Placed, TensorMemory};
pub use ours::{exports, exports_from, exports_on, imports, imports_on};
pub use producer::cases as producer_cases;

/// A tensor that a producer is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The type of the elements.
    pub data_type: DataType,
    /// Elements along each axis.
    pub shape: Vec<i64>,
    /// Elements from one to the next along each axis; C order if `None`.
    pub strides: Option<Vec<i64>>,
    /// The memory that the elements lie in, the first at its start, in native byte order.
    pub bytes: Vec<u8>,
    /// Whether the consumer must not write.
    pub read_only: bool,
    /// Whether the tensor is a copy that only the consumer has.
    pub copied: bool,
}

/// What makes DLPack tensors.
///
/// # Safety
/// A pointer that is given is to a managed tensor of its kind, as DLPack says, which the caller then owns, and whose deleter may be called once on any thread.
#[expect(unsafe_code, reason = "the contract is about pointers")]
pub unsafe trait ProducerSubject: Subject {
    /// Hands a tensor out as the versioned structure.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn versioned(&self, wanted: &Wanted) -> Result<*mut DLManagedTensorVersioned, String>;

    /// Hands a tensor out as the structure before version 1.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn legacy(&self, wanted: &Wanted) -> Result<*mut DLManagedTensor, String>;

    /// How many tensors were handed out and not given back yet.
    fn live(&self) -> usize;

    /// The memory that its tensors lie in.
    fn memory(&self) -> Arc<dyn TensorMemory> {
        Arc::new(HostMemory::default())
    }

    /// Who waits for data on a device, given by kind and number, when a consumer passes `stream`; `None` if the producer says nothing of streams.
    /// Within that, an error is a refusal.
    fn stream(&self, device: (i32, i32), stream: Option<i64>) -> Option<Result<Synchronize, String>> {
        let _ = (device, stream);
        None
    }
}

/// What takes DLPack tensors over.
#[expect(unsafe_code, reason = "the contract is about pointers")]
pub trait ConsumerSubject: Subject {
    /// Takes a tensor over, and looks at it. `write`: whether it is to be written, too.
    ///
    /// # Errors
    /// Why it is refused, in words; it is then given back.
    ///
    /// # Safety
    /// The pointer is to a managed tensor that the caller owns.
    unsafe fn versioned(&self, tensor: *mut DLManagedTensorVersioned, write: bool) -> Result<Seen, String>;

    /// Takes a tensor over, and looks at it.
    ///
    /// # Errors
    /// As [`ConsumerSubject::versioned`].
    ///
    /// # Safety
    /// As [`ConsumerSubject::versioned`].
    unsafe fn legacy(&self, tensor: *mut DLManagedTensor) -> Result<Seen, String>;

    /// The memory that the tensors lie in which it is given.
    fn memory(&self) -> Arc<dyn TensorMemory> {
        Arc::new(HostMemory::default())
    }
}

/// What a consumer has seen of a tensor.
pub struct Seen {
    /// The type of the elements.
    pub data_type: DataType,
    /// Elements along each axis.
    pub shape: Vec<i64>,
    /// The elements in C order.
    pub elements: Vec<u8>,
    /// Whether the producer forbids writing.
    pub read_only: bool,
    /// Whether the producer made a copy.
    pub copied: bool,
    /// Keeps the tensor; dropping it gives the tensor back, on any thread.
    pub hold: Box<dyn Any + Send>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("data_type", &self.data_type).field("shape", &self.shape).finish_non_exhaustive()
    }
}

type Produce<T> = Box<dyn Fn(&Wanted) -> Result<*mut T, String> + Send + Sync>;
type Streams = Box<dyn Fn((i32, i32), Option<i64>) -> Result<Synchronize, String> + Send + Sync>;

/// A producer as it comes, with what it does not support.
pub struct ProducerUnderTest {
    name: String,
    versioned: Produce<DLManagedTensorVersioned>,
    legacy: Produce<DLManagedTensor>,
    live: Box<dyn Fn() -> usize + Send + Sync>,
    memory: Arc<dyn TensorMemory>,
    streams: Option<Streams>,
    unsupported: Vec<String>,
}

/// What starts the ids of cases about streams.
const STREAMS: &str = "dlpack-producer/stream/";

impl ProducerUnderTest {
    /// A producer in host memory that claims to support everything but streams.
    ///
    /// # Safety
    /// The functions do as [`ProducerSubject`] says.
    #[expect(unsafe_code, reason = "the contract is about pointers")]
    pub unsafe fn new(
        name: impl Into<String>,
        versioned: impl Fn(&Wanted) -> Result<*mut DLManagedTensorVersioned, String> + Send + Sync + 'static,
        legacy: impl Fn(&Wanted) -> Result<*mut DLManagedTensor, String> + Send + Sync + 'static,
        live: impl Fn() -> usize + Send + Sync + 'static,
    ) -> Self {
        let (versioned, legacy, live) = (Box::new(versioned), Box::new(legacy), Box::new(live));
        let memory = Arc::new(HostMemory::default());
        Self { name: name.into(), versioned, legacy, live, memory, streams: None, unsupported: vec![STREAMS.to_owned()] }
    }

    /// Says where its tensors lie, and how their bytes are read there.
    #[must_use]
    pub fn in_memory(mut self, memory: Arc<dyn TensorMemory>) -> Self {
        self.memory = memory;
        self
    }

    /// Says who waits, as [`ProducerSubject::stream`] does.
    #[must_use]
    pub fn with_streams(
        mut self,
        streams: impl Fn((i32, i32), Option<i64>) -> Result<Synchronize, String> + Send + Sync + 'static,
    ) -> Self {
        self.streams = Some(Box::new(streams));
        self.unsupported.retain(|start| start != STREAMS);
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl fmt::Debug for ProducerUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerUnderTest").field("name", &self.name).field("unsupported", &self.unsupported).finish_non_exhaustive()
    }
}

impl Subject for ProducerUnderTest {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

// SAFETY: whoever made it promised so.
#[expect(unsafe_code, reason = "the contract is about pointers")]
unsafe impl ProducerSubject for ProducerUnderTest {
    fn versioned(&self, wanted: &Wanted) -> Result<*mut DLManagedTensorVersioned, String> {
        (self.versioned)(wanted)
    }

    fn legacy(&self, wanted: &Wanted) -> Result<*mut DLManagedTensor, String> {
        (self.legacy)(wanted)
    }

    fn live(&self) -> usize {
        (self.live)()
    }

    fn memory(&self) -> Arc<dyn TensorMemory> {
        Arc::clone(&self.memory)
    }

    fn stream(&self, device: (i32, i32), stream: Option<i64>) -> Option<Result<Synchronize, String>> {
        self.streams.as_ref().map(|streams| streams(device, stream))
    }
}

impl From<ProducerUnderTest> for Suite {
    fn from(subject: ProducerUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn ProducerSubject>, producer_cases())
    }
}

type Consume<T> = Box<dyn Fn(*mut T, bool) -> Result<Seen, String> + Send + Sync>;

/// A consumer as it comes, with what it does not support.
pub struct ConsumerUnderTest {
    name: String,
    versioned: Consume<DLManagedTensorVersioned>,
    legacy: Consume<DLManagedTensor>,
    memory: Arc<dyn TensorMemory>,
    unsupported: Vec<String>,
}

impl ConsumerUnderTest {
    /// A consumer of host memory that claims to support everything. The functions are called with pointers to managed tensors, which are theirs from then on, and with whether
    /// the tensor is to be written.
    pub fn new(
        name: impl Into<String>,
        versioned: impl Fn(*mut DLManagedTensorVersioned, bool) -> Result<Seen, String> + Send + Sync + 'static,
        legacy: impl Fn(*mut DLManagedTensor, bool) -> Result<Seen, String> + Send + Sync + 'static,
    ) -> Self {
        let memory = Arc::new(HostMemory::default());
        Self { name: name.into(), versioned: Box::new(versioned), legacy: Box::new(legacy), memory, unsupported: Vec::new() }
    }

    /// Says where the tensors are to lie that it is given.
    #[must_use]
    pub fn in_memory(mut self, memory: Arc<dyn TensorMemory>) -> Self {
        self.memory = memory;
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl fmt::Debug for ConsumerUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerUnderTest").field("name", &self.name).field("unsupported", &self.unsupported).finish_non_exhaustive()
    }
}

impl Subject for ConsumerUnderTest {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

#[expect(unsafe_code, reason = "the contract is about pointers")]
impl ConsumerSubject for ConsumerUnderTest {
    unsafe fn versioned(&self, tensor: *mut DLManagedTensorVersioned, write: bool) -> Result<Seen, String> {
        (self.versioned)(tensor, write)
    }

    unsafe fn legacy(&self, tensor: *mut DLManagedTensor) -> Result<Seen, String> {
        (self.legacy)(tensor, false)
    }

    fn memory(&self) -> Arc<dyn TensorMemory> {
        Arc::clone(&self.memory)
    }
}

impl From<ConsumerUnderTest> for Suite {
    fn from(subject: ConsumerUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn ConsumerSubject>, consumer_cases())
    }
}

/// Data types, and the code and bits that `dlpack.h` has for them.
const TYPES: [(DataType, u8, u8); 15] = [
    (DataType::Bool, code::BOOL, 8),
    (DataType::Int8, code::INT, 8),
    (DataType::Int16, code::INT, 16),
    (DataType::Int32, code::INT, 32),
    (DataType::Int64, code::INT, 64),
    (DataType::UInt8, code::UINT, 8),
    (DataType::UInt16, code::UINT, 16),
    (DataType::UInt32, code::UINT, 32),
    (DataType::UInt64, code::UINT, 64),
    (DataType::Float16, code::FLOAT, 16),
    (DataType::Float32, code::FLOAT, 32),
    (DataType::Float64, code::FLOAT, 64),
    (DataType::BFloat16, code::BFLOAT, 16),
    (DataType::Complex64, code::COMPLEX, 64),
    (DataType::Complex128, code::COMPLEX, 128),
];

/// Bytes of which each half of a kilobyte is another; valid as elements of any type, booleans too, if `small`.
fn pattern(len: usize, small: bool) -> Vec<u8> {
    (0..len).map(|at| if small { (at % 3 == 1) as u8 } else { (at as u8).wrapping_mul(37).wrapping_add((at >> 8) as u8) }).collect()
}

/// Places of elements, in elements from the first, in C order.
fn places(shape: &[i64], strides: &[i64]) -> Vec<i64> {
    shape.iter().zip(strides).fold(vec![0], |places, (&len, &stride)| {
        places.iter().flat_map(|&place| (0..len).map(move |index| place + index * stride)).collect()
    })
}

/// The strides of C order, in elements.
fn c_order(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}
