//! Deliberately wrong stores and wrappers around stores: the laws find each of them, and every law is needed for that.

mod wrong;

use zarr_conformance::assert_conforms;

use wrong::assert_no_law_is_idle;
use wrong::stores::{asynchronous, blocking, listing, races, reading, wrappers, writing};

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
