use zarr_buffer_api::{Layout, Region};
use zarr_codec_api::DeviceSlot;

use super::bound::Bound;
use super::{DeviceCodecCase, DeviceCodecSubject, Padded, case};
use crate::suite::{Broken, Trial, ensure, ensure_same};

pub(super) fn cases() -> Vec<DeviceCodecCase> {
    vec![
        case("ordered", "another queue sees the decoded bytes without the host waiting, and inputs may go meanwhile", ordered),
        case("two-queues", "batches on several queues at a time do not disturb each other", two_queues),
    ]
}

fn ordered(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let (first, second) = (bound.device.create_queue()?, bound.device.create_queue()?);
    for (encoded, decoded) in &bound.chunks {
        let output = bound.device.allocate(bound.len(), &*first)?;
        // The encoded bytes come by the second queue, and the decoded ones leave by it.
        let slot = DeviceSlot { encoded: bound.upload(&*second, encoded)?, decoded: Region::new(output.clone(), bound.contiguous(0)?)? };
        let ticket = bound.segment.decode(std::slice::from_ref(&slot), &bound.context(&*first, 1))?;
        let whole = Layout::contiguous(&[slot.encoded.len()], 1)?;
        second.fill_region(&Region::new(slot.encoded.clone(), whole)?, &[0xEE])?;
        drop(slot);
        ensure_same("decoded bytes, by another queue", &bound.download(&*second, &output)?, decoded)?;
        ticket.wait()?.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

fn two_queues(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let bound = &bound;
    std::thread::scope(|scope| {
        let work = |first: usize| {
            move || -> Result<(), Broken> {
                let queue = bound.device.create_queue()?;
                for round in 0..4 {
                    let (encoded, decoded) = &bound.chunks[(first + round) % bound.chunks.len()];
                    let (statuses, output) = bound.decode(&*queue, &[Padded::from(encoded.as_slice()); 2], 0)?;
                    ensure!(statuses == [true, true], "a chunk is refused beside other queues");
                    ensure_same("beside other queues", &output, &[decoded.as_slice(), decoded].concat())?;
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..3).map(|first| scope.spawn(work(first))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Broken::Failed("a thread panicked".into()))))
    })
}
