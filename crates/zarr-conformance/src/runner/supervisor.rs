//! Runs subjects in processes of their own, and outlives them: a case during which its process ends, or that takes too long, has failed, and the rest go
//! on in a fresh process.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::{Context as _, Result};
use super::process::{End, Process};
use super::results::{CaseResult, Input, Place, SubjectResult, Verdict};
use super::worker::{self, CaseInfo, Event, Job, Wanted};

/// What all subjects of a run have in common.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The program, and the arguments with which it comes to the commands.
    pub(crate) program: PathBuf,
    pub(crate) prefix: Vec<String>,
    /// In the words of the command line.
    pub(crate) device: String,
    pub(crate) seed: u64,
    pub(crate) filters: Vec<String>,
    /// The most that a case may take.
    pub(crate) time_limit: Duration,
    /// Where inputs of failures go.
    pub(crate) save: PathBuf,
    /// What is not there has failed, in the place of being skipped.
    pub(crate) require_gpu: bool,
    /// Ids of laws and their sentences, as they come.
    pub(crate) laws: Mutex<BTreeMap<String, String>>,
}

/// A subject to be run.
#[derive(Debug, Clone)]
pub(crate) struct Assigned {
    pub(crate) name: String,
    pub(crate) place: Option<Place>,
}

/// The case that stands for what happens around the others.
const PROCESS: &str = "runner/process";
const PROCESS_SAYS: &str = "the subject can be made, and its process lives until its cases are over";

/// What is known of a subject so far.
struct Progress {
    result: SubjectResult,
    cases: Vec<CaseInfo>,
    begun: Option<Instant>,
    /// The case that runs.
    running: Option<usize>,
    /// The first case that has not run, and what that was when the present process began.
    next: usize,
    resumed: usize,
    over: bool,
}

impl Progress {
    fn new(subject: &Assigned) -> Self {
        let result = SubjectResult {
            name: subject.name.clone(),
            about: String::new(),
            place: subject.place.clone(),
            skipped: None,
            seconds: 0.0,
            cases: Vec::new(),
        };
        Self { result, cases: Vec::new(), begun: None, running: None, next: 0, resumed: 0, over: false }
    }

    fn end(mut self) -> SubjectResult {
        self.result.seconds = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        self.result
    }
}

impl Supervisor {
    /// Runs subjects one after the other, in one process for as long as it lives. Gives each result as it comes.
    ///
    /// # Errors
    /// When no process can be started.
    pub(crate) fn run(&self, subjects: &[Assigned], mut each: impl FnMut(SubjectResult)) -> Result<()> {
        let mut left: VecDeque<Progress> = subjects.iter().map(Progress::new).collect();
        while !left.is_empty() {
            let folder = tempfile::tempdir().context(|| "cannot make a folder for inputs".to_owned())?;
            let job = Job {
                device: self.device.clone(),
                seed: self.seed,
                filters: self.filters.clone(),
                subjects: left.iter().map(|subject| Wanted { name: subject.result.name.clone(), from: subject.next }).collect(),
                folder: folder.path().to_owned(),
            };
            left.iter_mut().for_each(|subject| subject.resumed = subject.next);
            let mut process = Process::start(&self.program, &self.prefix, &job)?;
            let end = self.listen(&mut process, &mut left, &mut each);
            let Some(mut subject) = left.pop_front() else { return Ok(()) };
            let how = match end {
                End::Left if subject.over => {
                    each(subject.end());
                    continue;
                }
                End::Left => format!("the process left early{}", process.last_words()),
                End::Died(how) => format!("the process {how}{}", process.last_words()),
                End::Late => format!("not over after {} s, and stopped{}", self.time_limit.as_secs(), process.last_words()),
            };
            if let Some(index) = subject.running.take() {
                let input = worker::last_input(folder.path());
                self.ended(&mut subject, index, (Verdict::Fail, how), process.silence().as_secs_f64(), input);
            } else {
                self.broken(&mut subject, how);
            }
            // Where no case was begun, none would be the next time.
            if !subject.over && subject.next > subject.resumed {
                left.push_front(subject);
            } else {
                each(subject.end());
            }
        }
        Ok(())
    }

