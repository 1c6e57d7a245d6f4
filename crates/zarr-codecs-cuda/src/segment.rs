use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Event, Layout, Region};
use zarr_codec_api::{CodecError, CodecErrorKind, Completion, DeviceContext, DeviceSegment, DeviceSlot, Direction, Encoded, Ticket};

use crate::codecs::elements::{self, Pass};
use crate::codecs::{blosc, crc32c, deflate, lz4, scatter, zstd, zstd_encode};
use crate::constants::*;
use crate::engine::Engine;
use crate::recipe::{Checksum, Compression, Op, Pair, Recipe};
use crate::table::{Placed, Records};

/// Where chunks start in memory of their own: kernels write 16 bytes at a time.
const ALIGN: usize = 256;
/// Bytes of a table that are lost to alignment, at most.
const TABLE_GAPS: u64 = 256;

/// A run of stages on a device.
#[derive(Debug)]
pub(crate) struct KernelSegment {
    engine: Arc<dyn Engine>,
    recipe: Arc<Recipe>,
    direction: Direction,
}

/// A chunk's place: the box of its elements, and how the kernels see it.
struct Place<'a> {
    region: Cow<'a, Region>,
    axes: elements::Slot,
    /// Bytes of all its elements on the encoded side.
    packed_len: usize,
}

/// Boxes for one batch. Those with too many axes for the kernels are filled by way of memory without gaps.
struct Places<'a> {
    places: Vec<Place<'a>>,
    /// Bytes of a unit on the packed side and in the box.
    units: (u32, u32),
    /// Copies between memory without gaps and boxes.
    copies: Vec<(Region, Region)>,
}

impl KernelSegment {
    pub(crate) fn new(engine: Arc<dyn Engine>, recipe: Recipe, direction: Direction) -> Self {
        Self { engine, recipe: Arc::new(recipe), direction }
    }

    /// Temporary memory besides that of decompression and what comes out of it.
    fn table_len(&self, slots: usize) -> u64 {
        let recipe = &*self.recipe;
        let of_slot = 8 + 2 * u64::from(ELEMENTS_SLOT_SIZE) + scatter::scratch_len(1) + recipe.checksums() as u64 * crc32c::RECORD_LEN;
        let of_ops = recipe.ops.len() as u64 * u64::from(ELEMENTS_OP_SIZE) + recipe.pairs.len() as u64 * u64::from(ELEMENTS_PAIR_SIZE);
        // Boxes may have more axes than the kernels, then their elements lie somewhere else for a while.
        let rank = recipe.array.as_ref().map_or(0, |array| array.shape.len());
        let detours = if rank >= ELEMENTS_AXES as usize { self.decoded_len().saturating_mul(slots as u64) } else { 0 };
        (of_slot * slots as u64).saturating_add(of_ops + TABLE_GAPS).saturating_add(detours)
    }

    fn decoded_len(&self) -> u64 {
        let array = self.recipe.array.as_ref();
        array.and_then(|array| array.byte_len().ok().flatten()).map_or(0, |len| len.next_multiple_of(ALIGN) as u64)
    }

