//! `cargo xtask sanitize`: the kernels on the host, under the address and undefined-behaviour sanitizers.

use std::path::Path;

use crate::Result;
use crate::interop::step;
use crate::tool::cargo;

/// With a target named, flags do not reach build scripts and proc macros.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// The stable compiler has the address sanitizer behind `RUSTC_BOOTSTRAP`. The kernels' C++ compiler brings the other one.
const RUSTFLAGS: &str = "-Zsanitizer=address -Clink-arg=-lubsan -Cdebuginfo=line-tables-only";
/// What zarr-codecs-cuda-host builds its kernels with.
const SANITIZERS: &str = "address,undefined";
/// Random chunks of each codec, compared with the CPU's.
const FRAMES: &str = "20000";

pub(crate) const USAGE: &str = "usage: cargo xtask sanitize [--frames N] [--part K/N] [FILTER]
  --frames N   random chunks to decode (20000), fewer of codecs other than zstd; 0 for none
  --part K/N   of the tests of codecs and arrays every Nth, from the Kth on; of the suite's samples every Nth
  FILTER       only tests whose name contains this";

/// Builds the kernels' tests with sanitizers, and runs them; then decodes random chunks.
///
/// # Errors
/// When a build fails, a test fails, or a sanitizer finds something.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let (mut frames, mut part, mut filter) = (FRAMES, "0/1", None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--frames" => frames = args.next().ok_or(USAGE)?,
            "--part" => part = args.next().ok_or(USAGE)?,
            name if !name.starts_with('-') => filter = Some(name),
            _ => return Err(USAGE.into()),
        }
    }
    let sanitized = |subcommand: &str| {
        let mut command = cargo();
        command.current_dir(root).args([subcommand, "--target", TRIPLE, "--target-dir"]).arg(root.join("target/sanitize"));
        command.env("RUSTFLAGS", RUSTFLAGS).env("RUSTC_BOOTSTRAP", "1").env("ZARR_KERNELS_SANITIZE", SANITIZERS);
        // GCC takes a constant array in a function of zstd out of the function, and marks it as out of scope all the same.
        command.env("CFLAGS", "-fno-sanitize-address-use-after-scope");
        // libdeflate includes one file several times, which looks like one global defined twice.
        command.env("ASAN_OPTIONS", "detect_odr_violation=0:detect_stack_use_after_return=0");
        command
    };
    let mut tests = sanitized("test");
    tests.args(["--package", "zarr-codecs-cuda-host"]).args(filter);
    step(&mut tests)?;
    let mut all = sanitized("run");
    all.args(["--package", "zarr-gpu", "--no-default-features", "--", "test", "--host", "--test-threads", "2"]);
    all.args(["--part", part]).args(filter);
    step(&mut all)?;
    if filter.is_none() {
        let every = part.split_once('/').ok_or(USAGE)?.1;
        step(sanitized("run").args([
            "--package",
            "zarr-gpu",
            "--no-default-features",
            "--",
            "suite",
            "--engine",
            "host",
            "--every",
            every,
        ]))?;
    }
    if filter.is_none() && frames != "0" {
        // Chunks of gzip and LZ4 are large.
        let frames: u64 = frames.parse().map_err(|_| USAGE)?;
        for (codec, frames, more) in [
            ("zstd", frames, ["--jobs", "2"]),
            ("blosc", frames.div_ceil(2), ["--reach", "30"]),
            ("deflate", frames.div_ceil(4), ["--reach", "30"]),
            ("lz4", frames.div_ceil(10), ["--reach", "30"]),
            ("zstd-encode", frames.div_ceil(20), ["--seed", "1"]),
        ] {
            let mut fuzz = sanitized("run");
            fuzz.args(["--package", "zarr-gpu", "--no-default-features", "--", "fuzz", "--engine", "host", "--codec", codec]);
            step(fuzz.args(["--frames", &frames.to_string()]).args(more))?;
        }
    }
    Ok(())
}
