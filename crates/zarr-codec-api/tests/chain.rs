//! Chains: who is asked for which stages, and what a segment makes of several of them.

use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, DeviceKind};
use zarr_codec_api::{
    ArrayRepresentation, ArrayToArray, ArrayToBytes, Bound, ByteLen, BytesToBytes, Chain, CodecError, CodecErrorKind, CodecProvider,
    DeviceContext, DeviceSegment, DeviceSlot, Direction, HostProvider, Limits, Placement, Policy, Registry, Representation, Scratch,
    Segment, SimpleCodec, Source, Stage, Target, Ticket,
};
use zarr_meta::{DataType, Extension, FillValue};

fn array(shape: &[u64]) -> ArrayRepresentation {
    let data_type = DataType::UInt16;
    ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: shape.to_vec() }
}

fn codecs(names: &[&str]) -> Vec<Extension> {
    names.iter().map(|name| Extension::new(*name)).collect()
}

/// Elements with their two bytes swapped, in place.
#[derive(Debug)]
struct Swapped;

impl ArrayToBytes for Swapped {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("swapped")? as u64))
    }
    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("swapped", decoded.len(), encoded.len()));
        }
        decoded.copy_from_slice(encoded);
        assert!(self.decode_in_place(representation, decoded));
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend(decoded.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]));
        Ok(())
    }
    fn decode_in_place(&self, _: &ArrayRepresentation, bytes: &mut [u8]) -> bool {
        bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        true
    }
    fn is_in_place(&self, _: &ArrayRepresentation) -> bool {
        true
    }
}

/// Elements in the opposite order.
#[derive(Debug)]
struct Backwards;

impl ArrayToArray for Backwards {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        Ok(decoded.clone())
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decoded.chunks_exact_mut(2).zip(encoded.chunks_exact(2).rev()).for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }
    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        self.decode(representation, decoded, encoded)
    }
}

/// A byte behind the data, which is a view; or the data doubled, which is not.
#[derive(Debug)]
enum Packed {
    Tail,
    Twice,
}

impl BytesToBytes for Packed {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        match self {
            Self::Tail => decoded.plus(1),
            Self::Twice => ByteLen::AtMost(decoded.upper() * 2),
        }
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut bytes = Vec::new();
        self.decode_growing(encoded, &mut bytes, usize::MAX)?;
        if bytes.len() != decoded.len() {
            return Err(CodecError::size("packed", decoded.len(), bytes.len()));
        }
        decoded.copy_from_slice(&bytes);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        match self {
            Self::Tail => decoded.extend_from_slice(tail(encoded)?),
            Self::Twice if !encoded.len().is_multiple_of(2) => return Err(CodecError::format("twice", "half a pair")),
            Self::Twice => decoded.extend(encoded.iter().step_by(2)),
        }
        if decoded.len() > limit { Err(CodecError::limit("packed", limit)) } else { Ok(()) }
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            Self::Tail => encoded.extend(decoded.iter().chain(&[7])),
            Self::Twice => encoded.extend(decoded.iter().flat_map(|&byte| [byte, byte])),
        }
        Ok(())
    }
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        matches!(self, Self::Tail).then(|| tail(encoded))
    }
}

fn tail(encoded: &[u8]) -> Result<&[u8], CodecError> {
    match encoded {
        [data @ .., 7] => Ok(data),
        _ => Err(CodecError::format("tail", "the last byte is not 7")),
    }
}

fn arrays(name: &str) -> HostProvider {
    HostProvider::new(name)
        .with("swapped", |_, _| Ok(SimpleCodec::array_to_bytes(Swapped)))
        .with("backwards", |_, _| Ok(SimpleCodec::array_to_array(Backwards)))
}

fn packers(name: &str) -> HostProvider {
    HostProvider::new(name)
        .with("tail", |_, _| Ok(SimpleCodec::bytes_to_bytes(Packed::Tail)))
        .with("twice", |_, _| Ok(SimpleCodec::bytes_to_bytes(Packed::Twice)))
}