    /// Checks the boxes of a batch, and looks at them as the kernels do.
    fn places<'a>(
        &self,
        regions: impl ExactSizeIterator<Item = &'a Region>,
        context: &DeviceContext<'_>,
    ) -> Result<Places<'a>, CodecError> {
        let recipe = &*self.recipe;
        let (packed_item, box_item) = recipe.item_sizes(self.direction);
        let mut units = None;
        let (mut places, mut copies) = (Vec::with_capacity(regions.len()), Vec::new());
        for region in regions {
            region.layout.check_within(region.buffer.len())?;
            let region = self.with_axes(region)?;
            let layout = &region.layout;
            let unit = recipe.units(layout.item_size, self.direction);
            if *units.get_or_insert(unit) != unit {
                return Err(CodecError::parameter("device", "elements of different sizes in one batch"));
            }
            let wrong_size = !recipe.ops.is_empty() && layout.item_size != box_item;
            let wrong_rank = recipe.order.as_ref().is_some_and(|order| order.len() != layout.shape.len());
            let decoded_len = layout.len().checked_mul(layout.item_size).filter(|&len| u32::try_from(len).is_ok());
            let Some(decoded_len) = decoded_len.filter(|_| !wrong_size && !wrong_rank) else {
                let message = format!("elements of {} bytes in a box of shape {:?} are not the chunk's", layout.item_size, layout.shape);
                return Err(CodecError::parameter("device", message));
            };
            let packed_len = decoded_len / box_item * packed_item;
            if recipe.planes > 1 && !packed_len.is_multiple_of(recipe.planes as usize) {
                return Err(CodecError::parameter("numcodecs.shuffle", format!("{packed_len} bytes are no whole number of elements")));
            }
            let region = match recipe.order.as_deref() {
                None => region,
                Some(order) => Cow::Owned(Region::new(region.buffer.clone(), elements::in_order(layout, order))?),
            };
            let too_large = || CodecError::limit("device", u32::MAX as usize);
            let (region, axes) = match elements::axes(&region.layout, unit.1) {
                Some(axes) => (region, axes),
                None => {
                    let layout = &region.layout;
                    let between = context.device.allocate(decoded_len, context.queue)?;
                    let run = Layout::contiguous(&[layout.len()], layout.item_size)?;
                    let packed = Region::new(between.clone(), Layout::contiguous(&layout.shape, layout.item_size)?)?;
                    let axes = elements::axes(&run, unit.1).ok_or_else(too_large)?;
                    copies.push((packed, region.into_owned()));
                    (Cow::Owned(Region::new(between, run)?), axes)
                }
            };
            places.push(Place { region, axes, packed_len });
        }
        Ok(Places { places, units: units.unwrap_or((1, 1)), copies })
    }

    /// A box with the axes of the chunk: between two segments, elements without gaps are given as bytes.
    fn with_axes<'a>(&self, region: &'a Region) -> Result<Cow<'a, Region>, CodecError> {
        let Some(array) = self.recipe.array.as_ref().filter(|_| self.recipe.has_elements()) else {
            return Ok(Cow::Borrowed(region));
        };
        let item_size = array.data_type.fixed_size().unwrap_or(1);
        let shape: Vec<usize> = array.shape.iter().map(|&len| usize::try_from(len).unwrap_or(usize::MAX)).collect();
        let layout = &region.layout;
        if layout.item_size == item_size && layout.shape == shape {
            return Ok(Cow::Borrowed(region));
        }
        let chunk = Layout::contiguous(&shape, item_size)?;
        if !layout.is_contiguous() || layout.len().checked_mul(layout.item_size) != chunk.len().checked_mul(item_size) {
            let message = format!("a box of shape {:?} for a chunk of shape {shape:?}", layout.shape);
            return Err(CodecError::parameter("device", message));
        }
        Ok(Cow::Owned(Region::new(region.buffer.clone(), Layout { offset: layout.offset, ..chunk })?))
    }

    fn check_direction(&self, direction: Direction) -> Result<(), CodecError> {
        if self.direction == direction {
            return Ok(());
        }
        Err(CodecError::unsupported("device", "this segment was bound for the other direction"))
    }

    fn check_budget(&self, needed: u64, context: &DeviceContext<'_>) -> Result<(), CodecError> {
        if needed > context.scratch_budget {
            let message = format!("{needed} bytes of temporary memory, of a budget of {}", context.scratch_budget);
            return Err(CodecError::new(CodecErrorKind::Limit, "device", message));
        }
        Ok(())
    }

    /// Downloads the statuses, if there are any.
    fn completion(
        &self,
        known: Vec<Known>,
        decompressed: Option<Buffer>,
        statuses: Option<Buffer>,
        slots: usize,
        context: &DeviceContext<'_>,
    ) -> Result<KernelCompletion, CodecError> {
        let (decompressed, statuses) =
            (decompressed.map(|it| download(&it, context)).transpose()?, statuses.map(|it| download(&it, context)).transpose()?);
        let event = context.queue.record()?;
        Ok(KernelCompletion { event, recipe: Arc::clone(&self.recipe), direction: self.direction, slots, known, decompressed, statuses })
    }

    /// Bytes of what comes out of the stages before compression, for one chunk, and with what stands around it.
    fn packed_len(&self) -> u64 {
        let (packed_item, box_item) = self.recipe.item_sizes(self.direction);
        let decoded = self.recipe.compression.map_or_else(|| self.decoded_len(), |(.., len)| len);
        match self.recipe.compression {
            Some(_) => decoded,
            None => decoded / box_item as u64 * packed_item as u64 + (self.recipe.outer.len() * crc32c::LEN) as u64,
        }
    }
}

/// Enqueues a copy to memory of the host.
fn download(on_device: &Buffer, context: &DeviceContext<'_>) -> Result<Buffer, CodecError> {
    let on_host = context.device.allocate_staging(on_device.len())?;
    context.queue.copy(on_device, &on_host)?;
    Ok(on_host)
}

