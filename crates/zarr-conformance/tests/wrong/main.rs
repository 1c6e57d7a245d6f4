//! Deliberately wrong stores, wrappers around stores, devices, and producers and consumers of DLPack tensors. The laws find each of them, and every law is needed for that: a table says which
//! finds which, and for each law there is a wrong implementation that only this law finds.

mod devices;
mod dlpack;
mod idle;
mod stores;

use std::sync::Arc;

use zarr_buffer_api::Device;
use zarr_conformance::assert_conforms;
use zarr_conformance::dlpack::{exports_on, imports_on};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions};

use devices::{copies, hazards, memory, over_the_host, queues};
use dlpack::Memory;
use idle::assert_no_law_is_idle;
use stores::{asynchronous, blocking, listing, races, reading, wrappers, writing};

#[test]
fn the_right_store_conforms() {
    assert_conforms(blocking(|_| {}));
    assert_conforms(asynchronous(|_| {}));
}

#[test]
fn wrong_stores_are_found() {
    let mut table = reading::table();
    table.extend(writing::table());
    table.extend(listing::table());
    table.extend(races::table());
    assert_no_law_is_idle(&table);
}

#[test]
fn the_right_wrapper_conforms() {
    assert_conforms(wrappers::forgetful("nothing"));
}

#[test]
fn wrong_wrappers_are_found() {
    assert_no_law_is_idle(&wrappers::table());
}

#[test]
fn the_right_device_conforms() {
    assert_conforms(over_the_host(|_| {}));
    // Memory may be part of a larger allocation.
    assert_conforms(over_the_host(|device| {
        device.allocate = |_, device, len, queue| match len < 1 << 16 {
            true => device.allocate(1 << 16, queue)?.slice(256..256 + len),
            false => device.allocate(len, queue),
        };
    }));
}

#[test]
fn wrong_devices_are_found() {
    let mut table = memory::table();
    table.extend(copies::table());
    table.extend(queues::table());
    table.extend(hazards::table());
    assert_no_law_is_idle(&table);
}

#[test]
fn the_right_producer_and_the_right_consumer_conform() {
    for memory in [Memory::Host, Memory::Opaque] {
        assert_conforms(dlpack::producers::producer(memory, |_| {}));
        assert_conforms(dlpack::consumers::consumer(memory, |_| {}));
    }
}

/// The device itself looks for races, for reads of bytes never written, and for memory freed in use: also where memory comes back imported.
#[test]
fn tensors_are_no_misuse_of_their_device() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 1 }, Schedule::WhenWaitedFor] {
        let device = OpaqueDevice::with_options(4, ToyOptions { schedule, ..ToyOptions::default() });
        assert_conforms(exports_on(Arc::clone(&device) as Arc<dyn Device>).unwrap());
        assert_conforms(imports_on(Arc::clone(&device) as Arc<dyn Device>).unwrap());
        device.assert_clean();
    }
}

#[test]
fn wrong_producers_are_found() {
    assert_no_law_is_idle(&dlpack::producers::table(Memory::Host));
}

#[test]
fn wrong_producers_are_found_where_the_host_cannot_look() {
    assert_no_law_is_idle(&dlpack::producers::table(Memory::Opaque));
}

#[test]
fn wrong_consumers_are_found() {
    assert_no_law_is_idle(&dlpack::consumers::table(Memory::Host));
}

#[test]
fn wrong_consumers_are_found_where_the_host_cannot_look() {
    assert_no_law_is_idle(&dlpack::consumers::table(Memory::Opaque));
}
