//! Runs the command as its users do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the command gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zarr"));
    command.args(arguments).env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

pub(crate) fn zarr(arguments: &[&str]) -> Run {
    run(command(arguments))
}

pub(crate) fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run { code: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
}

/// Runs a command that must succeed.
pub(crate) fn ok(arguments: &[&str]) -> Run {
    let run = zarr(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.text(), run.stderr);
    run
}

/// The sample data in the repository.
pub(crate) fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    path.to_str().unwrap().to_owned()
}

pub(crate) fn temporary() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().to_owned();
    (directory, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}

/// The whole array as raw bytes, read by the library.
pub(crate) fn bytes_of(path: &str) -> Vec<u8> {
    let array = zarr::open_array(path).unwrap();
    array.read(&zarr::Selection::all()).unwrap().as_bytes().unwrap().to_vec()
}

/// Paths of all files below a directory, relative to it.
pub(crate) fn files(directory: &str) -> Vec<String> {
    fn collect(directory: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    let mut found = Vec::new();
    collect(Path::new(directory), Path::new(directory), &mut found);
    found.sort();
    found
}

pub(crate) fn copy_directory(from: &str, to: &str) {
    for file in files(from) {
        let target = Path::new(to).join(&file);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(Path::new(from).join(&file), target).unwrap();
    }
}
