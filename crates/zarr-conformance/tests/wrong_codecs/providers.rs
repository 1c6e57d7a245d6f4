//! Providers and their segments, honest or wrong in one way, around an honest codec.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zarr_codec_api::{
    Bound, ByteLen, CodecError, CodecProvider, DecodeSlot, Direction, EncodeSlot, HostProvider, HostSegment, Limits, Placement,
    Representation, Scratch, Segment, SimpleCodec, Stage, Target,
};
use zarr_conformance::Suite;
use zarr_conformance::codec::CodecUnderTest;
use zarr_meta::Extension;

use crate::Wrong;
use crate::framed::{Fault as Honest, Framed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    // Of the segment:
    WrongWhenDecodedInSlotOne,
    WrongWhenEncodedInSlotOne,
    StatusNotSet,
    StopsAtABadSlot,
    BlamesTheNextSlot,
    UsesDirtyScratch,
    SaysVerbatim,
    WrongView,
    SecondBlockIsTheFirst,
    BlocksTakeAnyLength,
    FrontIsTheEnd,
    FrontTakesAnyLength,
    BlocksAcceptWhatTheWholeDoesNot,
    PiecesStayEncoded,
    PiecesEndAnywhere,
    PiecesGiveTooMuch,
    PiecesAreDoneTooSoon,
    FrontIsOfSomethingElse,
    // Of the provider:
    TakesUnknownCodecs,
    FailsOnUnknownCodecs,
    ListsNothing,
    TakesTooManyStages,
    SaysItIsElsewhere,
    LeavesDecodingToOthers,
}

#[derive(Debug)]
struct WrongProvider {
    fault: Fault,
    inner: HostProvider,
    work: Arc<AtomicU64>,
}

#[derive(Debug)]
struct WrongSegment {
    fault: Fault,
    inner: Arc<dyn HostSegment>,
    work: Arc<AtomicU64>,
}

impl HostSegment for WrongSegment {
    fn decode(&self, slots: &mut [DecodeSlot<'_>], scratch: &mut Scratch) {
        if self.fault != Fault::LeavesDecodingToOthers {
            self.work.fetch_add(slots.len() as u64, Ordering::Relaxed);
        }
        match self.fault {
            Fault::StatusNotSet => {
                for slot in slots {
                    let mut one = [DecodeSlot { encoded: slot.encoded, decoded: reborrow(&mut slot.decoded), status: Ok(()) }];
                    self.inner.decode(&mut one, scratch);
                    let [done] = one;
                    if done.status.is_err() {
                        slot.status = done.status;
                    }
                }
                return;
            }
            Fault::StopsAtABadSlot => {
                let mut failed = false;
                for slot in slots {
                    if !failed {
                        self.inner.decode(std::slice::from_mut(slot), scratch);
                        failed = slot.status.is_err();
                    }
                }
                return;
            }
            _ => self.inner.decode(slots, scratch),
        }
        match self.fault {
            Fault::WrongWhenDecodedInSlotOne => {
                if let Some(DecodeSlot { decoded: Target::Exact(bytes), .. }) = slots.get_mut(1) {
                    bytes.iter_mut().for_each(|byte| *byte ^= 1);
                }
            }
            Fault::BlamesTheNextSlot => {
                if let Some(bad) = slots.iter().position(|slot| slot.status.is_err())
                    && bad + 1 < slots.len()
                {
                    slots[bad].status = Ok(());
                    slots[bad + 1].status = Err(CodecError::format("framed", "not me"));
                }
            }
            Fault::UsesDirtyScratch => {
                let used = scratch.take_len(1);
                if let Some(DecodeSlot { decoded: Target::Exact(bytes), .. }) = slots.first_mut() {
                    bytes.iter_mut().for_each(|byte| *byte |= used[0]);
                }
            }
            _ => {}
        }
    }
    fn encode(&self, slots: &mut [EncodeSlot<'_>], scratch: &mut Scratch) {
        self.work.fetch_add(slots.len() as u64, Ordering::Relaxed);
        self.inner.encode(slots, scratch);
        if self.fault == Fault::WrongWhenEncodedInSlotOne
            && let Some(last) = slots.get_mut(1).and_then(|slot| slot.encoded.last_mut())
        {
            *last ^= 1;
        }
    }
    fn is_verbatim(&self) -> bool {
        self.fault == Fault::SaysVerbatim
    }
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        if self.fault == Fault::WrongView { Some(Ok(encoded)) } else { self.inner.view(encoded) }
    }
    fn blocks<'a>(&self, encoded: &'a [u8]) -> Option<Box<dyn zarr_codec_api::Blocks + 'a>> {
        let body = if self.fault == Fault::BlocksAcceptWhatTheWholeDoesNot {
            encoded.get(5..105)
        } else {
            encoded.strip_prefix(&HEADER).filter(|body| body.len() == 100)
        };
        Some(Box::new(Blocks { fault: self.fault, decoded: body?.iter().map(|byte| !byte).collect() }))
    }
    fn pieces(&self, wanted: usize) -> Option<Box<dyn zarr_codec_api::Pieces>> {
        let of_front = [Fault::PiecesAreDoneTooSoon, Fault::FrontIsOfSomethingElse].contains(&self.fault);
        let fault = if (wanted < 100) == of_front { self.fault } else { Fault::None };
        Some(Box::new(Pieces { fault, wanted, header: Vec::new(), given: 0 }))
    }
}

