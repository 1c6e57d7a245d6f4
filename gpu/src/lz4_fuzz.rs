//! `zarr-gpu fuzz --codec lz4`: random chunks of `numcodecs.lz4`.

use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Source};
use zarr_meta::{DataType, Extension, FillValue, Json};
use zstd_frames::Rng;

use crate::cpu_fuzz::{Chunk, Family, damage, data};
use crate::fuzz::Result;

/// Makes the chunks.
#[derive(Debug)]
pub(crate) struct Lz4(Registry);

impl Default for Lz4 {
    fn default() -> Self {
        Self(Registry::new().with(zarr_codecs_cpu::provider()))
    }
}

impl Family for Lz4 {
    type Kind = ();
    const KINDS: &[()] = &[()];

    fn codec((): ()) -> Result<Extension> {
        Ok(Extension::new("numcodecs.lz4"))
    }

    fn chunk(&mut self, (): (), rng: &Rng, _: u64) -> Chunk {
        let len = if rng.chance(5) { rng.small(2_000_000) } else { rng.small(60_000) };
        let mut bytes = if rng.chance(40) {
            self.compressed(&data(rng, len), 1 + rng.small(60)).unwrap_or_default()
        } else {
            // Once in a while an offset is wrong.
            let wrong = rng.pick(&[400, 40_000, 4_000_000]);
            [&(len as u32).to_le_bytes()[..], &block(rng, len, wrong)].concat()
        };
        if rng.chance(15) {
            let mut body = bytes.split_off(bytes.len().min(4));
            damage(rng, &mut body);
            bytes.extend(body);
        }
        if rng.chance(2) {
            damage(rng, &mut bytes);
        }
        let size = match rng.below(60) {
            0 => len + 1 + rng.small(300),
            1 => len.saturating_sub(1 + rng.small(300)),
            _ => len,
        };
        if rng.chance(50) && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&(size as u32).to_le_bytes());
        }
        Chunk { bytes, size }
    }

    fn may_refuse((): (), _: &Chunk, _: &str) -> bool {
        false
    }
}

impl Lz4 {
    /// As an encoder makes it.
    pub(crate) fn compressed(&self, data: &[u8], acceleration: usize) -> Result<Vec<u8>> {
        let array = ArrayRepresentation {
            data_type: DataType::UInt8,
            shape: vec![data.len() as u64],
            fill_value: FillValue::default_for(&DataType::UInt8),
        };
        let codec = Json::parse(format!(r#"{{"name":"numcodecs.lz4","configuration":{{"acceleration":{acceleration}}}}}"#).as_bytes())?;
        let chain = Chain::bind(&[Extension::new("bytes"), Extension::parse(&codec)?], array, &self.0, &Policy::Host)?;
        let mut encoded = Vec::new();
        chain.encode(Source::Bytes(data), &mut encoded, &mut Scratch::new())?;
        Ok(encoded)
    }
}

/// A block of random sequences for `len` bytes; of `wrong` of them, two have a wrong offset. Most keep to the rules on how a block ends.
pub(crate) fn block(rng: &Rng, len: usize, wrong: usize) -> Vec<u8> {
    let mut out = sequences(rng, len, wrong);
    if rng.chance(2) {
        out.extend(rng.bytes(1 + rng.below(3)));
    }
    out
}

fn sequences(rng: &Rng, len: usize, wrong: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut made = 0;
    // A short sequence 32 bytes before the end, of which liblz4 does not ask how close its match comes to it.
    let tail = rng.below(5);
    let literals = 14 - rng.below(3);
    if (28..=32).contains(&len) && rng.chance(60) && (4..=18).contains(&(len - tail - literals)) {
        out.push((literals as u8) << 4 | (len - tail - literals - 4) as u8);
        out.extend(rng.bytes(literals));
        out.extend((rng.range(7, 11) as u16).to_le_bytes());
        out.push((tail as u8) << 4);
        out.extend(rng.bytes(tail));
        return out;
    }
    // The last match starts 12 bytes before the end, and ends 5 before it.
    let (last_start, last_literals) = if rng.chance(85) { (12, 5) } else { (rng.range(4, 14), rng.range(0, 6)) };
    let long = |rng: &Rng| if rng.chance(5) { rng.small(70_000) } else { rng.small(40) };
    let extra = |out: &mut Vec<u8>, mut rest: usize| {
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    };
    loop {
        let literals = long(rng);
        let room = len.saturating_sub(made + literals);
        if room < last_start || rng.chance(2) {
            let rest = len.saturating_sub(made);
            out.push((rest.min(15) as u8) << 4 | if rng.chance(10) { rng.below(16) as u8 } else { 0 });
            if rest >= 15 {
                extra(&mut out, rest - 15);
            }
            out.extend(rng.bytes(rest));
            break;
        }
        let most = room.saturating_sub(last_literals).max(4);
        let matched = (4 + long(rng)).min(most);
        out.push((literals.min(15) as u8) << 4 | (matched - 4).min(15) as u8);
        if literals >= 15 {
            extra(&mut out, literals - 15);
        }
        out.extend(rng.bytes(literals));
        made += literals;
        let reach = made.min(65535);
        let offset = match rng.below(wrong) {
            0 => 0,
            1 => reach + 1,
            _ if rng.chance(50) => 1 + rng.small(reach.saturating_sub(1)),
            _ => 1 + rng.below(reach.max(1)),
        };
        out.extend((offset as u16).to_le_bytes());
        if matched - 4 >= 15 {
            extra(&mut out, matched - 19);
        }
        made += matched;
    }
    out
}
