//! `cargo xtask gpu-bundle`: what runs on a machine with a GPU, in one file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::Result;
use crate::tool::{cargo, output};

/// The most bytes that the bundle may have: it travels by slow ways.
const LIMIT: u64 = 8 << 20;

/// Builds `zarr-gpu`, strips it, and packs it with its script into `target/gpu-bundle.tar.gz`.
///
/// # Errors
/// When the build fails, a tool is missing, or the bundle is too large.
pub(crate) fn run(root: &Path) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err("gpu-bundle: the bundle is for x86-64 Linux, and made there".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let commit = output(Command::new("git").current_dir(root).args(["describe", "--always", "--dirty", "--abbrev=12"]));
    let commit = commit.unwrap_or_else(|_| "unknown\n".to_owned());
    // Records name it.
    let mut build = cargo();
    build.current_dir(root).args(["build", "--release", "--package", "zarr-gpu"]).env("ZARR_COMMIT", commit.trim());
    crate::interop::step(&mut build)?;
    let folder = target.join("gpu-bundle");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    output(Command::new("strip").arg("-o").arg(folder.join("zarr-gpu")).arg(target.join("release/zarr-gpu")))?;
    fs::copy(root.join("gpu/run.sh"), folder.join("run.sh"))?;
    fs::write(folder.join("COMMIT"), commit)?;
    let bundle = target.join("gpu-bundle.tar.gz");
    // Neither times nor owners: the same contents are the same bundle.
    output(
        Command::new("tar")
            .args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9n", "-cf"])
            .arg(&bundle)
            .arg("-C")
            .arg(&target)
            .arg("gpu-bundle"),
    )?;
    let (program, packed) = (fs::metadata(folder.join("zarr-gpu"))?.len(), fs::metadata(&bundle)?.len());
    println!("{}: {packed} bytes; the program has {program}", bundle.display());
    if packed > LIMIT {
        return Err(format!("gpu-bundle: {packed} bytes are more than {LIMIT}").into());
    }
    Ok(())
}