    /// Hears what a process says until it is no more. What is first in `left` then is what it was at.
    fn listen(&self, process: &mut Process, left: &mut VecDeque<Progress>, each: &mut impl FnMut(SubjectResult)) -> End {
        loop {
            let event = match process.hear(self.time_limit) {
                Ok(event) => event,
                Err(end) => return end,
            };
            // The last subject is not given away before its process has ended well.
            if left.front().is_some_and(|subject| subject.over)
                && let Some(subject) = left.pop_front()
            {
                each(subject.end());
            }
            let Some(subject) = left.front_mut() else { continue };
            subject.begun.get_or_insert_with(Instant::now);
            match event {
                Event::Subject { about, cases } => {
                    let mut laws = self.laws.lock().unwrap_or_else(PoisonError::into_inner);
                    for case in &cases {
                        laws.entry(case.law.clone()).or_insert_with(|| case.says.clone());
                    }
                    subject.result.about = about;
                    subject.cases = cases;
                }
                Event::Absent { reason, device: true } if self.require_gpu => {
                    self.broken(subject, format!("{reason}; ZARR_REQUIRE_GPU=1 makes that a failure"));
                }
                Event::Absent { reason, .. } => subject.result.skipped = Some(reason),
                Event::Unbuilt { reason } => self.broken(subject, reason),
                Event::Start { index } => subject.running = Some(index),
                Event::End { index, outcome, message, seconds, input } => {
                    subject.running = None;
                    let input = input.and_then(|path| std::fs::read(path).ok());
                    self.ended(subject, index, (outcome, message), seconds, input);
                }
                Event::Over => subject.over = true,
            }
        }
    }

    /// A case is over, one way or the other.
    fn ended(&self, subject: &mut Progress, index: usize, (outcome, message): (Verdict, String), seconds: f64, input: Option<Vec<u8>>) {
        subject.next = index + 1;
        let Some(info) = subject.cases.get(index) else { return };
        let failed = outcome == Verdict::Fail;
        let input = input.filter(|_| failed).map(|bytes| self.saved(&subject.result.name, &info.id, &bytes));
        let replay = failed.then(|| self.replay(&subject.result.name, &info.id));
        subject.result.cases.push(CaseResult {
            id: info.id.clone(),
            law: info.law.clone(),
            outcome,
            message,
            seconds,
            place: info.place.clone(),
            input,
            replay,
        });
    }

    /// Something went wrong that is no case's fault.
    fn broken(&self, subject: &mut Progress, message: String) {
        self.laws.lock().unwrap_or_else(PoisonError::into_inner).insert(PROCESS.to_owned(), PROCESS_SAYS.to_owned());
        let name = quoted(&subject.result.name);
        subject.result.cases.push(CaseResult {
            id: PROCESS.to_owned(),
            law: PROCESS.to_owned(),
            outcome: Verdict::Fail,
            message,
            seconds: 0.0,
            place: None,
            input: None,
            replay: Some(format!("{} run --subject {name} --seed {} --device {}", self.command(), self.seed, self.device)),
        });
    }

    fn saved(&self, subject: &str, case: &str, bytes: &[u8]) -> Input {
        let slug: String =
            format!("{subject}--{case}").chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        let path = self.save.join(format!("{slug}.input"));
        let saved = std::fs::create_dir_all(&self.save).and_then(|()| std::fs::write(&path, bytes));
        match saved {
            Ok(()) => {
                let file = path.display().to_string();
                let replay = format!("{} --input {}", self.replay(subject, case), quoted(&file));
                Input { replay: Some(replay), ..Input::new(file, bytes) }
            }
            Err(error) => Input::new(format!("not saved: {error}"), bytes),
        }
    }

    fn replay(&self, subject: &str, case: &str) -> String {
        let (case, subject) = (quoted(case), quoted(subject));
        format!("{} replay {case} --subject {subject} --seed {} --device {}", self.command(), self.seed, self.device)
    }

    /// This program, as one calls it from here.
    fn command(&self) -> String {
        let here = std::env::current_dir().ok();
        let program = here.and_then(|here| self.program.strip_prefix(here).ok()).unwrap_or(&self.program);
        let words = std::iter::once(program.display().to_string()).chain(self.prefix.iter().cloned());
        words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("cpu/zstd.level=1/float32"), "cpu/zstd.level=1/float32");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
