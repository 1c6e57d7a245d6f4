//! What the device does for a run of stages, put together from one codec after the other.

use bytemuck::{Pod, Zeroable};
use zarr_codec_api::{ArrayRepresentation, Direction, Stage};

use crate::codecs;
use crate::constants::*;
use crate::number::size_of_number;

/// The most operations and pairs of scalar maps in one segment.
const MAX_OPS: usize = 16;
const MAX_PAIRS: usize = 256;

/// `ElementsOp` of `program.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Op {
    pub(crate) kind: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) flags: u32,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) rounding: u32,
    pub(crate) beyond: u32,
    pub(crate) first_pair: u32,
    pub(crate) pairs: u32,
    pub(crate) step: u32,
    pub(crate) unused: [u32; 3],
}
const _: () = assert!(size_of::<Op>() == ELEMENTS_OP_SIZE as usize);

impl Op {
    /// An operation of a kind on a number of type `from`, which gives one of type `to`.
    pub(crate) fn new(kind: u32, from: u32, to: u32) -> Self {
        Self { kind, from, to, ..Self::zeroed() }
    }
}

/// `ElementsPair` of `program.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) key: u64,
    pub(crate) to: u64,
    pub(crate) kind: u32,
    pub(crate) unused: u32,
}
const _: () = assert!(size_of::<Pair>() == ELEMENTS_PAIR_SIZE as usize);

/// What one codec does to a chunk, in one direction.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A checksum before or behind the data.
    Checksum { at_start: bool },
    /// What compresses, with the most bytes that it may decode to.
    Compressed { compression: Compression, decoded: u64 },
    /// The bytes of elements of this size in planes.
    Shuffle { size: u32 },
    /// Elements one behind the other; the bytes of each number of this width reversed, if it is more than 1.
    Bytes { width: u32 },
    /// Axis `i` of the encoded array is axis `order[i]` of the decoded one.
    Transpose { order: Vec<usize> },
    /// Elements with so many numbers each, of which each becomes another by itself. Without an operation it stays what it is.
    Values { op: Option<Op>, pairs: Vec<Pair>, components: usize },
}

/// What decompresses the bytes of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Frames of zstd; those that are made have a checksum, or not.
    Zstd {
        checksum: bool,
    },
    /// Chunks of blosc, by their inner codec.
    BloscLz4,
    BloscZstd,
    /// Members of gzip, and a stream of zlib.
    Gzip,
    Zlib,
    /// A block of LZ4 with its decoded size before it.
    Lz4,
}

/// A checksum, and which step of the segment it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum {
    pub(crate) step: u32,
    pub(crate) at_start: bool,
}

/// A segment: checksums around what is compressed, around checksums around elements. All that becomes of elements is one pass over them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recipe {
    /// The names of the codecs, for errors. For decoding the last codec comes first, for encoding the first.
    pub(crate) names: Vec<String>,
    /// Checksums of encoded bytes, outermost first.
    pub(crate) outer: Vec<Checksum>,
    /// The number of the step, what it is, and the most bytes that come out.
    pub(crate) compression: Option<(u32, Compression, u64)>,
    /// Checksums of what is decompressed, outermost first.
    pub(crate) inner: Vec<Checksum>,
    /// Bytes of a shuffled element; 0 where nothing is shuffled.
    pub(crate) planes: u32,
    /// Whether the array to bytes codec is among the steps.
    has_bytes: bool,
    /// Bytes of numbers that are stored in the other byte order; 0 where they are not.
    pub(crate) width: u32,
    pub(crate) ops: Vec<Op>,
    pub(crate) pairs: Vec<Pair>,
    /// Numbers in an element, where there are operations.
    pub(crate) components: usize,
    /// Axis `i` of the encoded array is axis `order[i]` of the decoded one. `None`: they are the same.
    pub(crate) order: Option<Vec<usize>>,
    /// The array on the decoded side; `None` where that is bytes.
    pub(crate) array: Option<ArrayRepresentation>,
}

impl Recipe {
    /// Takes as many stages as go into one segment: for decoding from the last one, for encoding from the first one.
    pub(crate) fn take(stages: &[Stage], direction: Direction) -> Self {
        let mut recipe = Self::default();
        let mut take = |stage: &Stage| {
            let Some(step) = codecs::step(stage, direction) else { return false };
            let taken = match direction {
                Direction::Decode => recipe.push_decoding(step),
                Direction::Encode => recipe.push_encoding(step),
            };
            if taken {
                recipe.names.push(stage.codec.name.clone());
            }
            taken
        };
        match direction {
            Direction::Decode => stages.iter().rev().take_while(|stage| take(stage)).count(),
            Direction::Encode => stages.iter().take_while(|stage| take(stage)).count(),
        };
        let on_the_array_side = match direction {
            Direction::Decode => stages.len().checked_sub(recipe.names.len()).and_then(|first| stages.get(first)),
            Direction::Encode => stages.first(),
        };
        recipe.array = on_the_array_side.and_then(|stage| stage.decoded.as_array().cloned());
        if recipe.order.as_deref().is_some_and(<[usize]>::is_sorted) {
            recipe.order = None;
        }
        recipe
    }

    fn next_step(&self) -> u32 {
        self.names.len() as u32
    }

