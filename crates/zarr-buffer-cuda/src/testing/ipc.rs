use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferErrorKind, Device, Layout, Queue, Region};

use super::{Test, download, ensure, pattern, same, upload, words};
use crate::ipc::{IpcDescriptor, IpcTensor, export, open};
use crate::{CudaDevice, devices};

pub(super) const TESTS: &[(&str, Test)] = &[("ipc/refusals", refusals), ("ipc/reuse", reuse), ("ipc/another_process", another_process)];

/// Set for a process that opens what another exports.
const CHILD: &str = "ZARR_BUFFER_CUDA_IPC_CHILD";
const SHAPE: [usize; 2] = [300, 500];
/// What the child writes to every element that it read well.
const ANSWER: [u8; 4] = [4, 3, 2, 1];

/// Ends the process if it was started to open another's memory, once that is done. To be called first of all.
pub fn answer_as_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let code = match child() {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("the process that opens: {message}");
            1
        }
    };
    std::process::exit(code);
}

fn child() -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let descriptor = IpcDescriptor::from_json(&text).map_err(words)?;
    let found = devices().map_err(words)?.into_iter().find(|info| info.uuid == descriptor.device_uuid);
    let device = CudaDevice::new(found.ok_or("the device is not here")?.ordinal).map_err(words)?;
    let queue = device.queue().map_err(words)?;
    let (buffer, tensor) = open(&descriptor, &queue).map_err(words)?;
    ensure!(tensor.dtype == "float32" && !tensor.read_only, "another tensor: {tensor:?}");
    let packed = device.allocate(SHAPE.iter().product::<usize>() * 4, &*queue).map_err(words)?;
    let dense = Layout::contiguous(&SHAPE, 4).map_err(words)?;
    let there = Region::new(buffer.clone(), tensor.layout).map_err(words)?;
    queue.copy_region(&there, &Region::new(packed.clone(), dense).map_err(words)?).map_err(words)?;
    same("in the other process", &download(&device, &queue, &packed)?, &pattern(packed.len(), 21))?;
    queue.fill_region(&there, &ANSWER).map_err(words)?;
    // Opened twice, it is the same memory.
    let (again, _) = open(&descriptor, &queue).map_err(words)?;
    ensure!(again.address() == buffer.address(), "opened again, it lies elsewhere");
    drop((again, there));
    buffer.wait().map_err(words)?;
    drop(buffer);
    queue.synchronize().map_err(words)
}

fn tensor(layout: Layout) -> IpcTensor {
    IpcTensor { dtype: "float32".into(), layout, read_only: false }
}

fn exportable(device: &CudaDevice, len: usize) -> Result<Buffer, String> {
    device.allocate_exportable(len).map_err(words)
}

fn refusals(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let layout = Layout::contiguous(&[4], 4).map_err(words)?;
    let pooled = export(&upload(device, &queue, &[0; 16])?, &tensor(layout.clone()), &queue).map(drop);
    ensure!(pooled.is_err_and(|error| error.kind == BufferErrorKind::Unsupported), "memory of the pool was exported");
    let small = export(&exportable(device, 15)?, &tensor(layout.clone()), &queue).map(drop);
    ensure!(small.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "elements beyond the end were exported");
    let good = export(&exportable(device, 16)?, &tensor(layout), &queue).map_err(words)?;
    let descriptor = IpcDescriptor::from_json(&good.descriptor().to_json()).map_err(words)?;
    ensure!(&descriptor == good.descriptor(), "JSON changed the descriptor");
    ensure!(descriptor.allocation_size == 2 << 20 && descriptor.device_uuid == device.info().uuid, "{descriptor:?}");
    // In the same process the driver refuses, and that is an error and no more.
    ensure!(open(&descriptor, &queue).is_err(), "a process opened what it exported");
    let mut elsewhere = descriptor;
    elsewhere.device_uuid = "GPU-00000000-0000-0000-0000-000000000000".into();
    let refused = open(&elsewhere, &queue).map(drop);
    ensure!(refused.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "memory of another device was opened");
    same("afterwards", &download(device, &queue, &upload(device, &queue, &[1, 2, 3])?)?, &[1, 2, 3])
}

fn reuse(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let first = exportable(device, 3 << 20)?;
    ensure!(first.address().is_multiple_of(256) && first.len() == 3 << 20, "{first:?}");
    let address = first.address();
    drop(first);
    for round in 0..20 {
        let buffer = exportable(device, 3 << 20)?;
        ensure!(round > 0 || buffer.address() == address, "idle memory was not reused");
        let bytes = pattern(3 << 20, round);
        queue.upload(&bytes, &buffer).map_err(words)?;
        let copy = device.allocate(bytes.len(), &*queue).map_err(words)?;
        queue.copy(&buffer, &copy).map_err(words)?;
        drop(buffer);
        same("through memory for export", &download(device, &queue, &copy)?, &bytes)?;
    }
    Ok(())
}

fn another_process(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    // Rows with a gap behind them, somewhere in a larger allocation.
    let row = SHAPE[1] * 4 + 48;
    let layout = Layout { offset: 16, shape: SHAPE.to_vec(), strides: vec![row as isize, 4], item_size: 4 };
    let len = 16 + SHAPE[0] * row;
    let allocation = exportable(device, len + 5 * 512)?;
    let canary = pattern(allocation.len(), 3);
    queue.upload(&canary, &allocation).map_err(words)?;
    let buffer = allocation.slice(512..512 + len).map_err(words)?;
    let values = pattern(SHAPE.iter().product::<usize>() * 4, 21);
    let packed = upload(device, &queue, &values)?;
    let dense = Layout::contiguous(&SHAPE, 4).map_err(words)?;
    let target = Region::new(buffer.clone(), layout.clone()).map_err(words)?;
    queue.copy_region(&Region::new(packed, dense).map_err(words)?, &target).map_err(words)?;
    let export = export(&buffer, &tensor(layout.clone()), &queue).map_err(words)?;
    run_child(&export.descriptor().to_json())?;
    drop(export);
    let mut expected = canary;
    for line in 0..SHAPE[0] {
        for column in 0..SHAPE[1] {
            let at = 512 + layout.offset + line * row + column * 4;
            expected[at..at + 4].copy_from_slice(&ANSWER);
        }
    }
    same("what the other process wrote", &download(device, &queue, &allocation)?, &expected)
}

fn run_child(descriptor: &str) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("no second process: {error}"))?;
    // Dropping the pipe ends the child's input.
    let sent = child.stdin.take().map(|mut pipe| pipe.write_all(descriptor.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    sent.transpose().map_err(|error| error.to_string()).map(drop)
}
