//! `zarr-gpu test`: the tests of the crates, by name.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Run the tests of the CUDA crates
///
/// Without a device those that need one are listed as ignored; `ZARR_REQUIRE_GPU=1` makes that a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Run only tests whose name contains this
    filter: Option<String>,
    /// Run only the test of exactly this name
    #[arg(long)]
    exact: bool,
    /// Leave out tests whose name contains this; may be given several times
    #[arg(long)]
    skip: Vec<String>,
    /// Print the names and run nothing
    #[arg(long)]
    list: bool,
    /// Tests at a time
    #[arg(long, default_value_t = 1)]
    test_threads: usize,
}

/// A test by its name: it panics or gives a message when it fails.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) run: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

pub(crate) fn run(args: TestArgs) -> ExitCode {
    let missing = missing_device();
    let required = std::env::var_os("ZARR_REQUIRE_GPU").is_some_and(|value| value == "1");
    if let Some(why) = &missing {
        eprintln!("tests that need a device are {}: {why}", if required { "failures" } else { "skipped" });
    }
    let mut trials = Vec::new();
    for case in cases() {
        let skipped = missing.clone();
        let ignored = missing.is_some() && !required;
        let run = move || match skipped {
            Some(why) => Err(Failed::from(format!("ZARR_REQUIRE_GPU=1, and {why}"))),
            None => (case.run)().map_err(Failed::from),
        };
        trials.push(Trial::test(case.name, run).with_ignored_flag(ignored));
    }
    let mut arguments = Arguments::default();
    (arguments.filter, arguments.exact, arguments.skip, arguments.list) = (args.filter, args.exact, args.skip, args.list);
    arguments.test_threads = Some(args.test_threads);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Why there is no device; `None` when there is one.
fn missing_device() -> Option<String> {
    Some("no crate gives tests yet".to_owned())
}

/// Every test of every crate.
fn cases() -> Vec<Case> {
    Vec::new()
}
