//! What is told when a command fails: one message, what caused it, what to do.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use zarr::ArrayError;
use zarr::codec_api::CodecErrorKind;
use zarr::store_api::{StoreError, StoreErrorKind};

/// The outcome of a command that found a problem, or could not do its work.
const FAILED: u8 = 1;
/// The outcome of a command that was called wrongly, as clap has it.
const USAGE: u8 = 2;

/// Why a command stops.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    code: u8,
    silent: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hint: None, code: FAILED, silent: false }
    }

    /// The command was called in a way that cannot work.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds to what there is to do.
    pub(crate) fn and_hint(self, hint: &str) -> Self {
        let all = self.hint.as_ref().map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}"));
        self.hint(all)
    }

    /// Puts what was being done before what went wrong.
    pub(crate) fn context(mut self, message: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, message.into());
        self.causes.insert(0, cause);
        self
    }

    /// Message and causes on one line, for lists of problems.
    pub(crate) fn line(&self) -> String {
        let mut line = self.message.clone();
        for cause in &self.causes {
            let _ = write!(line, ": {cause}");
        }
        line
    }

    /// Tells the user, and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        if self.silent {
            return ExitCode::SUCCESS;
        }
        let (red, cyan) = (crate::table::RED.bold(), crate::table::CYAN.bold());
        let mut text = format!("{red}error:{red:#} {}\n", self.message);
        for cause in &self.causes {
            let _ = writeln!(text, "  because: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "{cyan}hint:{cyan:#} {hint}");
        }
        // There is nobody left to tell when this fails.
        let _ = anstream::stderr().lock().write_all(crate::table::harmless(&text).as_bytes());
        ExitCode::from(self.code)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: &(dyn Error + 'static) = &error;
        let mut failure = Self::new(error.to_string());
        let mut told = failure.message.clone();
        let mut next = error.source();
        while let Some(source) = next {
            let text = source.to_string();
            // Errors of others may repeat their source.
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            if !words(&told).contains(&words(&text)) {
                failure.causes.push(text.clone());
                told = text;
            }
            if let Some(source) = source.downcast_ref::<std::io::Error>() {
                failure.silent |= source.kind() == std::io::ErrorKind::BrokenPipe;
            }
            next = source.source();
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            // Whoever reads our output has seen enough.
            failure.silent = error.kind() == std::io::ErrorKind::BrokenPipe;
        }
        failure.hint = hint_for(error);
        failure
    }
}

fn hint_for(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(ArrayError::Store(error)) = error.downcast_ref() {
        return store_hint(error);
    }
    if let Some(ArrayError::Chunk { source, .. }) = error.downcast_ref() {
        let damaged = source.kind() == CodecErrorKind::Format;
        return damaged.then(|| "`zarr validate` lists all chunks that cannot be decoded".to_owned());
    }
    if let Some(ArrayError::Codecs { source, .. }) = error.downcast_ref() {
        let unknown = source.kind() == CodecErrorKind::Unsupported;
        return unknown.then(|| "`zarr devices` lists the codecs that there are here".to_owned());
    }
    if let Some(ArrayError::Selection(_)) = error.downcast_ref() {
        return Some("a selection looks like `0, 10:20, ::-2, [1,5,3]`, an entry for each axis; `zarr info` shows the shape".to_owned());
    }
    store_hint(error.downcast_ref()?)
}

fn store_hint(error: &StoreError) -> Option<String> {
    let hint = match error.kind() {
        // The system says no to a file, whatever the environment holds.
        StoreErrorKind::Permission if error.get_ref().is_some_and(|cause| cause.is::<std::io::Error>()) => return None,
        StoreErrorKind::Permission => {
            "for object stores, credentials come from the environment (AWS_ACCESS_KEY_ID, ..) or from --setting name=value; servers may say the same of what is not there"
        }
        StoreErrorKind::Transient if error.message().contains("error sending request") => {
            "is the address right, is the server up, does a proxy stand between?"
        }
        StoreErrorKind::Io if error.message().contains("URL scheme is not allowed") => {
            "--setting allow_http=true lets an object store be asked over http"
        }
        StoreErrorKind::Transient | StoreErrorKind::Replaced => "the same command may work when it is run again",
        StoreErrorKind::ReadOnly => "this kind of store can only be read here",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Says what was being done when something fails.
pub(crate) trait Context<T> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.into().context(message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_no_matter_of_files() {
        let refused = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(Failure::from(StoreError::from_io(refused(), "cannot open the file")).hint, None);
        let remote = Failure::from(ArrayError::from(StoreError::new(StoreErrorKind::Permission, "403")));
        assert!(remote.hint.is_some_and(|hint| hint.contains("AWS_ACCESS_KEY_ID")));
    }
}
