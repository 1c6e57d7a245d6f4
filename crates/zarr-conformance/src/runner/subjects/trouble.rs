//! Subjects that go wrong in every way, for tests of the runner: with `ZARR_CONFORMANCE_TROUBLE` in the environment they take the place of the others.

use std::sync::Arc;
use std::time::Duration;

use super::{Entry, Unbuilt};
use crate::suite::{Broken, Case, Subject};
use crate::{Answer, Fed, Sample, Suite, Trial};

pub(super) fn wanted() -> bool {
    std::env::var_os("ZARR_CONFORMANCE_TROUBLE").is_some()
}

struct Troubled;

impl Subject for Troubled {
    fn name(&self) -> String {
        "a subject that goes wrong".to_owned()
    }

    fn unsupported(&self) -> &[String] {
        static DECLARED: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| vec!["trouble/unsupported".to_owned()]);
        &DECLARED
    }
}

fn suite(cases: Vec<Case<Troubled>>) -> Suite {
    Suite::new(Arc::new(Troubled), cases).feeding(|encoded, _| match encoded {
        b"the last input" => std::process::abort(),
        b"hangs" => Ok(Fed { answers: Vec::new(), broken: Some("would hang".to_owned()) }),
        [0, 0xFF] => panic!("<panics> & \"says\" so"),
        bytes => Ok(Fed { answers: vec![Answer::new("trouble", Ok(Sample::Bytes(bytes.to_ascii_uppercase())))], broken: None }),
    })
}

fn case(id: &str, check: fn(&Trial) -> Result<(), Broken>) -> Case<Troubled> {
    Case::new(format!("trouble/{id}"), "a subject goes wrong only as far as the case goes", move |_, trial| check(trial))
}

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new("trouble/cases", || {
            Ok(suite(vec![
                case("first", |_| Ok(())),
                case("abort", |trial| {
                    trial.input(b"the input before");
                    trial.input(b"the last input");
                    eprintln!("about to abort");
                    std::process::abort()
                }),
                case("between", |trial| {
                    trial.input(b"good");
                    println!("printed by a subject, without an end of line: {{");
                    Ok(())
                }),
                case("hang", |trial| {
                    trial.input(b"hangs");
                    loop {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                }),
                case("panic", |trial| {
                    trial.input(&[0, 0xFF]);
                    panic!("<panics> & \"says\" so")
                }),
                case("exit", |_| std::process::exit(0)),
                case("fails", |_| Err(Broken::Failed("is wrong".into()))),
                case("unsupported", |_| Err(Broken::Unsupported("cannot do this".into()))),
                case("last", |_| Ok(())),
            ]))
        }),
        Entry::new("trouble/good", || {
            Ok(suite(vec![
                case("first", |_| Ok(())),
                case("seed", |trial| match trial.seed() {
                    7 => Err(Broken::Failed("seed 7".into())),
                    _ => Ok(()),
                }),
            ]))
        }),
        Entry::new("trouble/absent", || Err::<Suite, _>(Unbuilt::NoDevice("there is none here".into()))),
        Entry::new("trouble/broken", || Err::<Suite, _>(Unbuilt::Broken("cannot be made".into()))),
        Entry::new("trouble/aborts-in-building", || -> Result<Suite, Unbuilt> { std::process::abort() }),
        Entry::new("trouble/dies-after-its-cases", || {
            Ok(suite(vec![
                case("thread", |_| {
                    std::thread::spawn(|| {
                        std::thread::sleep(Duration::from_millis(50));
                        std::process::abort()
                    });
                    Ok(())
                }),
                case("wait", |_| {
                    std::thread::sleep(Duration::from_millis(500));
                    Ok(())
                }),
            ]))
        }),
    ]
}
