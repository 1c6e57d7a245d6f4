//! `cargo xtask out-of-tree`: the CUDA crates, as they would be published, build and pass their tests outside of this workspace.
//!
//! The crates and the contracts are packaged; the packages are unpacked in an empty folder, with a workspace around them that takes the contracts from
//! their packages too. Nothing there sees this workspace: what a package lacks, or names by a path, is found out.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde::Deserialize;

use crate::Result;
use crate::deps::{CONTRACTS, CUDA_CRATES, LAWS};
use crate::interop::step;
use crate::tool::{cargo, output};

/// What is tested outside: the crates for CUDA, and what hands their memory to others.
const OUTSIDE: [&str; 4] = [CUDA_CRATES[0], CUDA_CRATES[1], CUDA_CRATES[2], "zarr-buffer-dlpack"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Packages, unpacks, builds and tests.
///
/// # Errors
/// When a crate cannot be packaged, or its package does not build or pass its tests.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = output(cargo().current_dir(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let version = |name: &str| metadata.packages.iter().find(|package| package.name == name).map(|package| package.version.as_str());
    if let Some(missing) = OUTSIDE.into_iter().find(|name| version(name).is_none()) {
        return Err(format!("out-of-tree: there is no crate {missing}").into());
    }
    // The laws are a dependency of tests; they come along. Without a lock file nobody asks a registry for what is not published.
    let inside: Vec<&str> = CONTRACTS.into_iter().chain([LAWS]).collect();

    let mut package = cargo();
    package.current_dir(root).args(["package", "--quiet", "--no-verify", "--allow-dirty", "--exclude-lockfile"]);
    for name in inside.iter().chain(&OUTSIDE) {
        package.args(["--package", name]);
    }
    step(&mut package)?;

    // The same place each time, so that crates from outside are built once; other work trees have others.
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    let place = Place(env::temp_dir().join(format!("zarr-out-of-tree-{:016x}", hasher.finish())));
    if place.0.exists() {
        fs::remove_dir_all(&place.0)?;
    }
    fs::create_dir_all(&place.0)?;
    for name in inside.iter().chain(&OUTSIDE) {
        let file = format!("{name}-{}.crate", version(name).unwrap_or_default());
        let packed = metadata.target_directory.join("package").join(&file);
        // Packed files are of one old time, which would hide what changed.
        output(Command::new("tar").arg("-xmzf").arg(packed).arg("-C").arg(&place.0))?;
        fs::rename(place.0.join(file.trim_end_matches(".crate")), place.0.join(name))?;
    }
    fs::write(place.0.join("Cargo.toml"), workspace(&inside))?;
    // The same versions of everything else as here.
    fs::copy(root.join("Cargo.lock"), place.0.join("Cargo.lock"))?;

    let outside: BTreeSet<&str> = OUTSIDE.into_iter().collect();
    println!("out-of-tree: {} in {}", outside.iter().copied().collect::<Vec<_>>().join(", "), place.0.display());
    let mut test = cargo();
    test.current_dir(&place.0).args(["test", "--quiet", "--workspace", "--no-fail-fast"]);
    // Kept, so that the next time only what changed is built.
    test.env("CARGO_TARGET_DIR", metadata.target_directory.join("out-of-tree"));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR") {
        test.env_remove(name);
    }
    step(&mut test)?;
    println!("out-of-tree: built and tested against the packaged contracts");
    Ok(())
}

/// A workspace of the packages outside, which takes those inside from beside them.
fn workspace(inside: &[&str]) -> String {
    let members: Vec<String> = OUTSIDE.iter().map(|name| format!("{name:?}")).collect();
    let patches: String = inside.iter().chain(&OUTSIDE).map(|name| format!("{name} = {{ path = {name:?} }}\n")).collect();
    let exclude: Vec<String> = inside.iter().map(|name| format!("{name:?}")).collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\nexclude = [{}]\n\n[patch.crates-io]\n{patches}\n[profile.dev]\nopt-level = 1\ndebug = \"line-tables-only\"\n",
        members.join(", "),
        exclude.join(", "),
    )
}

/// A folder that goes with this.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        // It lies among temporary files; what cannot be removed goes with those.
        let _ = fs::remove_dir_all(&self.0);
    }
}
