use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::DeviceId;
use zarr_meta::Extension;

use crate::{
    ArrayRepresentation, Blocks, CodecError, CodecErrorKind, CodecProvider, DecodeSlot, Direction, EncodeSlot, Pieces, Placement, Policy,
    Registry, Representation, Scratch, Segment, Source, Stage, Target,
};

/// A codec chain, bound to implementations.
///
/// For decoding to a device under a policy that names it, the device takes the longest run of stages on the array side that it implements
/// without a gap; what comes before runs on the host, and bytes cross the bus once. Decoding to the host always runs on the host. For encoding what lies on
/// the device, it takes the longest such run whose sizes are known, unless there is nothing to be done in it, and the host encodes the rest.
#[derive(Debug, Clone)]
pub struct Chain {
    stages: Vec<Stage>,
    representation: ArrayRepresentation,
    /// As the policy wants it.
    decode: Vec<BoundSegment>,
    /// All on the host.
    host: Result<Vec<BoundSegment>, Arc<CodecError>>,
    encode: Result<Vec<BoundSegment>, Arc<CodecError>>,
    /// What the device encodes, of which the host encodes the rest.
    divided: Option<(BoundSegment, Vec<BoundSegment>)>,
}

/// A segment of a chain.
#[derive(Debug, Clone)]
pub struct BoundSegment {
    /// The implementation's name.
    pub provider: String,
    /// Where it runs.
    pub placement: Placement,
    /// Which stages of the chain.
    pub stages: Range<usize>,
    /// What runs them.
    pub segment: Segment,
}

impl Chain {
    /// Resolves and binds `codecs`, in the order of the metadata, for chunks of `representation`.
    ///
    /// # Errors
    /// When no provider knows a codec, a configuration is wrong, codecs stand in the wrong order, or the policy cannot be met.
    pub fn bind(
        codecs: &[Extension],
        representation: ArrayRepresentation,
        registry: &Registry,
        policy: &Policy,
    ) -> Result<Self, CodecError> {
        if let Policy::Implementation(name) = policy
            && !registry.providers().any(|provider| provider.name() == name)
        {
            return Err(CodecError::unsupported("codecs", format!("no provider in the registry is named {name}")));
        }
        let stages = resolve(codecs, &representation, registry)?;
        let decode = bind_decode(&stages, registry, policy)?;
        // An array whose codecs only a device decodes, or that can be read but not written, must still open.
        let host = match policy.device() {
            None => Ok(decode.clone()),
            Some(_) => bind_host(&stages, 0..stages.len(), registry, policy, Direction::Decode).map_err(Arc::new),
        };
        let encode = bind_host(&stages, 0..stages.len(), registry, policy, Direction::Encode).map_err(Arc::new);
        let divided = bind_divided(&stages, registry, policy)?;
        Ok(Self { stages, representation, decode, host, encode, divided })
    }

    /// The stages, array side first.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The decoded chunk.
    pub fn representation(&self) -> &ArrayRepresentation {
        &self.representation
    }

    /// What the chain encodes to.
    pub fn encoded(&self) -> Representation {
        self.stages.last().map_or_else(|| Representation::Array(self.representation.clone()), |stage| stage.encoded.clone())
    }

    /// The segments in the order of decoding: those of the host, then those of the device.
    pub fn segments(&self) -> &[BoundSegment] {
        &self.decode
    }

    /// The device that the last segments run on, if any do.
    pub fn device(&self) -> Option<DeviceId> {
        match self.decode.last()?.placement {
            Placement::Device(device) => Some(device),
            Placement::Host => None,
        }
    }

    /// Whether the encoded bytes are the decoded bytes, so that any part of a chunk can be read straight to its destination.
    pub fn is_verbatim(&self) -> bool {
        let Ok(host) = &self.host else { return false };
        host.iter().all(|bound| matches!(&bound.segment, Segment::Host(segment) if segment.is_verbatim()))
    }

