use std::sync::Arc;

use zarr_codec_api::{
    ByteLen, CodecError, CodecProvider, DecodeSlot, Direction, EncodeSlot, HostSegment, Limits, Representation, Scratch, Segment, Stage,
};

use super::{PairSubject, Side};
use crate::codec::bound::{Room, source};
use crate::codec::device::{Padded, Runner};
use crate::codec::fenced::Fenced;
use crate::samples::Sample;
use crate::suite::{Broken, Trial, ensure};

/// What one implementation says of some bytes: what they decode to, if it accepts them.
pub(super) type Verdict = Option<Sample>;

/// The codecs of a subject, with sizes and data types between them, as one side declares them; what it does not know of, the other does.
pub(super) fn stages(subject: &dyn PairSubject, sides: [&Side; 2]) -> Result<Vec<Stage>, Broken> {
    let mut decoded = subject.decoded().clone();
    let mut stages = Vec::new();
    for codec in subject.codecs() {
        let declared = |side: &Side| side.provider.encoded_representation(codec, &decoded, &Limits::default());
        let encoded = match declared(sides[0])? {
            Some(encoded) => Some(encoded),
            None => declared(sides[1])?,
        };
        let encoded = encoded.ok_or_else(|| Broken::Failed(format!("neither implementation knows {}", codec.name)))?;
        stages.push(Stage { codec: codec.clone(), decoded, encoded: encoded.clone() });
        decoded = encoded;
    }
    ensure!(!stages.is_empty(), "the subject has no codecs");
    Ok(stages)
}

/// One side, bound.
pub(super) struct Implementation<'a> {
    pub(super) side: &'a Side,
    decoder: Decoder,
    /// `None` where it does not encode the whole chain on the host: what devices encode is held against the host elsewhere.
    encoder: Option<Arc<dyn HostSegment>>,
    /// What it says that chunks encode to.
    pub(super) encoded: ByteLen,
    decoded: Representation,
    most: usize,
}

enum Decoder {
    Host(Arc<dyn HostSegment>),
    Device(Runner),
}

fn bind(provider: &dyn CodecProvider, stages: &[Stage], direction: Direction) -> Result<Option<Segment>, Broken> {
    match provider.bind(stages, direction)? {
        Some(bound) if bound.consumed == stages.len() => Ok(Some(bound.segment)),
        _ => Ok(None),
    }
}

impl<'a> Implementation<'a> {
    pub(super) fn of(subject: &dyn PairSubject, side: &'a Side, other: &Side) -> Result<Self, Broken> {
        let stages = stages(subject, [side, other])?;
        let (provider, name) = (&*side.provider, side.provider.name());
        ensure!(provider.placement() == side.placement(), "{name} is placed on {}, declared is {}", provider.placement(), side.placement());
        let decoded = subject.decoded().clone();
        let len = decoded.byte_len()?;
        let decoder = match (bind(provider, &stages, Direction::Decode)?, &side.device) {
            (Some(Segment::Host(segment)), None) => Decoder::Host(segment),
            (Some(Segment::Device(segment)), Some(device)) => {
                let (shape, item_size) = match &decoded {
                    Representation::Array(array) => {
                        (array.shape.iter().map(|&len| len as usize).collect(), array.data_type.fixed_size().unwrap_or(0))
                    }
                    Representation::Bytes(len) => (vec![len.exact().unwrap_or(0) as usize], 1),
                };
                ensure!(len.is_some_and(|len| len.exact().is_some()), "a device decodes chunks of exact size only");
                Decoder::Device(Runner { device: Arc::clone(device), segment, shape, item_size })
            }
            (Some(_), _) => return Err(Broken::Failed(format!("{name} gives a segment elsewhere than on {}", side.placement()))),
            (None, _) => return Err(Broken::Unsupported(format!("{name} does not take the chain to decode"))),
        };
        let encoder = match (bind(provider, &stages, Direction::Encode)?, &side.device) {
            (Some(Segment::Host(segment)), None) => Some(segment),
            (Some(Segment::Device(_)), Some(_)) | (None, _) => None,
            (Some(_), _) => return Err(Broken::Failed(format!("{name} gives a segment elsewhere than on {}", side.placement()))),
        };
        let encoded = stages.last().map(|stage| stage.encoded.byte_len()).transpose()?.flatten().unwrap_or(ByteLen::AtMost(u64::MAX));
        let most = usize::try_from(len.map_or(Limits::default().variable_chunk, ByteLen::upper)).unwrap_or(usize::MAX);
        Ok(Self { side, decoder, encoder, encoded, decoded, most })
    }

