//! Toy devices that are wrong, and devices that say what they cannot do.

use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind};
use zarr_conformance::device::{DeviceUnderTest, check};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyFault, ToyOptions, ViolationKind};

use super::over_the_host;

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
    let fails = |subject: DeviceUnderTest, id: &str| check(&subject).failures().any(|(failed, _)| failed == id);
    let subject = over_the_host(|device| {
        device.fill_region = |_, _, _, _| Err(BufferError::new(BufferErrorKind::Unsupported, "no fill"));
    });
    assert!(fails(subject.clone(), "device/region/fill"));
    assert!(!fails(subject.clone().without("device/region/fill"), "device/region/fill"));
    // Declared, and yet it works: the declaration is wrong.
    assert!(fails(subject.without("device/copy/round-trip"), "device/copy/round-trip"));
}
