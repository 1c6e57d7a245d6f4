//! `cargo xtask kernels`: compiles the kernels of the CUDA crates with a pinned compiler.
//!
//! Each crate with a folder `kernels/` has one translation unit `kernels/<name>.cu` there. It is compiled to
//! `kernels/<name>.fatbin`, a cubin for each architecture and PTX for those to come, and `kernels/<name>.lock` says from what.
//! Both are committed, so that building the crates takes no CUDA compiler; `--check` compares the lock with the sources and takes none either.
//!
//! The compiler is NVRTC: its wheel holds all of the compiler, while that of nvcc lacks its front end. Code for old drivers comes out of the
//! 12.9 release, not of 13.

mod compiler;
mod lock;
mod resources;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::Result;
use compiler::Compiler;
use lock::Lock;

/// What the fatbin holds: code for each of these, which serve later minor versions too (`sm_80` runs on 8.6 and 8.9),
const CUBINS: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];
/// and what the driver compiles for all others.
const PTX: &str = "compute_80";
/// What the compiler is told besides the architecture. It optimises fully unless told otherwise, and leaves lines out.
const FLAGS: [&str; 3] = ["--std=c++17", "--ptxas-options=-O3", "--ptxas-options=-v"];

pub(crate) const USAGE: &str = "usage: cargo xtask kernels [NAME..] [--check] [--force] [--arch sm_NN] [--resources]
  NAME         codecs, regions, ..: kernels/NAME.cu of one crate; all that are there when none is named
  --check      compare the committed locks with the sources; needs no compiler
  --force      compile where nothing changed, too
  --arch A     compile for one architecture only: quick, and not what may be committed
  --resources  print registers, shared memory and spills of each kernel (for sm_90 unless --arch says else); write nothing";

#[derive(Default)]
struct Options {
    names: Vec<String>,
    check: bool,
    force: bool,
    resources: bool,
    arch: Option<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut out = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--check" => out.check = true,
                "--force" => out.force = true,
                "--resources" => out.resources = true,
                "--arch" => out.arch = Some(args.next().ok_or(USAGE)?.clone()),
                name if !name.starts_with('-') => out.names.push(name.to_owned()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(out)
    }

    fn architectures(&self) -> Vec<String> {
        match &self.arch {
            Some(arch) => vec![arch.clone()],
            None if self.resources => vec!["sm_90".to_owned()],
            None => CUBINS.iter().chain(&[PTX]).map(|arch| (*arch).to_owned()).collect(),
        }
    }
}

/// A translation unit: `folder/name.cu`.
struct Unit {
    folder: PathBuf,
    name: String,
}

impl Unit {
    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(&self.name).with_extension(extension)
    }

    /// Where this unit's code for `arch` is put together.
    fn image(&self, root: &Path, arch: &str) -> PathBuf {
        root.join("target/kernels").join(format!("{}.{arch}", self.name))
    }
}

/// Compiles what changed, or checks that nothing did.
///
/// # Errors
/// Unknown arguments; with `--check`, kernels that are not compiled from the sources beside them; else what the compiler says.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let units = units(root, &options.names)?;
    if options.check {
        return check(&units);
    }
    let architectures = options.architectures();
    let mut stale = Vec::new();
    for unit in units {
        let wanted = Lock::of_sources(&unit.folder, &architectures)?;
        if options.force || options.resources || !wanted.is_met_by(&unit) {
            stale.push((unit, wanted));
        } else {
            println!("{}: up to date", unit.name);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let compiler = Compiler::install(root)?;
    fs::create_dir_all(root.join("target/kernels"))?;
    let logs = compile_all(root, &compiler, &stale, &architectures)?;
    if options.resources {
        for log in logs {
            resources::print(&log);
        }
        return Ok(());
    }
    for (unit, wanted) in stale {
        let images: Vec<(String, PathBuf)> = architectures.iter().map(|arch| (arch.clone(), unit.image(root, arch))).collect();
        compiler.bundle(&unit.name, &unit.file("fatbin"), &images)?;
        wanted.write(&unit)?;
        println!("{}: {} bytes for {}", unit.file("fatbin").display(), fs::metadata(unit.file("fatbin"))?.len(), architectures.join(", "));
    }
    Ok(())
}

/// The translation units of the workspace, or those named, in order.
fn units(root: &Path, names: &[String]) -> Result<Vec<Unit>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path().join("kernels");
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "cu") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                out.push(Unit { folder: folder.clone(), name });
            }
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(unknown) = names.iter().find(|name| !out.iter().any(|unit| unit.name == **name)) {
        return Err(format!("kernels: there is no kernels/{unknown}.cu").into());
    }
    out.retain(|unit| names.is_empty() || names.contains(&unit.name));
    Ok(out)
}

fn check(units: &[Unit]) -> Result<()> {
    let architectures = Options::default().architectures();
    let mut stale = Vec::new();
    for unit in units {
        let wanted = Lock::of_sources(&unit.folder, &architectures)?;
        if let Some(difference) = wanted.difference(unit) {
            stale.push(format!("{}: {difference}", unit.file("lock").display()));
        }
    }
    if stale.is_empty() {
        println!("kernels: {} compiled from the sources beside them", units.len());
        Ok(())
    } else {
        Err(format!("kernels: stale, run `cargo xtask kernels`\n  {}", stale.join("\n  ")).into())
    }
}

/// Compiles every unit for every architecture, on as many threads as there are cores, and gives the compiler's logs.
fn compile_all(root: &Path, compiler: &Compiler, units: &[(Unit, Lock)], architectures: &[String]) -> Result<Vec<String>> {
    let jobs: Vec<(&Unit, &String)> = units.iter().flat_map(|(unit, _)| architectures.iter().map(move |arch| (unit, arch))).collect();
    let count = jobs.len();
    let queue = Mutex::new(jobs.into_iter());
    let worker = || -> Result<Vec<String>> {
        let mut logs = Vec::new();
        loop {
            let next = queue.lock().map_err(|_| "kernels: a compilation panicked")?.next();
            let Some((unit, arch)) = next else { return Ok(logs) };
            let start = Instant::now();
            let log = compiler.compile(&unit.folder, &unit.name, arch, &unit.image(root, arch))?;
            eprintln!("{} for {arch}: {:.1} s", unit.name, start.elapsed().as_secs_f64());
            logs.push(log);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut logs = Vec::new();
        for worker in workers {
            logs.extend(worker.join().map_err(|_| "kernels: a compilation panicked")??);
        }
        Ok(logs)
    })
}
