//! `numcodecs.fletcher32`: the data, and their Fletcher-32 as HDF5 computes it.
//!
//! No configuration. The checksum of the data as big-endian 16-bit words (an odd byte at the end is the upper half of one), behind the data, in
//! little-endian order. Bytes→bytes. Decoding checks, always.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/checksum32.html), after the filter of HDF5. `zarrs` wrote it under the
//! name `https://codec.zarrs.dev/bytes_to_bytes/fletcher32`, which is read too.

use zarr_codec_api::{CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::checksum::{Checksum, Location};
use crate::config::{self, NoConfig};

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&["numcodecs.fletcher32", "https://codec.zarrs.dev/bytes_to_bytes/fletcher32"], make)
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let NoConfig {} = config::read(codec)?;
    Ok(SimpleCodec::bytes_to_bytes(Checksum { name: "fletcher32", location: Location::End, compute: fletcher32 }))
}

/// Sums are kept modulo 65535 with 0 and 65535 as HDF5 leaves them: carries are folded back in, never subtracted.
fn fletcher32(data: &[u8]) -> u32 {
    /// As many words as can be summed before the second sum overflows.
    const BATCH: usize = 360;
    let fold = |sum: u32| (sum & 0xffff).wrapping_add(sum >> 16);
    let (words, odd) = data.as_chunks::<2>();
    let (mut first, mut second) = (0u32, 0u32);
    for batch in words.chunks(BATCH) {
        for word in batch {
            first = first.wrapping_add(u32::from(u16::from_be_bytes(*word)));
            second = second.wrapping_add(first);
        }
        first = fold(first);
        second = fold(second);
    }
    if let [odd] = odd {
        first = first.wrapping_add(u32::from(*odd) << 8);
        second = fold(second.wrapping_add(first));
        first = fold(first);
    }
    fold(second) << 16 | fold(first)
}
