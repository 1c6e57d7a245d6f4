//! The program: what its commands say, and that nothing a subject does takes it down.

mod browser;
mod commands;
mod isolation;

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// The program.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zarr-conformance"));
    command.env_remove("ZARR_REQUIRE_GPU").env_remove("RUST_BACKTRACE");
    command
}

/// The program, with subjects that go wrong.
fn trouble(save: &std::path::Path) -> Command {
    let mut command = program();
    command.env("ZARR_CONFORMANCE_TROUBLE", "1").args(["run", "--time-limit", "2", "--save"]).arg(save);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The subject of this name in a report.
fn subject<'a>(report: &'a Value, name: &str) -> &'a Value {
    let subjects = report["subjects"].as_array().expect("subjects");
    subjects.iter().find(|subject| subject["name"] == name).unwrap_or_else(|| panic!("no subject {name}"))
}

/// The case of this id in a subject of a report.
fn case<'a>(subject: &'a Value, id: &str) -> &'a Value {
    let cases = subject["cases"].as_array().expect("cases");
    cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("no case {id} in {subject}"))
}
