use zarr_codec_api::{ArrayRepresentation, ByteLen, CodecErrorKind, Direction, Limits, Representation, Stage};
use zarr_meta::Extension;

use super::{Codec, CodecCase, CodecSubject, case, triples};
use crate::Sample;
use crate::suite::{Broken, Trial, ensure};

pub(super) fn cases() -> Vec<CodecCase> {
    vec![
        case("names", "a provider lists the codecs that it knows, and takes no others", names),
        case("round-trip", "what is encoded decodes to itself, or for a lossy codec, what was decoded does", round_trip),
        case("encoded-size", "encoded bytes are of the size, or within the bound, that was declared", encoded_size),
        case("repeatable", "encoding the same twice gives the same, whatever came between", repeatable),
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

fn round_trip(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
        ensure!(codec.decode(encoded)? == *decoded, "sample {index} does not decode to itself");
        let again = codec.decode(&codec.encode(decoded)?)?;
        ensure!(again == *decoded, "what sample {index} decodes to does not encode and decode to itself");
    }
    Ok(())
}

fn encoded_size(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let Some(declared) = codec.stage.encoded.byte_len()? else {
        return Ok(());
    };
    for (index, (sample, encoded, _)) in triples(subject, &codec)?.iter().enumerate() {
        let len = encoded.len() as u64;
        let fits = declared.exact().map_or(len <= declared.upper(), |exact| len == exact);
        ensure!(fits, "sample {index}, of {} bytes, encodes to {len}, declared {declared:?}", sample.byte_len());
    }
    Ok(())
}

fn repeatable(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let codec = Codec::of(subject)?;
    let triples = triples(subject, &codec)?;
    for (index, (_, encoded, decoded)) in triples.iter().enumerate().rev() {
        ensure!(codec.decode(encoded)? == *decoded, "sample {index} decodes to something else the second time");
        let again = Codec::of(subject)?.encode(decoded)?;
        ensure!(codec.decode(&again)? == *decoded, "sample {index}, encoded by a segment bound anew, decodes to something else");
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
    for (index, (sample, encoded, _)) in triples(subject, &codec)?.iter().enumerate() {
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
    for (index, (_, encoded, decoded)) in triples(subject, &codec)?.iter().enumerate() {
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
