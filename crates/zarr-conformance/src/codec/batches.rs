use zarr_codec_api::{CodecError, DecodeSlot, EncodeSlot, Scratch};

use super::bound::{Chunk, Codec, Room, chunks, source};
use super::{CodecCase, CodecSubject, case};
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case("batch/equals-singles", "a batch gives what its chunks give one by one, in any order and number", equals_singles),
        case("batch/bad-slot-alone", "a bad chunk fails its own slot, and the others are decoded", bad_slot_alone),
        case("batch/dirty-scratch", "what reused memory holds makes no difference", dirty_scratch),
        case("batch/threads", "a segment works from several threads at a time", threads),
    ]
}

fn unset() -> Result<(), CodecError> {
    Err(CodecError::parameter("conformance", "the slot's status was not set"))
}

/// Decodes a batch; statuses are wrong beforehand, to see that they are set.
fn decode(codec: &Codec, encoded: &[&[u8]], scratch: &mut Scratch) -> Vec<(Room, Result<(), CodecError>)> {
    let mut rooms: Vec<Room> = encoded.iter().map(|_| codec.room()).collect();
    let mut slots: Vec<DecodeSlot<'_>> =
        rooms.iter_mut().zip(encoded).map(|(room, &encoded)| DecodeSlot { encoded, decoded: room.target(), status: unset() }).collect();
    codec.decoder.decode(&mut slots, scratch);
    let statuses: Vec<_> = slots.into_iter().map(|slot| slot.status).collect();
    rooms.into_iter().zip(statuses).collect()
}

fn equals_singles(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    let count = chunks.len();
    let orders: [Vec<usize>; 5] = [
        vec![],
        vec![count - 1],
        vec![count - 1, 0],
        (0..count).rev().collect(),
        (0..subject.many().max(3)).map(|index| index * 7 % count).collect(),
    ];
    for order in orders {
        let mut scratch = Scratch::new();
        let encoded: Vec<&[u8]> = order.iter().map(|&index| chunks[index].encoded.as_slice()).collect();
        for (slot, (room, status)) in decode(&codec, &encoded, &mut scratch).into_iter().enumerate() {
            status?;
            ensure!(room.sample == chunks[order[slot]].decoded, "slot {slot} of a batch of {} decodes to something else", order.len());
        }
        let mut outputs = vec![Vec::new(); order.len()];
        let mut slots: Vec<EncodeSlot<'_>> = outputs
            .iter_mut()
            .zip(&order)
            .map(|(encoded, &index)| EncodeSlot { decoded: source(&chunks[index].sample), encoded, status: unset() })
            .collect();
        codec.encoder.encode(&mut slots, &mut scratch);
        let statuses: Vec<_> = slots.into_iter().map(|slot| slot.status).collect();
        statuses.into_iter().collect::<Result<(), _>>()?;
        for (slot, encoded) in outputs.iter().enumerate() {
            ensure!(
                codec.decode(encoded)? == chunks[order[slot]].decoded,
                "slot {slot} of a batch of {} encodes to something else",
                order.len()
            );
        }
    }
    Ok(())
}

/// Bytes that the codec refuses, made of good ones; `None` if it takes everything that was tried.
fn refused(codec: &Codec, good: &[u8]) -> Option<Vec<u8>> {
    let shorter = good.get(..good.len().saturating_sub(1)).map(<[u8]>::to_vec);
    let longer = [good, &[0]].concat();
    let candidates = [shorter, Some(Vec::new()), Some(longer), Some(vec![0xFF; good.len()])];
    candidates.into_iter().flatten().find(|bytes| codec.decode(bytes).is_err())
}

fn bad_slot_alone(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    let Some(bad) = chunks.iter().find_map(|chunk| refused(&codec, &chunk.encoded)) else {
        return Ok(());
    };
    trial.input(&bad);
    for position in 0..=chunks.len() {
        let mut encoded: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.encoded.as_slice()).collect();
        encoded.insert(position, &bad);
        for (slot, (room, status)) in decode(&codec, &encoded, &mut Scratch::new()).into_iter().enumerate() {
            if slot == position {
                ensure!(status.is_err(), "a chunk that is refused alone is accepted in slot {slot}");
                continue;
            }
            status.map_err(|error| Broken::Failed(format!("slot {slot} fails with a bad chunk in slot {position}: {error}")))?;
            let index = if slot < position { slot } else { slot - 1 };
            ensure!(room.sample == chunks[index].decoded, "slot {slot} decodes to something else with a bad chunk in slot {position}");
        }
    }
    Ok(())
}

fn dirty_scratch(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let mut scratch = Scratch::new();
    for (index, Chunk { sample, encoded, decoded }) in chunks(subject, &codec)?.iter().enumerate() {
        let mut dirty = || (0..4).for_each(|_| scratch.give(vec![0xAB; sample.byte_len() * 2 + encoded.len() + 100]));
        dirty();
        for (room, status) in decode(&codec, &[encoded, encoded], &mut scratch) {
            status?;
            ensure!(room.sample == *decoded, "sample {index} decodes to something else with used scratch memory");
        }
        (0..4).for_each(|_| scratch.give(vec![0xAB; sample.byte_len() * 2 + encoded.len() + 100]));
        let mut again = Vec::new();
        let mut slots = [EncodeSlot { decoded: source(sample), encoded: &mut again, status: unset() }];
        codec.encoder.encode(&mut slots, &mut scratch);
        let [slot] = slots;
        slot.status?;
        ensure!(codec.decode(&again)? == *decoded, "sample {index} encodes to something else with used scratch memory");
    }
    Ok(())
}

fn threads(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    let (codec, chunks) = (&codec, &chunks);
    std::thread::scope(|scope| {
        let work = |first: usize| {
            move || -> Result<(), Broken> {
                for round in 0..2 * chunks.len() {
                    let Chunk { sample, encoded, decoded } = &chunks[(first + round) % chunks.len()];
                    ensure!(codec.decode(encoded)? == *decoded, "a chunk decodes to something else beside other threads");
                    let encoded = codec.encode(sample)?;
                    ensure!(codec.decode(&encoded)? == *decoded, "a chunk encodes to something else beside other threads");
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..4).map(|first| scope.spawn(work(first))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Broken::Failed("a thread panicked".into()))))
    })
}