/// The records that every pass over elements looks up.
struct Common {
    statuses: Placed,
    ops: Placed,
    pairs: Placed,
}

impl Common {
    fn place(records: &mut Records, recipe: &Recipe, slots: usize, known: &[Known]) -> Self {
        let mut statuses = vec![ELEMENTS_GOOD; slots];
        for known in known {
            if let Some(status) = statuses.get_mut(known.slot) {
                *status = known.step << 8 | ELEMENTS_SIZE;
            }
        }
        let statuses = records.push(&statuses);
        Self { statuses, ops: records.push::<Op>(&recipe.ops), pairs: records.push::<Pair>(&recipe.pairs) }
    }

    fn pass(&self, recipe: &Recipe, units: (u32, u32), slots: Placed) -> Pass {
        let (packed_unit, box_unit) = units;
        let swapped = recipe.width > 1;
        Pass { packed_unit, box_unit, swapped, planes: recipe.planes, ops: self.ops, pairs: self.pairs, statuses: self.statuses, slots }
    }
}

/// Takes the checksums off `encoded`, outermost first, and notes them for the kernels. Gives what they stand around.
fn unwrap(encoded: &Buffer, checksums: &[Checksum], batches: &mut [crc32c::Batch], slot: usize) -> Result<Buffer, CodecError> {
    let mut data = encoded.clone();
    for (checksum, batch) in checksums.iter().zip(batches) {
        data = batch.push(&data, checksum.at_start, slot)?;
    }
    Ok(data)
}

