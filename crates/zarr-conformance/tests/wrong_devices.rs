//! Deliberately wrong devices: the laws find each of them.

use std::any::Any;
use std::sync::{Arc, Mutex};

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device, DeviceId, Event, HostDevice, Layout, Queue, QueueId, Region};
use zarr_conformance::device::{DeviceUnderTest, assert_conforms, check};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyFault, ToyOptions, ViolationKind};

/// What a [`WrongDevice`] does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing: the wrapper itself is right.
    None,
    Misaligned,
    OneByteTooMany,
    StagingStaysBorrowed,
    SaysNotUnified,
    TooLargeIsParameter,
    QueueOfOtherDevice,
    CopiesUnequalLengths,
    CopyFlipsLastByte,
    CopyLosesLastByte,
    CopiesOnNextCall,
    RegionIgnoresDirection,
    RegionIgnoresSourceOffset,
    RegionAcceptsOtherShapes,
    RegionRoundsElements,
    FillOnlyFirstElement,
    FillWholeSpan,
    FillAcceptsHalfAnElement,
    /// Not wrong: memory may be part of a larger allocation.
    PartOfSlab,
}

#[derive(Debug)]
struct WrongDevice(Fault);

#[derive(Debug)]
struct WrongQueue {
    fault: Fault,
    inner: Arc<dyn Queue>,
    late: Mutex<Option<(Buffer, Buffer)>>,
}

impl WrongQueue {
    fn catch_up(&self) -> Result<(), BufferError> {
        match self.late.lock().unwrap().take() {
            Some((source, destination)) => self.inner.copy(&source, &destination),
            None => Ok(()),
        }
    }
}

impl Device for WrongDevice {
    fn id(&self) -> DeviceId {
        DeviceId::CPU
    }
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }
    fn is_unified(&self) -> bool {
        self.0 != Fault::SaysNotUnified
    }
    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(Arc::new(WrongQueue { fault: self.0, inner: HostDevice.create_queue()?, late: Mutex::default() }))
    }
    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        match self.0 {
            Fault::Misaligned if len < usize::MAX / 4 => HostDevice.allocate(len + 16, queue)?.slice(16..len + 16),
            Fault::OneByteTooMany if len < usize::MAX / 4 => HostDevice.allocate(len + 1, queue),
            Fault::TooLargeIsParameter => {
                HostDevice.allocate(len, queue).map_err(|_| BufferError::parameter("as if the caller could know"))
            }
            Fault::PartOfSlab if len < 1 << 16 => HostDevice.allocate(1 << 16, queue)?.slice(256..256 + len),
            _ => HostDevice.allocate(len, queue),
        }
    }
    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        let staging = HostDevice.allocate_staging(len)?;
        if self.0 == Fault::StagingStaysBorrowed && len > 0 {
            // The host can never write it.
            std::mem::forget(staging.clone().host_read());
        }
        Ok(staging)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn changed(region: &Region, change: impl FnOnce(&mut Layout)) -> Region {
    let mut region = region.clone();
    change(&mut region.layout);
    region
}

