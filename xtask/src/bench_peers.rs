//! Measures this project beside zarrs and tensorstore: see `benches/peers/run.py`, which does the measuring.
//!
//! This builds the drivers, makes the Python environment and the data (some 17 GB below `target/`), and runs it. `--bundle FOLDER` puts together what is
//! needed to do the same on a machine without cargo.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::interop::python::environment_of;
use crate::interop::step;
use crate::tool::cargo;

/// Each is built on its own, so that none gets features that another asked for.
const DRIVERS: [&str; 5] = ["peer-zarrs", "peer-zarrs-remote", "peer-ours", "peer-server", "floor"];

pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let peers = root.join("benches/peers");
    let target = root.join("target");
    for driver in DRIVERS {
        let mut build = cargo();
        build.args(["build", "--release", "--package", driver]).current_dir(&peers).env("CARGO_TARGET_DIR", &target);
        step(&mut build)?;
    }
    // Alone: features of other packages are not to be its own.
    step(
        cargo()
            .args(["build", "--release", "--package", "zarr-cli", "--no-default-features"])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", &target),
    )?;
    if let Some(folder) = args.iter().position(|arg| arg == "--bundle").and_then(|at| args.get(at + 1)) {
        return bundle(root, Path::new(folder));
    }
    let python = environment_of(root, "peers-venv", "benches/peers/requirements.txt")?;

    let small = args.iter().any(|arg| arg == "--small");
    let data = target.join("peers-data").join(if small { "small" } else { "full" });
    let mut generate = Command::new(&python);
    generate.arg("-B").arg(peers.join("generate.py")).arg(&data).args(small.then_some("--small"));
    if let Some(variants) = args.iter().position(|arg| arg == "--variants").and_then(|at| args.get(at + 1)) {
        generate.args(variants.split(','));
    }
    step(&mut generate)?;

    let mut measure = Command::new(&python);
    measure.arg("-B").arg(peers.join("run.py")).arg("--data").arg(&data).arg("--drivers").arg(target.join("release"));
    if !args.iter().any(|arg| arg == "--runs") {
        // Where an earlier call was cut short, `--runs` with its file goes on.
        let name = format!("peers-{}.jsonl", std::process::id());
        measure.arg("--runs").arg(target.join("peers-data/runs").join(name));
    }
    for arg in args {
        if arg == "--record" {
            measure.arg("--record").arg(root.join("benches/record"));
        } else {
            measure.arg(arg);
        }
    }
    step(&mut measure)
}

/// Drivers, scripts, and what the record says of them, in a folder of their own.
fn bundle(root: &Path, folder: &Path) -> Result<()> {
    let (peers, drivers) = (root.join("benches/peers"), folder.join("drivers"));
    std::fs::create_dir_all(&drivers)?;
    for entry in std::fs::read_dir(&peers)? {
        let path = entry?.path();
        let wanted = path.extension().is_some_and(|extension| extension == "py" || extension == "sh" || extension == "lock");
        if let (true, Some(name)) = (wanted, path.file_name()) {
            std::fs::copy(&path, folder.join(name))?;
        }
    }
    for driver in DRIVERS.into_iter().chain(["zarr"]) {
        let mut strip = Command::new("strip");
        step(strip.arg("-o").arg(drivers.join(driver)).arg(root.join("target/release").join(driver)))?;
    }
    let output =
        |command: &mut Command| -> Result<String> { Ok(String::from_utf8(command.current_dir(root).output()?.stdout)?.trim().to_owned()) };
    let commit = output(Command::new("git").args(["rev-parse", "HEAD"]))?;
    let changed = output(Command::new("git").args(["status", "--porcelain", "--", "crates", "Cargo.toml", "benches/peers"]))?;
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let rustc = rustc.trim_start_matches("rustc ");
    let text = format!("{{\"commit\": \"{commit}\", \"changed_since\": {}, \"rustc\": \"{rustc}\"}}\n", !changed.is_empty());
    Ok(std::fs::write(folder.join("built.json"), text)?)
}
