//! An implementation in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::serve::{Answer, Greeting, Order, PROTOCOL, WriteCase, show_ranges};
use super::{Implementation, ReadJob, Trouble, WriteJob};

/// The most that is kept of what a program writes to standard error.
const MESSAGE: usize = 4 << 10;
/// The most that is taken from a program as one array: vectors are small.
const ANSWER: u64 = 64 << 20;

/// A program behind the command line of `adapters/PROTOCOL.md`. Its process is started when there is something to ask, and again after it died.
#[derive(Debug)]
pub struct Program {
    name: String,
    command: Vec<String>,
    serves: bool,
    limit: Duration,
    server: Mutex<Option<Server>>,
}

impl Program {
    /// The program `command` (its file and first arguments), called `name` in reports. It is run once per array, and killed when an answer takes more than `limit`.
    pub fn new(name: impl Into<String>, command: Vec<String>, limit: Duration) -> Self {
        Self { name: name.into(), command, serves: false, limit, server: Mutex::default() }
    }

    /// Says that the program has the `serve` command, so that one process answers for many arrays.
    #[must_use]
    pub fn serving(mut self) -> Self {
        self.serves = true;
        self
    }

    fn start(&self, arguments: &[&str]) -> Result<Child, Trouble> {
        let (file, first) = self.command.split_first().ok_or_else(|| Trouble::Broke("no program is named".into()))?;
        let mut command = Command::new(file);
        command.args(first).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| Trouble::Broke(format!("{file} does not start: {error}")))
    }

    /// Runs the program once; what it wrote to standard output.
    fn once(&self, arguments: &[&str]) -> Result<Vec<u8>, Trouble> {
        let mut child = Running::new(self.start(arguments)?);
        let (sender, answer) = channel();
        if let Some(out) = child.process.stdout.take() {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let read = out.take(ANSWER).read_to_end(&mut bytes);
                let _ = sender.send(read.map(|_| bytes));
            });
        }
        drop(child.process.stdin.take());
        let start = Instant::now();
        let bytes = match answer.recv_timeout(self.limit) {
            Ok(bytes) => bytes.map_err(|error| Trouble::Broke(format!("standard output: {error}")))?,
            Err(_) => return Err(self.too_slow()),
        };
        let Some(status) = child.end(self.limit.saturating_sub(start.elapsed())) else {
            return Err(self.too_slow());
        };
        match status.code() {
            Some(0) => Ok(bytes),
            Some(_) => Err(Trouble::Refused(child.message())),
            None => Err(Trouble::Broke(format!("died: {status}: {}", child.message()))),
        }
    }

    fn too_slow(&self) -> Trouble {
        Trouble::Broke(format!("no answer within {} s", self.limit.as_secs_f32()))
    }

    /// Asks the process that serves, and forgets it unless it answers.
    fn ask(&self, order: &Order) -> Result<(), Trouble> {
        let mut slot = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let mut server = match slot.take() {
            Some(server) => server,
            None => self.server()?,
        };
        let line = serde_json::to_string(order).map_err(|error| Trouble::Broke(error.to_string()))?;
        match server.ask(&line, self.limit)? {
            Some(Answer::Ok) => *slot = Some(server),
            Some(Answer::Refused(message)) => {
                *slot = Some(server);
                return Err(Trouble::Refused(message));
            }
            None => return Err(self.too_slow()),
        }
        Ok(())
    }

    fn server(&self) -> Result<Server, Trouble> {
        let mut server = Server::new(Running::new(self.start(&["serve"])?))?;
        // Interpreters and their libraries take their time to load.
        let Some(line) = server.line(self.limit.max(Duration::from_secs(60)))? else {
            return Err(self.too_slow());
        };
        let greeting: Greeting = serde_json::from_str(&line).map_err(|error| Trouble::Broke(format!("no greeting: {error}: {line}")))?;
        if greeting.protocol != PROTOCOL {
            return Err(Trouble::Broke(format!("speaks version {} of the protocol, not {PROTOCOL}", greeting.protocol)));
        }
        server.identity = greeting.identity;
        Ok(server)
    }
}

