//! The workspace's own tasks: `cargo xtask <task>`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

mod api;
mod bench_peers;
mod conformance_peers;
mod deps;
mod fuzz;
mod gpu_bundle;
mod interop;
mod kernels;
mod out_of_tree;
mod sanitize;
mod tool;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: cargo xtask <task>

tasks:
  check-deps                    check which crate depends on what
  bench-peers [--pairs N] [--variants A,B] [--modes A,B] [--quick] [--small] [--verify] [--record]
              [--runs FILE] [--seconds S] | --bundle FOLDER
                                measure reading and writing beside zarrs and tensorstore
  api [--check]                 list the public items of the contract crates in ci/api, or compare
  conformance-peers [--environment] [--record]
                                hold zarr-python, tensorstore and zarrs to the conformance vectors
  fuzz [--seconds N] [--target T] [--seed S] [--seeds]
                                fuzz every target, or one, for N seconds each, from anywhere or from S on; or make the seed inputs anew
  kernels [NAME..] [--check] [--force] [--arch sm_NN] [--resources]
                                compile the kernels with the pinned CUDA compiler, or check that they are
  gpu-bundle                    build tests and benchmarks for a machine with a GPU: target/gpu-bundle.tar.gz
  out-of-tree                   build and test the CUDA crates as packages, outside of this workspace
  sanitize [--frames N] [FILTER]
                                test the kernels on the host under sanitizers
  interop [--record] [--keep]   read what other implementations write, and have them read what we write";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", &[][..]),
    };
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        // Nobody may be there to read all of it.
        let _ = writeln!(std::io::stdout(), "{USAGE}");
        return ExitCode::SUCCESS;
    }
    let result = match task {
        "check-deps" if rest.is_empty() => deps::check(&workspace_root()),
        "api" => match rest {
            [] => api::run(&workspace_root(), false),
            [flag] if flag == "--check" => api::run(&workspace_root(), true),
            _ => Err(USAGE.into()),
        },
        "bench-peers" => bench_peers::run(&workspace_root(), rest),
        "conformance-peers" => conformance_peers::run(&workspace_root(), rest),
        "fuzz" => fuzz::run(&workspace_root(), rest),
        "kernels" => kernels::run(&workspace_root(), rest),
        "gpu-bundle" if rest.is_empty() => gpu_bundle::run(&workspace_root()),
        "out-of-tree" if rest.is_empty() => out_of_tree::run(&workspace_root()),
        "sanitize" => sanitize::run(&workspace_root(), rest),
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
