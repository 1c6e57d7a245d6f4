use zarr_codec_api::{CodecError, EncodeSlot, Representation, Scratch, Source, VariableData};

use super::bound::{Codec, chunks};
use super::{CodecCase, CodecSubject, case};
use crate::samples::Sample;
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case(
            "encode/source",
            "a chunk encodes to the same at any alignment, whatever lies around it and whatever room its bytes are given",
            of_source,
        ),
        case(
            "encode/other-size",
            "an array of another size than its representation's is refused, and others of its batch are not",
            other_size,
        ),
    ]
}

/// Bytes on either side of a source.
const AROUND: usize = 32;

fn encode(codec: &Codec, decoded: Source<'_>, room: Vec<u8>) -> Result<Vec<u8>, CodecError> {
    let mut encoded = room;
    let mut slots = [EncodeSlot { decoded, encoded: &mut encoded, status: Ok(()) }];
    codec.encoder.encode(&mut slots, &mut Scratch::new());
    let [slot] = slots;
    slot.status.map(|()| encoded)
}

/// An empty vector in whose memory there was something.
fn used(len: usize) -> Vec<u8> {
    let mut room = vec![0xB6; len];
    room.clear();
    room
}

fn of_source(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, chunk) in chunks(subject, &codec)?.iter().enumerate() {
        let Sample::Bytes(bytes) = &chunk.sample else { continue };
        for skew in 0..9 {
            let mut memory = vec![[0x00, 0xFF][skew % 2]; AROUND + skew + bytes.len() + AROUND];
            let start = AROUND + skew;
            memory[start..start + bytes.len()].copy_from_slice(bytes);
            let encoded = encode(&codec, Source::Bytes(&memory[start..start + bytes.len()]), used(skew * 1000))?;
            ensure!(codec.decode(&encoded)? == chunk.decoded, "sample {index} at an offset of {skew} encodes to something else");
        }
    }
    Ok(())
}

fn other_size(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    // Of bytes the representation is a bound, which the codec before holds.
    let Representation::Array(array) = &codec.stage.decoded else {
        return Ok(());
    };
    for sample in subject.samples()? {
        match sample {
            Sample::Bytes(bytes) => {
                let size = array.data_type.fixed_size().unwrap_or(1).max(1);
                let longer = [bytes.as_slice(), &vec![0; size]].concat();
                let shorter = bytes.len().checked_sub(size).map(|len| bytes[..len].to_vec());
                for other in [Some(longer), shorter].into_iter().flatten() {
                    refused_alone(&codec, Source::Bytes(&bytes), Source::Bytes(&other))?;
                }
            }
            Sample::Variable(elements) => {
                let more: VariableData = elements.iter().chain([&b"one more"[..]]).collect();
                let fewer: VariableData = elements.iter().skip(1).collect();
                for other in [more, fewer].into_iter().filter(|other| other.len() != elements.len()) {
                    refused_alone(&codec, Source::Variable(&elements), Source::Variable(&other))?;
                }
            }
        }
    }
    Ok(())
}

/// Encodes a bad chunk between good ones.
fn refused_alone(codec: &Codec, good: Source<'_>, bad: Source<'_>) -> Result<(), Broken> {
    let mut encoded = [Vec::new(), Vec::new(), Vec::new()];
    let mut slots: Vec<EncodeSlot<'_>> = [good, bad, good]
        .into_iter()
        .zip(&mut encoded)
        .map(|(decoded, encoded)| EncodeSlot {
            decoded,
            encoded,
            status: Err(CodecError::parameter("conformance", "the status was not set")),
        })
        .collect();
    codec.encoder.encode(&mut slots, &mut Scratch::new());
    let statuses: Vec<bool> = slots.iter().map(|slot| slot.status.is_ok()).collect();
    let len = |source: Source<'_>| match source {
        Source::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Source::Variable(elements) => format!("{} elements", elements.len()),
    };
    ensure!(statuses == [true, false, true], "an array of {}, between two of {}: slots are good: {statuses:?}", len(bad), len(good));
    let alone = encode(codec, good, Vec::new())?;
    ensure!(codec.decode(&encoded[2])? == codec.decode(&alone)?, "a chunk encodes to something else behind a bad one");
    Ok(())
}
