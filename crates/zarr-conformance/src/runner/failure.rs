//! What is told when a command cannot do its work: one message, what caused it, what to do.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::table::{CYAN, RED};

/// The exit status of a command that was called wrongly, as clap has it.
const USAGE: u8 = 2;

/// Why a command stops.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    cause: Option<String>,
    hint: Option<&'static str>,
    code: u8,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None, hint: None, code: 1 }
    }

    /// The command was called in a way that cannot work.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    pub(crate) fn because(mut self, cause: &(impl Error + ?Sized)) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Tells the user, and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let (red, cyan) = (RED.bold(), CYAN.bold());
        let mut text = format!("{red}error:{red:#} {}\n", self.message);
        if let Some(cause) = &self.cause {
            let _ = writeln!(text, "  because: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "{cyan}hint:{cyan:#} {hint}");
        }
        // There is nobody left to tell when this fails.
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
        ExitCode::from(self.code)
    }
}

/// Says what was being done when the system refuses.
pub(crate) trait Context<T> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Error> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(message()).because(&error))
    }
}

/// Writes a result to standard output. Whoever stops reading has seen enough.
pub(crate) fn print(text: &str) -> Result<()> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new("cannot write the result").because(&error)),
        _ => Ok(()),
    }
}
