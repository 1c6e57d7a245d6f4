use std::panic::{AssertUnwindSafe, catch_unwind};

use zarr_codec_api::{Representation, Target, VariableData};

use super::bound::{Codec, chunks};
use super::decoding::{WORK_SPACE, between_canaries, run};
use super::fenced::Fenced;
use super::mutants::Kind;
use super::{CodecCase, CodecSubject};
use crate::feed::{Answer, Fed};
use crate::suite::{Broken, Case, Trial, ensure};

/// One law, with a case for each way in which bytes are bad.
pub(super) fn cases() -> Vec<CodecCase> {
    const LAW: &str = "codec/decode/bad-input";
    let says =
        "bytes that may be bad give no panic, no read behind them, no byte outside of their destination, and no memory for what they claim";
    let of = |kind: Kind| {
        Case::of_law(LAW, format!("{LAW}/{}", kind.name()), says, move |subject: &(dyn CodecSubject + 'static), trial| {
            bad_input(subject, trial, kind)
        })
    };
    Kind::ALL.into_iter().map(of).collect()
}

fn bad_input(subject: &dyn CodecSubject, trial: &Trial, kind: Kind) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let chunks = chunks(subject, &codec)?;
    let len = chunks.iter().map(|chunk| chunk.decoded.byte_len()).max().unwrap_or(0);
    let encoded: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.encoded.as_slice()).collect();
    // With nothing behind them, good ones may be bad, too.
    for (index, bytes) in encoded.iter().enumerate() {
        survives(trial, &codec, &format!("chunk {index}"), bytes, len)?;
    }
    kind.of(&encoded, trial, 2 * subject.many()).iter().try_for_each(|mutant| survives(trial, &codec, &mutant.what, &mutant.bytes, len))
}

/// What the codec says of encoded bytes, which it survives.
pub(super) fn feed(subject: &dyn CodecSubject, encoded: &[u8], trial: &Trial) -> Result<Fed, Broken> {
    let codec = Codec::of(subject)?;
    let len = chunks(subject, &codec)?.iter().map(|chunk| chunk.decoded.byte_len()).max().unwrap_or(0);
    survives(trial, &codec, "the input", encoded, len)?;
    let decoded = codec.decode(&Fenced::new(encoded, trial)).map_err(|error| error.to_string());
    Ok(Fed { answers: vec![Answer::new(subject.provider().name(), decoded)], broken: None })
}

/// Decodes something that may be bad: whatever it says, it must not panic, write outside, or grow past its limit.
fn survives(trial: &Trial, codec: &Codec, what: &str, encoded: &[u8], len: usize) -> Result<(), Broken> {
    trial.input(encoded);
    let encoded = &*Fenced::new(encoded, trial);
    let attempt = catch_unwind(AssertUnwindSafe(|| -> Result<(), Broken> {
        if codec.exact.is_some() || matches!(codec.stage.decoded, Representation::Bytes(_)) {
            let _ = between_canaries(codec, encoded, codec.exact.unwrap_or(len), 1)?;
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
