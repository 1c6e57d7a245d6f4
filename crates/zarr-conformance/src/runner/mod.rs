//! The program `zarr-conformance`: runs the laws on every subject of this workspace, and gives a verdict.
//!
//! ```sh
//! zarr-conformance run                         # everything that this machine has
//! zarr-conformance run --device cuda           # what runs on the GPU
//! zarr-conformance run --subject cpu/zstd      # some of it
//! ```
//!
//! Each subject runs in a process of its own (`worker`): one that crashes or hangs fails one case, and takes nothing else down (`supervisor`).
//! `subjects` is the list of what is tested; a line there adds some. `results` is what came of a run, and what the JSON report holds;
//! `report` makes the other forms of it.
//!
//! The feature `runner` brings this module, and with it every codec and store. Libraries that test themselves go without: `default-features = false`.

mod args;
mod commands;
mod failure;
mod matrix;
mod process;
mod report;
mod results;
mod subjects;
mod supervisor;
mod table;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;

pub use args::Cli;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    run(Cli::parse(), &[])
}

/// Runs what was asked for. `prefix`: the arguments that this program must be started with to get here, for the processes that it starts and
/// for the commands that it prints.
#[must_use]
pub fn run(cli: Cli, prefix: &[&str]) -> ExitCode {
    commands::run(cli, prefix).unwrap_or_else(|failure| failure.report())
}
