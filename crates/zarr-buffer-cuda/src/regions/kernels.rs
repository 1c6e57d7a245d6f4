//! The kernels of `kernels/regions.cu`, and their parameters byte for byte.

use zarr_buffer_api::BufferError;

use super::plan::Units;
use crate::{CudaDevice, CudaFunction, CudaModule, CudaQueue};

static IMAGE: &[u8] = include_bytes!("../../kernels/regions.fatbin");

/// The most axes of a launch.
pub(super) const MAX_AXES: usize = 9;
/// The most bytes of a pattern.
pub(super) const MAX_PATTERN: usize = 256;
const THREADS: u32 = 256;
const UNITS_PER_THREAD: u32 = 4;
const TILE: u32 = 32;

/// What to fill with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Units after which it repeats, along the last axis.
    pub(super) period: usize,
    /// That many units.
    pub(super) bytes: Vec<u8>,
    pub(super) element: Vec<u8>,
}

impl Pattern {
    /// The element as a number of 1, 2 or 4 bytes that repeats throughout it, and how many.
    pub(super) fn narrow(&self) -> Option<(u32, usize)> {
        [1usize, 2, 4].into_iter().find_map(|width| {
            let first = self.element.get(..width)?;
            if !self.element.len().is_multiple_of(width) || self.element.chunks(width).any(|chunk| chunk != first) {
                return None;
            }
            let mut number = [0; 4];
            number.iter_mut().zip(first).for_each(|(to, from)| *to = *from);
            Some((u32::from_le_bytes(number), width))
        })
    }
}

/// Divides numbers below 2^31 by a multiplication.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divisor {
    len: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// `len` is at least 1, and below 2^31.
    pub(super) fn by(len: u32) -> Self {
        let shift = len.next_power_of_two().trailing_zeros();
        let multiplier = (((1u64 << shift) - u64::from(len)) << 32) / u64::from(len) + 1;
        Self { len, multiplier: multiplier as u32, shift }
    }

    /// What the kernels compute.
    #[cfg(test)]
    pub(super) fn quotient(self, n: u32) -> u32 {
        let high = (u64::from(n) * u64::from(self.multiplier)) >> 32;
        (high as u32 + n) >> self.shift
    }
}

/// The kernels, by the binary logarithm of a unit's bytes.
#[derive(Debug)]
pub(crate) struct RegionKernels {
    copy: [CudaFunction; 5],
    fill: [CudaFunction; 5],
    turn: [CudaFunction; 5],
}

/// The module that the kernels are in.
pub(crate) fn module(device: &CudaDevice) -> Result<CudaModule, BufferError> {
    CudaModule::load(device, IMAGE)
}

impl RegionKernels {
    pub(crate) fn load(device: &CudaDevice) -> Result<Self, BufferError> {
        let module = module(device)?;
        let all = |what: &str| -> Result<[CudaFunction; 5], BufferError> {
            let of = |bytes: u32| module.function(&format!("regions_{what}_{bytes}"));
            Ok([of(1)?, of(2)?, of(4)?, of(8)?, of(16)?])
        };
        Ok(Self { copy: all("copy")?, fill: all("fill")?, turn: all("turn")? })
    }

    /// Copies a box that fits one launch. Called within `enqueue` for both buffers, in which all of the box lies.
    pub(super) fn copy(&self, queue: &CudaQueue, units: &Units) -> Result<(), BufferError> {
        if let Some(turned) = units.turned() {
            return self.turn(queue, &turned);
        }
        let mut params = Params::default();
        params.units(units)?;
        let function = by_size(&self.copy, units.size)?;
        // SAFETY: a `Box` of kernels/regions.cu. All units lie in the two buffers, aligned; the caller is within `enqueue` for both.
        unsafe { queue.launch(function, [blocks(units), 1, 1], THREADS, 0, &params.bytes) }
    }

    fn turn(&self, queue: &CudaQueue, units: &Units) -> Result<(), BufferError> {
        let [outer @ .., high, wide] = units.axes.as_slice() else { return Err(unfit()) };
        let tiles = |len: usize| u32::try_from(len).map(|len| len.div_ceil(TILE)).map_err(|_| unfit());
        let (across, down) = (tiles(wide.len)?, tiles(high.len)?);
        let rest = outer.iter().fold(1, |count: usize, axis| count.saturating_mul(axis.len));
        let count = rest.saturating_mul(across as usize).saturating_mul(down as usize);
        let grid = u32::try_from(count).ok().filter(|&count| count < 1 << 31).ok_or_else(unfit)?;
        let mut params = Params::default();
        params.units(units)?;
        params.divisor(Divisor::by(across));
        params.divisor(Divisor::by(down));
        params.bytes.extend_from_slice(&[0; 8]);
        let function = by_size(&self.turn, units.size)?;
        // SAFETY: a `Turn` of kernels/regions.cu. All units lie in the two buffers, aligned; the caller is within `enqueue` for both.
        unsafe { queue.launch(function, [grid, 1, 1], THREADS, 0, &params.bytes) }
    }

