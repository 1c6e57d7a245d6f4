//! Progress bars for long work: on standard error, only where somebody sees them.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes.
pub(crate) fn bytes(total: u64, quiet: bool) -> ProgressBar {
    bar(total, "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta}", quiet)
}

/// A bar that counts things.
pub(crate) fn items(total: u64, quiet: bool) -> ProgressBar {
    bar(total, "{msg} {wide_bar} {pos}/{len}  {eta}", quiet)
}

fn bar(total: u64, template: &str, quiet: bool) -> ProgressBar {
    // Drawn at most ten times a second, and not at all where standard error is no terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("━╸ ")),
        Err(_) => bar,
    }
}
