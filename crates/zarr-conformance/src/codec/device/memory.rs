use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, Layout, Queue, Region};
use zarr_codec_api::{CodecErrorKind, DeviceContext, DeviceSlot};

use super::bound::Bound;
use super::runner::CANARY;
use super::{DeviceCodecCase, DeviceCodecSubject, Padded, case};
use crate::suite::{Broken, Trial, ensure, ensure_same};

pub(super) fn cases() -> Vec<DeviceCodecCase> {
    vec![
        case(
            "scratch-budget",
            "a batch whose temporary memory is over budget is refused as a limit, and nothing is written",
            scratch_budget,
        ),
        case("scratch-len", "a batch takes no more temporary memory than was declared", scratch_len),
        case("dirty-scratch", "what temporary memory holds beforehand makes no difference", dirty_scratch),
    ]
}

/// Temporary memory, counted and never clean: the device itself for everything else.
#[derive(Debug)]
pub(super) struct Metered {
    device: Arc<dyn Device>,
    pub(super) taken: AtomicU64,
}

impl Metered {
    pub(super) fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), taken: AtomicU64::new(0) }
    }
}

impl Device for Metered {
    fn id(&self) -> DeviceId {
        self.device.id()
    }

    fn name(&self) -> String {
        self.device.name()
    }

    fn is_unified(&self) -> bool {
        self.device.is_unified()
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        self.device.create_queue()
    }

    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        self.taken.fetch_add(len as u64, Ordering::Relaxed);
        let buffer = self.device.allocate(len, queue)?;
        queue.fill_region(&Region::new(buffer.clone(), Layout::contiguous(&[len], 1)?)?, &[0x69])?;
        Ok(buffer)
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        self.device.allocate_staging(len)
    }

    fn as_any(&self) -> &dyn Any {
        self.device.as_any()
    }
}

fn scratch_budget(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let output = bound.upload(&*queue, &vec![CANARY; bound.len()])?;
    let slot =
        DeviceSlot { encoded: bound.upload(&*queue, &bound.chunks[0].0)?, decoded: Region::new(output.clone(), bound.contiguous(0)?)? };
    let needed = bound.segment.scratch_len(1);
    ensure!(bound.segment.scratch_len(100) >= needed, "more slots need less temporary memory");
    if needed > 0 {
        // What it makes of less is its own affair; without any it cannot work.
        let context = DeviceContext { scratch_budget: 0, ..bound.context(&*queue, 1) };
        match bound.segment.decode(std::slice::from_ref(&slot), &context) {
            Err(error) if error.kind() == CodecErrorKind::Limit => {}
            Err(error) => return Err(Broken::Failed(format!("refused as {:?} ({error}), expected Limit", error.kind()))),
            Ok(_) => return Err(Broken::Failed(format!("took {needed} bytes of temporary memory on a budget of 0"))),
        }
        ensure_same("after a refused batch", &bound.download(&*queue, &output)?, &vec![CANARY; bound.len()])?;
    }
    let statuses = bound.segment.decode(&[slot], &bound.context(&*queue, 1))?.wait()?;
    statuses.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

fn scratch_len(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let mut layouts = vec![(bound.contiguous(0)?, bound.len())];
    if bound.segment.scatters() {
        layouts.push(bound.strided());
    }
    for (layout, room) in layouts {
        for count in [1, 2, bound.chunks.len(), subject.many()] {
            let mut slots = Vec::new();
            for index in 0..count {
                let output = bound.upload(&*queue, &vec![CANARY; room])?;
                let encoded = bound.upload(&*queue, &bound.chunks[index % bound.chunks.len()].0)?;
                slots.push(DeviceSlot { encoded, decoded: Region::new(output, layout.clone())? });
            }
            let metered = Metered::new(&bound.device);
            let context = DeviceContext { device: &metered, ..bound.context(&*queue, count) };
            bound.segment.decode(&slots, &context)?.wait()?.into_iter().collect::<Result<(), _>>()?;
            let (taken, declared) = (metered.taken.load(Ordering::Relaxed), bound.segment.scratch_len(count));
            ensure!(taken <= declared, "a batch of {count} took {taken} bytes of temporary memory, declared are {declared}");
        }
    }
    Ok(())
}

fn dirty_scratch(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let metered = Metered::new(&bound.device);
    let mut chunks: Vec<Padded<'_>> = bound.encoded().into_iter().map(Padded::from).collect();
    // And one without any bytes, which few chains accept.
    chunks.push(Padded::default());
    let context = DeviceContext { device: &metered, ..bound.context(&*queue, chunks.len()) };
    let (statuses, output) = bound.decode_in(&context, &chunks, 0)?;
    let (clean_statuses, clean) = bound.decode(&*queue, &chunks, 0)?;
    ensure!(statuses == clean_statuses, "slots are good: {statuses:?}; with clean temporary memory: {clean_statuses:?}");
    ensure_same("with used temporary memory", &output, &clean)
}
