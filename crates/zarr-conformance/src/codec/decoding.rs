use zarr_codec_api::{CodecError, DecodeSlot, Representation, Scratch, Target, VariableData};

use super::bound::{Chunk, Codec, chunks};
use super::mutants::Kind;
use super::{CodecCase, CodecSubject, case};
use crate::Sample;
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case("decode/exact", "a destination is written to its ends and no further, at any alignment of either side", exact),
        case("decode/other-size", "bytes that decode to another size than the destination's are refused", other_size),
        case("decode/limit", "what grows stays within its limit, and is refused beyond it", limit),
        case("decode/blocks", "blocks decode, each on its own and in any order, to parts of the whole, and to no other length", blocks),
        case("decode/pieces", "pieces, cut anywhere, decode to the whole and to no more, or fail where only the whole will do", pieces),
        case(
            "decode/front",
            "pieces of which the front is wanted decode to that of the whole, and say that they are done when it is there",
            front,
        ),
        case("decode/reads-past", "what lies behind the encoded bytes, and before them, makes no difference", reads_past),
    ]
}

/// Vectors double, and decoders may take some more to work in. Neither takes what only a header claims.
pub(super) const WORK_SPACE: usize = 1 << 18;
/// Bytes on either side of a destination.
const CANARY: usize = 32;
const CANARY_BYTE: u8 = 0x5C;

pub(super) fn run(codec: &Codec, encoded: &[u8], target: Target<'_>) -> Result<(), CodecError> {
    let mut slots = [DecodeSlot { encoded, decoded: target, status: Ok(()) }];
    codec.decoder.decode(&mut slots, &mut Scratch::new());
    let [slot] = slots;
    slot.status
}

/// Decodes between canaries, at an offset from an alignment of 16 on both sides. Gives what was decoded.
fn guarded(codec: &Codec, encoded: &[u8], len: usize, skew: usize) -> Result<Result<Vec<u8>, CodecError>, Broken> {
    let mut shifted = Vec::with_capacity(skew + encoded.len());
    shifted.resize(skew, 0xFF);
    shifted.extend_from_slice(encoded);
    between_canaries(codec, &shifted[skew..], len, skew)
}

/// Decodes encoded bytes that stay where they are.
pub(super) fn between_canaries(codec: &Codec, encoded: &[u8], len: usize, skew: usize) -> Result<Result<Vec<u8>, CodecError>, Broken> {
    let mut memory = vec![CANARY_BYTE; CANARY + skew + len + CANARY];
    let start = CANARY + skew;
    let status = run(codec, encoded, Target::Exact(&mut memory[start..start + len]));
    let is_canary = |bytes: &[u8]| bytes.iter().all(|&byte| byte == CANARY_BYTE);
    ensure!(is_canary(&memory[..start]) && is_canary(&memory[start + len..]), "a byte outside the destination of {len} bytes was written");
    Ok(status.map(|()| memory[start..start + len].to_vec()))
}

fn exact(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, Chunk { encoded, decoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let Sample::Bytes(bytes) = decoded else { continue };
        for skew in 0..9 {
            let found = guarded(&codec, encoded, bytes.len(), skew)?;
            let found = found.map_err(|error| Broken::Failed(format!("sample {index} at an offset of {skew}: {error}")))?;
            ensure!(found == *bytes, "sample {index} at an offset of {skew} decodes to something else");
        }
    }
    Ok(())
}

