//! `zarr-gpu test`: the tests of the crates, by name.

mod any;
mod arrays;
mod batches;
mod codecs;
mod data;
mod values;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use zarr_buffer_api::{Device, HostDevice, Queue};
use zarr_buffer_cuda::{CudaDevice, CudaDeviceOptions};
use zarr_codecs_cuda::{KernelProvider, cuda_provider};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_conformance::Outcome;
use zarr_conformance::device::{DeviceUnderTest, cases};

/// Run the tests of the CUDA crates
///
/// Without a device those that need one are listed as ignored; `ZARR_REQUIRE_GPU=1` makes that a failure. Names begin with what they are about: buffer, codecs, values, batches, arrays.
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
    /// Run every N-th test from the K-th on, `K/N`; K counts from 0. So N processes share the tests
    #[arg(long, value_parser = part, default_value = "0/1")]
    part: (usize, usize),
    /// Which CUDA device
    #[arg(long, default_value_t = 0)]
    device: i32,
    /// Run the kernels on the CPU, where they are built for it, and leave out what is about CUDA itself
    #[arg(long)]
    host: bool,
    /// Few and small inputs: for the CPU, and for sanitizers, which make everything slow
    #[arg(long)]
    small: bool,
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    numbers.filter(|(part, parts)| part < parts).ok_or_else(|| "is K/N, K less than N".to_owned())
}

/// Bytes that the device of the laws may give.
const LIMIT: u64 = 256 << 20;

/// A device and the codecs on it.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) provider: KernelProvider,
    /// The queue that a device has without making one, if there is such a thing.
    pub(crate) default_queue: Option<Arc<dyn Queue>>,
    /// Few and small inputs are wanted.
    pub(crate) small: bool,
}

/// What a test says when it fails.
pub(crate) type TestResult = Result<(), Box<dyn Error + Send + Sync>>;

/// A test and its name. What it gives for the name is `Some` reason where it does not apply.
pub(crate) struct Test {
    name: String,
    ignored: bool,
    run: Box<dyn FnOnce() -> TestResult + Send>,
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, run: impl FnOnce() -> TestResult + Send + 'static) -> Self {
        Self { name: name.into(), ignored: false, run: Box::new(run) }
    }

    /// A test that is listed, and not run.
    pub(crate) fn ignored(name: impl Into<String>) -> Self {
        Self { name: name.into(), ignored: true, run: Box::new(|| Ok(())) }
    }
}

pub(crate) fn run(args: TestArgs) -> ExitCode {
    let required = std::env::var_os("ZARR_REQUIRE_GPU").is_some_and(|value| value == "1");
    let mut arguments = Arguments::default();
    (arguments.filter, arguments.exact, arguments.skip, arguments.list) = (args.filter, args.exact, args.skip, args.list);
    arguments.test_threads = Some(args.test_threads);
    let tests = if args.host {
        with_kernels(&Subject {
            device: Arc::new(HostDevice),
            provider: host_provider(HostOptions::default()),
            default_queue: None,
            small: true,
        })
    } else {
        match cuda(args.device, args.small) {
            Ok(tests) => tests,
            Err(error) => {
                println!("no CUDA device: {error}");
                if required {
                    println!("ZARR_REQUIRE_GPU=1 makes that a failure");
                    return ExitCode::FAILURE;
                }
                vec![Test::ignored("all, for there is no CUDA device")]
            }
        }
    };
    let (part, parts) = args.part;
    let trials = tests.into_iter().skip(part).step_by(parts).map(|test| {
        let run = move || (test.run)().map_err(|error| Failed::from(error.to_string()));
        Trial::test(test.name, run).with_ignored_flag(test.ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// One chunk decoded on the device: whether tools that watch it work.
pub(crate) fn probe() -> ExitCode {
    let probe = || -> TestResult {
        let device = CudaDevice::new(0)?;
        let subject = of_device(device, true)?;
        arrays::probe(&subject)
    };
    match probe() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn of_device(device: Arc<CudaDevice>, small: bool) -> Result<Subject, Box<dyn Error + Send + Sync>> {
    Ok(Subject { provider: cuda_provider(&device)?, default_queue: Some(device.default_queue()), device, small })
}

/// Everything that a CUDA device must do.
fn cuda(ordinal: i32, small: bool) -> Result<Vec<Test>, Box<dyn Error + Send + Sync>> {
    let device = CudaDevice::new(ordinal)?;
    println!("on {:?}", device.info());
    let subject = of_device(Arc::clone(&device), small)?;
    let mut tests = Vec::new();
    let mut limit = CudaDeviceOptions::default();
    limit.memory_limit = Some(LIMIT);
    let limited = CudaDevice::with_options(ordinal, limit)?;
    let laws = Arc::new(DeviceUnderTest::new(limited).with_memory_limit(LIMIT));
    for case in cases() {
        let laws = Arc::clone(&laws);
        tests
            .push(Test::new(format!("buffer::law::{}", case.id()), move || outcome(case.run(&*laws, &zarr_conformance::Trial::default()))));
    }
    for test in zarr_buffer_cuda::testing::tests() {
        let device = Arc::clone(&device);
        tests.push(Test::new(format!("buffer::{}", test.name), move || (test.run)(&device).map_err(Into::into)));
    }
    tests.extend(with_kernels(&subject));
    let mut all = Vec::new();
    for info in zarr_buffer_cuda::devices()? {
        all.push(of_device(CudaDevice::new(info.ordinal)?, small)?);
    }
    tests.push(match all.len() {
        0 | 1 => Test::ignored("arrays::several-devices, for there is one"),
        _ => Test::new("arrays::several-devices", move || arrays::several(&all)),
    });
    Ok(tests)
}

/// What the kernels must do, wherever they run.
fn with_kernels(subject: &Subject) -> Vec<Test> {
    let mut tests = codecs::tests(subject);
    tests.extend(values::tests(subject));
    tests.extend(batches::tests(subject));
    tests.extend(arrays::tests(subject));
    tests.extend(any::tests(subject));
    tests
}

/// The outcome of a law as that of a test.
pub(crate) fn outcome(outcome: Outcome) -> TestResult {
    match outcome {
        Outcome::Pass => Ok(()),
        Outcome::Fail(message) => Err(message.into()),
        other => Err(format!("{other:?}").into()),
    }
}