impl DeviceSegment for KernelSegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let (engine, recipe) = (&*self.engine, &*self.recipe);
        self.check_direction(Direction::Decode)?;
        if slots.is_empty() {
            return Ok(Ticket::new(self.completion(Vec::new(), None, None, 0, context)?));
        }
        let mut used = self.table_len(slots.len());
        self.check_budget(used, context)?;
        let Places { places, units, copies } = self.places(slots.iter().map(|slot| &slot.decoded), context)?;

        // Where chunks are decompressed to: in place, where nothing is left to do.
        let (around, within) = (recipe.outer.len() * crc32c::LEN, recipe.inner.len() * crc32c::LEN);
        let in_place = |place: &Place<'_>| recipe.is_plain() && within == 0 && place.axes.is_run(units.1);
        let staged_len = |place: &Place<'_>| match recipe.compression {
            Some(_) if !in_place(place) => (place.packed_len + within).next_multiple_of(ALIGN),
            _ => 0,
        };
        let staged: usize = places.iter().map(staged_len).sum();
        used += staged as u64;
        self.check_budget(used, context)?;
        let staging = if staged == 0 { None } else { Some(context.device.allocate(staged, context.queue)?) };

        let batches = |checksums: &[Checksum]| checksums.iter().map(|checksum| crc32c::Batch::new(checksum.step)).collect::<Vec<_>>();
        let (mut outer, mut inner) = (batches(&recipe.outer), batches(&recipe.inner));
        let (mut known, mut compressed, mut packed, mut at) = (Vec::new(), Vec::new(), Vec::with_capacity(slots.len()), 0);
        for (index, (slot, place)) in slots.iter().zip(&places).enumerate() {
            let expected = place.packed_len + around;
            let is_known_bad = match recipe.compression {
                Some(_) => slot.encoded.len() < around,
                None => slot.encoded.len() != expected,
            };
            if is_known_bad {
                known.push(Known { slot: index, step: 0, expected, found: slot.encoded.len() });
            }
            let data = if is_known_bad { slot.encoded.slice(0..0)? } else { unwrap(&slot.encoded, &recipe.outer, &mut outer, index)? };
            if recipe.compression.is_none() {
                packed.push((!is_known_bad).then_some(data));
                continue;
            }
            let target = match (&staging, staged_len(place)) {
                (Some(staging), len @ 1..) => {
                    at += len;
                    staging.slice(at - len..at - len + place.packed_len + within)?
                }
                _ => place.region.buffer.slice(place.region.layout.offset..place.region.layout.offset + place.packed_len)?,
            };
            packed.push(Some(unwrap(&target, &recipe.inner, &mut inner, index)?));
            compressed.push((data, target));
        }

        // Which passes there are.
        let mut boxes = elements::Batch::default();
        let mut scattered = Vec::new();
        let clears = recipe.checksums() > 0 || !recipe.ops.is_empty() || !known.is_empty();
        let mut cleared = elements::Batch::default();
        for (index, (place, packed)) in places.iter().zip(&packed).enumerate() {
            let (buffer, offset) = (&place.region.buffer, place.region.layout.offset);
            match packed {
                Some(_) if recipe.compression.is_some() && in_place(place) => {}
                Some(packed) if recipe.is_plain() => scattered.push((packed.clone(), &*place.region)),
                Some(packed) => boxes.push(Some(packed), units.0, buffer, offset, place.axes, index)?,
                None => {}
            }
            if clears {
                cleared.push(None, units.0, buffer, offset, place.axes, index)?;
            }
        }
        let mut records = Records::default();
        let common = Common::place(&mut records, recipe, slots.len(), &known);
        let boxes_placed = records.push(boxes.slots());
        let cleared_placed = records.push(cleared.slots());
        outer.iter_mut().chain(&mut inner).for_each(|batch| batch.place(&mut records));
        let table = if clears || !boxes.is_empty() { Some(records.upload(context)?) } else { None };

        if let Some(table) = &table {
            outer.iter().try_for_each(|batch| batch.check(engine, table, common.statuses, context))?;
        }
        let decompressed = match recipe.compression {
            Some((_, kind, _)) => {
                let chunks: Vec<zstd::Chunk<'_>> = compressed.iter().map(|(encoded, decoded)| zstd::Chunk { encoded, decoded }).collect();
                let context = &DeviceContext { scratch_budget: context.scratch_budget - used, ..*context };
                Some(match kind {
                    Compression::Zstd { .. } => zstd::decode(engine, &chunks, false, context)?,
                    Compression::BloscLz4 | Compression::BloscZstd => blosc::decode(engine, &chunks, kind, context)?,
                    Compression::Gzip | Compression::Zlib => deflate::SPANS.decode(engine, &chunks, deflate::format(kind), context)?,
                    Compression::Lz4 => lz4::SPANS.decode(engine, &chunks, 0, context)?,
                })
            }
            None => None,
        };
        if let Some(table) = &table {
            inner.iter().try_for_each(|batch| batch.check(engine, table, common.statuses, context))?;
            boxes.decode(engine, table, &common.pass(recipe, units, boxes_placed), context)?;
        }
        scatter::scatter(engine, &scattered, context)?;
        if let Some(table) = &table {
            // Zeros of a failed chunk are numbers as well, and may become others.
            let others = decompressed.as_ref().filter(|_| !recipe.ops.is_empty());
            cleared.clear(engine, table, &common.pass(recipe, units, cleared_placed), others, context)?;
        }
        for (packed, region) in &copies {
            context.queue.copy_region(packed, region)?;
        }
        let has_verdicts = recipe.checksums() > 0 || !recipe.ops.is_empty();
        let statuses = table.as_ref().filter(|_| has_verdicts).map(|table| table.slice(common.statuses)).transpose()?;
        Ok(Ticket::new(self.completion(known, decompressed, statuses, slots.len(), context)?))
    }

    fn scatters(&self) -> bool {
        true
    }

    fn encode(&self, chunks: &[Region], context: &DeviceContext<'_>) -> Result<Encoded, CodecError> {
        let (engine, recipe) = (&*self.engine, &*self.recipe);
        self.check_direction(Direction::Encode)?;
        self.check_budget(self.scratch_len(chunks.len()), context)?;
        if chunks.is_empty() {
            let statuses = self.completion(Vec::new(), None, None, 0, context)?;
            let bytes = context.device.allocate(0, context.queue)?;
            return Ok(Encoded { bytes, ticket: Ticket::new(EncodeCompletion { statuses, ranges: Ranges::Known(Vec::new()) }) });
        }
        let chunk = recipe.array.as_ref().map(|array| array.byte_len()).transpose()?.flatten();
        let is_other = |region: &Region| chunk.is_some_and(|len| region.layout.len().checked_mul(region.layout.item_size) != Some(len));
        if let Some(region) = chunks.iter().find(|region| is_other(region)) {
            let message = format!("a box of shape {:?}, which is not the chunk's", region.layout.shape);
            return Err(CodecError::parameter("device", message));
        }
        let Places { places, units, copies } = self.places(chunks.iter(), context)?;
        for (packed, region) in &copies {
            context.queue.copy_region(region, packed)?;
        }

        // What comes out, or what is compressed, unless that is the elements as they are.
        let around = recipe.outer.len() * crc32c::LEN;
        let in_place = |place: &Place<'_>| recipe.compression.is_some() && recipe.is_plain() && place.axes.is_run(units.1);
        let mut at = 0usize;
        let ranges: Vec<Option<Range<usize>>> = places
            .iter()
            .map(|place| {
                (!in_place(place)).then(|| {
                    let start = if recipe.compression.is_some() { at.next_multiple_of(ALIGN) } else { at };
                    at = start + place.packed_len + around;
                    start..at
                })
            })
            .collect();
        let made = context.device.allocate(at, context.queue)?;
        let mut outer: Vec<_> = recipe.outer.iter().map(|checksum| crc32c::Batch::new(checksum.step)).collect();
        let (mut boxes, mut cleared) = (elements::Batch::default(), elements::Batch::default());
        let mut sources = Vec::with_capacity(chunks.len());
        for (index, (place, range)) in places.iter().zip(&ranges).enumerate() {
            let (buffer, offset) = (&place.region.buffer, place.region.layout.offset);
            let Some(range) = range else {
                sources.push(buffer.slice(offset..offset + place.packed_len)?);
                continue;
            };
            let room = made.slice(range.clone())?;
            let packed = unwrap(&room, &recipe.outer, &mut outer, index)?;
            boxes.push(Some(&packed), units.0, buffer, offset, place.axes, index)?;
            if !recipe.ops.is_empty() {
                let bytes = elements::axes(&Layout::contiguous(&[room.len()], 1)?, 1);
                let bytes = bytes.ok_or_else(|| CodecError::limit("device", u32::MAX as usize))?;
                cleared.push(None, 1, &room, 0, bytes, index)?;
            }
            sources.push(room);
        }
        let mut records = Records::default();
        let common = Common::place(&mut records, recipe, chunks.len(), &[]);
        let boxes_placed = records.push(boxes.slots());
        let cleared_placed = records.push(cleared.slots());
        outer.iter_mut().for_each(|batch| batch.place(&mut records));
        let table = records.upload(context)?;
        boxes.encode(engine, &table, &common.pass(recipe, units, boxes_placed), context)?;
        outer.iter().rev().try_for_each(|batch| batch.write(engine, &table, common.statuses, context))?;
        cleared.clear(engine, &table, &common.pass(recipe, (1, 1), cleared_placed), None, context)?;
        let statuses = if recipe.ops.is_empty() { None } else { Some(table.slice(common.statuses)?) };
        let (bytes, ranges) = match recipe.compression {
            Some((_, Compression::Zstd { checksum }, _)) => {
                let (bytes, ranges) = zstd_encode::encode(engine, &sources, checksum, context)?;
                (bytes, Ranges::Found(download(&ranges, context)?))
            }
            Some(_) => return Err(CodecError::unsupported("device", "this compression is not encoded")),
            None => (made, Ranges::Known(ranges.into_iter().flatten().collect())),
        };
        let statuses = self.completion(Vec::new(), None, statuses, chunks.len(), context)?;
        Ok(Encoded { bytes, ticket: Ticket::new(EncodeCompletion { statuses, ranges }) })
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        if self.direction == Direction::Encode {
            let made = self.packed_len().next_multiple_of(ALIGN as u64).saturating_mul(slots as u64);
            let compressed = match self.recipe.compression {
                Some((.., len)) => zstd_encode::scratch_len(std::iter::repeat_n(len, slots)),
                None => 0,
            };
            return self.table_len(slots).saturating_add(made).saturating_add(compressed);
        }
        let decompression = self.recipe.compression.map_or(0, |(_, compression, len)| {
            let staged = (len.next_multiple_of(ALIGN as u64)).saturating_mul(slots as u64);
            let decoded = || std::iter::repeat_n(len, slots);
            let of_zstd = || zstd::Layout::on(&*self.engine, decoded(), u64::MAX).total;
            let needed = match compression {
                Compression::Zstd { .. } => of_zstd(),
                Compression::BloscLz4 => blosc::scratch_len(decoded()),
                Compression::BloscZstd => of_zstd().saturating_add(blosc::scratch_len(decoded())),
                Compression::Gzip | Compression::Zlib => deflate::SPANS.scratch_len(slots, &*self.engine),
                Compression::Lz4 => lz4::SPANS.scratch_len(slots, &*self.engine),
            };
            needed.saturating_add(staged)
        });
        self.table_len(slots).saturating_add(decompression)
    }
}

