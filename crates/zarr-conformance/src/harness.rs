//! Cases as tests of `cargo test`: each can be listed, filtered and run alone.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial as Test};

use crate::{Outcome, Suite, Trial};

/// Makes a test program of subjects: `cargo test` runs it, lists its cases and takes filters.
///
/// ```no_run
/// // tests/conformance.rs, with `harness = false` in Cargo.toml:
/// use std::sync::Arc;
/// use zarr_conformance::device::DeviceUnderTest;
///
/// zarr_conformance::conformance_main!(DeviceUnderTest::new(Arc::new(zarr_buffer_api::HostDevice)));
/// ```
///
/// Several subjects are separated by commas; an expression may also be a list of suites: `..my_suites()`.
#[macro_export]
macro_rules! conformance_main {
    (..$suites:expr) => {
        fn main() -> ::std::process::ExitCode {
            $crate::harness::main($suites)
        }
    };
    ($($subject:expr),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::harness::main([$($crate::Suite::from($subject)),+])
        }
    };
}

/// Runs the cases of all suites as `cargo test` would run tests, with the arguments of this process.
pub fn main(suites: impl IntoIterator<Item = Suite>) -> ExitCode {
    let arguments = Arguments::from_args();
    let mut tests = Vec::new();
    for suite in suites {
        let suite = std::sync::Arc::new(suite);
        for (index, case) in suite.cases().iter().enumerate() {
            let name = format!("{} [{}]", case.id(), suite.subject());
            let suite = std::sync::Arc::clone(&suite);
            tests.push(Test::ignorable_test(name, move || match suite.cases()[index].run(&Trial::default()) {
                Outcome::Pass => Ok(Completion::Completed),
                Outcome::Unsupported(why) => Ok(Completion::ignored_with(format!("unsupported: {why}"))),
                Outcome::Fail(how) => Err(Failed::from(how)),
            }));
        }
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}
