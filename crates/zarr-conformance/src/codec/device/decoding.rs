use zarr_buffer_api::{Layout, Region};
use zarr_codec_api::{DeviceSlot, Direction, Placement, Scratch, Target};
use zarr_meta::Extension;

use super::bound::{Bound, bind};
use super::runner::{CANARY, laid_out};
use super::{DeviceCodecCase, DeviceCodecSubject, Padded, case};
use crate::Sample;
use crate::codec::mutants::Kind;
use crate::feed::{Answer, Fed};
use crate::suite::{Broken, Case, Trial, ensure, ensure_same};

pub(super) fn cases() -> Vec<DeviceCodecCase> {
    const VERDICTS: &str = "device-codec/verdicts";
    let mut cases = vec![
        case("binds", "the provider takes the chain, and says where it runs", binds),
        case("ran", "every batch is the work of the device itself, where it counts its work", ran),
        case("decode", "chunks decode to what the reference encoded, in batches of any number and order", decode),
        case("scatter", "a strided destination gets its elements, and nothing beside them changes", scatter),
        case("unaligned", "encoded bytes and destinations lie at any alignment, and nothing beside them changes", unaligned),
        case("other-size", "a destination of another size than the chunk's is refused, and nothing beside it changes", other_size),
        case(
            "bad-slot-alone",
            "a bad chunk fails its own slot and leaves zeros there, wherever it stands; the others are decoded",
            bad_slot_alone,
        ),
        case("reads-past", "what lies behind the encoded bytes, and before them, makes no difference", reads_past),
    ];
    cases.extend(Kind::ALL.into_iter().map(|kind| {
        let says = "what the reference accepts and rejects, so does the device, with the same bytes";
        Case::of_law(VERDICTS, format!("{VERDICTS}/{}", kind.name()), says, move |subject: &(dyn DeviceCodecSubject + 'static), trial| {
            verdicts(subject, trial, kind)
        })
    }));
    cases
}

/// Bytes on either side of a destination.
const GAP: usize = 32;

fn binds(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    bind(subject)?;
    let placement = subject.provider().placement();
    ensure!(placement == Placement::Device(subject.device().id()), "placed on {placement}, the device is {}", subject.device().id());
    for stage in subject.reference().stages() {
        ensure!(subject.provider().codecs().contains(&stage.codec.name), "{} is not among its codecs", stage.codec.name);
    }
    let mut unknown = subject.reference().stages().to_vec();
    if let Some(last) = unknown.last_mut() {
        last.codec = Extension::new("example.nobody-knows-this");
    }
    ensure!(subject.provider().bind(&unknown, Direction::Decode)?.is_none(), "takes a codec that does not exist");
    Ok(())
}

fn ran(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(before) = subject.work_done() else {
        return Ok(());
    };
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let mut before = before;
    for (encoded, _) in &bound.chunks {
        bound.decode(&*queue, &[Padded::from(encoded.as_slice())], 0)?;
        let after = subject.work_done().unwrap_or(before);
        ensure!(after > before, "a batch was decoded by somebody else than {}", subject.device().id());
        before = after;
    }
    Ok(())
}

fn decode(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let count = bound.chunks.len();
    let many = (0..subject.many().max(3)).map(|index| index * 3 % count).collect();
    for order in [vec![], vec![0], vec![count - 1, 0], (0..count).rev().collect(), many] {
        let chunks: Vec<Padded<'_>> = order.iter().map(|&index| bound.chunks[index].0.as_slice().into()).collect();
        let (statuses, output) = bound.decode(&*queue, &chunks, 0)?;
        ensure!(statuses.iter().all(|&good| good), "a good chunk was refused: {statuses:?}");
        let expected: Vec<u8> = order.iter().flat_map(|&index| bound.chunks[index].1.clone()).collect();
        ensure_same(&format!("a batch of {}", order.len()), &output, &expected)?;
    }
    Ok(())
}

fn scatter(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    if !bound.segment.scatters() {
        return Ok(());
    }
    let queue = bound.device.create_queue()?;
    let (layout, room) = bound.strided();
    for (encoded, decoded) in &bound.chunks {
        let output = bound.upload(&*queue, &vec![CANARY; room])?;
        let slot = DeviceSlot { encoded: bound.upload(&*queue, encoded)?, decoded: Region::new(output.clone(), layout.clone())? };
        let statuses = bound.segment.decode(&[slot], &bound.context(&*queue, 1))?.wait()?;
        statuses.into_iter().collect::<Result<(), _>>()?;
        ensure_same("a strided destination", &bound.download(&*queue, &output)?, &laid_out(&layout, decoded, room))?;
    }
    Ok(())
}

fn unaligned(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    for skew in [1, 2, 3, 5, 8] {
        let before = vec![0xFF; skew];
        let chunks: Vec<Padded<'_>> = bound.encoded().into_iter().map(|bytes| Padded { before: &before, bytes, behind: &[] }).collect();
        let (statuses, output) = bound.decode(&*queue, &chunks, skew)?;
        ensure!(statuses.iter().all(|&good| good), "an unaligned chunk was refused: {statuses:?}");
        let mut expected: Vec<u8> =
            bound.chunks.iter().flat_map(|(_, decoded)| [&vec![CANARY; skew], decoded.as_slice()].concat()).collect();
        expected.extend(vec![CANARY; skew]);
        ensure_same(&format!("chunks {skew} bytes off"), &output, &expected)?;
    }
    Ok(())
}