/// A slot of which the host knows that it is bad.
#[derive(Debug, Clone, Copy)]
struct Known {
    slot: usize,
    step: u32,
    expected: usize,
    found: usize,
}

/// Verdicts that the host knew before, and those that the device will have written.
#[derive(Debug)]
struct KernelCompletion {
    event: Event,
    recipe: Arc<Recipe>,
    direction: Direction,
    slots: usize,
    known: Vec<Known>,
    /// Statuses of what was decompressed, and those of all else.
    decompressed: Option<Buffer>,
    statuses: Option<Buffer>,
}

impl KernelCompletion {
    fn name(&self, step: u32) -> &str {
        self.recipe.names.get(step as usize).map_or("device", String::as_str)
    }

    /// The words for a status of a kernel other than those of zstd.
    fn verdict(&self, status: u32) -> Result<(), CodecError> {
        if status == ELEMENTS_GOOD {
            return Ok(());
        }
        let words = match status & 0xff {
            ELEMENTS_BEYOND => "a value that the other data type does not have",
            ELEMENTS_NO_MULTIPLE => "a value is no multiple of the scale",
            ELEMENTS_CHECKSUM => "the checksum is not that of the data",
            _ => "failed for an unknown reason",
        };
        let kind = match self.direction {
            Direction::Decode => CodecErrorKind::Format,
            Direction::Encode => CodecErrorKind::Parameter,
        };
        Err(CodecError::new(kind, self.name(status >> 8), words))
    }
}