impl Queue for WrongQueue {
    fn id(&self) -> QueueId {
        self.inner.id()
    }
    fn device(&self) -> DeviceId {
        match self.fault {
            Fault::QueueOfOtherDevice => DeviceId::new(zarr_buffer_api::DeviceKind::ExtDev, 3),
            _ => self.inner.device(),
        }
    }
    fn record(&self) -> Result<Event, BufferError> {
        self.inner.record()
    }
    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        self.inner.wait_for(event)
    }
    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        self.catch_up()?;
        let len = source.len().min(destination.len());
        match self.fault {
            Fault::CopiesUnequalLengths => self.inner.copy(&source.slice(0..len)?, &destination.slice(0..len)?),
            Fault::CopyLosesLastByte if source.len() == destination.len() && len > 0 => {
                self.inner.copy(&source.slice(0..len - 1)?, &destination.slice(0..len - 1)?)
            }
            Fault::CopyFlipsLastByte if source.len() == destination.len() && destination.offset() > 0 && len > 0 => {
                self.inner.copy(source, destination)?;
                destination.host_write()?[len - 1] ^= 1;
                Ok(())
            }
            Fault::CopiesOnNextCall if source.len() == destination.len() && !source.shares_allocation(destination) => {
                *self.late.lock().unwrap() = Some((source.clone(), destination.clone()));
                Ok(())
            }
            _ => self.inner.copy(source, destination),
        }
    }
    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        self.catch_up()?;
        let straight = |layout: &mut Layout| {
            layout.offset = layout.span().map_or(layout.offset, |span| span.start);
            layout.strides.iter_mut().for_each(|stride| *stride = stride.abs());
        };
        match self.fault {
            Fault::RegionIgnoresDirection => self.inner.copy_region(&changed(source, straight), destination),
            Fault::RegionIgnoresSourceOffset => self.inner.copy_region(&changed(source, |layout| layout.offset = 0), destination),
            Fault::RegionAcceptsOtherShapes if source.layout.shape != destination.layout.shape => Ok(()),
            Fault::RegionRoundsElements if source.layout.item_size == 3 => Ok(()),
            _ => self.inner.copy_region(source, destination),
        }
    }
    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        self.catch_up()?;
        match self.fault {
            Fault::FillOnlyFirstElement => self
                .inner
                .fill_region(&changed(destination, |layout| layout.shape.iter_mut().for_each(|len| *len = (*len).min(1))), element),
            Fault::FillWholeSpan if element.len() == 1 && !destination.layout.is_empty() => {
                let span = destination.layout.span()?;
                let all = Layout { offset: span.start, shape: vec![span.len()], strides: vec![1], item_size: 1 };
                self.inner.fill_region(&changed(destination, |layout| *layout = all), element)
            }
            Fault::FillAcceptsHalfAnElement if element.len() * 2 == destination.layout.item_size => Ok(()),
            _ => self.inner.fill_region(destination, element),
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn the_wrapper_itself_conforms() {
    assert_conforms(Arc::new(WrongDevice(Fault::None)));
    assert_conforms(Arc::new(WrongDevice(Fault::PartOfSlab)));
}

#[test]
fn wrong_devices_are_found() {
    let wrong = [
        (Fault::Misaligned, "device/allocate/extent"),
        (Fault::OneByteTooMany, "device/allocate/extent"),
        (Fault::StagingStaysBorrowed, "device/allocate/staging"),
        (Fault::SaysNotUnified, "device/allocate/visibility"),
        (Fault::TooLargeIsParameter, "device/allocate/too-large"),
        (Fault::QueueOfOtherDevice, "device/identity"),
        (Fault::CopiesUnequalLengths, "device/copy/lengths"),
        (Fault::CopyFlipsLastByte, "device/copy/exact"),
        (Fault::CopyLosesLastByte, "device/copy/round-trip"),
        (Fault::CopiesOnNextCall, "device/hazard/read-early"),
        (Fault::RegionIgnoresDirection, "device/region/copy"),
        (Fault::RegionIgnoresSourceOffset, "device/region/copy"),
        (Fault::RegionAcceptsOtherShapes, "device/region/refuses"),
        (Fault::RegionRoundsElements, "device/region/copy"),
        (Fault::FillOnlyFirstElement, "device/region/fill"),
        (Fault::FillWholeSpan, "device/region/fill"),
        (Fault::FillAcceptsHalfAnElement, "device/region/refuses"),
    ];
    for (fault, id) in wrong {
        let report = check(&DeviceUnderTest::new(Arc::new(WrongDevice(fault))));
        assert!(report.failures().any(|(failed, _)| failed == id), "{fault:?} is not found by {id}: {report}");
    }
}

fn wrong_toy(fault: ToyFault, schedule: Schedule) -> Arc<OpaqueDevice> {
    OpaqueDevice::with_options(0, ToyOptions { fault: Some(fault), schedule, ..ToyOptions::default() })
}

#[test]
fn wrong_toys_are_found() {
    let device = wrong_toy(ToyFault::CopiesShort, Schedule::Soon);
    assert!(check(&DeviceUnderTest::new(device)).failures().any(|(id, _)| id == "device/copy/round-trip"));

    // What the laws can only see by luck, the toy sees for certain.
    let device = wrong_toy(ToyFault::IgnoresWaits, Schedule::Delayed { seed: 3 });
    let report = check(&DeviceUnderTest::new(device.clone()));
    assert!(!report.conforms());
    assert!(device.violations().iter().any(|violation| violation.kind == ViolationKind::Race));

    let device = wrong_toy(ToyFault::ForgetsEvents, Schedule::Delayed { seed: 3 });
    let _ = check(&DeviceUnderTest::new(device.clone()));
    for kind in [ViolationKind::Race, ViolationKind::FreedInUse] {
        assert!(device.violations().iter().any(|violation| violation.kind == kind), "{kind}");
    }
}

#[test]
fn what_is_not_supported_must_be_declared() {
    /// Cannot fill.
    #[derive(Debug)]
    struct NoFill(Arc<dyn Queue>);
    impl Queue for NoFill {
        fn id(&self) -> QueueId {
            self.0.id()
        }
        fn device(&self) -> DeviceId {
            self.0.device()
        }
        fn record(&self) -> Result<Event, BufferError> {
            self.0.record()
        }
        fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
            self.0.wait_for(event)
        }
        fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
            self.0.copy(source, destination)
        }
        fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
            self.0.copy_region(source, destination)
        }
        fn fill_region(&self, _: &Region, _: &[u8]) -> Result<(), BufferError> {
            Err(BufferError::new(BufferErrorKind::Unsupported, "no fill"))
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
    #[derive(Debug)]
    struct NoFillDevice;
    impl Device for NoFillDevice {
        fn id(&self) -> DeviceId {
            HostDevice.id()
        }
        fn name(&self) -> String {
            "no fill".into()
        }
        fn is_unified(&self) -> bool {
            true
        }
        fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
            Ok(Arc::new(NoFill(HostDevice.create_queue()?)))
        }
        fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
            HostDevice.allocate(len, queue)
        }
        fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
            HostDevice.allocate_staging(len)
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
    let fails = |subject: DeviceUnderTest, id: &str| check(&subject).failures().any(|(failed, _)| failed == id);
    let subject = DeviceUnderTest::new(Arc::new(NoFillDevice));
    assert!(fails(subject.clone(), "device/region/fill"));
    assert!(!fails(subject.clone().without("device/region/fill"), "device/region/fill"));
    // Declared, and yet it works: the declaration is wrong.
    assert!(fails(subject.without("device/copy/round-trip"), "device/copy/round-trip"));
}
