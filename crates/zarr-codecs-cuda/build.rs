//! Gives the numbers that kernels and host share to the host, and the place of the kernels' sources to crates that build them another way.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let kernels = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("kernels");
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::metadata=kernels={}", kernels.display());

    let mut constants = String::new();
    for folder in fs::read_dir(&kernels)? {
        let file = folder?.path().join("constants.cuh");
        if !file.is_file() {
            continue;
        }
        let mut docs = String::new();
        for line in fs::read_to_string(&file)?.lines() {
            if let Some(comment) = line.strip_prefix("// ") {
                writeln!(docs, "/// {comment}")?;
            } else if let Some(definition) = line.strip_prefix("constexpr u32 ") {
                let (name, value) = definition.trim_end_matches(';').split_once(" = ").ok_or("`constexpr u32 NAME = value;`")?;
                writeln!(constants, "{docs}pub(crate) const {name}: u32 = {value};")?;
                docs.clear();
            } else {
                docs.clear();
            }
        }
    }
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("constants.rs"), constants)?;
    Ok(())
}
