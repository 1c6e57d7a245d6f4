//! Producers whose tensors are not what they say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use zarr_buffer_api::{Buffer, DeviceKind};
use zarr_buffer_dlpack::abi::{
    DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, FLAG_IS_COPIED, FLAG_IS_SUBBYTE_TYPE_PADDED, FLAG_READ_ONLY, code,
};
use zarr_buffer_dlpack::{Export, Request, Synchronize, device_from_raw};
use zarr_conformance::dlpack::{ProducerUnderTest, Wanted};
use zarr_meta::DataType;

use super::{Memory, There};
use crate::idle::Wrong;

type Streams = fn((i32, i32), Option<i64>) -> Result<Synchronize, String>;

/// What a producer does besides what is right.
pub(crate) struct Methods {
    /// Changes what is asked for.
    wanted: fn(&mut Wanted),
    /// Changes the tensor of either structure.
    tensor: fn(&mut DLTensor, &Wanted),
    versioned: fn(&mut DLManagedTensorVersioned),
    legacy: fn(&mut DLManagedTensor),
    /// Bytes in front of the elements.
    front: usize,
    /// Whether the bytes are in host memory, whatever the tensor names.
    on_host: bool,
    /// Whether tensors of the same bytes share them, and giving one back clears them.
    shares: bool,
    release: fn(&AtomicUsize, thread::ThreadId),
    streams: Streams,
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            wanted: |_| {},
            tensor: |_, _| {},
            versioned: |_| {},
            legacy: |_| {},
            front: 0,
            on_host: false,
            shares: false,
            release: |live, _| {
                live.fetch_sub(1, Ordering::SeqCst);
            },
            streams,
        }
    }
}

fn streams((device_type, device_id): (i32, i32), stream: Option<i64>) -> Result<Synchronize, String> {
    let device = device_from_raw(DLDevice { device_type, device_id }).map_err(|error| error.to_string())?;
    let request = Request { stream, ..Request::default() };
    request.answer(device, device.kind == DeviceKind::Cpu).map(|answer| answer.synchronize).map_err(|error| error.to_string())
}

struct State {
    there: There,
    live: AtomicUsize,
    shared: Mutex<Option<(Vec<u8>, Buffer)>>,
}

fn export(methods: &Methods, state: &Arc<State>, wanted: &Wanted) -> Result<(Export, Wanted), String> {
    let mut wanted = wanted.clone();
    (methods.wanted)(&mut wanted);
    let mut shared = state.shared.lock().unwrap();
    let buffer = match &*shared {
        Some((bytes, buffer)) if methods.shares && *bytes == wanted.bytes => buffer.clone(),
        _ if methods.on_host => Buffer::from_vec(wanted.bytes.clone()),
        _ => state.there.buffer(&[&vec![0; methods.front], &wanted.bytes[..]].concat()),
    };
    *shared = Some((wanted.bytes.clone(), buffer.clone()));
    let elements = buffer.slice(methods.front..buffer.len()).unwrap();
    let shape: Vec<u64> = wanted.shape.iter().map(|&len| len as u64).collect();
    let export = Export::new(&elements, &shape, wanted.strides.as_deref(), &wanted.data_type).map_err(|error| error.to_string())?;
    state.live.fetch_add(1, Ordering::SeqCst);
    let (state, maker, shares, release) = (Arc::clone(state), thread::current().id(), methods.shares, methods.release);
    let export = export.read_only(wanted.read_only).copied(wanted.copied).on_release(move |buffer| {
        release(&state.live, maker);
        if shares {
            // One at a time: several threads may give tensors of one buffer back.
            let mut shared = state.shared.lock().unwrap();
            state.there.clear(buffer);
            shared.take();
        }
    });
    Ok((export, wanted))
}

