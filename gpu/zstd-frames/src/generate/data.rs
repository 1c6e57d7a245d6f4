//! Data to encode, and libzstd as the encoder.

use super::Chunk;
use crate::rng::Rng;
use zstd::zstd_safe::{CCtx, CParameter, ResetDirective, compress_bound};

/// Kinds of data that [`content`] makes.
pub const KINDS: [&str; 12] = [
    "zeros",
    "random bytes",
    "text",
    "smooth float32",
    "smooth float32, shuffled",
    "int16",
    "runs",
    "far matches",
    "few symbols",
    "counter",
    "sparse",
    "repeated block",
];

/// `len` bytes of a kind.
pub fn content(kind: &str, len: usize, rng: &Rng) -> Vec<u8> {
    match kind {
        "zeros" => vec![0; len],
        "random bytes" => rng.bytes(len),
        "text" => text(len, rng),
        "smooth float32" => floats(len, rng),
        "smooth float32, shuffled" => {
            let plain = floats(len, rng);
            let whole = len / 4;
            let mut out: Vec<u8> = (0..4).flat_map(|plane| plain.iter().skip(plane).step_by(4).take(whole)).copied().collect();
            out.extend(&plain[4 * whole..]);
            out
        }
        "int16" => {
            let mut value = 0i16;
            let mut out = Vec::with_capacity(len + 2);
            while out.len() < len {
                value = value.wrapping_add(rng.below(61) as i16 - 30);
                out.extend(value.to_le_bytes());
            }
            out.truncate(len);
            out
        }
        "runs" => {
            let mut out = Vec::with_capacity(len);
            while out.len() < len {
                let (byte, run) = (rng.next() as u8 & 7, 1 + rng.small(300));
                out.extend(std::iter::repeat_n(byte, run.min(len - out.len())));
            }
            out
        }
        "far matches" => {
            let head = rng.bytes(len.min(3000));
            let mut out = head.clone();
            while out.len() < len {
                let gap = rng.small(len / 3 + 1);
                out.extend(rng.bytes(gap));
                let from = rng.below(head.len().max(1));
                out.extend(&head[from..]);
            }
            out.truncate(len);
            out
        }
        "few symbols" => (0..len).map(|_| b"aaaaaaabbbccd"[rng.below(13)]).collect(),
        "counter" => (0..len).map(|i| ((i / 4) >> (8 * (i % 4))) as u8).collect(),
        "sparse" => (0..len).map(|_| if rng.chance(3) { rng.next() as u8 } else { 0 }).collect(),
        _ => {
            let period = 1 + rng.small(700);
            let unit = rng.bytes(period);
            unit.iter().copied().cycle().take(len).collect()
        }
    }
}

fn text(len: usize, rng: &Rng) -> Vec<u8> {
    const WORDS: [&str; 16] =
        ["chunk", "shard", "array", "of", "the", "a", "grid", "in", "codec", "byte", "to", "frame", "and", "window", "literal", "offset"];
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend(WORDS[rng.small(15)].bytes());
        out.push(rng.pick(b"    ,.\n"));
    }
    out.truncate(len);
    out
}

fn floats(len: usize, rng: &Rng) -> Vec<u8> {
    let phase = rng.below(1000) as f32;
    let mut out = Vec::with_capacity(len + 4);
    while out.len() < len {
        let noise = rng.below(100) as f32 * 0.01;
        let value = 280.0 + 20.0 * ((out.len() as f32 / 400.0 + phase).sin()) + noise;
        out.extend(((value * 100.0).round() / 100.0).to_le_bytes());
    }
    out.truncate(len);
    out
}

/// libzstd's encoder.
pub struct Encoder(CCtx<'static>);

impl Default for Encoder {
    fn default() -> Self {
        Self(CCtx::create())
    }
}

/// How libzstd is to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// -131072 to 22.
    pub level: i32,
    /// Whether to write a checksum.
    pub checksum: bool,
    /// Whether to leave the content size out.
    pub no_content_size: bool,
    /// Log2 of the window, where it is not the level's.
    pub window_log: Option<u32>,
    /// Whether to look for matches at long distances.
    pub long: bool,
}

impl Encoder {
    /// One frame around `content`.
    ///
    /// # Errors
    /// libzstd's name for what is wrong with the settings.
    pub fn encode(&mut self, content: &[u8], settings: Settings) -> Result<Vec<u8>, String> {
        let text = |code| String::from(zstd::zstd_safe::get_error_name(code));
        self.0.reset(ResetDirective::SessionAndParameters).map_err(text)?;
        let mut set = |parameter| self.0.set_parameter(parameter).map(drop).map_err(text);
        set(CParameter::CompressionLevel(settings.level))?;
        set(CParameter::ChecksumFlag(settings.checksum))?;
        set(CParameter::ContentSizeFlag(!settings.no_content_size))?;
        set(CParameter::EnableLongDistanceMatching(settings.long))?;
        if let Some(log) = settings.window_log {
            set(CParameter::WindowLog(log))?;
        }
        let mut out = Vec::with_capacity(compress_bound(content.len()));
        self.0.compress2(&mut out, content).map_err(text)?;
        Ok(out)
    }

    pub(super) fn chunk(&mut self, rng: &Rng) -> Chunk {
        let kind = rng.pick(&KINDS);
        let most = if matches!(kind, "random bytes" | "far matches") { 3900 } else { 12_000 };
        let len = rng.small(most);
        let content = content(kind, len, rng);
        let settings = Settings {
            level: rng.below(28) as i32 - 5,
            checksum: rng.chance(30),
            no_content_size: rng.chance(30),
            window_log: rng.chance(20).then(|| rng.range(10, 17) as u32),
            long: false,
        };
        let bytes = self.encode(&content, settings).unwrap_or_default();
        Chunk { bytes, size: len, made_by: "encoded by libzstd", fault: None }
    }
}
