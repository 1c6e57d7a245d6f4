//! Reads into memory of devices, with copies and waits counted. (That the bytes are right, for every range, is a law of stores.)

use std::sync::Arc;

use tempfile::TempDir;
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};
use zarr_store::{FilesystemStore, MemoryStore};
use zarr_store_api::{Buffer, ByteRange, Device, Queue, Store, StoreErrorKind, StoreKey};

const VALUE: [u8; 6] = *b"values";

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn stores() -> (TempDir, [Box<dyn Store>; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let stores: [Box<dyn Store>; 2] = [Box::new(MemoryStore::new()), Box::new(FilesystemStore::new(dir.path()).unwrap())];
    for store in &stores {
        store.as_writable().unwrap().set(&key("a/c/0"), VALUE.to_vec().into()).unwrap();
    }
    (dir, stores)
}

fn download(memory: &Buffer, device: &Arc<dyn Device>, queue: &Arc<dyn Queue>) -> Vec<u8> {
    let staging = device.allocate_staging(memory.len()).unwrap();
    queue.copy(memory, &staging).unwrap();
    staging.wait().unwrap();
    staging.host_read().unwrap().to_vec()
}

#[test]
fn an_opaque_device_costs_one_copy_and_no_wait() {
    let (_dir, stores) = stores();
    for store in stores {
        // Nothing runs before somebody waits.
        let options = ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() };
        let toy = OpaqueDevice::with_options(0, options);
        let device: Arc<dyn Device> = toy.clone();
        let queue = device.create_queue().unwrap();
        let name = store.name();
        assert!(!store.reads_to_device(device.id()), "{name}");
        for (range, wanted) in [
            (ByteRange::All, &VALUE[..]),
            (ByteRange::from(1..3), &VALUE[1..3]),
            (ByteRange::from(4..100), &VALUE[4..]),
            (ByteRange::From(2), &VALUE[2..]),
            (ByteRange::Suffix(4), &VALUE[2..]),
            (ByteRange::Suffix(100), &VALUE[..]),
        ] {
            let dst = device.allocate(8, &*queue).unwrap();
            let before = toy.counters();
            let read = store.get_into_buffer(&key("a/c/0"), range, &dst, &device, &queue).unwrap();
            let done = toy.counters().since(&before);
            assert_eq!(read, Some(wanted.len()), "{name}, {range}");
            assert_eq!((done.host_to_device.copies, done.host_to_device.bytes), (1, wanted.len() as u64), "{name}, {range}");
            assert_eq!((done.staging_allocations, done.allocations, done.host_waits), (1, 0, 0), "{name}, {range}");
            assert_eq!(download(&dst.slice(0..wanted.len()).unwrap(), &device, &queue), wanted, "{name}, {range}");
        }

        // Nothing is copied where nothing is read.
        let dst = device.allocate(4, &*queue).unwrap();
        let before = toy.counters();
        let missing = store.get_into_buffer(&key("a/c/1"), ByteRange::All, &dst, &device, &queue).unwrap();
        let empty = store.get_into_buffer(&key("a/c/0"), ByteRange::Suffix(0), &dst, &device, &queue).unwrap();
        assert_eq!((missing, empty), (None, Some(0)), "{name}");
        let short = store.get_into_buffer(&key("a/c/0"), ByteRange::All, &dst, &device, &queue).unwrap_err();
        assert_eq!(short.kind(), StoreErrorKind::Parameter, "{name}");
        assert_eq!(short.message(), "the destination has 4 bytes, the range 6", "{name}");
        let done = toy.counters().since(&before);
        assert_eq!((done.host_to_device.copies, done.host_waits, done.live_staging_bytes), (0, 0, 0), "{name}");
        toy.assert_clean();
    }
}

#[test]
fn a_unified_device_costs_nothing() {
    let (_dir, stores) = stores();
    for store in stores {
        let toy = UnifiedDevice::new(0);
        let device: Arc<dyn Device> = toy.clone();
        let queue = device.create_queue().unwrap();
        let name = store.name();
        let dst = device.allocate(8, &*queue).unwrap();
        let before = toy.counters();
        let read = store.get_into_buffer(&key("a/c/0"), ByteRange::Suffix(4), &dst, &device, &queue).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!(read, Some(4), "{name}");
        assert_eq!((done.bus_copies(), done.device_to_device.copies, done.host_to_host.copies), (0, 0, 0), "{name}");
        assert_eq!((done.allocations, done.host_waits), (0, 0), "{name}");
        assert_eq!(dst.host_read().unwrap()[..4], VALUE[2..], "{name}");

        let front = dst.slice(0..3).unwrap();
        let short = store.get_into_buffer(&key("a/c/0"), ByteRange::Suffix(4), &front, &device, &queue).unwrap_err();
        assert_eq!(short.kind(), StoreErrorKind::Parameter, "{name}");
        assert_eq!(store.get_into_buffer(&key("a"), ByteRange::All, &dst, &device, &queue).unwrap(), None, "{name}");
        toy.assert_clean();
    }
}

#[test]
fn host_memory_that_a_device_still_uses_is_refused() {
    let (_dir, stores) = stores();
    for store in stores {
        let toy = UnifiedDevice::with_options(0, ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() });
        let device: Arc<dyn Device> = toy.clone();
        let queue = device.create_queue().unwrap();
        let (dst, other) = (device.allocate(8, &*queue).unwrap(), device.allocate(8, &*queue).unwrap());
        queue.copy(&other, &dst).unwrap();
        let busy = store.get_into_buffer(&key("a/c/0"), ByteRange::All, &dst, &device, &queue).unwrap_err();
        assert_eq!(busy.kind(), StoreErrorKind::Parameter);
        let source = busy.get_ref().and_then(|source| source.downcast_ref::<zarr_buffer_api::BufferError>());
        assert_eq!(source.map(|source| source.kind), Some(zarr_buffer_api::BufferErrorKind::NotReady));
        dst.wait().unwrap();
        assert_eq!(store.get_into_buffer(&key("a/c/0"), ByteRange::All, &dst, &device, &queue).unwrap(), Some(6));
        toy.assert_clean();
    }
}
