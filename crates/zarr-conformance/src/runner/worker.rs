//! The process that runs cases. It is told what to run by a [`Job`] on its standard input, and tells what happens by [`Event`]s on its standard
//! output, one to a line, so that whoever started it knows what it did last when it is gone.

use std::fs::File;
use std::io::{self, BufRead as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::args::Device;
use super::failure::{Context as _, Failure, Result};
use super::results::{Place, Verdict};
use super::subjects::{self, Unbuilt};
use crate::{Journal, Outcome, Trial};

/// Stands on standard error before what belongs to the next case.
pub(crate) const CASE_BEGINS: char = '\u{1e}';

/// What a worker is to do: a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// In the words of the command line.
    pub(crate) device: String,
    pub(crate) seed: u64,
    pub(crate) filters: Vec<String>,
    /// In this order.
    pub(crate) subjects: Vec<Wanted>,
    /// A folder of this job's own, for inputs.
    pub(crate) folder: PathBuf,
}

/// A subject, and the first of its cases that is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) from: usize,
}

/// What a worker tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// The next subject: what it calls itself, and all its cases that the filters leave.
    Subject { about: String, cases: Vec<CaseInfo> },
    /// The next subject cannot be had; for want of a device or for another reason.
    Absent { reason: String, device: bool },
    /// The next subject should be there, and is not.
    Unbuilt { reason: String },
    /// The case begins.
    Start { index: usize },
    /// The case is over.
    End {
        index: usize,
        outcome: Verdict,
        message: String,
        seconds: f64,
        /// The file with what the subject was given last, of a failure.
        input: Option<PathBuf>,
    },
    /// The subject is over.
    Over,
}

/// A case, as told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CaseInfo {
    pub(crate) id: String,
    pub(crate) law: String,
    pub(crate) says: String,
    pub(crate) place: Option<Place>,
}

/// Does a job.
pub(crate) fn run() -> Result<ExitCode> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).context(|| "cannot read the job".to_owned())?;
    // Nothing follows but the end, should whoever started this be gone.
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(1);
    });
    let job: Job = serde_json::from_str(&text).context(|| "a worker is started by `run`, and told what to do".to_owned())?;
    let device: Device = job.device.parse().map_err(Failure::usage)?;
    let diary = Arc::new(Diary::new(&journal(&job.folder)).context(|| "cannot write down inputs".to_owned())?);
    let table = subjects::all(device);
    // Who is late is ended from outside, and leaves no thread behind.
    let trial = Trial::new(job.seed).with_time_limit(Duration::MAX).with_guard_pages().with_journal(Arc::clone(&diary) as Arc<dyn Journal>);
    for (number, wanted) in job.subjects.iter().enumerate() {
        let entry = table.iter().find(|entry| entry.name == wanted.name);
        let entry = entry.ok_or_else(|| Failure::usage(format!("there is no subject `{}`", wanted.name)))?;
        let suite = match entry.build() {
            Ok(suite) => suite,
            Err(Unbuilt::NoDevice(reason)) => {
                tell(&Event::Absent { reason, device: true })?;
                tell(&Event::Over)?;
                continue;
            }
            Err(Unbuilt::Absent(reason) | Unbuilt::NotTaken(reason)) => {
                tell(&Event::Absent { reason, device: false })?;
                tell(&Event::Over)?;
                continue;
            }
            Err(Unbuilt::Broken(reason)) => {
                tell(&Event::Unbuilt { reason })?;
                tell(&Event::Over)?;
                continue;
            }
        };
        let cases: Vec<_> = suite.cases().iter().filter(|case| chosen(case.id(), &job.filters)).collect();
        let info = cases.iter().map(|case| CaseInfo {
            id: case.id().to_owned(),
            law: case.law().to_owned(),
            says: case.says().to_owned(),
            place: entry.place_of_case(case.id()),
        });
        tell(&Event::Subject { about: suite.subject(), cases: info.collect() })?;
        for (index, case) in cases.iter().enumerate().skip(wanted.from) {
            diary.forget();
            eprint!("{CASE_BEGINS}");
            tell(&Event::Start { index })?;
            let start = Instant::now();
            let outcome = case.run(&trial);
            let seconds = start.elapsed().as_secs_f64();
            let (outcome, message) = match outcome {
                Outcome::Pass => (Verdict::Pass, String::new()),
                Outcome::Fail(message) => (Verdict::Fail, message),
                Outcome::Unsupported(message) => (Verdict::Unsupported, message),
            };
            let mut input = None;
            if outcome == Verdict::Fail
                && let Some(bytes) = diary.last()
            {
                let path = job.folder.join(format!("{number}-{index}"));
                input = std::fs::write(&path, bytes).is_ok().then_some(path);
            }
            tell(&Event::End { index, outcome, message, seconds, input })?;
        }
        tell(&Event::Over)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether filters leave a case.
pub(crate) fn chosen(id: &str, filters: &[String]) -> bool {
    filters.is_empty() || filters.iter().any(|filter| id.contains(filter.as_str()))
}

fn tell(event: &Event) -> Result<()> {
    let text = serde_json::to_string(event).context(|| "cannot tell what happened".to_owned())?;
    // What a subject printed may not have ended its line.
    let mut out = io::stdout().lock();
    out.write_all(format!("\n{text}\n").as_bytes()).and_then(|()| out.flush()).context(|| "nobody listens".to_owned())
}

/// The event that a line holds; what a subject printed is none.
pub(crate) fn heard(line: &str) -> Option<Event> {
    serde_json::from_str(line).ok()
}

/// The file with the current input of the worker of this folder.
fn journal(folder: &Path) -> PathBuf {
    folder.join("current")
}

/// What a worker that is gone gave its subject last, in the case that it was at.
pub(crate) fn last_input(folder: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(journal(folder)).ok()?;
    bytes.split_first().map(|(_, input)| input.to_vec())
}

/// Keeps the current input in a file, which outlives the process. The file is empty, or a byte and the input.
#[derive(Debug)]
struct Diary(Mutex<(File, Option<Vec<u8>>)>);

impl Diary {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new((File::create(path)?, None))))
    }

    fn write(&self, input: Option<&[u8]>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let content = input.map(|bytes| [&[1], bytes].concat()).unwrap_or_default();
        let (file, last) = &mut *state;
        // Should the disk be full, the input is lost, and not the case.
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&content)).and_then(|()| file.set_len(content.len() as u64));
        *last = input.map(<[u8]>::to_vec);
    }

    /// A case begins: it has given nothing yet.
    fn forget(&self) {
        self.write(None);
    }

    fn last(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

impl Journal for Diary {
    fn input(&self, bytes: &[u8]) {
        self.write(Some(bytes));
    }
}
