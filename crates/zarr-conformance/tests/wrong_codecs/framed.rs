//! A codec of bytes, honest or wrong in one way.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_conformance::Suite;
use zarr_conformance::codec::CodecUnderTest;
use zarr_meta::Extension;

use crate::Wrong;

/// What the codec does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    LastByteDropped,
    WritesOnePast,
    ReadsOnePast,
    WrongOnUnalignedDestination,
    WrongOnUnalignedSource,
    AcceptsOtherSizes,
    AcceptsTrailingBytes,
    IgnoresTheLimit,
    AllocatesTheClaim,
    PanicsOnShortInput,
    PanicsOnClaims,
    HangsOnClaims,
    DeclaresTooLittle,
    DeclaresWrongExact,
    CachesBetweenCalls,
    RacesBetweenThreads,
    NotDeterministic,
}

/// Flags (1: four bytes of padding follow the length), the length in four bytes, little-endian, then the bytes with every bit flipped.
#[derive(Debug)]
pub(crate) struct Framed {
    fault: Fault,
    padded: bool,
    cache: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    encoded: AtomicUsize,
    busy: AtomicUsize,
}

impl Framed {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, padded: false, cache: Mutex::default(), encoded: AtomicUsize::new(0), busy: AtomicUsize::new(0) }
    }

    /// Encodes with padding.
    pub(crate) fn padded(fault: Fault) -> Self {
        Self { padded: true, ..Self::new(fault) }
    }

    /// The claimed length, and what is behind it.
    fn body<'a>(&self, encoded: &'a [u8]) -> Result<(usize, &'a [u8]), CodecError> {
        if self.fault == Fault::PanicsOnShortInput {
            assert!(encoded.len() >= 5, "too short");
        }
        let none = || CodecError::format("framed", "no length");
        let (flags, rest) = encoded.split_first().ok_or_else(none)?;
        let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(none)?;
        let body = match flags {
            0 => rest,
            1 => rest.get(4..).ok_or_else(none)?,
            _ => return Err(CodecError::format("framed", "unknown flags")),
        };
        let len = u32::from_le_bytes(*len) as usize;
        match self.fault {
            Fault::PanicsOnClaims => assert!(len <= body.len(), "too long"),
            Fault::HangsOnClaims if len == 1 << 31 => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            _ => {}
        }
        Ok((len, body))
    }

    fn spoil(&self, decoded: &mut [u8]) {
        if self.fault == Fault::LastByteDropped {
            decoded.iter_mut().last().into_iter().for_each(|byte| *byte = 0);
        }
    }
}

