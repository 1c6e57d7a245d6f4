//! `cargo xtask interop`: arrays of other implementations are read by ours, and ours by them.
//!
//! The cases, the peers and what each peer supports live in `ci/interop`. This module makes the Python environment,
//! runs both sides, and holds what came out against the support tables: a case outside of a table is a declared skip,
//! a case inside that fails is a failure, and so is a table that excludes a case that works.

pub(crate) mod python;
mod report;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs, thread};

pub(crate) use report::Peer;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the whole comparison.
///
/// `--record` writes `benches/record/interop.json`; `--keep` keeps the arrays under `target/interop` when all is well.
///
/// # Errors
/// When a tool is missing, a side dies outside of any case, or a case fails.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut record = false;
    let mut keep = false;
    for arg in args {
        match arg.as_str() {
            "--record" => record = true,
            "--keep" => keep = true,
            other => return Err(format!("interop: unknown argument {other}").into()),
        }
    }
    let start = Instant::now();
    let root = crate::workspace_root();
    let work = root.join("target/interop");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let python = python::environment(&root)?;
    let paths = Paths::new(&root, &work);
    python_step(&python, &paths, "cases.py", [&paths.cases])?;
    eprintln!("interop: environment and cases after {:.0} s", start.elapsed().as_secs_f64());

    // Two lanes, for two cores: zarr-python takes about as long as all the others together.
    let ours = build(&root)?;
    two_lanes(
        || peer_step(&python, &paths, Peer::ZarrPython, "write"),
        || {
            our_step(&ours, &paths, "write", &paths.by_us, &paths.our_writes())?;
            for peer in Peer::ALL.into_iter().filter(|p| *p != Peer::ZarrPython) {
                peer_step(&python, &paths, peer, "write")?;
            }
            Ok(())
        },
    )?;
    eprintln!("interop: written after {:.0} s", start.elapsed().as_secs_f64());
    two_lanes(
        || peer_step(&python, &paths, Peer::ZarrPython, "read"),
        || {
            for peer in Peer::ALL {
                our_step(&ours, &paths, "read", &paths.by_peer(peer), &paths.our_reads(peer))?;
            }
            for peer in Peer::ALL.into_iter().filter(|p| *p != Peer::ZarrPython) {
                peer_step(&python, &paths, peer, "read")?;
            }
            Ok(())
        },
    )?;

    trees(&python, &ours, &paths)?;

    let outcome = report::Outcome::gather(&paths)?;
    let versions = python::versions(&python, &paths.scripts)?;
    outcome.print(&versions);
    println!("interop: {:.0} s in all", start.elapsed().as_secs_f64());
    if record {
        let target = root.join("benches/record/interop.json");
        fs::create_dir_all(root.join("benches/record"))?;
        fs::write(&target, outcome.record(&versions, start.elapsed())?)?;
        println!("interop: recorded in {}", target.display());
    }
    let verdict = outcome.verdict();
    if verdict.is_ok() && !keep {
        fs::remove_dir_all(&work)?;
    }
    verdict
}

/// Where everything of one run lies.
pub(crate) struct Paths {
    scripts: PathBuf,
    cases: PathBuf,
    by_us: PathBuf,
    work: PathBuf,
}

impl Paths {
    fn new(root: &Path, work: &Path) -> Self {
        Self { scripts: root.join("ci/interop"), cases: work.join("cases"), by_us: work.join("arrays/ours"), work: work.to_owned() }
    }

    fn by_peer(&self, peer: Peer) -> PathBuf {
        self.work.join("arrays").join(peer.name())
    }

    fn peer_report(&self, peer: Peer, action: &str) -> PathBuf {
        self.work.join(format!("{}.{action}.jsonl", peer.name()))
    }

    fn our_reads(&self, peer: Peer) -> PathBuf {
        self.work.join(format!("ours.read.{}.jsonl", peer.name()))
    }

    /// What zarr-python wrote of the hierarchies and we read of that; what we wrote and zarr-python read of that.
    fn tree_reports(&self) -> [PathBuf; 4] {
        ["zarr-python.write", "ours.read", "ours.write", "zarr-python.read"].map(|name| self.work.join(format!("trees.{name}.jsonl")))
    }

    fn our_writes(&self) -> PathBuf {
        self.work.join("ours.write.jsonl")
    }
}

/// Hierarchies: zarr-python is the one peer that has them.
fn trees(python: &Path, ours: &Path, paths: &Paths) -> Result<()> {
    let tree = paths.scripts.join("tree.json");
    let by = |who: &str| paths.work.join("trees").join(who);
    let (theirs, by_us) = (by("zarr-python"), by("ours"));
    let [their_write, our_read, our_write, their_read] = paths.tree_reports();
    python_step(python, paths, "tree.py", [OsStr::new("write"), theirs.as_os_str(), their_write.as_os_str()])?;
    step(Command::new(ours).arg("read-tree").args([&tree, &theirs, &our_read]))?;
    step(Command::new(ours).arg("write-tree").args([&tree, &by_us, &our_write]))?;
    python_step(python, paths, "tree.py", [OsStr::new("read"), by_us.as_os_str(), their_read.as_os_str()])
}

fn two_lanes(first: impl FnOnce() -> Result<()> + Send, second: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    thread::scope(|scope| {
        let lane = scope.spawn(first);
        let here = second();
        let there = lane.join().map_err(|_| "interop: a lane panicked")?;
        here.and(there)
    })
}

fn build(root: &Path) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    step(Command::new(cargo).current_dir(root).args(["build", "--quiet", "--package", "zarr-interop"]))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("debug/zarr-interop"))
}

fn python_step<S: AsRef<OsStr>>(python: &Path, paths: &Paths, script: &str, args: impl IntoIterator<Item = S>) -> Result<()> {
    // No bytecode: nothing of a run is left in the source tree.
    step(Command::new(python).arg("-B").arg(paths.scripts.join(script)).args(args))
}

fn peer_step(python: &Path, paths: &Paths, peer: Peer, action: &str) -> Result<()> {
    let arrays = if action == "write" { paths.by_peer(peer) } else { paths.by_us.clone() };
    fs::create_dir_all(&arrays)?;
    let report = paths.peer_report(peer, action);
    python_step(
        python,
        paths,
        "peer.py",
        [OsStr::new(peer.name()), OsStr::new(action), paths.cases.as_os_str(), arrays.as_os_str(), report.as_os_str()],
    )
}

fn our_step(ours: &Path, paths: &Paths, action: &str, arrays: &Path, report: &Path) -> Result<()> {
    fs::create_dir_all(arrays)?;
    step(Command::new(ours).arg(action).arg(&paths.cases).arg(arrays).arg(report))
}

pub(crate) fn step(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
