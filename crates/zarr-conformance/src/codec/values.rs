use zarr_codec_api::{ArrayRepresentation, ByteLen, CodecErrorKind, Direction, Limits, Representation, Stage};
use zarr_meta::Extension;

use super::bound::{Chunk, Codec, chunks};
use super::{CodecCase, CodecSubject, case, error_bound};
use crate::Sample;
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case("names", "a provider lists the codecs that it knows, and takes no others", names),
        case("ran", "every chunk is the work of the implementation itself, where it counts its work", ran),
        case("round-trip", "what is encoded decodes to itself, or for a lossy codec, what was decoded does", round_trip),
        error_bound::law(),
        case("encoded-size", "encoded bytes are of the size, or within the bound, that was declared", encoded_size),
        case("repeatable", "decoding gives the same every time, whatever came between", repeatable),
        case("deterministic", "where that was declared, the same chunk encodes to the same bytes every time", deterministic),
        case(
            "elementwise",
            "a codec that claims to work element by element encodes a part of a chunk as it encodes it in the whole",
            elementwise,
        ),
        case("verbatim", "a segment that claims to leave bytes as they are does", verbatim),
    ]
}

fn names(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let (provider, codec) = (subject.provider(), subject.codec());
    ensure!(!provider.name().is_empty(), "the provider has no name");
    ensure!(provider.codecs().contains(&codec.name), "{} is not among {:?}", codec.name, provider.codecs());
    let unknown = Extension::new("example.nobody-knows-this");
    let decoded = subject.decoded().clone();
    match provider.encoded_representation(&unknown, &decoded, &Limits::default()) {
        Ok(None) => {}
        Ok(Some(_)) => return Err(Broken::Failed("claims to know a codec that does not exist".into())),
        Err(error) => return Err(Broken::Failed(format!("fails on a codec that it does not know: {error}"))),
    }
    let stage = Stage { codec: unknown, decoded, encoded: Representation::Bytes(ByteLen::AtMost(1)) };
    for direction in [Direction::Decode, Direction::Encode] {
        match provider.bind(std::slice::from_ref(&stage), direction) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(Broken::Failed("takes a codec that does not exist".into())),
            Err(error) => return Err(Broken::Failed(format!("fails on a codec that it does not know: {error}"))),
        }
        ensure!(provider.bind(&[], direction)?.is_none(), "takes something of no stages");
    }
    Ok(())
}

fn ran(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let count = || subject.work_done().unwrap_or(0);
    if subject.work_done().is_none() {
        return Ok(());
    }
    let codec = Codec::of(subject)?;
    for (index, sample) in subject.samples()?.iter().enumerate() {
        let before = count();
        let encoded = codec.encode(sample)?;
        ensure!(count() > before, "sample {index} was encoded by somebody else");
        let before = count();
        codec.decode(&encoded)?;
        ensure!(count() > before, "sample {index} was decoded by somebody else");
    }
    Ok(())
}

fn round_trip(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, chunk) in chunks(subject, &codec)?.iter().enumerate() {
        ensure!(subject.is_lossy() || chunk.decoded == chunk.sample, "sample {index} does not decode to itself");
        let again = codec.decode(&codec.encode(&chunk.decoded)?)?;
        ensure!(again == chunk.decoded, "what sample {index} decodes to does not encode and decode to itself");
    }
    Ok(())
}

