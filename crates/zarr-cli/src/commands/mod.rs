//! The commands, one module each.

pub(crate) mod bench;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod devices;
pub(crate) mod info;
pub(crate) mod read;
pub(crate) mod tree;
pub(crate) mod validate;
pub(crate) mod view;

use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::error::Result;

/// Runs what was asked for. The exit status is that of the command, where it has one besides failing.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let context = Context::new(&cli.global)?;
    let done = match cli.command {
        Command::Info(args) => return info::run(&args, &context),
        Command::Tree(args) => return tree::run(&args, &context),
        Command::Cat(args) => cat::run(&args, &context),
        Command::Read(args) => read::run(&args, &context),
        Command::Copy(args) => copy::run(&args, &context),
        Command::Validate(args) => return validate::run(&args, &context),
        Command::Create(args) => create::run(&args, &context),
        Command::View(args) => view::run(&args, &context),
        Command::Devices(args) => devices::run(&args, &context),
        Command::Bench(args) => bench::run(&args, &context),
        Command::Completions(args) => completions::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