impl Completion for KernelCompletion {
    fn event(&self) -> &Event {
        &self.event
    }

    fn statuses(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        self.verdicts()
    }
}

impl KernelCompletion {
    fn verdicts(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        let read = |buffer: &Option<Buffer>| -> Result<Option<Vec<u32>>, BufferError> {
            let Some(buffer) = buffer else { return Ok(None) };
            let bytes = buffer.host_read()?;
            Ok(Some(bytes.as_chunks().0.iter().map(|code| u32::from_le_bytes(*code)).collect()))
        };
        let (decompressed, others) = (read(&self.decompressed)?, read(&self.statuses)?);
        let its_step = self.recipe.compression.map_or(0, |(step, ..)| step);
        let its_verdict = |status| match self.recipe.compression {
            Some((_, Compression::BloscLz4 | Compression::BloscZstd, _)) => blosc::verdict(status),
            Some((_, Compression::Gzip | Compression::Zlib, _)) => deflate::verdict(self.name(its_step), status),
            Some((_, Compression::Lz4, _)) => lz4::verdict(status),
            _ => zstd::verdict(status),
        };
        let of_slot = |slot: usize| {
            let status = |statuses: &Option<Vec<u32>>| statuses.as_ref().and_then(|statuses| statuses.get(slot).copied());
            let other = status(&others).unwrap_or(ELEMENTS_GOOD);
            // The first step that failed is the one to blame.
            match status(&decompressed) {
                Some(code) if other == ELEMENTS_GOOD || other >> 8 > its_step => its_verdict(code).and_then(|()| self.verdict(other)),
                _ => self.verdict(other),
            }
        };
        let mut verdicts: Vec<_> = (0..self.slots).map(of_slot).collect();
        for known in &self.known {
            if let Some(verdict) = verdicts.get_mut(known.slot) {
                *verdict = Err(CodecError::size(self.name(known.step), known.expected, known.found));
            }
        }
        Ok(verdicts)
    }
}

/// Where encoded chunks lie.
#[derive(Debug)]
enum Ranges {
    /// As their sizes said before.
    Known(Vec<Range<usize>>),
    /// As the device found: numbers of [`zstd_encode::RANGE_LEN`] bytes for each.
    Found(Buffer),
}

#[derive(Debug)]
struct EncodeCompletion {
    statuses: KernelCompletion,
    ranges: Ranges,
}

impl Completion<Range<usize>> for EncodeCompletion {
    fn event(&self) -> &Event {
        &self.statuses.event
    }

    fn statuses(&self) -> Result<Vec<Result<Range<usize>, CodecError>>, BufferError> {
        let ranges = match &self.ranges {
            Ranges::Known(ranges) => ranges.clone(),
            Ranges::Found(buffer) => {
                let bytes = buffer.host_read()?;
                let numbers: Vec<usize> = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number) as usize).collect();
                numbers.as_chunks().0.iter().map(|&[start, end]| start..end).collect()
            }
        };
        let statuses = self.statuses.verdicts()?;
        Ok(statuses.into_iter().zip(ranges).map(|(status, range)| status.map(|()| range)).collect())
    }
}
