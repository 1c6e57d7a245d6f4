//! What all laws share: cases as data, subjects as traits, outcomes. No test framework.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use zarr_buffer_api::{BufferError, BufferErrorKind};
use zarr_codec_api::{CodecError, CodecErrorKind};

use crate::feed::{Fed, Feed};
pub(crate) use crate::trial::Trial;

/// Something that laws are checked on.
pub trait Subject: Send + Sync {
    /// What a report calls it.
    fn name(&self) -> String;

    /// The beginnings of the ids of cases that it does not claim to support. Only there does [`Outcome::Unsupported`] count; elsewhere it
    /// is a failure. A case that passes although it is declared here is a failure, too.
    fn unsupported(&self) -> &[String] {
        &[]
    }

    /// What "many" means where a law speaks of many chunks: fewer for subjects that are slow.
    fn many(&self) -> usize {
        100
    }
}

/// One law, on one input.
pub struct Case<S: ?Sized> {
    id: String,
    law: String,
    says: &'static str,
    check: Box<Check<S>>,
}

type Check<S> = dyn Fn(&S, &Trial) -> Result<(), Broken> + Send + Sync;

impl<S: ?Sized> Case<S> {
    /// A law with a single case, of the same id.
    pub(crate) fn new(
        id: impl Into<String>,
        says: &'static str,
        check: impl Fn(&S, &Trial) -> Result<(), Broken> + Send + Sync + 'static,
    ) -> Self {
        let id = id.into();
        Self { law: id.clone(), id, says, check: Box::new(check) }
    }

    /// One of several cases of `law`.
    pub(crate) fn of_law(
        law: impl Into<String>,
        id: impl Into<String>,
        says: &'static str,
        check: impl Fn(&S, &Trial) -> Result<(), Broken> + Send + Sync + 'static,
    ) -> Self {
        Self { law: law.into(), ..Self::new(id, says, check) }
    }

    /// The same from version to version.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the law that this is a case of.
    pub fn law(&self) -> &str {
        &self.law
    }

    /// The law, in a sentence.
    pub fn says(&self) -> &'static str {
        self.says
    }
}

impl<S: ?Sized> fmt::Debug for Case<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.says)
    }
}

impl<S: Subject + ?Sized> Case<S> {
    /// Checks the law, on this thread and for as long as it takes. A panic is a failure.
    pub fn run(&self, subject: &S, trial: &Trial) -> Outcome {
        let declared = subject.unsupported().iter().any(|start| self.id.starts_with(start.as_str()));
        let broken = catch_unwind(AssertUnwindSafe(|| (self.check)(subject, trial))).unwrap_or_else(|panic| Err(panicked(&*panic)));
        match broken {
            Ok(()) if declared => Outcome::Fail("declared as unsupported, and yet it works".into()),
            Ok(()) => Outcome::Pass,
            Err(Broken::Unsupported(message)) if declared => Outcome::Unsupported(message),
            Err(Broken::Unsupported(message)) => Outcome::Fail(format!("not declared as unsupported: {message}")),
            Err(Broken::Failed(message)) => Outcome::Fail(message),
        }
    }
}

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The law holds.
    Pass,
    /// It does not; what was expected and what was found.
    Fail(String),
    /// The subject cannot do this, and said so before.
    Unsupported(String),
}

/// A subject and its cases, of whatever kind both are.
pub struct Suite {
    subject: Arc<dyn Named>,
    cases: Vec<SuiteCase>,
    feed: Option<Feed>,
}

/// What is left of a subject when its kind is forgotten.
trait Named: Send + Sync {
    fn name(&self) -> String;
}

struct NameOf<S: ?Sized>(Arc<S>);

impl<S: Subject + ?Sized> Named for NameOf<S> {
    fn name(&self) -> String {
        self.0.name()
    }
}

/// A case, bound to its subject.
pub struct SuiteCase {
    id: String,
    law: String,
    says: &'static str,
    run: Arc<dyn Fn(&Trial) -> Outcome + Send + Sync>,
}

impl SuiteCase {
    /// The same from version to version. Unique within a suite.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the law that this is a case of.
    pub fn law(&self) -> &str {
        &self.law
    }

    /// The law, in a sentence.
    pub fn says(&self) -> &'static str {
        self.says
    }

    /// Checks the law, on a thread of its own. A panic is a failure, and so is taking longer than [`Trial::time_limit`]: the thread is then left
    /// behind, since nothing can end it but the end of the process.
    pub fn run(&self, trial: &Trial) -> Outcome {
        let (run, own) = (Arc::clone(&self.run), trial.clone());
        within(trial.time_limit(), &self.id, move || run(&own)).unwrap_or_else(Outcome::Fail)
    }
}

/// Runs something on a thread of its own, which is left behind when it takes too long.
fn within<T: Send + 'static>(limit: Duration, name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (send, receive) = mpsc::channel();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Nobody may be listening any more.
        let _ = send.send(run());
    });
    let thread = started.map_err(|error| format!("no thread to run on: {error}"))?;
    match receive.recv_timeout(limit) {
        Ok(result) => {
            let _ = thread.join();
            Ok(result)
        }
        Err(RecvTimeoutError::Timeout) => Err(format!("hangs: not done after {limit:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("its thread ended without an outcome".into()),
    }
}

impl fmt::Debug for SuiteCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.says)
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite").field("subject", &self.subject()).field("cases", &self.cases).finish()
    }
}

