//! Copies and fills of boxes within device memory: as one call of the driver where that is enough, else by the kernels of
//! `kernels/regions.cu`.

mod kernels;
mod plan;

use std::ops::ControlFlow;

use zarr_buffer_api::{BufferError, Device, Layout, Queue, Region, enqueue};

pub(crate) use kernels::{RegionKernels, module};

use crate::CudaQueue;
use crate::copy::refuse_overlap;
use crate::driver;
use kernels::MAX_PATTERN;
use plan::{Boxes, Units};

impl CudaQueue {
    pub(crate) fn copy_box(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        let (from, to) = (&source.layout, &destination.layout);
        if from.shape != to.shape || from.item_size != to.item_size {
            let message = format!("copy of {:?} x {} bytes to {:?} x {}", from.shape, from.item_size, to.shape, to.item_size);
            return Err(BufferError::parameter(message).on(self.device()));
        }
        self.check_region(source)?;
        self.check_region(destination)?;
        refuse_overlap(&source.buffer, from.span()?, &destination.buffer, to.span()?)?;
        if to.is_empty() || to.item_size == 0 {
            return Ok(());
        }
        let units = Units::of_copy(to, destination.buffer.address(), from, source.buffer.address());
        let kernels = self.region_kernels()?;
        enqueue(self, &[&source.buffer], &[&destination.buffer], || match units.as_one_run() {
            Some(len) => {
                let stream = self.open()?;
                // SAFETY: the run is all of both boxes, which were checked to lie in their buffers, on this device, and apart. We are within `enqueue`.
                unsafe { driver::copy(stream, units.destination, units.source, len) }.map_err(|error| self.cuda_device().error(error))
            }
            None => each(units.boxes(1), |part| kernels.copy(self, &part)),
        })
    }

    pub(crate) fn fill_box(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        let layout = &destination.layout;
        if element.len() != layout.item_size {
            let message = format!("an element of {} bytes into elements of {}", element.len(), layout.item_size);
            return Err(BufferError::parameter(message).on(self.device()));
        }
        self.check_region(destination)?;
        if layout.is_empty() || element.is_empty() {
            return Ok(());
        }
        if element.len() > MAX_PATTERN {
            return self.fill_from_copy(destination, element);
        }
        let (units, pattern) = Units::of_fill(layout, destination.buffer.address(), element);
        let kernels = self.region_kernels()?;
        enqueue(self, &[], &[&destination.buffer], || match (units.as_one_run(), pattern.narrow()) {
            (Some(len), Some((value, width))) if units.destination.is_multiple_of(width as u64) => {
                let stream = self.open()?;
                // SAFETY: the run is all of the box, which was checked to lie in its buffer, on this device; its length is a multiple of the
                // element's, which is one of `width`. We are within `enqueue`.
                unsafe { driver::fill(stream, units.destination, value, width, len / width) }
                    .map_err(|error| self.cuda_device().error(error))
            }
            _ => each(units.boxes(pattern.period), |part| kernels.fill(self, &part, &pattern)),
        })
    }

    /// Fills with an element that is too long for a kernel's parameters: it is uploaded, and copied with strides of 0.
    fn fill_from_copy(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        let there = self.cuda_device().allocate(element.len(), self)?;
        self.upload(element, &there)?;
        let shape = destination.layout.shape.clone();
        let layout = Layout { offset: 0, strides: vec![0; shape.len()], shape, item_size: element.len() };
        self.copy_box(&Region::new(there, layout)?, destination)
    }

    fn check_region(&self, region: &Region) -> Result<(), BufferError> {
        // A region's fields are public: it may have changed since it was checked.
        region.layout.check_within(region.buffer.len()).map_err(|error| error.on(self.device()))?;
        self.on_this_device(&region.buffer)
    }

    fn region_kernels(&self) -> Result<&RegionKernels, BufferError> {
        let shared = self.cuda_device().shared();
        if let Some(kernels) = shared.regions.get() {
            return Ok(kernels);
        }
        let loaded = RegionKernels::load(self.cuda_device())?;
        Ok(shared.regions.get_or_init(|| loaded))
    }
}

fn each(boxes: Boxes, mut launch: impl FnMut(Units) -> Result<(), BufferError>) -> Result<(), BufferError> {
    let flow = boxes.for_each(&mut |part| match launch(part) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}
