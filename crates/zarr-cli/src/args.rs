//! The command line.

use std::num::NonZeroUsize;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};

use crate::commands::{bench, cat, completions, copy, create, devices, info, read, tree, validate, view};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Look at, read, copy, check, create, draw and measure Zarr arrays.
///
/// PATH is a directory, a zip archive, or a URL (file, s3, gs, az, http, https). A node inside a hierarchy is named by its path: `data.zarr/temperature`,
/// `archive.zip/temperature`, `s3://bucket/data.zarr/temperature`.
#[derive(Debug, Parser)]
#[command(name = "zarr", version, styles = STYLES, max_term_width = 110, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 when all went well, 1 when something failed or a problem was found, 2 when the command line is wrong."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print results and errors, nothing else
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,
    /// Print JSON, for programs to read
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// Threads that decode and encode [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = parse_threads, help_heading = "Everywhere")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// A setting of an object store, such as `region=eu-west-2` or `endpoint=http://localhost:9000`; may be given several times
    #[arg(long = "setting", global = true, value_name = "NAME=VALUE", value_parser = parse_setting, help_heading = "Everywhere")]
    pub(crate) settings: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Info(info::InfoArgs),
    Tree(tree::TreeArgs),
    Cat(cat::CatArgs),
    Read(read::ReadArgs),
    Copy(copy::CopyArgs),
    Validate(validate::ValidateArgs),
    Create(create::CreateArgs),
    View(view::ViewArgs),
    Devices(devices::DevicesArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number of threads"))
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a setting has the form NAME=VALUE".to_owned()),
    }
}

/// Where decoding runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Device {
    /// The first CUDA device; the CPU where there is none.
    #[default]
    Auto,
    Cpu,
    /// A CUDA device by its number.
    Cuda(i32),
}

pub(crate) fn parse_device(text: &str) -> Result<Device, String> {
    let number = |text: &str| text.parse().ok().filter(|number: &i32| *number >= 0);
    match text {
        "auto" => Ok(Device::Auto),
        "cpu" => Ok(Device::Cpu),
        "cuda" => Ok(Device::Cuda(0)),
        other => match other.strip_prefix("cuda:").and_then(number) {
            Some(number) => Ok(Device::Cuda(number)),
            None => Err(format!("no device `{other}`; there are `auto`, `cpu`, `cuda` and `cuda:N`")),
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn devices_have_names() {
        use super::{Device, parse_device};
        for (text, device) in [("auto", Device::Auto), ("cpu", Device::Cpu), ("cuda", Device::Cuda(0)), ("cuda:3", Device::Cuda(3))] {
            assert_eq!(parse_device(text), Ok(device));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
    }
}
