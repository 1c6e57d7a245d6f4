//! Tests on real devices: the laws of `zarr-conformance`, and those of this crate. Without a device they are skipped, visibly, and
//! `ZARR_REQUIRE_GPU=1` makes that a failure. Arguments that are no options are parts of the names to run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use zarr_buffer_cuda::{CudaDevice, CudaDeviceOptions, devices, testing};
use zarr_conformance::Outcome;
use zarr_conformance::device::{DeviceUnderTest, cases};

/// Bytes that the device of the laws may give.
const LIMIT: u64 = 256 << 20;

fn main() -> ExitCode {
    testing::answer_as_child();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|part| name.contains(part.as_str()));
    let tests: Vec<_> = testing::tests().into_iter().filter(|test| wanted(test.name)).collect();
    let laws: Vec<_> = cases().into_iter().filter(|case| wanted(case.id())).collect();
    let count = tests.len() + laws.len();
    let missing = match devices() {
        Ok(found) if found.is_empty() => Some("there is no CUDA device".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    println!("\nrunning {count} tests");
    if let Some(missing) = missing {
        println!("test gpu ... ignored, {missing}");
        let required = std::env::var_os("ZARR_REQUIRE_GPU").is_some_and(|value| value == "1");
        println!("\ntest result: {}. 0 passed; 0 failed; {count} ignored", if required { "FAILED (ZARR_REQUIRE_GPU=1)" } else { "ok" });
        return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let device = match CudaDevice::new(0) {
        Ok(device) => device,
        Err(error) => {
            println!("test gpu ... FAILED: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("on {:?}", device.info());
    let mut failed = 0;
    let mut limit = CudaDeviceOptions::default();
    limit.memory_limit = Some(LIMIT);
    let limited = CudaDevice::with_options(0, limit);
    let subject = match limited {
        Ok(limited) => DeviceUnderTest::new(limited).with_memory_limit(LIMIT),
        Err(error) => {
            println!("test gpu ... FAILED: {error}");
            return ExitCode::FAILURE;
        }
    };
    for law in laws {
        let start = Instant::now();
        let outcome = match law.run(&subject, &zarr_conformance::Trial::default()) {
            Outcome::Pass => Ok(()),
            Outcome::Fail(message) | Outcome::Unsupported(message) => Err(message),
        };
        failed += usize::from(!report(law.id(), start, outcome));
    }
    for test in tests {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (test.run)(&device))).unwrap_or_else(|_| Err("panicked".into()));
        failed += usize::from(!report(test.name, start, outcome));
    }
    println!("\ntest result: {}. {} passed; {failed} failed; 0 ignored", if failed == 0 { "ok" } else { "FAILED" }, count - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(name: &str, start: Instant, outcome: Result<(), String>) -> bool {
    match &outcome {
        Ok(()) => println!("test {name} ... ok ({:.2} s)", start.elapsed().as_secs_f64()),
        Err(message) => println!("test {name} ... FAILED: {message}"),
    }
    outcome.is_ok()
}