impl Suite {
    /// `cases` on `subject`.
    pub fn new<S: Subject + ?Sized + 'static>(subject: Arc<S>, cases: Vec<Case<S>>) -> Self {
        let bind = |case: Case<S>| {
            let on = Arc::clone(&subject);
            SuiteCase { id: case.id.clone(), law: case.law.clone(), says: case.says, run: Arc::new(move |trial| case.run(&on, trial)) }
        };
        let cases = cases.into_iter().map(bind).collect();
        Self { subject: Arc::new(NameOf(subject)), cases, feed: None }
    }

    /// What a report calls the subject.
    pub fn subject(&self) -> String {
        self.subject.name()
    }

    /// The cases, in the order in which they run.
    pub fn cases(&self) -> &[SuiteCase] {
        &self.cases
    }

    /// Says how the subject is given encoded bytes alone.
    pub(crate) fn feeding(mut self, feed: impl Fn(&[u8], &Trial) -> Result<Fed, Broken> + Send + Sync + 'static) -> Self {
        self.feed = Some(Arc::new(feed));
        self
    }

    /// Gives the subject just these encoded bytes, outside of any case, for at most [`Trial::time_limit`]. `None` if it decodes nothing. A panic breaks a law, and so
    /// does a hang.
    pub fn feed(&self, encoded: &[u8], trial: &Trial) -> Option<Fed> {
        let (feed, bytes, own) = (Arc::clone(self.feed.as_ref()?), encoded.to_vec(), trial.clone());
        let fed = within(trial.time_limit(), "feed", move || {
            catch_unwind(AssertUnwindSafe(|| feed(&bytes, &own))).unwrap_or_else(|panic| Err(panicked(&*panic)))
        });
        Some(match fed {
            Ok(Ok(fed)) => fed,
            Ok(Err(Broken::Failed(message) | Broken::Unsupported(message))) | Err(message) => {
                Fed { answers: Vec::new(), broken: Some(message) }
            }
        })
    }

    /// The same without the cases of one law.
    #[must_use]
    pub fn without_law(mut self, law: &str) -> Self {
        self.cases.retain(|case| case.law != law);
        self
    }

    /// Runs every case.
    pub fn run(&self, trial: &Trial) -> Report {
        let outcomes = self.cases.iter().map(|case| (case.id.clone(), case.run(trial))).collect();
        Report { subject: self.subject(), outcomes }
    }
}

/// Panics unless the subject holds every law: one line in a test of yours.
///
/// ```
/// use std::sync::Arc;
/// use zarr_conformance::device::DeviceUnderTest;
///
/// zarr_conformance::assert_conforms(DeviceUnderTest::new(Arc::new(zarr_buffer_api::HostDevice)));
/// ```
///
/// # Panics
/// With every law that is broken, and how.
#[track_caller]
pub fn assert_conforms(subject: impl Into<Suite>) {
    subject.into().run(&Trial::default()).assert_conforms();
}

/// The outcomes of all cases on one subject.
#[derive(Debug, Clone)]
#[must_use = "a report that nobody looks at hides failures"]
pub struct Report {
    /// The subject's name.
    pub subject: String,
    /// Ids of cases and their outcomes, in the order in which they ran.
    pub outcomes: Vec<(String, Outcome)>,
}

impl Report {
    /// Runs every case on `subject`.
    pub fn of<S: Subject + ?Sized>(subject: &S, cases: &[Case<S>]) -> Self {
        let trial = Trial::default();
        let outcomes = cases.iter().map(|case| (case.id.clone(), case.run(subject, &trial))).collect();
        Self { subject: subject.name(), outcomes }
    }

    /// Ids of the cases that failed, with their messages.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|(id, outcome)| match outcome {
            Outcome::Fail(message) => Some((id.as_str(), message.as_str())),
            _ => None,
        })
    }

    /// Whether no case failed.
    pub fn conforms(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Panics with all failures if there are any.
    ///
    /// # Panics
    /// As said.
    #[track_caller]
    pub fn assert_conforms(&self) {
        assert!(self.conforms(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures().count();
        writeln!(f, "{}: {failures} of {} cases failed", self.subject, self.outcomes.len())?;
        for (id, message) in self.failures() {
            writeln!(f, "  {id}: {message}")?;
        }
        Ok(())
    }
}

/// Why a check ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    Failed(String),
    Unsupported(String),
}

impl From<BufferError> for Broken {
    fn from(error: BufferError) -> Self {
        match error.kind {
            BufferErrorKind::Unsupported => Self::Unsupported(error.to_string()),
            _ => Self::Failed(format!("unexpected error: {error}")),
        }
    }
}

impl From<CodecError> for Broken {
    fn from(error: CodecError) -> Self {
        match error.kind() {
            CodecErrorKind::Unsupported => Self::Unsupported(error.to_string()),
            _ => Self::Failed(format!("unexpected error: {error}")),
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Broken {
    let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Broken::Failed(format!("panicked: {}", message.unwrap_or("no message")))
}

/// Ends a check with a failure unless something holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err($crate::suite::Broken::Failed(format!($($message)+)));
        }
    };
}

pub(crate) use ensure;

/// Fails unless the bytes are the same; says where they first differ.
pub(crate) fn ensure_same(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Broken> {
    ensure!(found.len() == expected.len(), "{what}: {} bytes, expected {}", found.len(), expected.len());
    if found != expected {
        let at = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
        return Err(Broken::Failed(format!("{what}: byte {at} is {:#04x}, expected {:#04x}", found[at], expected[at])));
    }
    Ok(())
}

/// Fails unless the call was refused with the right blame.
pub(crate) fn ensure_refused<T>(what: &str, kind: BufferErrorKind, result: Result<T, BufferError>) -> Result<(), Broken> {
    match result {
        Ok(_) => Err(Broken::Failed(format!("{what} was accepted"))),
        Err(error) if error.kind == kind => Ok(()),
        Err(error) => Err(Broken::Failed(format!("{what} was refused as {:?} ({error}), expected {kind:?}", error.kind))),
    }
}
