//! Exports and imports keep the laws of DLPack.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zarr_buffer_api::{Buffer, DeviceId, HostDevice, Layout, Queue, Region};
use zarr_buffer_api::{Device, DeviceKind};
use zarr_buffer_dlpack::{Access, Export, Managed, ManagedTensor, Request, Synchronize, device_from_raw};
use zarr_conformance::assert_conforms;
use zarr_conformance::dlpack::{ConsumerUnderTest, ProducerUnderTest, Seen, Wanted};

fn export(wanted: &Wanted, live: &Arc<AtomicUsize>) -> Result<Export, String> {
    let buffer = Buffer::from_vec(wanted.bytes.clone());
    let shape: Vec<u64> = wanted.shape.iter().map(|&len| len as u64).collect();
    let export = Export::new(&buffer, &shape, wanted.strides.as_deref(), &wanted.data_type).map_err(|error| error.to_string())?;
    live.fetch_add(1, Ordering::SeqCst);
    let live = Arc::clone(live);
    Ok(export.read_only(wanted.read_only).copied(wanted.copied).on_release(move |_| {
        live.fetch_sub(1, Ordering::SeqCst);
    }))
}

fn streams((device_type, device_id): (i32, i32), stream: Option<i64>) -> Result<Synchronize, String> {
    let device = device_from_raw(zarr_buffer_dlpack::abi::DLDevice { device_type, device_id }).map_err(|error| error.to_string())?;
    let request = Request { stream, ..Request::default() };
    request.answer(device, device.kind == DeviceKind::Cpu).map(|answer| answer.synchronize).map_err(|error| error.to_string())
}

fn import<T: ManagedTensor>(pointer: *mut T, write: bool) -> Result<Seen, String> {
    let access = if write { Access::ReadWrite } else { Access::ReadOnly };
    // SAFETY: a managed tensor that is ours from here on.
    let managed = unsafe { Managed::from_raw(pointer) }.map_err(|error| error.to_string())?;
    // SAFETY: nobody else uses the bytes.
    let imported = unsafe { managed.import(access) }.map_err(|error| error.to_string())?;
    let shape = &imported.region.layout.shape;
    let layout = Layout::contiguous(shape, imported.region.layout.item_size).unwrap();
    let queue = HostDevice.create_queue().unwrap();
    let elements = Buffer::from_vec(vec![0; layout.span().unwrap().len()]);
    let to = Region::new(elements.clone(), layout).unwrap();
    let shape = shape.iter().map(|&len| len as i64).collect();
    copy(&*queue, &imported.region, &to);
    let elements = elements.host_read().unwrap().to_vec();
    Ok(Seen {
        data_type: imported.data_type.clone(),
        shape,
        elements,
        read_only: imported.read_only,
        copied: imported.copied,
        hold: Box::new(imported),
    })
}

fn copy(queue: &dyn Queue, from: &Region, to: &Region) {
    assert!(from.buffer.device() == DeviceId::CPU);
    queue.copy_region(from, to).unwrap();
}

#[test]
fn exports_are_right() {
    let live = Arc::new(AtomicUsize::new(0));
    let (first, second, counted) = (Arc::clone(&live), Arc::clone(&live), live);
    let versioned = move |wanted: &Wanted| Ok(export(wanted, &first)?.into_versioned().map_err(|error| error.to_string())?.into_raw());
    let legacy = move |wanted: &Wanted| Ok(export(wanted, &second)?.into_legacy().map_err(|error| error.to_string())?.into_raw());
    // SAFETY: exports are managed tensors, and the caller's.
    let producer = unsafe { ProducerUnderTest::new("exports", versioned, legacy, move || counted.load(Ordering::SeqCst)) };
    assert_conforms(producer.with_streams(streams));
}

#[test]
fn imports_are_right() {
    assert_conforms(ConsumerUnderTest::new("imports", import, import));
}