    /// Where the encoded bytes contain the decoded bytes as they are: that part of them, checked.
    pub fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        match self.host.as_deref() {
            Ok([BoundSegment { segment: Segment::Host(segment), .. }]) => segment.view(encoded),
            _ => None,
        }
    }

    /// The parts of an encoded chunk that can be decoded each on its own, on the host and on any thread; `None` where there are none, or something is wrong
    /// with them, which [`Chain::decode`] then tells.
    pub fn blocks<'a>(&self, encoded: &'a [u8]) -> Option<Box<dyn Blocks + 'a>> {
        match self.host.as_deref() {
            Ok([BoundSegment { segment: Segment::Host(segment), .. }]) => segment.blocks(encoded),
            _ => None,
        }
    }

    /// A decoder, on the host, that takes an encoded chunk in pieces, for who wants the first `wanted` of its decoded bytes; `None` where there is none.
    pub fn pieces(&self, wanted: usize) -> Option<Box<dyn Pieces>> {
        match self.host.as_deref() {
            Ok([BoundSegment { segment: Segment::Host(segment), .. }]) => segment.pieces(wanted),
            _ => None,
        }
    }

    /// Decodes one chunk on the host, on this thread.
    ///
    /// # Errors
    /// When the bytes are bad, or no provider decodes one of the codecs on the host.
    pub fn decode(&self, encoded: &[u8], target: Target<'_>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let host = self.host.as_ref().map_err(|error| again(error))?;
        let (last, before) = host.split_last().ok_or_else(|| CodecError::metadata("codecs", "the chain is empty"))?;
        let mut owned: Option<Vec<u8>> = None;
        for bound in before {
            let mut bytes = scratch.take();
            let result = self.decode_between(bound, owned.as_deref().unwrap_or(encoded), &mut bytes, scratch);
            if let Some(done) = owned.replace(bytes) {
                scratch.give(done);
            }
            result?;
        }
        let result = run_decode(last, owned.as_deref().unwrap_or(encoded), target, scratch);
        if let Some(done) = owned {
            scratch.give(done);
        }
        result
    }

    /// Decodes only the segments on the host, into the bytes that the first segment on a device takes.
    ///
    /// # Errors
    /// When the bytes are bad.
    pub fn decode_to_device_input(&self, encoded: &[u8], decoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let host = self.decode.iter().take_while(|bound| bound.placement == Placement::Host);
        let mut current: Option<Vec<u8>> = None;
        for bound in host {
            let mut bytes = scratch.take();
            let result = self.decode_between(bound, current.as_deref().unwrap_or(encoded), &mut bytes, scratch);
            if let Some(done) = current.replace(bytes) {
                scratch.give(done);
            }
            result?;
        }
        match current {
            Some(bytes) => {
                decoded.extend_from_slice(&bytes);
                scratch.give(bytes);
            }
            None => decoded.extend_from_slice(encoded),
        }
        Ok(())
    }

    fn decode_between(&self, bound: &BoundSegment, encoded: &[u8], decoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let stage = self.stages.get(bound.stages.start).ok_or_else(|| CodecError::metadata("codecs", "the chain is empty"))?;
        let len = stage
            .decoded
            .byte_len()?
            .ok_or_else(|| CodecError::unsupported(&stage.codec.name, "elements of variable length between two providers"))?;
        let limit = usize::try_from(len.upper()).map_err(|_| CodecError::limit(&stage.codec.name, usize::MAX))?;
        if len.exact().is_some() {
            scratch.give(std::mem::take(decoded));
            *decoded = scratch.try_take_len(limit, &stage.codec.name)?;
            run_decode(bound, encoded, Target::Exact(decoded), scratch)
        } else {
            run_decode(bound, encoded, Target::Growing { bytes: decoded, limit }, scratch)
        }
    }

    /// Encodes one chunk on the host, on this thread: appends to the empty `encoded`.
    ///
    /// # Errors
    /// When a value cannot be encoded, or no provider encodes one of the codecs.
    pub fn encode(&self, source: Source<'_>, encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let segments = self.encode.as_ref().map_err(|error| again(error))?;
        run_encode(segments, source, encoded, scratch)
    }

    /// What the device of the policy encodes of elements that lie on it: the first stages, of which at least one has something to do.
    /// [`Chain::encode_rest`] takes what comes out.
    pub fn device_encode(&self) -> Option<&BoundSegment> {
        self.divided.as_ref().map(|(on_device, _)| on_device)
    }

    /// Encodes, on the host and on this thread, what the stages of [`Chain::device_encode`] gave: appends to the empty `encoded`.
    ///
    /// # Errors
    /// When a stage fails, or the device encodes nothing.
    pub fn encode_rest(&self, source: &[u8], encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let Some((_, rest)) = &self.divided else {
            return Err(CodecError::parameter("codecs", "no device encodes the first stages"));
        };
        if rest.is_empty() {
            encoded.extend_from_slice(source);
            return Ok(());
        }
        run_encode(rest, Source::Bytes(source), encoded, scratch)
    }

    /// What runs where, a line for each segment in the order of decoding; then the stages that a device encodes of elements that lie on it.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let mut host = true;
        for bound in &self.decode {
            if host && bound.placement != Placement::Host {
                host = false;
                let _ = writeln!(text, "upload to {}", bound.placement);
            }
            let names: Vec<&str> =
                self.stages.get(bound.stages.clone()).unwrap_or_default().iter().rev().map(|stage| stage.codec.name.as_str()).collect();
            let _ = writeln!(text, "{} on {} by {}", names.join(", "), bound.placement, bound.provider);
        }
        if let Some((bound, _)) = &self.divided {
            let names: Vec<&str> =
                self.stages.get(bound.stages.clone()).unwrap_or_default().iter().map(|stage| stage.codec.name.as_str()).collect();
            let _ = writeln!(text, "writing from {}: {} there by {}, then download", bound.placement, names.join(", "), bound.provider);
        }
        text
    }
}

