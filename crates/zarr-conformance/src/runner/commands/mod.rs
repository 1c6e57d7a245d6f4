//! The commands, one module each.

mod list;
mod matrix;
mod replay;
mod run;

use std::process::ExitCode;

use super::args::{Cli, Command};
use super::failure::Result;
use super::worker;

pub(crate) fn run(cli: Cli, prefix: &[&str]) -> Result<ExitCode> {
    match cli.command {
        Command::List(args) => list::run(&args),
        Command::Run(args) => run::run(&args, prefix),
        Command::Matrix(args) => matrix::run(&args, prefix),
        Command::Replay(args) => replay::run(&args),
        Command::Worker => worker::run(),
    }
}
