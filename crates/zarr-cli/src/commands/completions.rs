//! `zarr completions`

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::error::Result;

/// Print completions for a shell
///
/// bash: `zarr completions bash > ~/.local/share/bash-completion/completions/zarr`; zsh: into a directory of $fpath, as `_zarr`; fish: into
/// `~/.config/fish/completions/zarr.fish`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::Cli::command(), "zarr", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