fn other_size(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let elements = bound.shape.iter().product::<usize>();
    for (encoded, _) in &bound.chunks {
        for other in [elements.checked_sub(1), Some(elements + 1)].into_iter().flatten() {
            let len = other * bound.item_size;
            let layout = Layout { offset: GAP, ..Layout::contiguous(&[other], bound.item_size)? };
            let output = bound.upload(&*queue, &vec![CANARY; GAP + len + GAP])?;
            let slot = DeviceSlot { encoded: bound.upload(&*queue, encoded)?, decoded: Region::new(output.clone(), layout)? };
            let accepted = match bound.segment.decode(&[slot], &bound.context(&*queue, 1)) {
                Ok(ticket) => ticket.wait()?.iter().all(Result::is_ok),
                Err(_) => false,
            };
            ensure!(!accepted, "a chunk of {elements} elements is decoded to {other}");
            let found = bound.download(&*queue, &output)?;
            ensure_same("before a destination of another size", &found[..GAP], &[CANARY; GAP])?;
            ensure_same("behind a destination of another size", &found[GAP + len..], &[CANARY; GAP])?;
        }
    }
    Ok(())
}

fn bad_slot_alone(subject: &dyn DeviceCodecSubject, trial: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let mutants = [Kind::Truncated, Kind::Extended, Kind::Garbage].map(|kind| kind.of(&bound.encoded(), trial, 20));
    let Some(bad) = mutants.into_iter().flatten().find(|mutant| bound.verdict(&mutant.bytes).is_none()) else {
        return Ok(());
    };
    trial.input(&bad.bytes);
    for position in 0..=bound.chunks.len() {
        let mut chunks: Vec<Padded<'_>> = bound.encoded().into_iter().map(Padded::from).collect();
        chunks.insert(position, bad.bytes.as_slice().into());
        let (statuses, output) = bound.decode(&*queue, &chunks, 0)?;
        let good: Vec<bool> = (0..chunks.len()).map(|slot| slot != position).collect();
        ensure!(statuses == good, "with a bad chunk in slot {position}, the slots are good: {statuses:?}");
        let mut decoded: Vec<&[u8]> = bound.chunks.iter().map(|(_, decoded)| decoded.as_slice()).collect();
        let zeros = vec![0; bound.len()];
        decoded.insert(position, &zeros);
        ensure_same(&format!("a batch with a bad chunk in slot {position}"), &output, &decoded.concat())?;
    }
    Ok(())
}

fn reads_past(subject: &dyn DeviceCodecSubject, trial: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    for (index, whole) in bound.encoded().into_iter().enumerate() {
        // What is cut short is where decoders go on reading.
        let ends: Vec<usize> = (0..=whole.len()).filter(|end| whole.len() - end < 12 || *end < 12).collect();
        trial.input(whole);
        let mut first: Option<(Vec<bool>, Vec<u8>)> = None;
        for around in [&[0x00; 32], &[0xFF; 32], &[0x01; 32]] {
            // Once as if the cut had never been made.
            let behind = |end: usize| if around[0] == 1 { &whole[end..whole.len().min(end + 32)] } else { around };
            let chunks: Vec<Padded<'_>> =
                ends.iter().map(|&end| Padded { before: around, bytes: &whole[..end], behind: behind(end) }).collect();
            let found = bound.decode(&*queue, &chunks, 0)?;
            let same = first.get_or_insert_with(|| found.clone()) == &found;
            ensure!(same, "the first of {} bytes of chunk {index} decode otherwise with other bytes around them", whole.len());
        }
    }
    Ok(())
}

/// What reference and device say of encoded bytes.
pub(super) fn feed(subject: &dyn DeviceCodecSubject, encoded: &[u8]) -> Result<Fed, Broken> {
    let bound = Bound::of(subject)?;
    let mut expected = vec![0; bound.len()];
    let status = bound.chain.decode(encoded, Target::Exact(&mut expected), &mut Scratch::new());
    let expected = status.map(|_| Sample::Bytes(expected)).map_err(|error| error.to_string());
    let found = bound.answer(encoded)?.map(Sample::Bytes).map_err(|error| error.to_string());
    let broken = match (&expected, &found) {
        (Ok(expected), Ok(found)) if expected != found => Some("the two make different chunks of it".to_owned()),
        (expected, found) if expected.is_ok() != found.is_ok() => Some("one accepts it, the other does not".to_owned()),
        _ => None,
    };
    Ok(Fed { answers: vec![Answer::new("the reference", expected), Answer::new(subject.provider().name(), found)], broken })
}

fn verdicts(subject: &dyn DeviceCodecSubject, trial: &Trial, kind: Kind) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let mutants = kind.of(&bound.encoded(), trial, subject.many().div_ceil(3));
    // A good one at the end of each batch.
    let batch = subject.many().max(2);
    for mutants in mutants.chunks(batch - 1) {
        let mut all: Vec<&[u8]> = mutants.iter().map(|mutant| mutant.bytes.as_slice()).collect();
        all.push(&bound.chunks[0].0);
        trial.batch(&all);
        let (statuses, output) = bound.decode(&*queue, &all.iter().map(|&bytes| bytes.into()).collect::<Vec<_>>(), 0)?;
        for (index, (&bytes, good)) in all.iter().zip(statuses).enumerate() {
            let what = mutants.get(index).map_or("a good chunk", |mutant| &mutant.what);
            let expected = bound.verdict(bytes);
            if expected.is_some() != good {
                // The one that matters, in the place of its batch.
                trial.input(bytes);
            }
            let head = &bytes[..bytes.len().min(64)];
            ensure!(expected.is_some() == good, "{what}: the reference accepts: {}, the device: {good}, {head:02x?}", expected.is_some());
            let found = &output[index * bound.len()..(index + 1) * bound.len()];
            ensure_same(what, found, &expected.unwrap_or(vec![0; bound.len()]))?;
        }
    }
    Ok(())
}
