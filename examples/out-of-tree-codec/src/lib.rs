//! A codec, a store and a device that live outside of the project: `example.rle`, a shelf, and a scratchpad.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "memory of a device is an unsafe contract")]
mod device;
mod rle;
mod store;

pub use device::Scratchpad;
pub use rle::{NAME, Rle};
pub use store::Shelf;

use zarr_codec_api::{HostProvider, SimpleCodec};

/// What a registry takes.
pub fn provider() -> HostProvider {
    HostProvider::new("example").with(NAME, |_, _| Ok(SimpleCodec::bytes_to_bytes(Rle)))
}