/// An error that was found when the chain was bound, for each caller anew.
fn again(error: &CodecError) -> CodecError {
    let message = error.get_ref().map_or_else(|| error.message().to_owned(), |source| format!("{}: {source}", error.message()));
    CodecError::new(error.kind(), error.codec(), message)
}

fn run_decode(bound: &BoundSegment, encoded: &[u8], target: Target<'_>, scratch: &mut Scratch) -> Result<(), CodecError> {
    match &bound.segment {
        Segment::Host(segment) => {
            let mut slots = [DecodeSlot { encoded, decoded: target, status: Ok(()) }];
            segment.decode(&mut slots, scratch);
            let [slot] = slots;
            slot.status
        }
        Segment::Device(_) => Err(CodecError::unsupported(&bound.provider, "bytes on the host were given to a segment on a device")),
    }
}

/// Runs segments of the host, in the order of encoding.
fn run_encode(segments: &[BoundSegment], source: Source<'_>, encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
    let mut current: Option<Vec<u8>> = None;
    for (index, bound) in segments.iter().enumerate() {
        let last = index + 1 == segments.len();
        let mut output = if last { std::mem::take(encoded) } else { scratch.take() };
        let input = current.as_deref().map_or(source, Source::Bytes);
        let result = match &bound.segment {
            Segment::Host(segment) => {
                let mut slots = [EncodeSlot { decoded: input, encoded: &mut output, status: Ok(()) }];
                segment.encode(&mut slots, scratch);
                let [slot] = slots;
                slot.status
            }
            Segment::Device(_) => Err(CodecError::unsupported(&bound.provider, "a device segment in a chain for the host")),
        };
        if let Some(done) = current.take() {
            scratch.give(done);
        }
        if last {
            *encoded = output;
        } else {
            current = Some(output);
        }
        result?;
    }
    Ok(())
}

/// What providers answer, asked one after the other: who does not support something leaves it to the next.
pub(crate) struct Answers<T> {
    found: Option<T>,
    refusal: Option<CodecError>,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { found: None, refusal: None }
    }
}

impl<T> Answers<T> {
    /// Whether the answer settles it.
    pub(crate) fn take(&mut self, answer: Result<Option<T>, CodecError>) -> Result<bool, CodecError> {
        match answer {
            Ok(found) => self.found = found,
            Err(error) if error.kind() == CodecErrorKind::Unsupported => self.refusal = self.refusal.take().or(Some(error)),
            Err(error) => return Err(error),
        }
        Ok(self.found.is_some())
    }

    /// The answer; else what the first provider had against it, if any knew of the codec at all.
    pub(crate) fn found(self, codec: &str, unknown: &str) -> Result<T, CodecError> {
        self.found.ok_or_else(|| self.refusal.unwrap_or_else(|| CodecError::unsupported(codec, unknown)))
    }
}

/// Sizes and data types between the codecs.
fn resolve(codecs: &[Extension], representation: &ArrayRepresentation, registry: &Registry) -> Result<Vec<Stage>, CodecError> {
    let mut decoded = Representation::Array(representation.clone());
    let mut stages = Vec::with_capacity(codecs.len());
    for codec in codecs {
        let encoded = registry.encoded_representation(codec, &decoded)?;
        stages.push(Stage { codec: codec.clone(), decoded, encoded: encoded.clone() });
        decoded = encoded;
    }
    match decoded {
        Representation::Bytes(_) => Ok(stages),
        Representation::Array(_) => Err(CodecError::metadata("codecs", "the chain has no array to bytes codec")),
    }
}

