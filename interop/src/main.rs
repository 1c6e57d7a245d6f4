//! Our side of `cargo xtask interop`.
//!
//! ```text
//! zarr-interop read CASES FROM REPORT    reads each case from FROM/<id>, bit by bit
//! zarr-interop write CASES OUT REPORT    writes each case into OUT/<id>
//! zarr-interop read-tree TREE FROM REPORT, write-tree TREE OUT REPORT    the same with the hierarchy of the file TREE
//! ```
//!
//! CASES is what `ci/interop/cases.py` made. REPORT gets a line of JSON per case, in the form of `ci/interop/peer.py`. Values are compared
//! as little-endian bytes, so this runs on little-endian machines only.
#![forbid(unsafe_code)]

mod case;
mod read;
mod tree;
mod values;
mod write;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use zarr_array::Options;
use zarr_codec_api::Registry;

use case::{Case, Cases};
use tree::Tree;

#[cfg(target_endian = "big")]
compile_error!("the canonical form of values is little-endian");

/// Why a case did not go well.
enum Failure {
    /// An error of ours.
    Refuses(String),
    /// Other values than expected.
    Differs(String),
    /// Nothing was written.
    Missing,
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Refuses(text)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [action, cases, arrays, report] = args.as_slice() else {
        eprintln!("usage: zarr-interop read|write CASES ARRAYS REPORT, zarr-interop read-tree|write-tree TREE NODES REPORT");
        return ExitCode::FAILURE;
    };
    match run(action, Path::new(cases), Path::new(arrays), Path::new(report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zarr-interop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: &str, cases: &Path, arrays: &Path, report: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let mut lines = BufWriter::new(File::create(report)?);
    // A panic is a verdict on its case, and says by itself what it is about.
    panic::set_hook(Box::new(|_| ()));
    match action {
        "read" | "write" => {
            let found: Cases = serde_json::from_slice(&fs::read(cases.join("cases.json"))?)?;
            for case in &found.cases {
                let job = Job { case, array: arrays.join(&case.id), cases, options: &options };
                let work = if action == "read" { read::read } else { write::write };
                judge(&mut lines, &case.id, || work(&job))?;
            }
        }
        "read-tree" | "write-tree" => {
            for (name, version, consolidated) in tree::VARIANTS {
                let work = if action == "read-tree" { Tree::read } else { Tree::write };
                judge(&mut lines, name, || work(&Tree::load(cases)?, &arrays.join(name), version, consolidated, &options))?;
            }
        }
        other => return Err(format!("no action is named {other}").into()),
    }
    lines.flush()?;
    Ok(())
}

/// Does one case and writes its line.
fn judge(lines: &mut impl Write, id: &str, work: impl FnOnce() -> Result<(), Failure>) -> std::io::Result<()> {
    let (verdict, message) = match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => ("ok", None),
        Ok(Err(Failure::Refuses(message))) => ("refuses", Some(message)),
        Ok(Err(Failure::Differs(message))) => ("differs", Some(message)),
        Ok(Err(Failure::Missing)) => ("missing", None),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            ("crashes", Some(text.unwrap_or("a panic without a message").to_owned()))
        }
    };
    let mut line = serde_json::json!({"id": id, "verdict": verdict});
    if let Some(message) = message {
        line["message"] = message.into();
    }
    writeln!(lines, "{line}")
}

/// One case, with what it takes to do it.
struct Job<'a> {
    case: &'a Case,
    array: PathBuf,
    cases: &'a Path,
    options: &'a Options,
}

impl Job<'_> {
    fn raw(&self, which: &str) -> Result<Vec<u8>, Failure> {
        Ok(fs::read(self.cases.join(format!("{}.{which}.raw", self.case.id)))?)
    }
}