fn other_size(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    // An array's size is its representation's; its destinations are never of another.
    if !matches!(codec.stage.decoded, Representation::Bytes(_)) {
        return Ok(());
    }
    for (index, Chunk { encoded, decoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let len = decoded.byte_len();
        for other in [0, len / 2, len.saturating_sub(1), len + 1, len + 1000].into_iter().filter(|&other| other != len) {
            let accepted = guarded(&codec, encoded, other, 0)?.is_ok();
            ensure!(!accepted, "sample {index}, of {len} bytes, was accepted for a destination of {other}");
        }
    }
    Ok(())
}

fn limit(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, Chunk { encoded, decoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let len = decoded.byte_len();
        let limits = [0, len / 2, len.saturating_sub(1), len, len + 1, len + (1 << 16)];
        for limit in limits {
            let (status, grown, capacity) = match decoded {
                Sample::Bytes(_) if matches!(codec.stage.decoded, Representation::Array(_)) => continue,
                Sample::Bytes(expected) => {
                    let mut bytes = Vec::new();
                    let status = run(&codec, encoded, Target::Growing { bytes: &mut bytes, limit });
                    ensure!(status.is_err() || bytes == *expected, "sample {index} grows to something else");
                    (status, bytes.len(), bytes.capacity())
                }
                Sample::Variable(expected) => {
                    let mut elements = VariableData::new();
                    let status = run(&codec, encoded, Target::Variable { elements: &mut elements, limit });
                    ensure!(status.is_err() || elements == *expected, "sample {index} decodes to other elements");
                    (status, elements.byte_len(), 0)
                }
            };
            ensure!(status.is_err() || grown <= limit, "sample {index} grew to {grown} bytes, past the limit of {limit}");
            ensure!(capacity <= 2 * limit + WORK_SPACE, "sample {index} took room for {capacity} bytes under a limit of {limit}");
            ensure!(status.is_ok() == (len <= limit), "sample {index}, of {len} bytes under a limit of {limit}: {status:?}");
        }
    }
    Ok(())
}

fn blocks(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    for (index, Chunk { encoded, decoded, .. }) in chunks.iter().enumerate() {
        let Sample::Bytes(bytes) = decoded else { continue };
        let Some(blocks) = codec.decoder.blocks(encoded) else { continue };
        let block_len = blocks.block_len();
        ensure!(block_len > 0, "blocks of sample {index} are of no bytes");
        let parts: Vec<&[u8]> = bytes.chunks(block_len).collect();
        for (number, part) in parts.iter().enumerate().rev().chain(parts.iter().enumerate()) {
            let mut memory = vec![CANARY_BYTE; CANARY + number + part.len() + CANARY];
            let range = CANARY + number..CANARY + number + part.len();
            let status = blocks.decode(number, &mut memory[range.clone()]);
            status.map_err(|error| Broken::Failed(format!("block {number} of sample {index}: {error}")))?;
            ensure!(memory[range.clone()] == **part, "block {number} of sample {index} is not that part of the whole");
            memory[range].fill(CANARY_BYTE);
            ensure!(memory.iter().all(|&byte| byte == CANARY_BYTE), "block {number} of sample {index} wrote outside of its destination");
            for wanted in [0, 1, part.len() / 2, part.len() - 1, part.len()] {
                let mut memory = vec![CANARY_BYTE; wanted + CANARY];
                let Some(status) = blocks.decode_front(number, &mut memory[..wanted]) else { continue };
                status.map_err(|error| Broken::Failed(format!("{wanted} bytes of block {number} of sample {index}: {error}")))?;
                ensure!(memory[..wanted] == part[..wanted], "the front of block {number} of sample {index} is not that part of the whole");
                let kept = memory[wanted..].iter().all(|&byte| byte == CANARY_BYTE);
                ensure!(kept, "the front of block {number} of sample {index} was written past its end");
            }
            let longer = blocks.decode_front(number, &mut vec![0; part.len() + 1]);
            ensure!(longer.is_none_or(|status| status.is_err()), "more than block {number} of sample {index} was accepted for its front");
            for other in [part.len() - 1, part.len() + 1] {
                let accepted = blocks.decode(number, &mut vec![0; other]).is_ok();
                ensure!(!accepted, "block {number} of sample {index}, of {} bytes, was accepted for {other}", part.len());
            }
        }
        ensure!(blocks.decode(parts.len(), &mut vec![0; block_len]).is_err(), "a block behind the last of sample {index} was accepted");
    }
    // A part of a bad chunk may be good. But where every part is, the whole is.
    let Some(len) = codec.exact else { return Ok(()) };
    let encoded: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.encoded.as_slice()).collect();
    for mutant in Kind::ALL.iter().flat_map(|kind| kind.of(&encoded, trial, subject.many())) {
        trial.input(&mutant.bytes);
        let Some(blocks) = codec.decoder.blocks(&mutant.bytes) else { continue };
        let mut parts = vec![0; len];
        let good = parts.chunks_mut(blocks.block_len().max(1)).enumerate().all(|(number, part)| blocks.decode(number, part).is_ok());
        if good {
            let whole = codec.decode(&mutant.bytes).ok();
            ensure!(
                whole == Some(Sample::Bytes(parts)),
                "all blocks of {} are good, and the whole is not, or is something else",
                mutant.what
            );
        }
    }
    Ok(())
}

