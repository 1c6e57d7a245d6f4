//! The command line.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Check codecs, stores and devices of Zarr against the laws that all of them must hold.
///
/// A subject is what is checked, a case is a law on one input. `list` shows the names of both.
#[derive(Debug, Parser)]
#[command(name = "zarr-conformance", version, styles = STYLES, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = "Exit status: 0 when all cases pass, 1 when one fails, 2 when the command line is wrong.")]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Run(RunArgs),
    Matrix(MatrixArgs),
    Replay(ReplayArgs),
    /// Run cases for the program that started this one
    #[command(hide = true)]
    Worker,
}

/// Which subjects and cases.
#[derive(Debug, Clone, Args)]
pub(crate) struct Choice {
    /// Only subjects whose name contains this; may be given several times
    #[arg(long = "subject", value_name = "TEXT")]
    pub(crate) subjects: Vec<String>,
    /// Only cases whose id contains this; may be given several times
    #[arg(long = "filter", value_name = "TEXT")]
    pub(crate) filters: Vec<String>,
    /// auto: everything there is; cpu: everything but CUDA; cuda, cuda:N: what runs on that device
    #[arg(long, default_value_t = Device::Auto, value_name = "DEVICE")]
    pub(crate) device: Device,
}

/// Show subjects and their cases
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Show the cases of each subject, too
    #[arg(long)]
    pub(crate) cases: bool,
    /// Print JSON, for programs to read; cases included
    #[arg(long)]
    pub(crate) json: bool,
}

/// How cases are run.
#[derive(Debug, Clone, Args)]
pub(crate) struct Running {
    /// What is drawn at random is drawn from this; the same seed draws the same
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// Subjects at a time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// The most seconds that a case may take
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub(crate) time_limit: u64,
    /// Where inputs of failures go; made when there is one
    #[arg(long, default_value = "conformance-failures", value_name = "DIR")]
    pub(crate) save: PathBuf,
}

/// Run cases, and say which fail
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) running: Running,
    /// Write the results as JSON; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the results as a page for the browser, in one file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Show which implementation passes with which codec and data type
#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) running: Running,
    /// Take the results from this JSON report, in the place of a run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subjects", "filters", "device", "seed", "jobs", "time_limit", "save"])]
    pub(crate) report: Option<PathBuf>,
    /// Data types of one implementation, in the place of all implementations
    #[arg(long, value_name = "NAME")]
    pub(crate) implementation: Option<String>,
}

/// Run one case again, in this process
///
/// The failure that a run reports comes with this command.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The case's id
    pub(crate) case: String,
    /// The subject's name, in full
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: String,
    /// The seed of the run
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// The device of the run
    #[arg(long, default_value_t = Device::Auto, value_name = "DEVICE")]
    pub(crate) device: Device,
    /// Give the subject just the bytes of this file, and say what it makes of them, in the place of the case
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
}

/// Where codecs and devices run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Auto,
    Cpu,
    Cuda(Option<i32>),
}

impl Device {
    /// The CUDA device that is meant, if it is asked for or may be there.
    pub(crate) fn cuda(self) -> Option<i32> {
        match self {
            Self::Auto => Some(0),
            Self::Cpu => None,
            Self::Cuda(ordinal) => Some(ordinal.unwrap_or(0)),
        }
    }

    /// Whether only what runs on the CUDA device is wanted.
    pub(crate) fn only_cuda(self) -> bool {
        matches!(self, Self::Cuda(_))
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "cpu" => return Ok(Self::Cpu),
            "cuda" => return Ok(Self::Cuda(None)),
            _ => {}
        }
        let ordinal = text.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()).filter(|ordinal| *ordinal >= 0);
        ordinal.map(|ordinal| Self::Cuda(Some(ordinal))).ok_or_else(|| "a device is `auto`, `cpu`, `cuda` or `cuda:N`".to_owned())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(ordinal)) => write!(f, "cuda:{ordinal}"),
        }
    }
}