pub(crate) fn producer(memory: Memory, replace: fn(&mut Methods)) -> ProducerUnderTest {
    let mut methods = Methods::default();
    replace(&mut methods);
    let there = There::new(memory);
    let memory = there.memory();
    let state = State { there, live: AtomicUsize::new(0), shared: Mutex::new(None) };
    let (methods, state) = (Arc::new(methods), Arc::new(state));
    let (first, second) = ((Arc::clone(&methods), Arc::clone(&state)), (Arc::clone(&methods), Arc::clone(&state)));
    let versioned = move |wanted: &Wanted| {
        let (export, wanted) = export(&first.0, &first.1, wanted)?;
        let pointer = export.into_versioned().unwrap().into_raw();
        // SAFETY: a managed tensor that nobody else has yet.
        let tensor = unsafe { &mut *pointer };
        if first.0.on_host {
            tensor.dl_tensor.device = first.1.there.memory().device();
        }
        (first.0.tensor)(&mut tensor.dl_tensor, &wanted);
        (first.0.versioned)(tensor);
        Ok(pointer)
    };
    let legacy = move |wanted: &Wanted| {
        let (export, wanted) = export(&second.0, &second.1, &Wanted { read_only: false, copied: false, ..wanted.clone() })?;
        let pointer = export.into_legacy().unwrap().into_raw();
        // SAFETY: a managed tensor that nobody else has yet.
        let tensor = unsafe { &mut *pointer };
        if second.0.on_host {
            tensor.dl_tensor.device = second.1.there.memory().device();
        }
        (second.0.tensor)(&mut tensor.dl_tensor, &wanted);
        (second.0.legacy)(tensor);
        Ok(pointer)
    };
    let live = move || state.live.load(Ordering::SeqCst);
    // SAFETY: exports are managed tensors and the caller's; what is wrong about them leads to no byte that is not there.
    unsafe { ProducerUnderTest::new("producer", versioned, legacy, live) }.in_memory(memory).with_streams(methods.streams)
}

type Row = (&'static str, &'static str, fn(&mut Methods));

fn wrong(law: &'static str, what: &'static str, replace: fn(&mut Methods)) -> Row {
    (law, what, replace)
}

const CUDA: i32 = 2;

pub(crate) fn table(memory: Memory) -> Vec<Wrong> {
    let rows = tensors().into_iter().chain(who_waits());
    let mut table: Vec<Wrong> = rows.map(|(law, what, replace)| Wrong::new(what, &[law], move || producer(memory, replace))).collect();
    if let Memory::Opaque = memory {
        let laws = [
            "dlpack-producer/contents",
            "dlpack-producer/strided",
            "dlpack-producer/scalar",
            "dlpack-producer/apart",
            "dlpack-producer/legacy",
        ];
        table.push(Wrong::new("the bytes are a copy on the host", &laws, || producer(Memory::Opaque, |producer| producer.on_host = true)));
    }
    table
}

