//! Writes golden frames into the folder given: content of this crate's kinds, encoded by encoders that are not libzstd.

use std::fs::write;
use std::path::Path;

use zstd_frames::Rng;
use zstd_frames::generate::data;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let folder = Path::new(&folder);
    let mut oracle = zstd_frames::Oracle::default();
    for (kind, size) in [("text", 6000), ("few symbols", 150_000), ("runs", 140_000), ("smooth float32, shuffled", 12_000), ("int16", 3000), ("zeros", 300_000), ("repeated block", 150_000)] {
        let content = data::content(kind, size, &Rng::new(size as u64));
        let mut frames = Vec::new();
        use ruzstd::encoding::CompressionLevel as Level;
        for (name, level) in [("uncompressed", Level::Uncompressed), ("fastest", Level::Fastest)] {
            if name == "fastest" || size < 4000 {
                frames.push((format!("ruzstd-{name}"), ruzstd::encoding::compress_to_vec(&content[..], level)));
            }
        }
        use structured_zstd::encoding::CompressionLevel as Other;
        for (name, level) in [("fastest", Other::Fastest), ("default", Other::Default), ("best", Other::Best)] {
            frames.push((format!("structured-zstd-{name}"), structured_zstd::encoding::compress_to_vec(&content[..], level)));
        }
        for (name, frame) in frames {
            let file = format!("{name}-{}-{size}.zst", kind.replace([' ', ','], "-").replace("--", "-"));
            if frame.len() > 16_000 {
                println!("{file}: {} bytes, left out", frame.len());
                continue;
            }
            assert_eq!(oracle.decode(&frame, size).as_ref(), Ok(&content), "{file}");
            write(folder.join(&file), &frame).expect("the folder can be written to");
            println!("{file}: {} bytes", frame.len());
        }
    }
}