    /// Fills a box that fits one launch. Called within `enqueue` for the buffer, in which all of the box lies.
    pub(super) fn fill(&self, queue: &CudaQueue, units: &Units, pattern: &Pattern) -> Result<(), BufferError> {
        let mut units = units.clone();
        if units.axes.is_empty() {
            // The kernel wants a last axis.
            units.axes.push(super::plan::Axis { len: 1, destination: 0, source: 0 });
        }
        let period = u32::try_from(pattern.period).map_err(|_| unfit())?;
        let mut params = Params::default();
        params.units(&units)?;
        params.divisor(Divisor::by(period));
        params.bytes.extend_from_slice(&[0; 12]);
        let mut bytes = [0; MAX_PATTERN];
        bytes.get_mut(..pattern.bytes.len()).ok_or_else(unfit)?.copy_from_slice(&pattern.bytes);
        params.bytes.extend_from_slice(&bytes);
        let function = by_size(&self.fill, units.size)?;
        // SAFETY: a `Fill` of kernels/regions.cu. All units lie in the buffer, aligned; the caller is within `enqueue` for it.
        unsafe { queue.launch(function, [blocks(&units), 1, 1], THREADS, 0, &params.bytes) }
    }
}

fn blocks(units: &Units) -> u32 {
    units.count().div_ceil((THREADS * UNITS_PER_THREAD) as usize) as u32
}

fn by_size(functions: &[CudaFunction; 5], size: usize) -> Result<&CudaFunction, BufferError> {
    functions.get(size.trailing_zeros() as usize).ok_or_else(unfit)
}

fn unfit() -> BufferError {
    BufferError::parameter("a box that does not fit a launch")
}

/// A kernel's parameter, field by field, little-endian. Fields are put in the order and with the padding of the struct.
#[derive(Debug, Default)]
struct Params {
    bytes: Vec<u8>,
}

impl Params {
    /// A `Box`.
    fn units(&mut self, units: &Units) -> Result<(), BufferError> {
        let count = u32::try_from(units.count()).ok().filter(|&count| count < 1 << 31).ok_or_else(unfit)?;
        if units.axes.len() > MAX_AXES {
            return Err(unfit());
        }
        for index in 0..MAX_AXES {
            let axis = units.axes.get(index);
            self.bytes.extend_from_slice(&axis.map_or(0, |axis| axis.destination).to_le_bytes());
            self.bytes.extend_from_slice(&axis.map_or(0, |axis| axis.source).to_le_bytes());
            self.divisor(Divisor::by(axis.map_or(1, |axis| axis.len as u32)));
            self.bytes.extend_from_slice(&[0; 4]);
        }
        self.bytes.extend_from_slice(&units.destination.to_le_bytes());
        self.bytes.extend_from_slice(&units.source.to_le_bytes());
        self.bytes.extend_from_slice(&(units.axes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn divisor(&mut self, divisor: Divisor) {
        for number in [divisor.len, divisor.multiplier, divisor.shift] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use zarr_buffer_api::Layout;

    use super::*;

    #[test]
    fn a_box_has_the_size_of_the_struct() {
        let layout = Layout { offset: 0, shape: vec![3, 5], strides: vec![100, 8], item_size: 4 };
        let mut params = Params::default();
        params.units(&Units::of_copy(&layout, 4096, &layout, 8192)).unwrap();
        assert_eq!(params.bytes.len(), 312);
    }

    #[test]
    fn narrow_patterns() {
        let narrow = |element: &[u8]| Pattern { period: 1, bytes: Vec::new(), element: element.to_vec() }.narrow();
        assert_eq!(narrow(&[0; 8]), Some((0, 1)));
        assert_eq!(narrow(&[1, 2, 1, 2]), Some((0x0201, 2)));
        assert_eq!(narrow(&[1, 2, 3, 4, 1, 2, 3, 4]), Some((0x0403_0201, 4)));
        assert_eq!(narrow(&[1, 2, 3]), None);
        assert_eq!(narrow(&[1, 2, 3, 4, 5, 6, 7, 8]), None);
    }

    #[test]
    fn the_image_is_a_fatbin() {
        assert_eq!(IMAGE.first_chunk(), Some(&0xBA55_ED50u32.to_le_bytes()));
    }
}