    fn touches_elements(&self) -> bool {
        self.planes != 0 || self.touches_arrays()
    }

    fn touches_arrays(&self) -> bool {
        self.has_bytes || self.components != 0 || self.order.is_some()
    }

    fn push_decoding(&mut self, step: Step) -> bool {
        let number = self.next_step();
        match step {
            Step::Checksum { at_start } if !self.touches_elements() => {
                let side = if self.compression.is_some() { &mut self.inner } else { &mut self.outer };
                side.push(Checksum { step: number, at_start });
                true
            }
            Step::Compressed { compression, decoded } if !self.touches_elements() && self.compression.is_none() => {
                self.compression = Some((number, compression, decoded));
                true
            }
            Step::Shuffle { size } if !self.touches_elements() => {
                self.planes = size;
                true
            }
            Step::Bytes { width } if !self.touches_arrays() => {
                (self.has_bytes, self.width) = (true, width);
                true
            }
            Step::Transpose { order } => {
                self.order = Some(match self.order.take() {
                    None => order,
                    Some(before) => before.iter().filter_map(|&axis| order.get(axis).copied()).collect(),
                });
                true
            }
            Step::Values { op, pairs, components } => self.push_values(op, pairs, components),
            _ => false,
        }
    }

    fn push_encoding(&mut self, step: Step) -> bool {
        let number = self.next_step();
        // What is compressed has no size that anything after it could count on.
        if self.compression.is_some() {
            return false;
        }
        let open = self.outer.is_empty();
        match step {
            Step::Transpose { order } if open && !self.has_bytes && self.planes == 0 => {
                self.order = Some(match self.order.take() {
                    None => order,
                    Some(before) => order.iter().filter_map(|&axis| before.get(axis).copied()).collect(),
                });
                true
            }
            Step::Values { op, pairs, components } if open && !self.has_bytes && self.planes == 0 => {
                self.push_values(op, pairs, components)
            }
            Step::Bytes { width }
                if open
                    && !self.has_bytes
                    && self.planes == 0
                    && (width <= 1 || self.ops.last().is_none_or(|op| width as usize == size_of_number(op.to))) =>
            {
                (self.has_bytes, self.width) = (true, width);
                true
            }
            Step::Shuffle { size } if open && self.planes == 0 => {
                self.planes = size;
                true
            }
            Step::Checksum { at_start } => {
                self.outer.insert(0, Checksum { step: number, at_start });
                true
            }
            Step::Compressed { compression, decoded } if open => {
                self.compression = Some((number, compression, decoded));
                true
            }
            _ => false,
        }
    }

    fn push_values(&mut self, op: Option<Op>, pairs: Vec<Pair>, components: usize) -> bool {
        let Some(op) = op else {
            // Nothing is done, but what stands before cannot be taken for bytes.
            self.components = self.components.max(1);
            return true;
        };
        let fits = self.ops.len() < MAX_OPS && self.pairs.len() + pairs.len() <= MAX_PAIRS;
        // Byte order is that of the numbers.
        let size = size_of_number(op.from) as u32;
        let alike = self.ops.is_empty() || self.components == components;
        if !fits || !alike || (self.ops.is_empty() && self.width > 1 && self.width != size) {
            return false;
        }
        self.components = components;
        self.ops.push(Op { first_pair: self.pairs.len() as u32, pairs: pairs.len() as u32, step: self.next_step(), ..op });
        self.pairs.extend(pairs);
        true
    }

    /// Whether elements stay as they are and lie in order: all there is to do is to copy them to their places.
    pub(crate) fn is_plain(&self) -> bool {
        self.planes <= 1 && self.width <= 1 && self.ops.is_empty()
    }

    /// Bytes of an element on the encoded and on the decoded side; the same, where they are not looked at.
    pub(crate) fn item_sizes(&self, direction: Direction) -> (usize, usize) {
        match (self.ops.first(), self.ops.last()) {
            (Some(first), Some(last)) => {
                let (from, to) = (size_of_number(first.from), size_of_number(last.to));
                let (encoded, decoded) = if direction == Direction::Decode { (from, to) } else { (to, from) };
                (encoded * self.components, decoded * self.components)
            }
            _ => (1, 1),
        }
    }

    /// Whether it matters what elements the bytes are.
    pub(crate) fn has_elements(&self) -> bool {
        !self.ops.is_empty() || self.order.is_some() || self.width > 1
    }

    /// What a unit of kernels is, for elements of `item_size` bytes: its size on the packed side and in the box.
    pub(crate) fn units(&self, item_size: usize, direction: Direction) -> (u32, u32) {
        if !self.ops.is_empty() {
            let (packed, boxed) = self.item_sizes(direction);
            return ((packed / self.components) as u32, (boxed / self.components) as u32);
        }
        let divides = |unit: u32| item_size.is_multiple_of(unit as usize);
        let wanted = if self.width > 1 { self.width } else { self.planes };
        let unit = if matches!(wanted, 2 | 4 | 8) && divides(wanted) {
            wanted
        } else {
            [8, 4, 2].into_iter().find(|&unit| divides(unit)).unwrap_or(1)
        };
        (unit, unit)
    }

    /// Checksums of all sides.
    pub(crate) fn checksums(&self) -> usize {
        self.outer.len() + self.inner.len()
    }
}