fn tensors() -> Vec<Row> {
    vec![
        wrong("dlpack-producer/shape", "axes of one element are left out", |producer| {
            producer.wanted = |wanted| wanted.shape.retain(|&len| len != 1);
        }),
        wrong("dlpack-producer/contents", "of three axes, elements begin at the second", |producer| {
            producer.wanted = |wanted| {
                if wanted.shape.len() == 3 && !wanted.bytes.is_empty() {
                    wanted.bytes.rotate_left(4);
                }
            };
        }),
        wrong("dlpack-producer/strided", "strides are ignored", |producer| producer.wanted = |wanted| wanted.strides = None),
        wrong("dlpack-producer/strides", "C order has no strides", |producer| {
            producer.tensor = |tensor, wanted| {
                if wanted.strides.is_none() {
                    tensor.strides = std::ptr::null_mut();
                }
            };
        }),
        wrong("dlpack-producer/scalar", "a scalar is a list of one", |producer| {
            producer.wanted = |wanted| {
                if wanted.shape.is_empty() {
                    wanted.shape.push(1);
                }
            };
        }),
        wrong("dlpack-producer/zero-size", "a tensor without elements has one axis", |producer| {
            producer.wanted = |wanted| {
                if wanted.shape.contains(&0) {
                    wanted.shape = vec![0];
                }
            };
        }),
        wrong("dlpack-producer/data-types", "booleans are bytes", |producer| {
            producer.tensor = |tensor, wanted| {
                if wanted.data_type == DataType::Bool {
                    tensor.dtype.code = code::UINT;
                }
            };
        }),
        wrong("dlpack-producer/alignment", "elements are behind a header of 3 bytes", |producer| producer.front = 3),
        wrong("dlpack-producer/device", "the device is one further", |producer| producer.tensor = |tensor, _| tensor.device.device_id += 1),
        wrong("dlpack-producer/version", "the version is that of the library", |producer| {
            producer.versioned = |tensor| (tensor.version.major, tensor.version.minor) = (1, 26);
        }),
        wrong("dlpack-producer/read-only", "read-only is not flagged", |producer| {
            producer.versioned = |tensor| tensor.flags &= !FLAG_READ_ONLY;
        }),
        wrong("dlpack-producer/copied", "everything is flagged as a copy", |producer| {
            producer.versioned = |tensor| tensor.flags |= FLAG_IS_COPIED;
        }),
        wrong("dlpack-producer/other-flags", "whole bytes are flagged as padded", |producer| {
            producer.versioned = |tensor| tensor.flags |= FLAG_IS_SUBBYTE_TYPE_PADDED;
        }),
        wrong("dlpack-producer/gives-back", "giving one back gives all back", |producer| {
            producer.release = |live, _| live.store(0, Ordering::SeqCst);
        }),
        wrong("dlpack-producer/any-thread", "what other threads give back is kept", |producer| {
            producer.release = |live, maker| {
                live.fetch_sub(usize::from(thread::current().id() == maker), Ordering::SeqCst);
            };
        }),
        wrong("dlpack-producer/apart", "tensors of the same bytes share them, and go together", |producer| producer.shares = true),
        wrong("dlpack-producer/legacy", "legacy tensors are unsigned", |producer| {
            producer.legacy = |tensor| tensor.dl_tensor.dtype.code = code::UINT;
        }),
    ]
}

fn who_waits() -> Vec<Row> {
    vec![
        wrong("dlpack-producer/stream/default", "without a stream, the per-thread default stream waits", |producer| {
            producer.streams = |device, stream| match (device.0, stream) {
                (CUDA, None) => Ok(Synchronize::Stream(2)),
                _ => streams(device, stream),
            };
        }),
        wrong("dlpack-producer/stream/none", "the host waits for -1", |producer| {
            producer.streams = |device, stream| if stream == Some(-1) { Ok(Synchronize::Host) } else { streams(device, stream) };
        }),
        wrong("dlpack-producer/stream/sentinels", "both default streams are one", |producer| {
            producer.streams = |device, stream| match (device.0, stream) {
                (CUDA, Some(2)) => Ok(Synchronize::Stream(1)),
                _ => streams(device, stream),
            };
        }),
        wrong("dlpack-producer/stream/handle", "streams have 32 bits", |producer| {
            producer.streams = |device, stream| match streams(device, stream)? {
                Synchronize::Stream(stream) => Ok(Synchronize::Stream(stream & 0xFFFF_FFFF)),
                other => Ok(other),
            };
        }),
        wrong("dlpack-producer/stream/ambiguous", "0 is the legacy default stream", |producer| {
            producer.streams = |device, stream| match (device.0, stream) {
                (CUDA, Some(0)) => Ok(Synchronize::Stream(1)),
                _ => streams(device, stream),
            };
        }),
        wrong("dlpack-producer/stream/negative", "any negative number is -1", |producer| {
            producer.streams = |device, stream| streams(device, stream.map(|stream| stream.max(-1)));
        }),
        wrong("dlpack-producer/stream/host", "streams do not matter on the host", |producer| {
            producer.streams = |device, stream| streams(device, stream.filter(|_| device.0 != 1));
        }),
    ]
}
