#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zarr_fuzz::shard_index(data));
