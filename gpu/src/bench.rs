//! `zarr-gpu bench`: what is measured on a device.

use std::process::ExitCode;

/// Measure on a device
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Print one line of JSON for each figure
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    if !args.json {
        println!("no benchmarks");
    }
    ExitCode::SUCCESS
}
