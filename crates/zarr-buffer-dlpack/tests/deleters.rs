//! When, how often and on which thread tensors are given back.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use zarr_buffer_api::{Buffer, BufferError, DeviceId, DeviceKind, Event, EventState, Memory, Queue, QueueId, Region, enqueue};
use zarr_buffer_dlpack::abi::{DLDataType, DLDevice, DLManagedTensor, DLTensor, code};
use zarr_buffer_dlpack::{Access, DlpackError, Export, Managed, Reaper};
use zarr_meta::DataType;

/// A queue whose work is done when a test says so, or waits for it.
#[derive(Debug)]
struct ManualQueue {
    id: QueueId,
    done: Arc<AtomicBool>,
}

#[derive(Debug)]
struct ManualEvent(QueueId, Arc<AtomicBool>);

impl EventState for ManualEvent {
    fn queue(&self) -> QueueId {
        self.0
    }
    fn is_complete(&self) -> Result<bool, BufferError> {
        Ok(self.1.load(Ordering::SeqCst))
    }
    fn wait(&self) -> Result<(), BufferError> {
        self.1.store(true, Ordering::SeqCst);
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ManualQueue {
    fn new() -> Self {
        Self { id: QueueId::unique(), done: Arc::default() }
    }
}

impl Queue for ManualQueue {
    fn id(&self) -> QueueId {
        self.id
    }
    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }
    fn record(&self) -> Result<Event, BufferError> {
        Ok(Event::new(ManualEvent(self.id, Arc::clone(&self.done))))
    }
    fn wait_for(&self, _: &Event) -> Result<(), BufferError> {
        Ok(())
    }
    fn copy(&self, _: &Buffer, _: &Buffer) -> Result<(), BufferError> {
        Ok(())
    }
    fn copy_region(&self, _: &Region, _: &Region) -> Result<(), BufferError> {
        Ok(())
    }
    fn fill_region(&self, _: &Region, _: &[u8]) -> Result<(), BufferError> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A tensor by hand, as a C library makes one; its context is a counter and the thread that freed it.
struct Tensor {
    shape: Vec<i64>,
    bytes: Vec<u8>,
    freed: Arc<Freed>,
}

#[derive(Default)]
struct Freed {
    count: AtomicUsize,
    thread: Mutex<Option<ThreadId>>,
}

impl Freed {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

unsafe extern "C" fn free(this: *mut DLManagedTensor) {
    // SAFETY: called once, with the structure that `tensor` made.
    let managed = unsafe { Box::from_raw(this) };
    // SAFETY: the context that `tensor` made.
    let context = unsafe { Box::from_raw(managed.manager_ctx.cast::<Tensor>()) };
    context.freed.count.fetch_add(1, Ordering::SeqCst);
    *context.freed.thread.lock().unwrap() = Some(std::thread::current().id());
}

fn tensor(device: DLDevice) -> (*mut DLManagedTensor, Arc<Freed>) {
    let freed = Arc::new(Freed::default());
    let mut context = Box::new(Tensor { shape: vec![2, 3], bytes: (0..6).collect(), freed: Arc::clone(&freed) });
    let (shape, data) = (context.shape.as_mut_ptr(), context.bytes.as_mut_ptr().cast::<c_void>());
    let context = Box::into_raw(context);
    let dtype = DLDataType { code: code::UINT, bits: 8, lanes: 1 };
    let dl_tensor = DLTensor { data, device, ndim: 2, dtype, shape, strides: std::ptr::null_mut(), byte_offset: 0 };
    (Box::into_raw(Box::new(DLManagedTensor { dl_tensor, manager_ctx: context.cast(), deleter: Some(free) })), freed)
}

const HOST: DLDevice = DLDevice { device_type: 1, device_id: 0 };

fn take(raw: *mut DLManagedTensor) -> Managed<DLManagedTensor> {
    // SAFETY: a tensor by `tensor`, which nobody else has.
    unsafe { Managed::from_raw(raw) }.unwrap()
}

#[test]
fn without_strides_elements_are_in_c_order() {
    let (raw, freed) = tensor(HOST);
    // SAFETY: the bytes are the tensor's alone.
    let imported = unsafe { take(raw).import(Access::ReadWrite) }.unwrap();
    assert_eq!(imported.region.layout.strides, [3, 1]);
    assert!(imported.region.layout.is_contiguous());
    imported.region.buffer.host_write().unwrap()[5] = 9;
    assert_eq!(&*imported.region.buffer.host_read().unwrap(), [0, 1, 2, 3, 4, 9]);
    drop(imported);
    assert_eq!(freed.count(), 1);
}

#[test]
fn the_deleter_runs_behind_the_work_and_once() {
    let (raw, freed) = tensor(HOST);
    // SAFETY: the bytes are the tensor's alone.
    let buffer = unsafe { take(raw).import(Access::ReadWrite) }.unwrap().region.buffer;
    let queue = ManualQueue::new();
    enqueue(&queue, &[&buffer], &[], || Ok::<_, BufferError>(())).unwrap();
    drop(buffer);
    assert!(queue.done.load(Ordering::SeqCst), "dropping waited");
    assert_eq!(freed.count(), 1);
}

#[test]
fn a_reaper_gives_back_later_without_waiting() {
    let reaper = Reaper::new();
    let (raw, freed) = tensor(HOST);
    // SAFETY: the bytes are the tensor's alone.
    let buffer = unsafe { take(raw).import_with(Access::ReadWrite, &reaper) }.unwrap().region.buffer;
    let queue = ManualQueue::new();
    enqueue(&queue, &[], &[&buffer], || Ok::<_, BufferError>(())).unwrap();
    drop(buffer);
    assert_eq!((freed.count(), reaper.sweep()), (0, 1));
    queue.done.store(true, Ordering::SeqCst);
    let swept = reaper.clone();
    let sweeper = std::thread::spawn(move || (swept.sweep(), std::thread::current().id())).join().unwrap();
    assert_eq!((sweeper.0, freed.count()), (0, 1));
    assert_eq!(*freed.thread.lock().unwrap(), Some(sweeper.1));

    let (raw, idle) = tensor(HOST);
    // SAFETY: the bytes are the tensor's alone.
    drop(unsafe { take(raw).import_with(Access::ReadWrite, &reaper) }.unwrap());
    assert_eq!(idle.count(), 1, "without work there is nothing to wait for");
}

#[test]
fn the_last_handle_of_a_reaper_waits() {
    let (raw, freed) = tensor(HOST);
    let queue = ManualQueue::new();
    let reaper = Reaper::new();
    // SAFETY: the bytes are the tensor's alone.
    let buffer = unsafe { take(raw).import_with(Access::ReadWrite, &reaper) }.unwrap().region.buffer;
    enqueue(&queue, &[], &[&buffer], || Ok::<_, BufferError>(())).unwrap();
    drop(reaper);
    drop(buffer);
    assert!(queue.done.load(Ordering::SeqCst));
    assert_eq!(freed.count(), 1);
}

#[test]
fn refused_tensors_are_given_back() {
    for (device_type, device_id) in [(99, 0), (2, -1), (8, 0), (4, 0)] {
        let (raw, freed) = tensor(DLDevice { device_type, device_id });
        // SAFETY: the bytes are the tensor's alone.
        let refused = unsafe { take(raw).import(Access::ReadWrite) };
        assert!(matches!(refused, Err(DlpackError::Device { .. })), "{refused:?}");
        assert_eq!(freed.count(), 1);
    }
    let (raw, freed) = tensor(HOST);
    // SAFETY: a live structure of ours alone.
    unsafe { (*raw).dl_tensor.ndim = -1 };
    // SAFETY: the bytes are the tensor's alone.
    assert!(matches!(unsafe { take(raw).import(Access::ReadWrite) }, Err(DlpackError::Layout(_))));
    assert_eq!(freed.count(), 1);
    let (raw, freed) = tensor(HOST);
    // SAFETY: a live structure of ours alone.
    unsafe { (*raw).dl_tensor.shape = std::ptr::null_mut() };
    // SAFETY: the bytes are the tensor's alone.
    assert!(matches!(unsafe { take(raw).import(Access::ReadWrite) }, Err(DlpackError::Null { .. })));
    assert_eq!(freed.count(), 1);
    // SAFETY: null is allowed.
    assert!(matches!(unsafe { Managed::<DLManagedTensor>::from_raw(std::ptr::null_mut()) }, Err(DlpackError::Null { .. })));
}

#[test]
fn a_tensor_without_a_deleter_is_left_alone() {
    let (raw, freed) = tensor(HOST);
    // SAFETY: a live structure of ours alone.
    unsafe { (*raw).deleter = None };
    // SAFETY: the bytes are the tensor's alone.
    drop(unsafe { take(raw).import(Access::ReadWrite) }.unwrap());
    assert_eq!(freed.count(), 0);
    // SAFETY: nobody gave it back.
    unsafe { free(raw) };
}

#[test]
fn device_memory_is_not_for_the_host() {
    let (raw, freed) = tensor(DLDevice { device_type: 2, device_id: 1 });
    // SAFETY: nobody touches the bytes.
    let buffer = unsafe { take(raw).import(Access::ReadWrite) }.unwrap().region.buffer;
    assert_eq!(buffer.device(), DeviceId::new(DeviceKind::Cuda, 1));
    assert!(!buffer.is_host_visible());
    drop(buffer);
    assert_eq!(freed.count(), 1);
    let (raw, _) = tensor(DLDevice { device_type: 3, device_id: 0 });
    // SAFETY: the bytes are the tensor's alone.
    let pinned = unsafe { take(raw).import(Access::ReadWrite) }.unwrap().region.buffer;
    assert!(pinned.is_host_visible());
}

/// Memory of a device without a host pointer, and its end.
#[derive(Debug)]
struct Opaque {
    device: DeviceId,
    freed: Arc<AtomicUsize>,
}

impl Drop for Opaque {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: nobody dereferences the address.
unsafe impl Memory for Opaque {
    fn device(&self) -> DeviceId {
        self.device
    }
    fn len(&self) -> usize {
        1 << 20
    }
    fn address(&self) -> u64 {
        0x7000_0000_0000
    }
    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn exported_device_memory_lives_until_its_deleter_runs_elsewhere() {
    let freed = Arc::new(AtomicUsize::new(0));
    let buffer = Buffer::new(Opaque { device: DeviceId::new(DeviceKind::Cuda, 3), freed: Arc::clone(&freed) });
    let export = || Export::new(&buffer.slice(512..(1 << 20)).unwrap(), &[2, 2], None, &DataType::Float64).unwrap();
    assert!(matches!(export().on_host(), Err(DlpackError::Device { .. })));
    let tensor = export();
    let tensor = tensor.into_versioned().unwrap();
    assert_eq!(tensor.tensor().data.addr(), 0x7000_0000_0200);
    assert_eq!(tensor.tensor().device, DLDevice { device_type: 2, device_id: 3 });
    drop(buffer);
    assert_eq!(freed.load(Ordering::SeqCst), 0);
    std::thread::spawn(move || drop(tensor)).join().unwrap();
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn devices_of_handles_are_refused() {
    let freed = Arc::new(AtomicUsize::new(0));
    let buffer = Buffer::new(Opaque { device: DeviceId::new(DeviceKind::Metal, 0), freed });
    assert!(matches!(Export::new(&buffer, &[1], None, &DataType::Int8), Err(DlpackError::Device { .. })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let buffer = Buffer::from_vec(vec![0; 24]);
    let export = |shape: &[u64], strides: Option<&[i64]>| Export::new(&buffer, shape, strides, &DataType::Float32);
    assert!(export(&[6], None).is_ok());
    assert!(export(&[7], None).is_err());
    assert!(export(&[2, 2], Some(&[4, 1])).is_ok());
    assert!(export(&[2, 2], Some(&[5, 1])).is_err());
    assert!(export(&[2], Some(&[-1])).is_err());
    assert!(export(&[2], Some(&[1, 1])).is_err());
    assert!(export(&[2, 2], Some(&[i64::MAX, 1])).is_err());
    assert!(export(&[u64::MAX, 2], None).is_err());
    assert!(export(&[1 << 62, 1 << 62], None).is_err());
}

#[test]
fn the_consumers_work_can_be_noted_when_it_gives_back() {
    let buffer = Buffer::from_vec(vec![0; 8]);
    let queue = Arc::new(ManualQueue::new());
    let noted = Arc::clone(&queue);
    let tensor = Export::new(&buffer, &[8], None, &DataType::Int8).unwrap();
    let hook = move |buffer: &Buffer| enqueue(&*noted, &[], &[buffer], || Ok::<_, BufferError>(())).unwrap();
    let tensor = tensor.on_release(hook).into_legacy().unwrap();
    assert!(buffer.is_idle().unwrap());
    std::thread::spawn(move || drop(tensor)).join().unwrap();
    assert!(!buffer.is_idle().unwrap());
    drop(buffer);
    assert!(queue.done.load(Ordering::SeqCst), "host memory waits for the consumer's work");
}