fn bind_decode(stages: &[Stage], registry: &Registry, policy: &Policy) -> Result<Vec<BoundSegment>, CodecError> {
    let Some(device) = policy.device() else {
        return bind_host(stages, 0..stages.len(), registry, policy, Direction::Decode);
    };
    // The device takes stages `0..split`, the host the rest before it.
    for split in (1..=stages.len()).rev() {
        let on_device = bind_run(stages, 0..split, Direction::Decode, || registry.device(device))
            .and_then(|segments| check_borders(stages, &segments).map(|()| segments));
        match on_device {
            Ok(on_device) => {
                if matches!(policy, Policy::Require(_)) && split < stages.len() {
                    break;
                }
                let mut segments = bind_host(stages, split..stages.len(), registry, policy, Direction::Decode)?;
                segments.extend(on_device);
                return Ok(segments);
            }
            Err(error) if error.kind() == CodecErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
    }
    if matches!(policy, Policy::Require(_)) {
        let names: Vec<&str> = stages.iter().map(|stage| stage.codec.name.as_str()).collect();
        return Err(CodecError::unsupported(
            names.join(", "),
            format!("{device} does not implement the whole chain, and the policy requires it"),
        ));
    }
    bind_host(stages, 0..stages.len(), registry, policy, Direction::Decode)
}

/// Between two segments on a device lies memory that is reserved before it is known what the first one makes: of an exact number of bytes.
fn check_borders(stages: &[Stage], on_device: &[BoundSegment]) -> Result<(), CodecError> {
    let (_, before) = on_device.split_last().ok_or_else(|| CodecError::unsupported("device", "nothing to do"))?;
    for segment in before {
        let between = stages.get(segment.stages.start).map(|stage| stage.decoded.byte_len()).transpose()?.flatten();
        if between.and_then(|len| len.exact()).is_none() {
            return Err(CodecError::unsupported(&segment.provider, "bytes of unknown size between two segments on a device"));
        }
    }
    Ok(())
}

/// The stages that the device of the policy encodes, and the host's after them. `None` where it takes none, or none that changes anything.
fn bind_divided(stages: &[Stage], registry: &Registry, policy: &Policy) -> Result<Option<(BoundSegment, Vec<BoundSegment>)>, CodecError> {
    let Some(device) = policy.device() else { return Ok(None) };
    for provider in registry.device(device) {
        let bound = match provider.bind(stages, Direction::Encode) {
            Ok(Some(bound)) => bound,
            Ok(None) => continue,
            Err(error) if error.kind() == CodecErrorKind::Unsupported => continue,
            Err(error) => return Err(error),
        };
        let taken = 0..bound.consumed;
        let last = stages.get(taken.clone()).and_then(<[Stage]>::last);
        // Memory is reserved before it is known what comes out.
        let is_bounded = last.map(|stage| stage.encoded.byte_len()).transpose()?.flatten().is_some();
        let Some(Segment::Device(_)) = is_bounded.then_some(&bound.segment) else { continue };
        // Elements that are stored as they are need no device, if that is all that it takes.
        let is_idle = |bound: &BoundSegment| matches!(&bound.segment, Segment::Host(segment) if segment.is_verbatim());
        let makes_bytes = matches!(stages, [Stage { encoded: Representation::Bytes(_), .. }, ..]);
        let alone = bound.consumed == 1 && makes_bytes;
        if alone && bind_host(stages, taken.clone(), registry, policy, Direction::Encode).is_ok_and(|host| host.iter().all(is_idle)) {
            return Ok(None);
        }
        let Ok(rest) = bind_host(stages, taken.end..stages.len(), registry, policy, Direction::Encode) else { continue };
        let on_device =
            BoundSegment { provider: provider.name().to_owned(), placement: provider.placement(), stages: taken, segment: bound.segment };
        return Ok(Some((on_device, rest)));
    }
    Ok(None)
}

fn bind_host(
    stages: &[Stage],
    range: Range<usize>,
    registry: &Registry,
    policy: &Policy,
    direction: Direction,
) -> Result<Vec<BoundSegment>, CodecError> {
    bind_run(stages, range, direction, || registry.host(policy))
}

/// Binds all stages of a run, by whichever providers take them, in the order of `direction`.
fn bind_run<'a, I: Iterator<Item = &'a Arc<dyn CodecProvider>>>(
    stages: &[Stage],
    range: Range<usize>,
    direction: Direction,
    providers: impl Fn() -> I,
) -> Result<Vec<BoundSegment>, CodecError> {
    let mut left = range;
    let mut segments = Vec::new();
    while !left.is_empty() {
        let wanted = stages.get(left.clone()).unwrap_or_default();
        let mut answers = Answers::default();
        for provider in providers() {
            let bound = provider.bind(wanted, direction).map(|bound| bound.map(|bound| (provider, bound)));
            if answers.take(bound)? {
                break;
            }
        }
        let next = match direction {
            Direction::Decode => wanted.last(),
            Direction::Encode => wanted.first(),
        };
        let name = next.map_or("codecs", |stage| stage.codec.name.as_str());
        let (provider, taken) = answers.found(name, "no provider here implements this codec")?;
        if taken.consumed == 0 || taken.consumed > wanted.len() {
            return Err(CodecError::unsupported(
                name,
                format!("provider {} took {} of {} stages", provider.name(), taken.consumed, wanted.len()),
            ));
        }
        let taken_stages = match direction {
            Direction::Decode => {
                left.end -= taken.consumed;
                left.end..left.end + taken.consumed
            }
            Direction::Encode => {
                left.start += taken.consumed;
                left.start - taken.consumed..left.start
            }
        };
        segments.push(BoundSegment {
            provider: provider.name().to_owned(),
            placement: provider.placement(),
            stages: taken_stages,
            segment: taken.segment,
        });
    }
    Ok(segments)
}
