//! `zarr-gpu`: tests, fuzzing and benchmarks of the CUDA crates in one program.
//!
//! It is built where there is no GPU, carried to a machine that has one (`cargo xtask gpu-bundle`), and needs nothing there but the driver. Each
//! crate keeps its own tests; this program lists them.
#![forbid(unsafe_code)]

mod bench;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tests, fuzzing and benchmarks of Zarr's CUDA crates.
#[derive(Debug, Parser)]
#[command(name = "zarr-gpu", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(test::TestArgs),
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Test(args) => test::run(args),
        Command::Bench(args) => bench::run(&args),
    }
}
