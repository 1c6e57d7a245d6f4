//! Holds devices to the laws: the host, and a toy device whose memory the host cannot touch. Yours is checked the same way.

use std::sync::Arc;

use zarr_buffer_api::{Device, HostDevice};
use zarr_conformance::device::{DeviceUnderTest, check};
use zarr_conformance::toy::OpaqueDevice;

fn main() {
    let devices: [Arc<dyn Device>; 2] = [Arc::new(HostDevice), OpaqueDevice::new(0)];
    for device in devices {
        println!("{}\n{}", device.name(), check(&DeviceUnderTest::new(device)));
    }
}