/// A chunk of "framed" of 100 bytes, in pieces.
struct Pieces {
    fault: Fault,
    wanted: usize,
    header: Vec<u8>,
    given: usize,
}

impl zarr_codec_api::Pieces for Pieces {
    fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), CodecError> {
        let (header, body) = encoded.split_at(encoded.len().min(HEADER.len() - self.header.len()));
        self.header.extend_from_slice(header);
        if self.is_done() {
            return Ok(());
        }
        let room = 100 - self.given;
        if !HEADER.starts_with(&self.header) || (body.len() > room && self.fault != Fault::PiecesGiveTooMuch) {
            return Err(CodecError::format("framed", "not what it should be"));
        }
        self.given = 100.min(self.given + body.len());
        let encoded = [Fault::PiecesStayEncoded, Fault::FrontIsOfSomethingElse].contains(&self.fault);
        each(&body.iter().map(|byte| if encoded { *byte } else { !byte }).collect::<Vec<u8>>());
        Ok(())
    }
    fn is_done(&self) -> bool {
        let enough = if self.fault == Fault::PiecesAreDoneTooSoon { self.wanted / 2 } else { self.wanted };
        self.wanted < 100 && self.header.len() == HEADER.len() && self.given >= enough
    }
    fn finish(self: Box<Self>) -> Result<(), CodecError> {
        let ends = self.given == 100 || self.is_done() || self.fault == Fault::PiecesEndAnywhere;
        if ends { Ok(()) } else { Err(CodecError::format("framed", "cut short")) }
    }
}

/// Of a chunk of "framed" of 100 bytes.
const HEADER: [u8; 5] = [0, 100, 0, 0, 0];

/// A chunk of "framed" in blocks of 40 bytes.
struct Blocks {
    fault: Fault,
    decoded: Vec<u8>,
}

impl zarr_codec_api::Blocks for Blocks {
    fn block_len(&self) -> usize {
        40
    }
    fn decode(&self, index: usize, decoded: &mut [u8]) -> Result<(), CodecError> {
        let index = if self.fault == Fault::SecondBlockIsTheFirst && index == 1 { 0 } else { index };
        let block = self.decoded.chunks(40).nth(index).ok_or_else(|| CodecError::format("framed", "no such block"))?;
        if block.len() != decoded.len() && self.fault != Fault::BlocksTakeAnyLength {
            return Err(CodecError::size("framed", decoded.len(), block.len()));
        }
        decoded.iter_mut().zip(block).for_each(|(to, from)| *to = *from);
        Ok(())
    }
    fn decode_front(&self, index: usize, decoded: &mut [u8]) -> Option<Result<(), CodecError>> {
        let block = self.decoded.chunks(40).nth(index)?;
        let Some(behind) = block.len().checked_sub(decoded.len()) else {
            let wrong = CodecError::size("framed", decoded.len(), block.len());
            return Some(if self.fault == Fault::FrontTakesAnyLength { Ok(()) } else { Err(wrong) });
        };
        let from = if self.fault == Fault::FrontIsTheEnd { behind } else { 0 };
        decoded.iter_mut().zip(&block[from..]).for_each(|(to, from)| *to = *from);
        Some(Ok(()))
    }
}

fn reborrow<'a>(target: &'a mut Target<'_>) -> Target<'a> {
    match target {
        Target::Exact(bytes) => Target::Exact(bytes),
        Target::Growing { bytes, limit } => Target::Growing { bytes, limit: *limit },
        Target::Variable { elements, limit } => Target::Variable { elements, limit: *limit },
    }
}