fn refusing(name: &str, kind: CodecErrorKind) -> HostProvider {
    HostProvider::new(name).with("swapped", move |_, _| Err(CodecError::new(kind, "swapped", "not like this")))
}

#[test]
fn every_mix_of_stages_and_providers_round_trips() {
    let decoded: Vec<u8> = (0..12).collect();
    let chains: [&[&str]; 7] = [
        &["swapped"],
        &["backwards", "swapped"],
        &["swapped", "tail"],
        &["swapped", "twice"],
        &["backwards", "backwards", "swapped", "tail", "tail"],
        &["swapped", "twice", "tail", "twice"],
        &["backwards", "swapped", "tail", "twice", "tail"],
    ];
    for names in chains {
        // One segment, two providers in turns, and the same with what a provider refuses left to the next.
        let whole = Registry::new().with(arrays("a")).with(packers("p"));
        let refused = Registry::new().with(refusing("r", CodecErrorKind::Unsupported)).with(packers("p")).with(arrays("a"));
        for registry in [whole, refused] {
            let chain = Chain::bind(&codecs(names), array(&[2, 3]), &registry, &Policy::Host).unwrap();
            let mut scratch = Scratch::new();
            for _ in 0..2 {
                let (mut encoded, mut back) = (Vec::new(), vec![0; 12]);
                chain.encode(Source::Bytes(&decoded), &mut encoded, &mut scratch).unwrap();
                chain.decode(&encoded, Target::Exact(&mut back), &mut scratch).unwrap();
                assert_eq!(back, decoded, "{names:?}");
                let cut = &encoded[..encoded.len() - 1];
                assert!(chain.decode(cut, Target::Exact(&mut back), &mut scratch).is_err(), "{names:?}");
            }
        }
    }
}

#[test]
fn what_is_wrong_is_not_left_to_the_next_provider() {
    let registry = Registry::new().with(refusing("r", CodecErrorKind::Metadata)).with(arrays("a"));
    let error = Chain::bind(&codecs(&["swapped"]), array(&[1]), &registry, &Policy::Host).unwrap_err();
    assert_eq!(error.kind(), CodecErrorKind::Metadata);
    // Where nobody is left, the refusal says more than that nobody knows the codec.
    let registry = Registry::new().with(refusing("r", CodecErrorKind::Unsupported));
    let error = Chain::bind(&codecs(&["swapped"]), array(&[1]), &registry, &Policy::Host).unwrap_err();
    assert_eq!((error.kind(), error.message()), (CodecErrorKind::Unsupported, "not like this"));
}

#[test]
fn chains_out_of_order_are_refused() {
    let registry = Registry::new().with(arrays("a")).with(packers("p"));
    for names in [&[][..], &["tail"], &["backwards"], &["swapped", "backwards"], &["swapped", "swapped"], &["tail", "swapped"]] {
        let error = Chain::bind(&codecs(names), array(&[4]), &registry, &Policy::Host).unwrap_err();
        assert_eq!(error.kind(), CodecErrorKind::Metadata, "{names:?}");
    }
    let error = Chain::bind(&codecs(&["swapped", "nobody"]), array(&[4]), &registry, &Policy::Host).unwrap_err();
    assert_eq!((error.kind(), error.codec()), (CodecErrorKind::Unsupported, "nobody"));
}

#[test]
fn an_implementation_is_chosen_by_name() {
    let registry = Registry::new().with(arrays("first")).with(arrays("second"));
    let chosen = |name: &str| {
        let chain = Chain::bind(&codecs(&["swapped"]), array(&[1]), &registry, &Policy::Implementation(name.into()))?;
        Ok::<_, CodecError>(chain.segments()[0].provider.clone())
    };
    assert_eq!(chosen("first").unwrap(), "first");
    assert_eq!(chosen("second").unwrap(), "second");
    assert_eq!(chosen("third").unwrap_err().kind(), CodecErrorKind::Unsupported);
}

/// Knows some codecs and never runs.
#[derive(Debug)]
struct DeviceProvider(&'static [&'static str], HostProvider);

