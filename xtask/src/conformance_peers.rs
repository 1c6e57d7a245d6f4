//! `cargo xtask conformance-peers`: zarr-python, tensorstore and zarrs over all vectors, and over what each writes.
//!
//! Makes the Python environment and builds the adapter of zarrs, both in `target`, runs the example `implementations` of `zarr-conformance`, and holds what
//! fails against `benches/record/conformance.json`: a divergence that is new or gone is an error.

mod record;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::interop::python::environment_of;
use crate::interop::step;
use crate::tool::cargo;

const CRATE: &str = "crates/zarr-conformance";
/// In the order of the record's columns.
const ADAPTERS: [&str; 3] = ["zarr-python", "tensorstore", "zarrs"];

/// `--environment` makes the environment and no more; `--record` writes the record anew.
///
/// # Errors
/// When a tool is missing, an adapter does not run, ours fails, or what fails is not what the record says.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let (mut only_environment, mut write) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--environment" => only_environment = true,
            "--record" => write = true,
            other => return Err(format!("conformance-peers: unknown argument {other}").into()),
        }
    }
    let python = environment_of(root, "conformance-venv", &format!("{CRATE}/adapters/requirements.txt"))?;
    if only_environment {
        println!("{}", python.display());
        return Ok(());
    }
    let target = root.join("target");
    let adapters = root.join(CRATE).join("adapters");
    let mut build = cargo();
    build.args(["build", "--quiet", "--release"]).current_dir(adapters.join("zarrs")).env("CARGO_TARGET_DIR", &target);
    step(&mut build)?;

    let out: PathBuf = target.join("conformance.json");
    let mut run = cargo();
    run.current_dir(root).args(["run", "--quiet", "--package", "zarr-conformance", "--example", "implementations", "--"]).arg(&out);
    run.args(ADAPTERS.map(|name| adapters.join(format!("{name}.toml"))));
    run.env("ZARR_CONFORMANCE_PYTHON", &python).env("ZARR_CONFORMANCE_BIN", target.join("release"));
    step(&mut run)?;

    let outcome = record::Outcome::parse(&fs::read(&out)?)?;
    let folder = root.join("benches/record");
    let known = folder.join("conformance.json");
    if write {
        fs::write(&known, outcome.json()?)?;
        fs::write(folder.join("conformance.md"), outcome.markdown())?;
        println!("conformance-peers: recorded in {}", folder.display());
        return outcome.ours_is_right();
    }
    outcome.ours_is_right()?;
    outcome.compare(&fs::read(&known)?)
}
