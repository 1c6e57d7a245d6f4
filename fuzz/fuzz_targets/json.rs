#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zarr_fuzz::json(data));