const DEVICE: DeviceId = DeviceId::new(DeviceKind::ExtDev, 4);

#[derive(Debug)]
struct NoWork;

impl DeviceSegment for NoWork {
    fn decode(&self, _: &[DeviceSlot], _: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        Err(CodecError::unsupported("device", "never runs"))
    }
    fn scratch_len(&self, _: usize) -> u64 {
        0
    }
}

impl CodecProvider for DeviceProvider {
    fn name(&self) -> &str {
        "device"
    }
    fn placement(&self) -> Placement {
        Placement::Device(DEVICE)
    }
    fn codecs(&self) -> Vec<String> {
        self.0.iter().map(|&name| name.to_owned()).collect()
    }
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        self.1.encoded_representation(codec, decoded, limits)
    }
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let knows = |stage: &&Stage| self.0.contains(&stage.codec.name.as_str());
        let consumed = match direction {
            Direction::Decode => stages.iter().rev().take_while(knows).count(),
            // What "twice" makes has no size that is known before.
            Direction::Encode => stages.iter().take_while(knows).take_while(|stage| stage.codec.name != "twice").count(),
        };
        Ok((consumed > 0).then(|| Bound { consumed, segment: Segment::Device(Arc::new(NoWork)) }))
    }
}

#[test]
fn the_device_takes_the_longest_run_on_the_array_side() {
    let names = ["backwards", "swapped", "tail", "twice"];
    let cases: [(&[&str], Option<&str>); 5] = [
        (
            &["backwards", "swapped", "tail", "twice"],
            Some(
                "upload to ext:4\ntwice, tail, swapped, backwards on ext:4 by device\n\
                 writing from ext:4: backwards, swapped, tail there by device, then download\n",
            ),
        ),
        (
            &["backwards", "swapped"],
            Some(
                "twice, tail on host by p\nupload to ext:4\nswapped, backwards on ext:4 by device\n\
                 writing from ext:4: backwards, swapped there by device, then download\n",
            ),
        ),
        (
            &["backwards", "twice"],
            Some(
                "twice, tail on host by p\nswapped on host by a\nupload to ext:4\nbackwards on ext:4 by device\n\
                 writing from ext:4: backwards there by device, then download\n",
            ),
        ),
        (&["swapped", "tail", "twice"], None),
        (&[], None),
    ];
    for (known, explained) in cases {
        let known: &'static [&'static str] = known.iter().map(|&name| &*name.to_owned().leak()).collect::<Vec<_>>().leak();
        let registry = Registry::new().with(DeviceProvider(known, arrays("d"))).with(arrays("a")).with(packers("p"));
        let bind = |policy| Chain::bind(&codecs(&names), array(&[2, 3]), &registry, &policy);
        let chain = bind(Policy::Prefer(DEVICE)).unwrap();
        match explained {
            Some(explained) => assert_eq!((chain.device(), chain.explain().as_str()), (Some(DEVICE), explained)),
            None => assert_eq!(chain.device(), None),
        }
        assert_eq!(bind(Policy::Require(DEVICE)).is_ok(), known.len() == 4, "{known:?}");
        // Reading to the host is not the device's business.
        let (mut encoded, mut back) = (Vec::new(), vec![0; 12]);
        let decoded: Vec<u8> = (0..12).collect();
        chain.encode(Source::Bytes(&decoded), &mut encoded, &mut Scratch::new()).unwrap();
        chain.decode(&encoded, Target::Exact(&mut back), &mut Scratch::new()).unwrap();
        assert_eq!(back, decoded);
        // The host encodes what the device leaves.
        let (mut half, mut rest) = (Vec::new(), Vec::new());
        match chain.device_encode().map(|on_device| on_device.stages.end) {
            None => assert!(explained.is_none() && chain.encode_rest(&[], &mut rest, &mut Scratch::new()).is_err()),
            Some(end) => {
                if end == 1 {
                    half.extend(decoded.chunks(2).rev().flatten());
                } else {
                    let first = Chain::bind(&codecs(&names[..end]), array(&[2, 3]), &registry, &Policy::Host).unwrap();
                    first.encode(Source::Bytes(&decoded), &mut half, &mut Scratch::new()).unwrap();
                }
                chain.encode_rest(&half, &mut rest, &mut Scratch::new()).unwrap();
                assert_eq!(rest, encoded);
            }
        }
    }
}

