//! The laws of reading into buffers: of the host, and, with feature `toy`, of a device that the host cannot see and of one whose memory both see.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Device, HostDevice, Queue};
use zarr_store_api::{ByteRange, StoreErrorKind, StoreKey};

use super::face::{Face, expect_kind};
use super::fixture::{MISSING, THOUSAND, key, value_of};
use super::ranges::{BAD_RANGES, RANGES, expect_out_of_range};
use super::{StoreCase, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled(
            "buffer/read",
            "reads into a buffer, on any device, fill the front and leave the rest alone, without a wait for the device",
            read,
        ),
        on_filled("buffer/missing", "a read of a key that is not there leaves the buffer alone", missing),
        on_filled("buffer/too-short", "a buffer shorter than the range is an error, not a cut", too_short),
        on_filled("buffer/out-of-range", "reads into a buffer refuse the ranges that other reads refuse", out_of_range),
        on_filled("buffer/borrowed", "a buffer that the host holds is refused, and can be read to once it is let go", borrowed),
    ]
}

/// What memory holds before a read.
const BEFORE: u8 = 0xaa;

/// A device to read to.
struct Place {
    name: &'static str,
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
    #[cfg(feature = "toy")]
    toy: Option<Toy>,
}

#[cfg(feature = "toy")]
enum Toy {
    Opaque(Arc<crate::toy::OpaqueDevice>),
    Unified(Arc<crate::toy::UnifiedDevice>),
}

#[cfg(feature = "toy")]
impl Toy {
    fn state(&self) -> (u64, Vec<crate::toy::Violation>) {
        match self {
            Self::Opaque(toy) => (toy.counters().host_waits, toy.violations()),
            Self::Unified(toy) => (toy.counters().host_waits, toy.violations()),
        }
    }
}

fn places() -> Result<Vec<Place>, BufferError> {
    let host = Arc::new(HostDevice);
    let mut places = vec![Place {
        name: "the host",
        queue: host.create_queue()?,
        device: host,
        #[cfg(feature = "toy")]
        toy: None,
    }];
    places.extend(toys()?);
    Ok(places)
}

#[cfg(not(feature = "toy"))]
fn toys() -> Result<[Place; 0], BufferError> {
    Ok([])
}

#[cfg(feature = "toy")]
fn toys() -> Result<[Place; 2], BufferError> {
    use crate::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};
    // Whoever does wait is found out, as nothing runs before.
    let late = ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() };
    let opaque = OpaqueDevice::with_options(0, late);
    let unified = UnifiedDevice::with_options(1, late);
    Ok([
        Place {
            name: "opaque memory",
            queue: opaque.create_queue()?,
            device: Arc::clone(&opaque) as Arc<dyn Device>,
            toy: Some(Toy::Opaque(opaque)),
        },
        Place {
            name: "unified memory",
            queue: unified.create_queue()?,
            device: Arc::clone(&unified) as Arc<dyn Device>,
            toy: Some(Toy::Unified(unified)),
        },
    ])
}

impl Place {
    /// Memory that holds [`BEFORE`], some way into an allocation.
    fn memory(&self, len: usize) -> Result<Buffer, BufferError> {
        let memory = self.device.allocate(len + 3, &*self.queue)?;
        if memory.is_host_visible() {
            memory.host_write()?.fill(BEFORE);
        } else {
            let staging = self.device.allocate_staging(len + 3)?;
            staging.host_write()?.fill(BEFORE);
            self.queue.copy(&staging, &memory)?;
        }
        memory.slice(3..len + 3)
    }

    fn contents(&self, memory: &Buffer) -> Result<Vec<u8>, BufferError> {
        let staging = if memory.is_host_visible() {
            memory.clone()
        } else {
            let staging = self.device.allocate_staging(memory.len())?;
            self.queue.copy(memory, &staging)?;
            staging
        };
        staging.wait()?;
        Ok(staging.host_read()?.to_vec())
    }