impl Implementation for Program {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Result<String, Trouble> {
        if !self.serves {
            return Ok(String::from_utf8_lossy(&self.once(&["versions"])?).trim().to_owned());
        }
        let mut slot = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(self.server()?);
        }
        Ok(slot.as_ref().map(|server| server.identity.clone()).unwrap_or_default())
    }

    fn read(&self, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
        if !self.serves {
            let path = job.store.to_string_lossy();
            let mut arguments = vec!["read", &path, "--format", "raw"];
            if !job.node.is_empty() {
                arguments.extend(["--node", job.node]);
            }
            let part = job.part.map(show_ranges);
            if let Some(part) = &part {
                arguments.extend(["--select", part]);
            }
            return self.once(&arguments);
        }
        let folder = scratch()?;
        let out = folder.path().join("out.raw");
        let select = job.part.map(|ranges| ranges.iter().map(|range| (range.start, range.end)).collect());
        self.ask(&Order::Read { path: job.store.to_owned(), node: job.node.to_owned(), select, out: out.clone() })?;
        fs::read(&out).map_err(|error| Trouble::Broke(format!("said that it read, and gave nothing: {error}")))
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<(), Trouble> {
        let folder = scratch()?;
        let case: PathBuf =
            WriteCase::save(job, folder.path()).map_err(|error| Trouble::Broke(format!("no case to be written: {error}")))?;
        if self.serves {
            return self.ask(&Order::Write { case, path: job.store.to_owned() });
        }
        self.once(&["write", &case.to_string_lossy(), &job.store.to_string_lossy()]).map(drop)
    }
}

fn scratch() -> Result<tempfile::TempDir, Trouble> {
    tempfile::tempdir().map_err(|error| Trouble::Broke(format!("no scratch folder: {error}")))
}

/// A process, and what it says on standard error. It is killed when this goes.
#[derive(Debug)]
struct Running {
    process: Child,
    errors: Receiver<Vec<u8>>,
}

impl Running {
    fn new(mut process: Child) -> Self {
        let (sender, errors) = channel();
        if let Some(stream) = process.stderr.take() {
            thread::spawn(move || drain(stream, &sender));
        }
        Self { process, errors }
    }

    /// Waits for its end, for as long as `limit`.
    fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            if start.elapsed() > limit {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What it said on standard error; to be called once it ended.
    fn message(&self) -> String {
        let bytes = self.errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a stream to its end, so that the writer never waits, and gives the last of it.
fn drain(mut stream: impl Read, sender: &Sender<Vec<u8>>) {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(len) = stream.read(&mut buffer) {
        if len == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..len]);
        let more = kept.len().saturating_sub(MESSAGE);
        kept.drain(..more);
    }
    let _ = sender.send(kept);
}

/// A process that serves.
#[derive(Debug)]
struct Server {
    running: Running,
    orders: ChildStdin,
    lines: Receiver<String>,
    identity: String,
}

impl Server {
    fn new(mut running: Running) -> Result<Self, Trouble> {
        let (Some(orders), Some(out)) = (running.process.stdin.take(), running.process.stdout.take()) else {
            return Err(Trouble::Broke("the program has no standard streams".into()));
        };
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                if line.is_err() || line.is_ok_and(|line| sender.send(line).is_err()) {
                    break;
                }
            }
        });
        Ok(Self { running, orders, lines, identity: String::new() })
    }

    /// The next line; `None` when there is none in time.
    fn line(&mut self, limit: Duration) -> Result<Option<String>, Trouble> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.running.end(limit).map_or_else(|| "closed its output".to_owned(), |status| status.to_string());
                Err(Trouble::Broke(format!("died: {status}: {}", self.running.message())))
            }
        }
    }

    fn ask(&mut self, order: &str, limit: Duration) -> Result<Option<Answer>, Trouble> {
        // A program that is gone shows when it does not answer.
        let _ = writeln!(self.orders, "{order}").and_then(|()| self.orders.flush());
        let Some(line) = self.line(limit)? else {
            return Ok(None);
        };
        serde_json::from_str(&line).map(Some).map_err(|error| Trouble::Broke(format!("no answer of the protocol: {error}: {line}")))
    }
}
