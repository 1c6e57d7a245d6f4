//! A process that runs cases: started, listened to, and ended when it is late.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::failure::{Context as _, Failure, Result};
use super::worker::{self, Event, Job};

/// How many of the last bytes of standard error are kept.
const LAST_WORDS: usize = 2000;

/// A worker.
pub(crate) struct Process {
    child: Child,
    /// Its end tells the worker that nobody listens any more.
    _stdin: ChildStdin,
    events: Receiver<Event>,
    errors: Option<JoinHandle<String>>,
    /// When it last said something.
    heard: Instant,
}

/// Why a process is no more.
pub(crate) enum End {
    /// It left by itself, with success.
    Left,
    /// It ended in another way.
    Died(String),
    /// It was ended, for it said nothing for too long.
    Late,
}

impl Process {
    /// Starts a worker on `job`.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn start(program: &Path, prefix: &[String], job: &Job) -> Result<Self> {
        let text = serde_json::to_string(job).context(|| "cannot say what is to be done".to_owned())?;
        let mut command = Command::new(program);
        command.args(prefix).arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what it starts ends with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().context(|| format!("cannot start {}", program.display()))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(Failure::new("a process without pipes"));
        };
        // A worker that is gone before it has read all shows in what it does not say.
        let _ = stdin.write_all(format!("{text}\n").as_bytes());
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::<_, std::io::Error>::ok) {
                if let Some(event) = worker::heard(&String::from_utf8_lossy(&line))
                    && sender.send(event).is_err()
                {
                    break;
                }
            }
        });
        let errors = Some(thread::spawn(move || last_of(stderr)));
        Ok(Self { child, _stdin: stdin, events, errors, heard: Instant::now() })
    }

    /// The next event; `Err` when there is none within `limit` of the last one. The process is no more then.
    pub(crate) fn hear(&mut self, limit: Duration) -> Result<Event, End> {
        match self.events.recv_timeout(limit.saturating_sub(self.heard.elapsed())) {
            Ok(event) => {
                self.heard = Instant::now();
                Ok(event)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                Err(End::Late)
            }
            Err(RecvTimeoutError::Disconnected) => Err(match self.child.wait() {
                Ok(status) if status.success() => End::Left,
                Ok(status) => End::Died(in_words(status)),
                Err(error) => End::Died(format!("is lost: {error}")),
            }),
        }
    }

    /// How long it has said nothing.
    pub(crate) fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    /// The end of what it wrote to standard error, as the end of a message. For a process that is no more.
    pub(crate) fn last_words(&mut self) -> String {
        // What it started may still hold the other end.
        self.kill();
        let words = self.errors.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        // Those of the last case.
        let words = words.rsplit(worker::CASE_BEGINS).next().unwrap_or_default().trim();
        if words.is_empty() { String::new() } else { format!("; it said last:\n{words}") }
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
        }
    }
}

/// The last bytes of all that comes.
fn last_of(mut stderr: ChildStderr) -> String {
    let (mut kept, mut room) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stderr.read(&mut room) {
        kept.extend_from_slice(room.get(..count).unwrap_or_default());
        if kept.len() > 4 * LAST_WORDS {
            kept.drain(..kept.len() - LAST_WORDS);
        }
    }
    let from = kept.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(kept.get(from..).unwrap_or_default()).into_owned()
}

fn in_words(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => " (illegal instruction)",
            6 => " (abort)",
            7 => " (bus error)",
            8 => " (arithmetic error)",
            9 => " (killed; perhaps for want of memory)",
            11 => " (segmentation fault)",
            _ => "",
        };
        return format!("was ended by signal {signal}{name}");
    }
    format!("ended with {status}")
}
