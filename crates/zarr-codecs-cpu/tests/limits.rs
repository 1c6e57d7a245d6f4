//! What a few bytes can make us allocate.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{codec, decode_growing};

/// The system's allocator, noting the largest request.
struct Noting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// The most memory that this process has had at once, in bytes, C libraries included.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kib| kib << 10)
}

#[test]
fn claims_are_not_allocated() {
    const CLAIM: u32 = u32::MAX - 7;
    let blosc = |flags: u8, decoded: u32, block: u32, body: &[u8]| {
        let mut chunk = vec![2, 1, flags, 4];
        for size in [decoded, block, 16 + body.len() as u32] {
            chunk.extend(size.to_le_bytes());
        }
        chunk.extend_from_slice(body);
        chunk
    };
    let one_block = |stream: &[u8]| [&20u32.to_le_bytes()[..], &(stream.len() as u32).to_le_bytes(), stream].concat();
    let zstd = r#"{"name": "zstd", "configuration": {"level": 1}}"#;
    let gzip = r#"{"name": "gzip", "configuration": {"level": 1}}"#;
    let lz4 = r#"{"name": "numcodecs.lz4", "configuration": {}}"#;
    let blosc_metadata = r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle"}}"#;
    let lzma = r#"{"name": "numcodecs.lzma", "configuration": {"format": 2}}"#;
    let bz2 = r#"{"name": "numcodecs.bz2", "configuration": {}}"#;
    let mut cases = vec![
        // A frame with a content size of four bytes, then one raw block of two.
        (zstd, [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &CLAIM.to_le_bytes(), &[1 | 2 << 3, 0, 0, 1, 2]].concat()),
        // The largest window.
        (zstd, vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 1 | 2 << 3, 0, 0, 1, 2]),
        // An empty member that claims a length.
        (gzip, [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0][..], &CLAIM.to_le_bytes()].concat()),
        (lz4, [&0x7e00_0000u32.to_le_bytes()[..], &[0xff; 12]].concat()),
        // A dictionary and a length of 4 GiB.
        (lzma, [&[0x5d][..], &u32::MAX.to_le_bytes(), &u64::from(CLAIM).to_le_bytes(), &[0, 0, 0, 0, 0]].concat()),
        (bz2, b"BZh91AY&SY\x17\x72\x45\x38\x50\x90\x00".to_vec()),
    ];
    for flags in [0x11, 0x14, 0x10, 0x30, 0x50, 0x70, 0x90] {
        cases.push((blosc_metadata, blosc(flags, 0x7fff_ffef, 0x7fff_ffef, &one_block(&[0xff; 20]))));
        cases.push((blosc_metadata, blosc(flags, 0x7000_0000, 0x1c00_0000, &[20, 0, 0, 0].repeat(10))));
    }
    // Contexts and thread-local state exist already.
    for (metadata, encoded) in &cases {
        let _ = decode_growing(&*codec(metadata), encoded, 1 << 20);
    }
    let before = peak();
    LARGEST.store(0, Ordering::Relaxed);
    for (metadata, encoded) in &cases {
        assert!(encoded.len() < 64);
        assert!(decode_growing(&*codec(metadata), encoded, usize::MAX >> 1).is_err(), "{metadata}: {encoded:?}");
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= 4 << 20, "{largest} bytes were asked for at once");
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before <= 16 << 20, "memory grew by {} bytes", after - before);
    }
}
