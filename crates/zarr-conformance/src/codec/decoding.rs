use std::panic::{AssertUnwindSafe, catch_unwind};

use zarr_codec_api::{CodecError, DecodeSlot, Representation, Scratch, Target, VariableData};

use super::{Codec, CodecCase, CodecSubject, case, triples};
use crate::Sample;
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case("decode/exact", "a destination is written to its ends and no further, at any alignment of either side", exact),
        case("decode/other-size", "bytes that decode to another size than the destination's are refused", other_size),
        case("decode/limit", "what grows stays within its limit, and is refused beyond it", limit),
        case("decode/truncated", "a chunk cut short gives no panic and no byte outside its destination", truncated),
        case("decode/extended", "a chunk with bytes behind it gives no panic and no byte outside its destination", extended),
        case("decode/mutated", "a chunk with wrong bytes in it gives no panic and no byte outside its destination", mutated),
        case("decode/garbage", "bytes that never were a chunk give no panic and no byte outside their destination", garbage),
    ]
}

/// Most cuts of one chunk that are tried.
const MOST_CUTS: usize = 200;
/// Vectors double, and decoders may take some more to work in. Neither takes what only a header claims.
const WORK_SPACE: usize = 1 << 18;
/// Bytes on either side of a destination.
const CANARY: usize = 32;
const CANARY_BYTE: u8 = 0x5C;

fn run(codec: &Codec, encoded: &[u8], target: Target<'_>) -> Result<(), CodecError> {
    let mut slots = [DecodeSlot { encoded, decoded: target, status: Ok(()) }];
    codec.decoder.decode(&mut slots, &mut Scratch::new());
    let [slot] = slots;
    slot.status
}

/// Decodes between canaries, at an offset from an alignment of 16 on both sides. Gives what was decoded.
fn guarded(codec: &Codec, encoded: &[u8], len: usize, skew: usize) -> Result<Result<Vec<u8>, CodecError>, Broken> {
    let mut memory = vec![CANARY_BYTE; CANARY + skew + len + CANARY];
    let start = CANARY + skew;
    // The encoded bytes have nothing behind them that could be read unnoticed by a sanitizer.
    let mut shifted = Vec::with_capacity(skew + encoded.len());
    shifted.resize(skew, 0xFF);
    shifted.extend_from_slice(encoded);
    let shifted = shifted.into_boxed_slice();
    let status = run(codec, &shifted[skew..], Target::Exact(&mut memory[start..start + len]));
    let outside = memory[..start].iter().chain(&memory[start + len..]).position(|&byte| byte != CANARY_BYTE);
    ensure!(outside.is_none(), "a byte outside the destination of {len} bytes was written");
    Ok(status.map(|()| memory[start..start + len].to_vec()))
}

fn exact(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
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
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
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
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
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

/// Decodes something that may be bad: whatever it says, it must not panic, write outside, or grow past its limit.
fn survives(trial: &Trial, codec: &Codec, what: &str, encoded: &[u8], len: usize) -> Result<(), Broken> {
    trial.input(encoded);
    let attempt = catch_unwind(AssertUnwindSafe(|| -> Result<(), Broken> {
        if codec.exact.is_some() || matches!(codec.stage.decoded, Representation::Bytes(_)) {
            let _ = guarded(codec, encoded, codec.exact.unwrap_or(len), 1)?;
        }
        match codec.stage.decoded {
            // What is refused may hold anything, but not take memory for what it claims.
            Representation::Bytes(_) => {
                let mut bytes = Vec::new();
                let accepted = run(codec, encoded, Target::Growing { bytes: &mut bytes, limit: len }).is_ok();
                ensure!(!accepted || bytes.len() <= len, "grew to {} bytes of {len}", bytes.len());
                ensure!(bytes.capacity() <= 2 * len + WORK_SPACE, "took room for {} bytes of {len}", bytes.capacity());
            }
            Representation::Array(_) if codec.exact.is_none() => {
                let mut elements = VariableData::new();
                let accepted = run(codec, encoded, Target::Variable { elements: &mut elements, limit: len }).is_ok();
                ensure!(!accepted || elements.byte_len() <= len, "grew to {} bytes of {len}", elements.byte_len());
            }
            Representation::Array(_) => {}
        }
        let _ = codec.decoder.view(encoded);
        Ok(())
    }));
    match attempt {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Broken::Failed(message) | Broken::Unsupported(message))) => Err(Broken::Failed(format!("{what}: {message}"))),
        Err(_) => Err(Broken::Failed(format!("{what}: panicked on {} bytes: {:02x?}", encoded.len(), &encoded[..encoded.len().min(64)]))),
    }
}

fn truncated(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
        let step = encoded.len().div_ceil(MOST_CUTS).max(1);
        let ends = (0..encoded.len()).filter(|end| end % step == 0 || *end < 40 || encoded.len() - end < 20);
        for end in ends {
            survives(
                trial,
                &codec,
                &format!("sample {index} cut to {end} of {} bytes", encoded.len()),
                &encoded[..end],
                decoded.byte_len(),
            )?;
        }
    }
    Ok(())
}

fn extended(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
        for tail in [&[0][..], &[0; 100], &[0xFF; 9], encoded] {
            let longer = [encoded, tail].concat();
            survives(trial, &codec, &format!("sample {index} with {} bytes behind it", tail.len()), &longer, decoded.byte_len())?;
        }
    }
    Ok(())
}

fn mutated(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let mut random = trial.random(11);
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate().filter(|(_, triple)| !triple.1.is_empty()) {
        for round in 0..MOST_CUTS {
            let mut bytes = encoded.clone();
            for _ in 0..1 + round % 3 {
                // Headers are at the start, and decide most.
                let at = random.below(if round % 2 == 0 { bytes.len().min(24) } else { bytes.len() });
                bytes[at] = match random.below(4) {
                    0 => 0xFF,
                    1 => bytes[at] ^ 1 << random.below(8),
                    2 => 0,
                    _ => random.next() as u8,
                };
            }
            survives(trial, &codec, &format!("sample {index}, mutation {round}"), &bytes, decoded.byte_len())?;
        }
    }
    Ok(())
}

fn garbage(subject: &dyn CodecSubject, trial: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let mut random = trial.random(13);
    for round in 0..MOST_CUTS {
        let bytes: Vec<u8> = (0..random.below(100)).map(|_| random.next() as u8).collect();
        survives(trial, &codec, &format!("garbage {round}"), &bytes, 1000)?;
        survives(trial, &codec, "bytes of one value", &vec![[0x00, 0xFF, 0x80, 0x01][round % 4]; round], 1000)?;
    }
    Ok(())
}
