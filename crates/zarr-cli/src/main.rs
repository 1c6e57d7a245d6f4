//! The `zarr` command: look at, read, copy, check, create, draw and measure Zarr data.
//!
//! Each command is a module of `commands`; what they share stands beside them. Everything about Zarr itself is asked of the crate `zarr`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod codecs;
mod colour;
mod commands;
mod context;
mod copy;
mod describe;
mod device;
mod error;
mod hierarchy;
mod image;
mod json;
mod layout;
mod npy;
mod output;
mod progress;
mod slabs;
mod stats;
mod store;
mod suggest;
mod table;
mod units;
mod values;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(args::Cli::parse()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