    /// Both sides of a subject.
    pub(super) fn both(subject: &dyn PairSubject) -> Result<[Implementation<'_>; 2], Broken> {
        let [first, second] = subject.sides();
        Ok([Implementation::of(subject, first, second)?, Implementation::of(subject, second, first)?])
    }

    pub(super) fn name(&self) -> &str {
        self.side.provider.name()
    }

    pub(super) fn encodes(&self) -> bool {
        self.encoder.is_some()
    }

    /// `None` if this side does not encode.
    pub(super) fn encode(&self, sample: &Sample) -> Result<Option<Vec<u8>>, Broken> {
        let Some(encoder) = &self.encoder else { return Ok(None) };
        let mut encoded = Vec::new();
        let mut slots = [EncodeSlot { decoded: source(sample), encoded: &mut encoded, status: Ok(()) }];
        encoder.encode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status?;
        Ok(Some(encoded))
    }

    /// Decodes a batch.
    pub(super) fn decode(&self, encoded: &[&[u8]], trial: &Trial) -> Result<Vec<Verdict>, Broken> {
        match &self.decoder {
            Decoder::Host(_) => Ok(self.decode_here(encoded, trial)?.into_iter().map(Result::ok).collect()),
            Decoder::Device(runner) => {
                let queue = runner.device.create_queue()?;
                let chunks: Vec<Padded<'_>> = encoded.iter().map(|&bytes| bytes.into()).collect();
                let (statuses, bytes) = runner.decode(&*queue, &chunks, 0)?;
                let len = runner.len();
                let chunk = |slot: usize| bytes.get(slot * len..(slot + 1) * len).unwrap_or_default().to_vec();
                Ok(statuses.into_iter().enumerate().map(|(slot, good)| good.then(|| Sample::Bytes(chunk(slot)))).collect())
            }
        }
    }

    /// Decodes one chunk, and says why not.
    pub(super) fn answer(&self, encoded: &[u8], trial: &Trial) -> Result<Result<Sample, CodecError>, Broken> {
        match &self.decoder {
            Decoder::Host(_) => {
                self.decode_here(&[encoded], trial)?.pop().ok_or_else(|| Broken::Failed("no status for one slot".to_owned()))
            }
            Decoder::Device(runner) => Ok(runner.answer(encoded)?.map(Sample::Bytes)),
        }
    }

    /// Of an implementation on the host.
    fn decode_here(&self, encoded: &[&[u8]], trial: &Trial) -> Result<Vec<Result<Sample, CodecError>>, Broken> {
        let Decoder::Host(segment) = &self.decoder else { return Ok(Vec::new()) };
        let mut rooms: Vec<Room> = encoded.iter().map(|_| Room::of(&self.decoded, self.most)).collect::<Result<_, _>>()?;
        let encoded: Vec<Fenced> = encoded.iter().map(|bytes| Fenced::new(bytes, trial)).collect();
        let mut slots: Vec<DecodeSlot<'_>> =
            rooms.iter_mut().zip(&encoded).map(|(room, encoded)| DecodeSlot { encoded, decoded: room.target(), status: Ok(()) }).collect();
        segment.decode(&mut slots, &mut Scratch::new());
        let statuses: Vec<Result<(), CodecError>> = slots.into_iter().map(|slot| slot.status).collect();
        Ok(rooms.into_iter().zip(statuses).map(|(room, status)| status.map(|()| room.sample)).collect())
    }
}