impl CodecProvider for WrongProvider {
    fn name(&self) -> &str {
        "wrong"
    }
    fn placement(&self) -> Placement {
        let elsewhere = zarr_buffer_api::DeviceId::new(zarr_buffer_api::DeviceKind::ExtDev, 7);
        if self.fault == Fault::SaysItIsElsewhere { Placement::Device(elsewhere) } else { Placement::Host }
    }
    fn codecs(&self) -> Vec<String> {
        if self.fault == Fault::ListsNothing { Vec::new() } else { self.inner.codecs() }
    }
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        let found = self.inner.encoded_representation(codec, decoded, limits)?;
        match self.fault {
            Fault::FailsOnUnknownCodecs if found.is_none() => Err(CodecError::unsupported(&codec.name, "who?")),
            Fault::TakesUnknownCodecs if found.is_none() => Ok(Some(decoded.clone())),
            _ => Ok(found),
        }
    }
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let Some(bound) = self.inner.bind(stages, direction)? else { return Ok(None) };
        let Segment::Host(inner) = bound.segment else { return Ok(None) };
        let consumed = if self.fault == Fault::TakesTooManyStages { bound.consumed + 1 } else { bound.consumed };
        let segment = WrongSegment { fault: self.fault, inner, work: Arc::clone(&self.work) };
        Ok(Some(Bound { consumed, segment: Segment::Host(Arc::new(segment)) }))
    }
}

fn suite(fault: Fault) -> Suite {
    let inner = HostProvider::new("wrong").with("framed", |_, _| Ok(SimpleCodec::bytes_to_bytes(Framed::new(Honest::None))));
    let work = Arc::new(AtomicU64::new(0));
    let provider = Arc::new(WrongProvider { fault, inner, work: Arc::clone(&work) });
    let subject = CodecUnderTest::new(provider, Extension::new("framed"), Representation::Bytes(ByteLen::Exact(100)));
    subject.with_many(30).counting(move || work.load(Ordering::Relaxed)).into()
}

pub(crate) fn honest() -> Vec<Suite> {
    vec![suite(Fault::None)]
}

pub(crate) fn wrong() -> Vec<Wrong> {
    let alone = |fault, law| Wrong::alone(fault, law, move || suite(fault));
    let found = |fault, law| Wrong::found(fault, law, move || suite(fault));
    vec![
        alone(Fault::TakesUnknownCodecs, "codec/names"),
        alone(Fault::FailsOnUnknownCodecs, "codec/names"),
        alone(Fault::ListsNothing, "codec/names"),
        found(Fault::TakesTooManyStages, "codec/round-trip"),
        found(Fault::SaysItIsElsewhere, "codec/round-trip"),
        alone(Fault::LeavesDecodingToOthers, "codec/ran"),
        alone(Fault::WrongWhenEncodedInSlotOne, "codec/batch/equals-singles"),
        found(Fault::WrongWhenDecodedInSlotOne, "codec/batch/equals-singles"),
        found(Fault::StatusNotSet, "codec/batch/equals-singles"),
        alone(Fault::StopsAtABadSlot, "codec/batch/bad-slot-alone"),
        alone(Fault::BlamesTheNextSlot, "codec/batch/bad-slot-alone"),
        alone(Fault::UsesDirtyScratch, "codec/batch/dirty-scratch"),
        alone(Fault::WrongView, "codec/verbatim"),
        alone(Fault::SaysVerbatim, "codec/verbatim"),
        alone(Fault::SecondBlockIsTheFirst, "codec/decode/blocks"),
        alone(Fault::BlocksTakeAnyLength, "codec/decode/blocks"),
        alone(Fault::FrontIsTheEnd, "codec/decode/blocks"),
        alone(Fault::FrontTakesAnyLength, "codec/decode/blocks"),
        alone(Fault::BlocksAcceptWhatTheWholeDoesNot, "codec/decode/blocks"),
        alone(Fault::PiecesStayEncoded, "codec/decode/pieces"),
        alone(Fault::PiecesEndAnywhere, "codec/decode/pieces"),
        alone(Fault::PiecesGiveTooMuch, "codec/decode/pieces"),
        alone(Fault::PiecesAreDoneTooSoon, "codec/decode/front"),
        alone(Fault::FrontIsOfSomethingElse, "codec/decode/front"),
    ]
}
