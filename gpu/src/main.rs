//! `zarr-gpu`: tests, fuzzing and benchmarks of the CUDA crates in one program.
//!
//! It is built where there is no GPU, carried to a machine that has one (`cargo xtask gpu-bundle`), and needs nothing there but the driver. Each
//! crate keeps its own tests; this program lists them.
#![deny(unsafe_code)]

mod bench;
mod blosc_fuzz;
mod cpu_fuzz;
mod decode;
mod deflate_fuzz;
mod encode;
mod fuzz;
mod lz4_fuzz;
mod test;
mod zstd_cases;
mod zstd_golden;

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
    /// Show the CUDA devices; fails where there is none
    Devices,
    /// Decode one chunk on the device: whether a tool that watches this program works
    Probe,
    Bench(bench::BenchArgs),
    Decode(decode::DecodeArgs),
    Encode(encode::EncodeArgs),
    Fuzz(fuzz::FuzzArgs),
    Suite(zstd_cases::SuiteArgs),
    #[cfg(feature = "conformance")]
    /// Run the conformance suite; `run --device cuda` runs it on the device
    Conformance(zarr_conformance::runner::Cli),
}

fn main() -> ExitCode {
    // Tests of memory between processes start this program once more.
    zarr_buffer_cuda::testing::answer_as_child();
    match Cli::parse().command {
        Command::Test(args) => test::run(args),
        Command::Devices => devices(),
        Command::Probe => test::probe(),
        Command::Bench(args) => bench::run(&args),
        Command::Decode(args) => decode::run(&args),
        Command::Encode(args) => encode::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Suite(args) => zstd_cases::suite(&args),
        #[cfg(feature = "conformance")]
        Command::Conformance(cli) => zarr_conformance::runner::run(cli, &["conformance"]),
    }
}

fn devices() -> ExitCode {
    match zarr_buffer_cuda::devices() {
        Ok(found) if !found.is_empty() => {
            found.iter().for_each(|device| println!("{device:#?}"));
            ExitCode::SUCCESS
        }
        Ok(_) => {
            println!("the driver finds no CUDA device");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("no CUDA device: {error}");
            ExitCode::FAILURE
        }
    }
}