impl BytesToBytes for Framed {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        match self.fault {
            Fault::DeclaresTooLittle => ByteLen::AtMost(decoded.upper() + 4),
            Fault::DeclaresWrongExact => ByteLen::Exact(decoded.upper() + 6),
            Fault::NotDeterministic => ByteLen::AtMost(decoded.upper() + 9),
            _ => decoded.plus(if self.padded { 9 } else { 5 }),
        }
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (len, body) = self.body(encoded)?;
        let other = match self.fault {
            Fault::AcceptsOtherSizes => body.len() != len,
            Fault::AcceptsTrailingBytes => len != decoded.len() || body.len() < len,
            Fault::ReadsOnePast => len != decoded.len() || body.len() != len && body.len() + 1 != len,
            _ => len != decoded.len() || body.len() != len,
        };
        if other {
            return Err(CodecError::size("framed", decoded.len(), len));
        }
        decoded.iter_mut().zip(body).for_each(|(to, from)| *to = !from);
        self.spoil(decoded);
        match self.fault {
            Fault::WritesOnePast => {
                let end = decoded.as_mut_ptr().wrapping_add(decoded.len());
                // SAFETY: none; this is the mistake. The suite's destinations have room behind them.
                unsafe { end.write(1) };
            }
            Fault::ReadsOnePast if body.len() < len => {
                // SAFETY: none; this is the mistake. It hits memory of the suite, or what the allocator keeps behind a block.
                let past = unsafe { body.as_ptr().wrapping_add(body.len()).read() };
                decoded.iter_mut().last().into_iter().for_each(|byte| *byte = !past);
            }
            Fault::WrongOnUnalignedDestination if !(decoded.as_ptr() as usize).is_multiple_of(4) => decoded.fill(0),
            Fault::CachesBetweenCalls => {
                // The last byte is not looked at.
                let mut cache = self.cache.lock().unwrap();
                let key = encoded[..encoded.len() - 1].to_vec();
                decoded.copy_from_slice(cache.entry(key).or_insert_with(|| decoded.to_vec()));
            }
            Fault::RacesBetweenThreads => {
                let busy = self.busy.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(50));
                self.busy.fetch_sub(1, Ordering::SeqCst);
                if busy > 0 {
                    decoded.fill(0x55);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let (len, body) = self.body(encoded)?;
        if self.fault == Fault::AllocatesTheClaim {
            decoded.reserve(len.min(1 << 28));
        }
        if len > limit && self.fault != Fault::IgnoresTheLimit {
            return Err(CodecError::limit("framed", limit));
        }
        if body.len() != len {
            return Err(CodecError::size("framed", len, body.len()));
        }
        decoded.extend(body.iter().map(|byte| !byte));
        self.spoil(decoded);
        Ok(())
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let padded = match self.fault {
            Fault::NotDeterministic => (self.encoded.fetch_add(1, Ordering::Relaxed) % 2 == 1) != self.padded,
            _ => self.padded,
        };
        encoded.push(u8::from(padded));
        encoded.extend((decoded.len() as u32).to_le_bytes());
        if padded {
            encoded.extend([0; 4]);
        }
        let wrong = self.fault == Fault::WrongOnUnalignedSource && !(decoded.as_ptr() as usize).is_multiple_of(4);
        encoded.extend(decoded.iter().map(|byte| if wrong { 0 } else { !byte }));
        Ok(())
    }
}

fn suite(fault: Fault, len: ByteLen) -> Suite {
    let provider = HostProvider::new("wrong").with("framed", move |_, _| Ok(SimpleCodec::bytes_to_bytes(Framed::new(fault))));
    let subject = CodecUnderTest::new(std::sync::Arc::new(provider), Extension::new("framed"), Representation::Bytes(len));
    subject.with_many(30).deterministic().into()
}

const EXACT: ByteLen = ByteLen::Exact(100);
const GROWING: ByteLen = ByteLen::AtMost(60);

pub(crate) fn honest() -> Vec<Suite> {
    [EXACT, GROWING, ByteLen::Exact(0)].map(|len| suite(Fault::None, len)).into()
}

/// It never comes back from one of the claims.
pub(crate) fn hanging() -> Suite {
    suite(Fault::HangsOnClaims, EXACT)
}

pub(crate) fn wrong() -> Vec<Wrong> {
    let alone = |fault, len, law| Wrong::alone(fault, law, move || suite(fault, len));
    let found = |fault, len, law| Wrong::found(fault, law, move || suite(fault, len));
    vec![
        alone(Fault::LastByteDropped, EXACT, "codec/round-trip"),
        alone(Fault::DeclaresTooLittle, GROWING, "codec/encoded-size"),
        alone(Fault::DeclaresWrongExact, EXACT, "codec/encoded-size"),
        alone(Fault::CachesBetweenCalls, EXACT, "codec/repeatable"),
        alone(Fault::NotDeterministic, EXACT, "codec/deterministic"),
        alone(Fault::RacesBetweenThreads, EXACT, "codec/batch/threads"),
        alone(Fault::WrongOnUnalignedDestination, EXACT, "codec/decode/exact"),
        found(Fault::WritesOnePast, EXACT, "codec/decode/exact"),
        alone(Fault::AcceptsOtherSizes, EXACT, "codec/decode/other-size"),
        alone(Fault::IgnoresTheLimit, GROWING, "codec/decode/limit"),
        alone(Fault::ReadsOnePast, EXACT, "codec/decode/reads-past"),
        alone(Fault::AllocatesTheClaim, GROWING, "codec/decode/bad-input"),
        found(Fault::PanicsOnShortInput, EXACT, "codec/decode/bad-input"),
        found(Fault::PanicsOnClaims, EXACT, "codec/decode/bad-input"),
        alone(Fault::WrongOnUnalignedSource, EXACT, "codec/encode/source"),
    ]
}
