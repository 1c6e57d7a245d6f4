//! The protocol of `adapters/PROTOCOL.md`: its messages, and its other side for implementations in Rust.

use std::fs;
use std::io::{self, BufRead, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Implementation, ReadJob, Trouble, WriteJob};
use crate::vectors::Element;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The first line of a program that serves.
#[derive(Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) protocol: u32,
    /// Name and version of what really runs, and of what it stands on.
    pub(super) identity: String,
}

/// A line to a program that serves.
#[derive(Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(super) enum Order {
    Read {
        path: PathBuf,
        node: String,
        select: Option<Vec<(u64, u64)>>,
        /// The file that gets the bytes.
        out: PathBuf,
    },
    Write {
        /// The file that holds a [`WriteCase`].
        case: PathBuf,
        path: PathBuf,
    },
}

/// The answer to an [`Order`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Ok,
    Refused(String),
}

/// What to write, as a file of JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct WriteCase {
    pub(super) shape: Vec<u64>,
    pub(super) element: WrittenElement,
    /// The document itself, not in a string.
    pub(super) metadata: Box<RawValue>,
    /// The file that holds the elements, relative to this file.
    pub(super) data: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WrittenElement {
    Size(usize),
    Variable,
}

impl WriteCase {
    /// Writes `case.json` and `data.raw` into `folder`, and gives the path of the former.
    pub(super) fn save(job: &WriteJob<'_>, folder: &Path) -> io::Result<PathBuf> {
        let element = match job.element {
            Element::Size(size) => WrittenElement::Size(size),
            Element::Variable => WrittenElement::Variable,
        };
        let metadata = RawValue::from_string(job.metadata.to_owned()).map_err(io::Error::other)?;
        let case = Self { shape: job.shape.to_vec(), element, metadata, data: "data.raw".into() };
        fs::write(folder.join("data.raw"), job.data)?;
        let path = folder.join("case.json");
        fs::write(&path, serde_json::to_vec(&case)?)?;
        Ok(path)
    }

    fn run(case: &Path, store: &Path, implementation: &dyn Implementation) -> Result<(), Trouble> {
        let unusable = |error: &dyn std::fmt::Display| Trouble::Broke(format!("{}: {error}", case.display()));
        let text = fs::read(case).map_err(|error| unusable(&error))?;
        let file: Self = serde_json::from_slice(&text).map_err(|error| unusable(&error))?;
        let data = fs::read(case.with_file_name(&file.data)).map_err(|error| unusable(&error))?;
        let element = match file.element {
            WrittenElement::Size(size) => Element::Size(size),
            WrittenElement::Variable => Element::Variable,
        };
        implementation.write(&WriteJob { store, metadata: file.metadata.get(), shape: &file.shape, element, data: &data })
    }
}

/// Puts an implementation behind the command line of `adapters/PROTOCOL.md`: the whole `main` of an adapter in Rust. `args` without the program's own name.
///
/// # Errors
/// The message for standard error, when the program shall end with a status other than 0: the implementation refuses, or the arguments are none.
pub fn serve(implementation: &dyn Implementation, args: &[String]) -> Result<(), String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["versions"] => {
            println!("{}", implementation.identity().map_err(|trouble| trouble.to_string())?);
            Ok(())
        }
        ["read", path, rest @ ..] => {
            let bytes = read_once(implementation, path, rest)?;
            io::stdout().write_all(&bytes).map_err(|error| error.to_string())
        }
        ["write", case, path] => WriteCase::run(Path::new(case), Path::new(path), implementation).map_err(|trouble| trouble.to_string()),
        ["serve"] => answer_all(implementation).map_err(|error| error.to_string()),
        _ => Err("usage: versions | read PATH --format raw [--node NODE] [--select A:B,..] | write CASE PATH | serve".into()),
    }
}

fn read_once(implementation: &dyn Implementation, path: &str, options: &[&str]) -> Result<Vec<u8>, String> {
    let (mut node, mut part) = ("", None);
    for pair in options.chunks(2) {
        match pair {
            ["--format", "raw"] => {}
            ["--node", value] => node = value,
            ["--select", value] => part = Some(parse_ranges(value).ok_or_else(|| format!("no selection: {value}"))?),
            other => return Err(format!("no such option: {}", other.join(" "))),
        }
    }
    let job = ReadJob { store: Path::new(path), node, part: part.as_deref() };
    implementation.read(&job).map_err(|trouble| trouble.to_string())
}

/// `0:3,1:2`.
fn parse_ranges(text: &str) -> Option<Vec<Range<u64>>> {
    let range = |part: &str| part.split_once(':').and_then(|(start, end)| Some(start.parse().ok()?..end.parse().ok()?));
    if text.is_empty() { Some(Vec::new()) } else { text.split(',').map(range).collect() }
}

pub(super) fn show_ranges(ranges: &[Range<u64>]) -> String {
    ranges.iter().map(|range| format!("{}:{}", range.start, range.end)).collect::<Vec<_>>().join(",")
}

fn answer_all(implementation: &dyn Implementation) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let identity = implementation.identity().map_err(io::Error::other)?;
    writeln!(out, "{}", serde_json::to_string(&Greeting { protocol: PROTOCOL, identity })?)?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Order::Read { path, node, select, out } => {
                let part: Option<Vec<Range<u64>>> = select.map(|ranges| ranges.into_iter().map(|(start, end)| start..end).collect());
                let read = implementation.read(&ReadJob { store: &path, node: &node, part: part.as_deref() });
                match read {
                    Ok(bytes) => fs::write(out, bytes).map(|()| Answer::Ok)?,
                    Err(trouble) => refusal(trouble)?,
                }
            }
            Order::Write { case, path } => match WriteCase::run(&case, &path, implementation) {
                Ok(()) => Answer::Ok,
                Err(trouble) => refusal(trouble)?,
            },
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}

/// Only refusals have an answer; all else ends the program.
fn refusal(trouble: Trouble) -> io::Result<Answer> {
    match trouble {
        Trouble::Refused(message) => Ok(Answer::Refused(message)),
        Trouble::Broke(message) => Err(io::Error::other(message)),
    }
}