/// Decodes in pieces of `piece` bytes. `None` when the codec has no pieces, or wants all of the chunk at once.
fn in_pieces(codec: &Codec, encoded: &[u8], piece: usize, len: usize) -> Result<Option<Vec<u8>>, Broken> {
    let Some(mut pieces) = codec.decoder.pieces(len) else { return Ok(None) };
    let mut decoded = Vec::new();
    let good = encoded.chunks(piece).all(|piece| pieces.decode(piece, &mut |bytes| decoded.extend_from_slice(bytes)).is_ok());
    ensure!(decoded.len() <= len, "pieces of {piece} bytes decode to {} bytes, of a chunk of {len}", decoded.len());
    Ok((good && pieces.finish().is_ok()).then_some(decoded))
}

fn pieces(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    const CUTS: [usize; 4] = [1, 3, 64, usize::MAX];
    let codec = Codec::of(subject)?;
    let Some(len) = codec.exact.filter(|&len| codec.decoder.pieces(len).is_some()) else { return Ok(()) };
    let chunks = chunks(subject, &codec)?;
    for (index, Chunk { encoded, decoded, .. }) in chunks.iter().enumerate() {
        for piece in CUTS {
            let same = in_pieces(&codec, encoded, piece, len)?.is_none_or(|found| *decoded == Sample::Bytes(found));
            ensure!(same, "sample {index} in pieces of {piece} bytes is something else than the whole");
        }
    }
    let encoded: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.encoded.as_slice()).collect();
    for mutant in Kind::ALL.iter().flat_map(|kind| kind.of(&encoded, trial, subject.many())) {
        trial.input(&mutant.bytes);
        for piece in CUTS {
            let Some(found) = in_pieces(&codec, &mutant.bytes, piece, len)? else { continue };
            let whole = codec.decode(&mutant.bytes).ok();
            ensure!(
                whole == Some(Sample::Bytes(found)),
                "the pieces of {} are good, and the whole is not, or is something else",
                mutant.what
            );
        }
    }
    Ok(())
}

fn front(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let Some(len) = codec.exact else { return Ok(()) };
    let chunks = chunks(subject, &codec)?;
    let encoded: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.encoded.as_slice()).collect();
    let mutants =
        Kind::ALL.iter().flat_map(|kind| kind.of(&encoded, trial, subject.many())).map(|mutant| (mutant.what.to_string(), mutant.bytes));
    let samples = chunks.iter().enumerate().map(|(index, chunk)| (format!("sample {index}"), chunk.encoded.clone()));
    for (what, encoded) in samples.chain(mutants) {
        trial.input(&encoded);
        let whole = codec.decode(&encoded).ok();
        for wanted in [0, 1, len / 3, len / 2, len.saturating_sub(1)] {
            for piece in [1, 50, usize::MAX] {
                let Some(mut pieces) = codec.decoder.pieces(wanted) else { return Ok(()) };
                let mut found = Vec::new();
                let good = encoded.chunks(piece).all(|piece| pieces.decode(piece, &mut |bytes| found.extend_from_slice(bytes)).is_ok());
                ensure!(found.len() <= len, "{what} in pieces of {piece} bytes decodes to {} bytes, of a chunk of {len}", found.len());
                let done = pieces.is_done();
                if !good || pieces.finish().is_err() {
                    continue;
                }
                let enough = if done { wanted } else { len };
                ensure!(found.len() >= enough, "{what} is done with {} bytes, of {enough} that are to come", found.len());
                if let Some(Sample::Bytes(whole)) = &whole {
                    ensure!(whole.starts_with(&found), "the first {wanted} bytes of {what} are others than those of the whole");
                } else {
                    ensure!(done, "the pieces of {what} are good, and the whole is not");
                }
            }
        }
    }
    Ok(())
}

fn reads_past(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    for (index, chunk) in chunks.iter().enumerate() {
        let whole = &chunk.encoded;
        let step = whole.len().div_ceil(32).max(1);
        // What is cut short is where decoders go on reading.
        for end in (0..=whole.len()).filter(|end| whole.len() - end < 16 || *end < 16 || end % step == 0) {
            trial.input(&whole[..end]);
            let mut first: Option<Option<Sample>> = None;
            for around in [0x00, 0xFF, 0x01] {
                let mut memory = vec![around; CANARY + end + CANARY];
                memory[CANARY..CANARY + end].copy_from_slice(&whole[..end]);
                if around == 0x01 {
                    // As the cut was never made.
                    let behind = whole.len().min(end + CANARY);
                    memory[CANARY + end..CANARY + behind].copy_from_slice(&whole[end..behind]);
                }
                let found = codec.decode(&memory[CANARY..CANARY + end]).ok();
                let same = first.get_or_insert_with(|| found.clone()) == &found;
                ensure!(same, "the first {end} of {} bytes of sample {index} decode otherwise with other bytes around them", whole.len());
            }
        }
    }
    Ok(())
}
