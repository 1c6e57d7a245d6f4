use zarr_codec_api::CodecError;

use super::PairSubject;
use super::bound::{Implementation, Verdict};
use crate::codec::mutants::Kind;
use crate::feed::{Answer, Fed};
use crate::samples::Sample;
use crate::suite::{Broken, Case, Trial, ensure};

/// The law of known divergences.
pub(crate) const DIVERGENCES: &str = "pair/divergences";

pub(super) fn cases() -> Vec<Case<dyn PairSubject>> {
    const VERDICTS: &str = "pair/verdicts";
    let mut cases = vec![
        case("who", "both are who and where they are said to be, and do their own work, where they count it", who),
        case("exchange", "what either encodes, both decode to the same bits", exchange),
        case("same-bytes", "where that was declared, both encode a chunk to the same bytes", same_bytes),
        case("fits", "what either encodes is of a size that both declare", fits),
        Case::new(
            DIVERGENCES,
            "bytes on which the two were declared to part do part them, as declared",
            |subject: &(dyn PairSubject + 'static), trial| divergences(subject, trial),
        ),
    ];
    cases.extend(Kind::ALL.into_iter().map(|kind| {
        let says = "both accept the same bytes that may be bad, as the same chunks, and refuse the same";
        Case::of_law(VERDICTS, format!("{VERDICTS}/{}", kind.name()), says, move |subject: &(dyn PairSubject + 'static), trial| {
            verdicts(subject, trial, kind)
        })
    }));
    cases
}

fn case(id: &str, says: &'static str, check: fn(&dyn PairSubject, &Trial) -> Result<(), Broken>) -> Case<dyn PairSubject> {
    Case::new(format!("pair/{id}"), says, move |subject: &(dyn PairSubject + 'static), trial| check(subject, trial))
}

/// The samples as the reference encodes them.
fn encoded(subject: &dyn PairSubject, reference: &Implementation<'_>) -> Result<Vec<Vec<u8>>, Broken> {
    let mut all = Vec::new();
    for sample in subject.samples()? {
        all.push(
            reference.encode(&sample)?.ok_or_else(|| Broken::Failed(format!("{}, the reference, does not encode", reference.name())))?,
        );
    }
    ensure!(!all.is_empty(), "the subject has no samples");
    Ok(all)
}

fn who(subject: &dyn PairSubject, trial: &Trial) -> Result<(), Broken> {
    let both = Implementation::both(subject)?;
    ensure!(
        both[0].name() != both[1].name() || both[0].side.placement() != both[1].side.placement(),
        "both are {} on {}",
        both[0].name(),
        both[0].side.placement()
    );
    let encoded = encoded(subject, &both[0])?;
    for implementation in &both {
        for bytes in &encoded {
            let before = implementation.side.work_done();
            implementation.decode(&[bytes], trial)?;
            let after = implementation.side.work_done();
            ensure!(before.is_none() || after > before, "a chunk was decoded by somebody else than {}", implementation.name());
        }
    }
    Ok(())
}

fn exchange(subject: &dyn PairSubject, trial: &Trial) -> Result<(), Broken> {
    let both = Implementation::both(subject)?;
    for encoder in both.iter().filter(|implementation| implementation.encodes()) {
        for (index, sample) in subject.samples()?.iter().enumerate() {
            let Some(encoded) = encoder.encode(sample)? else { continue };
            let mut first: Option<Sample> = None;
            for decoder in &both {
                let what = format!("sample {index}, encoded by {}, decoded by {}", encoder.name(), decoder.name());
                let decoded = decoder.decode(&[&encoded], trial)?.pop().flatten();
                let decoded = decoded.ok_or_else(|| Broken::Failed(format!("{what}: refused")))?;
                ensure!(subject.is_lossy() || decoded == *sample, "{what}: {}", difference(&decoded, sample));
                let first = first.get_or_insert_with(|| decoded.clone());
                ensure!(*first == decoded, "{what}: {}", difference(&decoded, first));
            }
        }
    }
    Ok(())
}

/// Where two chunks part.
fn difference(found: &Sample, expected: &Sample) -> String {
    match (found, expected) {
        (Sample::Bytes(found), Sample::Bytes(expected)) if found.len() != expected.len() => {
            format!("{} bytes instead of {}", found.len(), expected.len())
        }
        (Sample::Bytes(found), Sample::Bytes(expected)) => match found.iter().zip(expected).position(|(found, expected)| found != expected)
        {
            Some(at) => format!("byte {at} is {:#04x} instead of {:#04x}", found[at], expected[at]),
            None => "no difference".into(),
        },
        _ => "other elements".into(),
    }
}

fn same_bytes(subject: &dyn PairSubject, _: &Trial) -> Result<(), Broken> {
    if !subject.is_deterministic() {
        return Ok(());
    }
    let both = Implementation::both(subject)?;
    for (index, sample) in subject.samples()?.iter().enumerate() {
        if let (Some(first), Some(second)) = (both[0].encode(sample)?, both[1].encode(sample)?) {
            ensure!(first == second, "sample {index}: {}", difference(&Sample::Bytes(second), &Sample::Bytes(first)));
        }
    }
    Ok(())
}

fn fits(subject: &dyn PairSubject, _: &Trial) -> Result<(), Broken> {
    let both = Implementation::both(subject)?;
    for (index, sample) in subject.samples()?.iter().enumerate() {
        for encoder in &both {
            let Some(encoded) = encoder.encode(sample)? else { continue };
            let len = encoded.len() as u64;
            for other in &both {
                let fits = other.encoded.exact().map_or(len <= other.encoded.upper(), |exact| len == exact);
                let (encoder, other, declared) = (encoder.name(), other.name(), other.encoded);
                ensure!(fits, "sample {index}: {encoder} encodes it to {len} bytes, {other} declares {declared:?}");
            }
        }
    }
    Ok(())
}

fn verdicts(subject: &dyn PairSubject, trial: &Trial, kind: Kind) -> Result<(), Broken> {
    let both = Implementation::both(subject)?;
    let encoded = encoded(subject, &both[0])?;
    let encoded: Vec<&[u8]> = encoded.iter().map(Vec::as_slice).collect();
    let mutants = kind.of(&encoded, trial, 2 * subject.many());
    for batch in mutants.chunks(subject.many().max(1)) {
        let bytes: Vec<&[u8]> = batch.iter().map(|mutant| mutant.bytes.as_slice()).collect();
        trial.batch(&bytes);
        let (first, second) = (both[0].decode(&bytes, trial)?, both[1].decode(&bytes, trial)?);
        for ((mutant, first), second) in batch.iter().zip(first).zip(second) {
            let names = [both[0].name(), both[1].name()];
            if let Some(how) = parts(subject, names, &mutant.bytes, [first, second]) {
                // The one that matters, in the place of its batch.
                trial.input(&mutant.bytes);
                return Err(Broken::Failed(format!("{}: {how}, {:02x?}", mutant.what, &mutant.bytes[..mutant.bytes.len().min(64)])));
            }
        }
    }
    Ok(())
}

fn divergences(subject: &dyn PairSubject, trial: &Trial) -> Result<(), Broken> {
    let both = Implementation::both(subject)?;
    let mut known = Vec::new();
    for divergence in subject.divergences() {
        let (name, accepts) = (divergence.name(), divergence.accepted_by());
        let [yes, no] = match both.each_ref().map(|side| side.name() == accepts) {
            [true, false] => [&both[0], &both[1]],
            [false, true] => [&both[1], &both[0]],
            _ => return Err(Broken::Failed(format!("{name}: {accepts} is not the name of one of the two"))),
        };
        ensure!(divergence.covers(divergence.input()), "{name}: the declaration does not cover the bytes that show it");
        let verdict = |side: &Implementation<'_>| Ok::<_, Broken>(side.decode(&[divergence.input()], trial)?.pop().flatten().is_some());
        let (yes, no) = ((yes.name(), verdict(yes)?), (no.name(), verdict(no)?));
        let said = |accepts: bool| if accepts { "accepts" } else { "refuses" };
        ensure!(yes.1 && !no.1, "{name}: {} {} it and {} {} it, which is not what was declared", yes.0, said(yes.1), no.0, said(no.1));
        known.push(format!("{name}: {} accepts, {} refuses: {}", yes.0, no.0, divergence.reason()));
    }
    if known.is_empty() { Ok(()) } else { Err(Broken::Unsupported(format!("known divergence {}", known.join("; ")))) }
}

/// How two verdicts on the same bytes part, unless that is known.
fn parts(subject: &dyn PairSubject, [first, second]: [&str; 2], bytes: &[u8], verdicts: [Verdict; 2]) -> Option<String> {
    let (yes, no) = match verdicts {
        [None, None] => return None,
        [Some(one), Some(other)] if one == other => return None,
        [Some(one), Some(other)] => {
            return Some(format!("{second} and {first} make different chunks of it: {}", difference(&other, &one)));
        }
        [Some(_), None] => (first, second),
        [None, Some(_)] => (second, first),
    };
    let known = subject.divergences().iter().any(|known| known.accepted_by() == yes && known.covers(bytes));
    (!known).then(|| format!("{yes} accepts it, {no} does not"))
}

/// What both say of encoded bytes.
pub(super) fn feed(subject: &dyn PairSubject, encoded: &[u8], trial: &Trial) -> Result<Fed, Broken> {
    let both = Implementation::both(subject)?;
    let [first, second] = [both[0].answer(encoded, trial)?, both[1].answer(encoded, trial)?];
    let names = [both[0].name(), both[1].name()];
    let broken = parts(subject, names, encoded, [first.as_ref().ok().cloned(), second.as_ref().ok().cloned()]);
    let answer = |name: &str, answer: Result<Sample, CodecError>| Answer::new(name, answer.map_err(|error| error.to_string()));
    Ok(Fed { answers: vec![answer(names[0], first), answer(names[1], second)], broken })
}
