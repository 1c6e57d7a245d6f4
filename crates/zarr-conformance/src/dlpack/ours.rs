//! The producer and the consumer of `zarr-buffer-dlpack`, as subjects.
#![expect(unsafe_code, reason = "the contract is about pointers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zarr_buffer_api::{Buffer, Device, DeviceKind, HostDevice, Layout, Region};
use zarr_buffer_dlpack::abi::DLDevice;
use zarr_buffer_dlpack::{Access, Export, Managed, ManagedTensor, Request, Synchronize, device_from_raw};

use super::{ConsumerUnderTest, ProducerUnderTest, Seen, Wanted};

/// What `zarr-buffer-dlpack` exports, and its answers to streams.
pub fn exports() -> ProducerUnderTest {
    let live = Arc::new(AtomicUsize::new(0));
    let (first, second, counted) = (Arc::clone(&live), Arc::clone(&live), live);
    let versioned = move |wanted: &Wanted| Ok(export(wanted, &first)?.into_versioned().map_err(words)?.into_raw());
    let legacy = move |wanted: &Wanted| Ok(export(wanted, &second)?.into_legacy().map_err(words)?.into_raw());
    // SAFETY: exports are managed tensors, and the caller's.
    let producer = unsafe { ProducerUnderTest::new("zarr-buffer-dlpack", versioned, legacy, move || counted.load(Ordering::SeqCst)) };
    producer.with_streams(streams)
}

/// What `zarr-buffer-dlpack` makes of tensors of others.
pub fn imports() -> ConsumerUnderTest {
    ConsumerUnderTest::new("zarr-buffer-dlpack", import, import)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn export(wanted: &Wanted, live: &Arc<AtomicUsize>) -> Result<Export, String> {
    let buffer = Buffer::from_vec(wanted.bytes.clone());
    let shape: Vec<u64> = wanted.shape.iter().map(|&len| len as u64).collect();
    let export = Export::new(&buffer, &shape, wanted.strides.as_deref(), &wanted.data_type).map_err(words)?;
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

fn import<T: ManagedTensor>(pointer: *mut T, write: bool) -> Result<Seen, String> {
    let access = if write { Access::ReadWrite } else { Access::ReadOnly };
    // SAFETY: a managed tensor that is ours from here on.
    let managed = unsafe { Managed::from_raw(pointer) }.map_err(words)?;
    // SAFETY: nobody else uses the bytes.
    let imported = unsafe { managed.import(access) }.map_err(words)?;
    let shape = &imported.region.layout.shape;
    let layout = Layout::contiguous(shape, imported.region.layout.item_size).map_err(words)?;
    let queue = HostDevice.create_queue().map_err(words)?;
    let elements = Buffer::from_vec(vec![0; layout.span().map_err(words)?.len()]);
    queue.copy_region(&imported.region, &Region::new(elements.clone(), layout).map_err(words)?).map_err(words)?;
    let (shape, elements) = (shape.iter().map(|&len| len as i64).collect(), elements.host_read().map_err(words)?.to_vec());
    Ok(Seen {
        data_type: imported.data_type.clone(),
        shape,
        elements,
        read_only: imported.read_only,
        copied: imported.copied,
        hold: Box::new(imported),
    })
}
