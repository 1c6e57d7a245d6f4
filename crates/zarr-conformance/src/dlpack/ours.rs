//! The producer and the consumer of `zarr-buffer-dlpack`, as subjects.
#![expect(unsafe_code, reason = "the contract is about pointers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceKind, HostDevice, Layout, Region};
use zarr_buffer_dlpack::abi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use zarr_buffer_dlpack::{Access, Export, Managed, ManagedTensor, Request, Synchronize, device_from_raw};

use super::{ConsumerUnderTest, DeviceMemory, HostMemory, ProducerUnderTest, Seen, TensorMemory, Wanted};

/// What `zarr-buffer-dlpack` exports of host memory, and its answers to streams.
pub fn exports() -> ProducerUnderTest {
    exports_from(Arc::new(HostMemory::default()), |bytes| Ok(Buffer::from_vec(bytes.to_vec())))
}

/// What `zarr-buffer-dlpack` exports of a device's memory, and its answers to streams.
///
/// # Errors
/// As [`Device::create_queue`].
pub fn exports_on(device: Arc<dyn Device>) -> Result<ProducerUnderTest, BufferError> {
    let memory = Arc::new(DeviceMemory::new(device)?);
    Ok(exports_from(Arc::clone(&memory) as Arc<dyn TensorMemory>, move |bytes| memory.upload(bytes)))
}

/// What `zarr-buffer-dlpack` exports of buffers in `memory`. `buffer` makes one of some bytes, which are there when it returns.
pub fn exports_from(
    memory: Arc<dyn TensorMemory>,
    buffer: impl Fn(&[u8]) -> Result<Buffer, BufferError> + Send + Sync + 'static,
) -> ProducerUnderTest {
    let live = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&live);
    let export = Arc::new(move |wanted: &Wanted| export(&buffer(&wanted.bytes).map_err(words)?, wanted, &live));
    let again = Arc::clone(&export);
    let versioned = move |wanted: &Wanted| Ok(export(wanted)?.into_versioned().map_err(words)?.into_raw());
    let legacy = move |wanted: &Wanted| Ok(again(wanted)?.into_legacy().map_err(words)?.into_raw());
    // SAFETY: exports are managed tensors, and the caller's.
    let producer = unsafe { ProducerUnderTest::new("zarr-buffer-dlpack", versioned, legacy, move || counted.load(Ordering::SeqCst)) };
    producer.in_memory(memory).with_streams(streams)
}

/// What `zarr-buffer-dlpack` makes of tensors of others in host memory.
pub fn imports() -> ConsumerUnderTest {
    let (versioned, legacy) = (import_on_host::<DLManagedTensorVersioned>, import_on_host::<DLManagedTensor>);
    ConsumerUnderTest::new("zarr-buffer-dlpack", versioned, legacy)
}

/// What `zarr-buffer-dlpack` makes of tensors of others in a device's memory: the device's own queue copies what was imported.
///
/// # Errors
/// As [`Device::create_queue`].
pub fn imports_on(device: Arc<dyn Device>) -> Result<ConsumerUnderTest, BufferError> {
    let memory = Arc::new(DeviceMemory::new(Arc::clone(&device))?);
    let elements = Arc::new({
        let memory = Arc::clone(&memory);
        move |from: &Region, layout: Layout| {
            let packed = device.allocate(layout.span()?.len(), &**memory.queue())?;
            memory.queue().copy_region(from, &Region::new(packed.clone(), layout)?)?;
            memory.download(&packed)
        }
    });
    let again = Arc::clone(&elements);
    let versioned = move |pointer: *mut DLManagedTensorVersioned, write| import(pointer, write, &*elements);
    let legacy = move |pointer: *mut DLManagedTensor, write| import(pointer, write, &*again);
    Ok(ConsumerUnderTest::new("zarr-buffer-dlpack", versioned, legacy).in_memory(memory))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn export(buffer: &Buffer, wanted: &Wanted, live: &Arc<AtomicUsize>) -> Result<Export, String> {
    let shape: Vec<u64> = wanted.shape.iter().map(|&len| len as u64).collect();
    let export = Export::new(buffer, &shape, wanted.strides.as_deref(), &wanted.data_type).map_err(words)?;
    live.fetch_add(1, Ordering::SeqCst);
    let live = Arc::clone(live);
    Ok(export.read_only(wanted.read_only).copied(wanted.copied).on_release(move |_| {
        live.fetch_sub(1, Ordering::SeqCst);
    }))
}

fn streams((device_type, device_id): (i32, i32), stream: Option<i64>) -> Result<Synchronize, String> {
    let device = device_from_raw(DLDevice { device_type, device_id }).map_err(words)?;
    let request = Request { stream, ..Request::default() };
    request.answer(device, device.kind == DeviceKind::Cpu).map(|answer| answer.synchronize).map_err(words)
}

fn import_on_host<T: ManagedTensor>(pointer: *mut T, write: bool) -> Result<Seen, String> {
    import(pointer, write, &|from, layout| {
        let elements = Buffer::from_vec(vec![0; layout.span()?.len()]);
        HostDevice.create_queue()?.copy_region(from, &Region::new(elements.clone(), layout)?)?;
        Ok(elements.host_read()?.to_vec())
    })
}

/// Copies a box to the host, with the layout that is given.
type Elements<'a> = &'a dyn Fn(&Region, Layout) -> Result<Vec<u8>, BufferError>;

/// Takes a tensor in.
fn import<T: ManagedTensor>(pointer: *mut T, write: bool, elements: Elements<'_>) -> Result<Seen, String> {
    let access = if write { Access::ReadWrite } else { Access::ReadOnly };
    // SAFETY: a managed tensor that is ours from here on.
    let managed = unsafe { Managed::from_raw(pointer) }.map_err(words)?;
    // SAFETY: nobody else uses the bytes.
    let imported = unsafe { managed.import(access) }.map_err(words)?;
    let from = &imported.region.layout;
    let layout = Layout::contiguous(&from.shape, from.item_size).map_err(words)?;
    Ok(Seen {
        data_type: imported.data_type.clone(),
        shape: from.shape.iter().map(|&len| len as i64).collect(),
        elements: elements(&imported.region, layout).map_err(words)?,
        read_only: imported.read_only,
        copied: imported.copied,
        hold: Box::new(imported),
    })
}
