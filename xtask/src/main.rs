//! The workspace's own tasks: `cargo xtask <task>`.

use std::path::PathBuf;
use std::process::ExitCode;

mod interop;

const USAGE: &str = "usage: cargo xtask <task>

tasks:
  interop [--record] [--keep]   read what other implementations write, and have them read what we write";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", &[][..]),
    };
    let result = match task {
        "interop" => interop::run(rest),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace this was built from.
fn workspace_root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
