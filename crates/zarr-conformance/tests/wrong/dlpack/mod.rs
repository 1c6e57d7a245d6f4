//! A right producer and a right consumer of DLPack tensors, of which wrong ones change what goes in or comes out. All of them exist in host memory, and in that
//! of a device that the host cannot dereference.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, HostDevice, Layout, Region};
use zarr_conformance::dlpack::{DeviceMemory, HostMemory, TensorMemory};
use zarr_conformance::toy::OpaqueDevice;

pub(crate) mod consumers;
pub(crate) mod producers;

/// Where tensors lie.
#[derive(Clone, Copy)]
pub(crate) enum Memory {
    Host,
    Opaque,
}

/// A place for tensors, made for one subject.
#[derive(Clone)]
struct There(Option<(Arc<OpaqueDevice>, DeviceMemory)>);

impl There {
    fn new(memory: Memory) -> Self {
        match memory {
            Memory::Host => Self(None),
            Memory::Opaque => {
                let device = OpaqueDevice::new(3);
                Self(Some((Arc::clone(&device), DeviceMemory::new(device).unwrap())))
            }
        }
    }

    fn memory(&self) -> Arc<dyn TensorMemory> {
        match &self.0 {
            None => Arc::new(HostMemory::default()),
            Some((_, memory)) => Arc::new(memory.clone()),
        }
    }

    fn buffer(&self, bytes: &[u8]) -> Buffer {
        match &self.0 {
            None => Buffer::from_vec(bytes.to_vec()),
            Some((_, memory)) => memory.upload(bytes).unwrap(),
        }
    }

    fn clear(&self, buffer: &Buffer) {
        let zeros = Buffer::from_vec(vec![0; buffer.len()]);
        match &self.0 {
            None => HostDevice.create_queue().unwrap().copy(&zeros, buffer).unwrap(),
            Some((_, memory)) => memory.queue().copy(&zeros, buffer).unwrap(),
        }
        buffer.wait().unwrap();
    }

    /// Elements in C order.
    fn elements(&self, from: &Region) -> Vec<u8> {
        let layout = Layout::contiguous(&from.layout.shape, from.layout.item_size).unwrap();
        let len = layout.span().unwrap().len();
        match &self.0 {
            None => {
                let packed = Buffer::from_vec(vec![0; len]);
                HostDevice.create_queue().unwrap().copy_region(from, &Region::new(packed.clone(), layout).unwrap()).unwrap();
                packed.host_read().unwrap().to_vec()
            }
            Some((device, memory)) => {
                let packed = device.allocate(len, &**memory.queue()).unwrap();
                memory.queue().copy_region(from, &Region::new(packed.clone(), layout).unwrap()).unwrap();
                memory.download(&packed).unwrap()
            }
        }
    }
}
