//! `numcodecs.jenkins_lookup3`: the data, and their lookup3 hash as HDF5 computes it.
//!
//! Configuration: `{"initval": 0, "prefix": null}`: the hash's start value, and bytes (a list of numbers) to be hashed before the data but not stored.
//! Four bytes in little-endian order behind the data. Bytes→bytes. Decoding checks, always.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/checksum32.html); Bob Jenkins,
//! [lookup3](https://burtleburtle.net/bob/hash/doobs.html), `hashlittle`.

use zarr_codec_api::{CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::checksum::{Checksum, Location};
use crate::config;

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.jenkins_lookup3", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    initval: u32,
    prefix: Option<Vec<u8>>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let Config { initval, prefix } = config::read(codec)?;
    let prefix = prefix.unwrap_or_default();
    let compute = move |data: &[u8]| match prefix.as_slice() {
        [] => lookup3(data, initval),
        prefix => lookup3(&[prefix, data].concat(), initval),
    };
    Ok(SimpleCodec::bytes_to_bytes(Checksum { name: "jenkins_lookup3", location: Location::End, compute }))
}

/// The hash of bytes. The length enters modulo 2^32.
fn lookup3(data: &[u8], initval: u32) -> u32 {
    let len = u32::try_from(data.len() & 0xffff_ffff).unwrap_or(u32::MAX);
    let start = 0xdead_beef_u32.wrapping_add(len).wrapping_add(initval);
    let mut state = [start; 3];
    let (mut blocks, mut tail) = data.as_chunks::<12>();
    // The last block is finished otherwise, even when it is whole.
    if tail.is_empty()
        && let Some((last, rest)) = blocks.split_last()
    {
        (blocks, tail) = (rest, last);
    }
    for block in blocks {
        add(&mut state, block);
        mix(&mut state);
    }
    if tail.is_empty() {
        return state[2];
    }
    let mut last = [0; 12];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

/// Six rounds; each takes the words in turn.
fn mix([a, b, c]: &mut [u32; 3]) {
    fn round(x: &mut u32, y: &mut u32, z: &mut u32, bits: u32) {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(bits);
        *z = z.wrapping_add(*y);
    }
    round(a, b, c, 4);
    round(b, c, a, 6);
    round(c, a, b, 8);
    round(a, b, c, 16);
    round(b, c, a, 19);
    round(c, a, b, 4);
}

/// Seven rounds.
fn finish([a, b, c]: &mut [u32; 3]) {
    fn round(x: &mut u32, y: u32, bits: u32) {
        *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    }
    round(c, *b, 14);
    round(a, *c, 11);
    round(b, *a, 25);
    round(c, *b, 16);
    round(a, *c, 4);
    round(b, *a, 14);
    round(c, *b, 24);
}
