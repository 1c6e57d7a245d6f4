//! Measures this project beside zarrs and tensorstore: see `benches/peers/run.py`, which does the measuring.
//!
//! This builds the drivers, makes the Python environment and the data (some 17 GB below `target/`), and runs it.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::interop::python::environment_of;
use crate::interop::step;
use crate::tool::cargo;

/// Each is built on its own, so that none gets features that another asked for.
const DRIVERS: [&str; 3] = ["peer-zarrs", "peer-ours", "floor"];

pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let peers = root.join("benches/peers");
    let target = root.join("target");
    for driver in DRIVERS {
        let mut build = cargo();
        build.args(["build", "--release", "--package", driver]).current_dir(&peers).env("CARGO_TARGET_DIR", &target);
        step(&mut build)?;
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