fn encoded_size(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let Some(declared) = codec.stage.encoded.byte_len()? else {
        return Ok(());
    };
    for (index, Chunk { sample, encoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let len = encoded.len() as u64;
        let fits = declared.exact().map_or(len <= declared.upper(), |exact| len == exact);
        ensure!(fits, "sample {index}, of {} bytes, encodes to {len}, declared {declared:?}", sample.byte_len());
    }
    Ok(())
}

/// The sample with another last element; `None` where there is none.
fn twin(subject: &dyn CodecSubject, sample: &Sample) -> Option<Sample> {
    let Sample::Bytes(bytes) = sample else { return None };
    let mut bytes = bytes.clone();
    match subject.decoded().as_array() {
        None => *bytes.last_mut()? ^= 1,
        // One of the others is an element that the data type permits.
        Some(array) => {
            let size = array.data_type.fixed_size().filter(|size| *size > 0)?;
            let last = bytes.len().checked_sub(size)?;
            let other = bytes.chunks_exact(size).find(|element| *element != &bytes[last..])?.to_vec();
            bytes[last..].copy_from_slice(&other);
        }
    }
    Some(Sample::Bytes(bytes))
}

fn repeatable(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, chunk) in chunks(subject, &codec)?.iter().enumerate().rev() {
        ensure!(codec.decode(&chunk.encoded)? == chunk.decoded, "sample {index} decodes to something else the second time");
        let anew = Codec::of(subject)?;
        ensure!(anew.decode(&chunk.encoded)? == chunk.decoded, "sample {index} decodes to something else by a segment bound anew");
        // What differs in the end alone is easily taken for the same.
        if let Some(twin) = twin(subject, &chunk.sample) {
            let encoded = anew.encode(&twin)?;
            let alone = Codec::of(subject)?.decode(&encoded)?;
            ensure!(codec.decode(&encoded)? == alone, "a chunk much like sample {index}, and decoded after it, gives something else");
        }
    }
    Ok(())
}

fn deterministic(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    if !subject.is_deterministic() {
        return Ok(());
    }
    let codec = Codec::of(subject)?;
    for (index, chunk) in chunks(subject, &codec)?.iter().enumerate().rev() {
        ensure!(codec.encode(&chunk.sample)? == chunk.encoded, "sample {index} encodes to other bytes the second time");
        ensure!(
            Codec::of(subject)?.encode(&chunk.sample)? == chunk.encoded,
            "sample {index} encodes to other bytes by a segment bound anew"
        );
    }
    Ok(())
}

fn elementwise(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(array) = subject.decoded().as_array() else {
        return Ok(());
    };
    if !subject.provider().is_elementwise(subject.codec(), subject.decoded()) || array.elements()? == 0 {
        return Ok(());
    }
    let codec = Codec::of(subject)?;
    // The elements in C order along one axis, and half of them.
    let elements = array.elements()?;
    let part = elements.div_ceil(2);
    let flat = |len: usize| Representation::Array(ArrayRepresentation { shape: vec![len as u64], ..array.clone() });
    let (all, half) = (Codec::over(subject, flat(elements))?, Codec::over(subject, flat(part))?);
    for (index, Chunk { sample, encoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let Sample::Bytes(bytes) = sample else { continue };
        ensure!(all.encode(sample)? == *encoded, "sample {index} is encoded otherwise under another shape");
        let of_half = half.encode(&Sample::Bytes(bytes[..bytes.len() / elements * part].to_vec()))?;
        ensure!(encoded.starts_with(&of_half), "half of sample {index} is not encoded as in the whole");
        ensure!(of_half.len() == encoded.len() / elements * part, "half of sample {index} is encoded to {} bytes", of_half.len());
    }
    Ok(())
}

fn verbatim(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, Chunk { encoded, decoded, .. }) in chunks(subject, &codec)?.iter().enumerate() {
        let Sample::Bytes(bytes) = decoded else { continue };
        if codec.decoder.is_verbatim() {
            ensure!(encoded == bytes, "sample {index} is said to be encoded verbatim, and is not");
        }
        match codec.decoder.view(encoded) {
            None => ensure!(!codec.decoder.is_verbatim(), "said to be verbatim, but gives no view"),
            Some(Ok(view)) => ensure!(view == bytes, "the view of sample {index} is not what it decodes to"),
            Some(Err(error)) => return Err(Broken::Failed(format!("the view of sample {index}: {error}"))),
        }
    }
    // Wrong bytes must give no panic, and where the size is wrong, no view of the right size.
    if let Some(Err(error)) = codec.decoder.view(&[]) {
        ensure!(error.kind() == CodecErrorKind::Format, "the view of no bytes is refused as {:?}", error.kind());
    }
    Ok(())
}