    fn read(&self, store: &Face, key: &StoreKey, range: ByteRange, dst: &Buffer) -> Result<Option<usize>, zarr_store_api::StoreError> {
        store.get_into_buffer(key, range, dst, &self.device, &self.queue)
    }

    fn waits(&self) -> u64 {
        #[cfg(feature = "toy")]
        return self.toy.as_ref().map_or(0, |toy| toy.state().0);
        #[cfg(not(feature = "toy"))]
        0
    }

    /// That the device was used as it must be.
    fn end(&self) -> Result<(), Broken> {
        #[cfg(feature = "toy")]
        if let Some(toy) = &self.toy {
            let violations = toy.state().1;
            ensure!(violations.is_empty(), "{} is misused: {violations:?}", self.name);
        }
        Ok(())
    }
}

fn read(store: &Face) -> Result<(), Broken> {
    let (key, value) = (key(THOUSAND), value_of(THOUSAND));
    for place in places()? {
        let name = place.name;
        for (range, (start, end)) in RANGES {
            for behind in [0, 7] {
                let length = end - start;
                let dst = place.memory(length + behind)?;
                let before = place.waits();
                let read = place.read(store, &key, *range, &dst)?;
                ensure!(place.waits() == before, "a read into {name} waits for the device");
                ensure!(read == Some(length), "{range} is {length} bytes, {read:?} are reported, into {name}");
                let found = place.contents(&dst)?;
                ensure!(found.get(..length) == value.get(*start..*end), "{range} reads other bytes, into {name}");
                ensure!(found.iter().skip(length).all(|byte| *byte == BEFORE), "{range} writes behind its end, in {name}");
            }
        }
        place.end()?;
    }
    Ok(())
}

fn missing(store: &Face) -> Result<(), Broken> {
    for place in places()? {
        for name in MISSING {
            for range in [ByteRange::All, ByteRange::Suffix(16), ByteRange::from(5..10), ByteRange::From(1)] {
                let dst = place.memory(16)?;
                let read = place.read(store, &key(name), range, &dst)?;
                ensure!(read.is_none(), "`{name}`, {range}: get_into_buffer gives {read:?}, in {}", place.name);
                ensure!(place.contents(&dst)? == [BEFORE; 16], "`{name}`, {range}: something is written to {}", place.name);
            }
        }
        place.end()?;
    }
    Ok(())
}

fn too_short(store: &Face) -> Result<(), Broken> {
    for place in places()? {
        for (range, (start, end)) in RANGES.iter().filter(|(_, (start, end))| start < end) {
            let dst = place.memory(end - start - 1)?;
            let read = place.read(store, &key(THOUSAND), *range, &dst);
            expect_kind(&format!("{range} into {} bytes of {}", dst.len(), place.name), StoreErrorKind::Parameter, read)?;
        }
        place.end()?;
    }
    Ok(())
}

fn out_of_range(store: &Face) -> Result<(), Broken> {
    for place in places()? {
        for range in BAD_RANGES {
            let dst = place.memory(16)?;
            let read = place.read(store, &key(THOUSAND), *range, &dst);
            expect_out_of_range(&format!("get_into_buffer of {range}, into {}", place.name), read)?;
        }
        place.end()?;
    }
    Ok(())
}

fn borrowed(store: &Face) -> Result<(), Broken> {
    for place in places()? {
        let name = place.name;
        let dst = place.memory(1000)?;
        if dst.is_host_visible() {
            let held = dst.host_read()?;
            let read = place.read(store, &key(THOUSAND), ByteRange::All, &dst);
            expect_kind(&format!("a read into memory of {name} that is held"), StoreErrorKind::Parameter, read)?;
            ensure!(held.iter().all(|byte| *byte == BEFORE), "a refused read writes to memory of {name} that is held");
            drop(held);
            let read = place.read(store, &key(THOUSAND), ByteRange::All, &dst)?;
            ensure!(read == Some(1000), "once let go, memory of {name} takes {read:?} bytes");
        }
        place.end()?;
    }
    Ok(())
}
