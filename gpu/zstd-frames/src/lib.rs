//! Zstandard frames (RFC 8878) of every shape, right and wrong, from a seed: test material for decoders.
//!
//! * [`mod@write`], [`huffman`], [`fse`], [`bits`] put frames together, field by field.
//! * [`generate`] makes random ones, each with at most one intended fault.
//! * [`decode()`] says what libzstd would make of a chunk, and why; [`Oracle`] asks libzstd itself.
//!
//! `VERDICTS.md` lists where libzstd's verdict differs from the RFC. There is no encoder here that looks for matches: it is no compressor.
#![forbid(unsafe_code)]

pub mod bits;
pub mod codes;
mod decode;
pub mod fse;
pub mod generate;
pub mod huffman;
mod oracle;
mod rng;
pub mod write;
mod xxh64;

pub use decode::{Machine, Outcome, Seen, Status, apply_repeats, decode, decode_any};
pub use oracle::{Oracle, version};
pub use rng::Rng;
pub use xxh64::checksum;
