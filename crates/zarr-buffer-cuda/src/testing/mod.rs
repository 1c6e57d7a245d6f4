//! Tests of a real device, as functions, so that a program which is carried to a machine with one can run them. Not part of the interface.

mod copies;
mod ipc;
mod memory;
mod queues;
mod regions;

use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Device, Event, Queue};

pub use ipc::answer_as_child;

use crate::{CudaDevice, CudaQueue};

/// A test.
#[derive(Debug, Clone, Copy)]
pub struct GpuTest {
    /// Its name.
    pub name: &'static str,
    /// Says what went wrong.
    pub run: fn(&Arc<CudaDevice>) -> Result<(), String>,
}

/// All tests. Programs that run them call [`answer_as_child`] first of all.
pub fn tests() -> Vec<GpuTest> {
    let all: [&[(&str, Test)]; 5] = [memory::TESTS, copies::TESTS, regions::TESTS, queues::TESTS, ipc::TESTS];
    all.concat().into_iter().map(|(name, run)| GpuTest { name, run }).collect()
}

type Test = fn(&Arc<CudaDevice>) -> Result<(), String>;

/// Ends a test with a message unless something holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// The words of an error.
fn words(error: BufferError) -> String {
    format!("{:?}: {error}", error.kind)
}

/// Bytes that differ from their neighbours and from other seeds'.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(31) ^ (i >> 8).wrapping_mul(7)).wrapping_add(seed.wrapping_mul(101)) as u8).collect()
}

/// Fails unless the bytes are the same; says where they first differ.
fn same(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    ensure!(found.len() == expected.len(), "{what}: {} bytes, expected {}", found.len(), expected.len());
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: byte {at} is {:?}, expected {:?}", found.get(at), expected.get(at))),
    }
}

/// Device memory that holds `bytes` once the queue gets there.
fn upload(device: &CudaDevice, queue: &CudaQueue, bytes: &[u8]) -> Result<Buffer, String> {
    let buffer = device.allocate(bytes.len(), queue).map_err(words)?;
    queue.upload(bytes, &buffer).map_err(words)?;
    Ok(buffer)
}

/// What a buffer holds once all work on it is done.
fn download(device: &CudaDevice, queue: &CudaQueue, buffer: &Buffer) -> Result<Vec<u8>, String> {
    let back = device.allocate_staging(buffer.len()).map_err(words)?;
    queue.copy(buffer, &back).map_err(words)?;
    back.wait().map_err(words)?;
    let read = back.host_read().map_err(words)?;
    Ok(read.to_vec())
}

/// Keeps a queue busy for tens of milliseconds, with few commands: the driver takes a thousand or so, and then waits. Gives the event behind that.
fn busy(device: &CudaDevice, queue: &CudaQueue) -> Result<Event, String> {
    let buffer = device.allocate(1 << 30, queue).map_err(words)?;
    for round in 0..100 {
        queue.fill_bytes(&buffer, round as u8).map_err(words)?;
    }
    queue.record().map_err(words)
}

/// Numbers by chance, the same ones for the same seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let value = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ value >> 31
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}
