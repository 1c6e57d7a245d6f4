//! The implementation of this workspace behind the command line of `adapters/PROTOCOL.md`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use zarr_conformance::implementation::{ours, serve};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match serve(&*ours(), &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
