//! `cargo xtask fuzz`: what `cargo fuzz` does, without an installation and with the stable compiler.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Result;
use crate::tool::{cargo, output};

/// Coverage that libFuzzer understands, and the address sanitizer; the stable compiler has both behind `RUSTC_BOOTSTRAP`.
const RUSTFLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

/// With a target named, flags do not reach build scripts and proc macros.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// One allocation may have 512 MiB: a header that claims 4 GiB and gets them is a finding.
const LIMITS: [&str; 4] = ["-malloc_limit_mb=512", "-rss_limit_mb=2048", "-timeout=10", "-max_len=65536"];

struct Wanted {
    seconds: u64,
    target: Option<String>,
    seeds: bool,
    /// Where chance starts; `None`: somewhere else each time.
    seed: Option<u32>,
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Self> {
        let mut wanted = Self { seconds: 60, target: None, seeds: false, seed: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("fuzz: {arg} needs a value"));
            match arg.as_str() {
                "--seconds" => wanted.seconds = value()?.parse()?,
                "--target" => wanted.target = Some(value()?.clone()),
                "--seeds" => wanted.seeds = true,
                "--seed" => wanted.seed = Some(value()?.parse()?),
                other => return Err(format!("fuzz: unknown argument {other}").into()),
            }
        }
        Ok(wanted)
    }
}

/// Builds and runs fuzz targets; prints what each did.
///
/// # Errors
/// When a build fails or a target finds something; the others still run.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let wanted = Wanted::parse(args)?;
    let fuzz = root.join("fuzz");
    if wanted.seeds {
        return make_seeds(&fuzz);
    }
    let targets: Vec<String> = targets(&fuzz)?.into_iter().filter(|name| wanted.target.as_ref().is_none_or(|only| only == name)).collect();
    if targets.is_empty() {
        return Err("fuzz: no such target".into());
    }
    build(&fuzz, wanted.target.as_deref())?;
    let mut failed = Vec::new();
    for target in &targets {
        let (ok, report) = fuzz_one(&fuzz, target, &wanted)?;
        println!("{report}");
        if !ok {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("fuzz: {} found something; inputs are in fuzz/artifacts", failed.join(", ")).into())
    }
}

/// The targets are the binaries.
fn targets(fuzz: &Path) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(fuzz.join("fuzz_targets"))? {
        let path = entry?.path();
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
            targets.push(name.to_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

fn build(fuzz: &Path, target: Option<&str>) -> Result<()> {
    let mut build = cargo();
    build.current_dir(fuzz).args(["build", "--release", "--target", TRIPLE]);
    match target {
        Some(target) => build.args(["--bin", target]),
        None => build.arg("--bins"),
    };
    // GCC takes a constant array in a function of zstd out of the function, and marks it as out of scope all the same.
    build.env("CFLAGS", "-fno-sanitize-address-use-after-scope");
    let status = build.env("RUSTFLAGS", RUSTFLAGS).env("RUSTC_BOOTSTRAP", "1").status()?;
    if status.success() { Ok(()) } else { Err("fuzz: the build failed".into()) }
}

/// Runs one target. New inputs go to `fuzz/target/corpus`; the seeds are only read.
fn fuzz_one(fuzz: &Path, target: &str, wanted: &Wanted) -> Result<(bool, String)> {
    let found = fuzz.join("target/corpus").join(target);
    let seeds = fuzz.join("corpus").join(target);
    let artifacts = fuzz.join("artifacts").join(target);
    for folder in [&found, &seeds, &artifacts] {
        fs::create_dir_all(folder)?;
    }
    let start = Instant::now();
    let mut command = Command::new(fuzz.join("target").join(TRIPLE).join("release").join(target));
    command.args(LIMITS).arg(format!("-max_total_time={}", wanted.seconds)).arg("-print_final_stats=1");
    if let Some(seed) = wanted.seed {
        command.arg(format!("-seed={seed}"));
    }
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg(&found).arg(&seeds);
    // libdeflate includes one file several times, which looks like one global defined twice.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0");
    let output = command.stdin(Stdio::null()).output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    let stats: BTreeMap<&str, &str> =
        log.lines().filter_map(|line| line.strip_prefix("stat::")?.split_once(':')).map(|(name, value)| (name, value.trim())).collect();
    let stat = |name: &str| stats.get(name).copied().unwrap_or("?");
    let coverage = log.lines().rev().find_map(|line| line.split_once("cov: ")?.1.split_whitespace().next()).unwrap_or("?");
    let report = format!(
        "fuzz {target}: {:.0} s, {} executions, {coverage} edges, peak {} MiB",
        start.elapsed().as_secs_f64(),
        stat("number_of_executed_units"),
        stat("peak_rss_mb"),
    );
    if output.status.success() {
        return Ok((true, report));
    }
    let log: Vec<&str> = log.lines().collect();
    let tail = log.get(log.len().saturating_sub(60)..).unwrap_or_default().join("\n");
    Ok((false, format!("{tail}\n{report}: FAILED, {}", output.status)))
}

/// Makes the committed seeds anew.
fn make_seeds(fuzz: &Path) -> Result<()> {
    print!("{}", output(cargo().current_dir(fuzz).args(["run", "--quiet", "--example", "seeds"]))?);
    Ok(())
}