#[test]
fn elements_that_are_stored_as_they_are_stay_the_host_s_to_encode() {
    let plain = || HostProvider::new("plain").with("plain", |_, _| Ok(SimpleCodec::array_to_bytes(Plain)));
    let registry = Registry::new().with(DeviceProvider(&["plain"], plain())).with(plain());
    let chain = Chain::bind(&codecs(&["plain"]), array(&[2]), &registry, &Policy::Prefer(DEVICE)).unwrap();
    assert_eq!((chain.device(), chain.device_encode().is_none()), (Some(DEVICE), true));
}

/// Elements as they are.
#[derive(Debug)]
struct Plain;

impl ArrayToBytes for Plain {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("plain")? as u64))
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decoded.copy_from_slice(encoded);
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend_from_slice(decoded);
        Ok(())
    }
    fn is_verbatim(&self, _: &ArrayRepresentation) -> bool {
        true
    }
}

#[test]
fn an_array_is_not_decoded_as_bytes_of_unknown_size() {
    let registry = Registry::new().with(arrays("a")).with(packers("p"));
    for names in [&["swapped"][..], &["swapped", "tail"], &["swapped", "twice"]] {
        let chain = Chain::bind(&codecs(names), array(&[2]), &registry, &Policy::Host).unwrap();
        let (mut encoded, mut bytes) = (Vec::new(), Vec::new());
        chain.encode(Source::Bytes(&[1, 2, 3, 4]), &mut encoded, &mut Scratch::new()).unwrap();
        let error = chain.decode(&encoded, Target::Growing { bytes: &mut bytes, limit: 100 }, &mut Scratch::new()).unwrap_err();
        assert_eq!(error.kind(), CodecErrorKind::Parameter, "{names:?}");
    }
}

#[test]
fn a_chunk_beyond_all_memory_is_an_error() {
    let registry = Registry::new().with(arrays("a")).with(packers("p"));
    let huge = array(&[1 << 30, 1 << 30]);
    assert_eq!(huge.byte_len().unwrap(), Some(1 << 61));
    let chain = Chain::bind(&codecs(&["backwards", "swapped", "twice"]), huge, &registry, &Policy::Host).unwrap();
    let error = chain.decode(&[1, 1, 2, 2], Target::Exact(&mut [0; 2]), &mut Scratch::new()).unwrap_err();
    assert_eq!(error.kind(), CodecErrorKind::Limit);
    // No elements, whatever the other axes.
    assert_eq!(array(&[u64::MAX, u64::MAX, 0]).elements().unwrap(), 0);
    assert!(array(&[u64::MAX, 2]).elements().is_err());
}

#[test]
fn scratch_memory_is_used_again() {
    let mut scratch = Scratch::new();
    let bytes = scratch.try_take_len(1000, "x").unwrap();
    let address = bytes.as_ptr();
    scratch.give(bytes);
    let again = scratch.try_take_len(500, "x").unwrap();
    assert_eq!(again.as_ptr(), address);
    assert_eq!(scratch.try_take_len(usize::MAX / 4, "x").unwrap_err().kind(), CodecErrorKind::Limit);
}

#[test]
fn errors_of_buffers_keep_their_blame() {
    let kind = |kind| CodecError::from(BufferError::new(kind, "x")).kind();
    assert_eq!(kind(BufferErrorKind::Borrowed), CodecErrorKind::Parameter);
    assert_eq!(kind(BufferErrorKind::Unsupported), CodecErrorKind::Unsupported);
    assert_eq!(kind(BufferErrorKind::OutOfMemory), CodecErrorKind::Device);
}
