//! The laws of devices: allocation, memory limits, copies, boxes, queues, events, hazards.
//!
//! ```
//! use std::sync::Arc;
//! zarr_conformance::device::assert_conforms(Arc::new(zarr_buffer_api::HostDevice));
//! ```

mod copies;
mod hazards;
mod memory;
mod queues;
mod regions;

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, Queue};

use crate::suite::{Broken, Case, Report, Subject, Suite, Trial, ensure_same};

/// A device to be checked.
pub trait DeviceSubject: Subject {
    /// The device. Its memory may be limited, but not below 16 MiB.
    fn device(&self) -> &dyn Device;

    /// The most bytes of memory that the device gives at a time, if it was made with such a limit.
    fn memory_limit(&self) -> Option<u64> {
        None
    }
}

/// A device as it comes, with what it does not support.
#[derive(Debug, Clone)]
pub struct DeviceUnderTest {
    device: Arc<dyn Device>,
    memory_limit: Option<u64>,
    unsupported: Vec<String>,
}

impl DeviceUnderTest {
    /// A device that claims to support everything but a limit of its memory.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self { device, memory_limit: None, unsupported: vec![BUDGET.to_owned()] }
    }

    /// Says that the device was made to give at most so many bytes of memory at a time, which must be 16 MiB or more.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self.unsupported.retain(|start| start != BUDGET);
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

/// What starts the ids of cases for devices with a memory limit.
const BUDGET: &str = "device/budget/";

impl Subject for DeviceUnderTest {
    fn name(&self) -> String {
        format!("{} ({})", self.device.name(), self.device.id())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl DeviceSubject for DeviceUnderTest {
    fn device(&self) -> &dyn Device {
        &*self.device
    }

    fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }
}

impl From<DeviceUnderTest> for Suite {
    fn from(subject: DeviceUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn DeviceSubject>, cases())
    }
}

/// All cases for devices.
pub fn cases() -> Vec<Case<dyn DeviceSubject>> {
    let mut cases = memory::cases();
    cases.extend(copies::cases());
    cases.extend(regions::cases());
    cases.extend(queues::cases());
    cases.extend(hazards::cases());
    cases
}

/// Runs all cases on a device.
pub fn check(subject: &(dyn DeviceSubject + 'static)) -> Report {
    Report::of(subject, &cases())
}

/// Panics unless the device holds all laws.
#[track_caller]
pub fn assert_conforms(device: Arc<dyn Device>) {
    check(&DeviceUnderTest::new(device)).assert_conforms();
}

type DeviceCase = Case<dyn DeviceSubject>;

fn case(id: &str, says: &'static str, check: fn(&dyn Device, &Trial) -> Result<(), Broken>) -> DeviceCase {
    Case::new(format!("device/{id}"), says, move |subject: &(dyn DeviceSubject + 'static), trial| check(subject.device(), trial))
}

/// Bytes that differ from their neighbours and from other seeds'.
fn pattern(len: usize, seed: u8) -> Vec<u8> {
    const ROW: usize = 256;
    // Rows are cut out of two rounds of multiples of 31: in builds without optimizations, too, they are copied at once.
    let rounds: Vec<u8> = (0..2 * ROW).map(|i| (i as u8).wrapping_mul(31)).collect();
    let mut bytes = Vec::with_capacity(len);
    for row in 0..len.div_ceil(ROW) {
        let start = usize::from((row as u8).wrapping_add(seed));
        bytes.extend_from_slice(&rounds[start..start + ROW.min(len - row * ROW)]);
    }
    bytes
}

/// Device memory that holds `bytes` once the queue gets there.
fn upload(device: &dyn Device, queue: &dyn Queue, bytes: &[u8]) -> Result<Buffer, Broken> {
    let buffer = device.allocate(bytes.len(), queue)?;
    queue.copy(&staged(device, bytes)?, &buffer)?;
    Ok(buffer)
}

/// Staging memory that holds `bytes`.
fn staged(device: &dyn Device, bytes: &[u8]) -> Result<Buffer, Broken> {
    let staging = device.allocate_staging(bytes.len())?;
    staging.host_write()?.copy_from_slice(bytes);
    Ok(staging)
}

/// What a buffer holds once all work on it is done.
fn download(device: &dyn Device, queue: &dyn Queue, buffer: &Buffer) -> Result<Vec<u8>, Broken> {
    let back = device.allocate_staging(buffer.len())?;
    queue.copy(buffer, &back)?;
    back.wait()?;
    let bytes = back.host_read()?.to_vec();
    Ok(bytes)
}

/// Fails unless a buffer comes to hold `expected`.
fn ensure_holds(device: &dyn Device, queue: &dyn Queue, what: &str, buffer: &Buffer, expected: &[u8]) -> Result<(), Broken> {
    ensure_same(what, &download(device, queue, buffer)?, expected)
}
