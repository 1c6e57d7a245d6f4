//! How an implementation outside of this process is described: a file of TOML.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::{Implementation, ImplementationUnderTest, Program};
use crate::vectors::Vector;

/// An implementation as a file describes it: the program, and what it does not support. `adapters/PROTOCOL.md` describes the file.
#[derive(Debug)]
pub struct Adapter {
    file: AdapterFile,
    path: PathBuf,
}

/// Why an adapter cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The file could not be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not what it must be.
    #[error("{}: {error}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: toml::de::Error,
    },
    /// A pattern of what is not supported fits no vector.
    #[error("{}: no vector fits {pattern:?}", path.display())]
    Idle {
        /// The file.
        path: PathBuf,
        /// The pattern.
        pattern: String,
    },
    /// A variable that the program's line names is not set.
    #[error("{}: the environment variable {variable} is not set", path.display())]
    Variable {
        /// The file.
        path: PathBuf,
        /// The variable.
        variable: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdapterFile {
    name: String,
    /// With `{here}` for the folder of the file, and `{env:NAME}` or `{env:NAME:default}` for the environment.
    program: Vec<String>,
    #[serde(default)]
    serves: bool,
    #[serde(default = "usual_limit")]
    limit_seconds: f32,
    #[serde(default)]
    unsupported: Vec<Unsupported>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsupported {
    /// Ids of vectors, with `*` for anything.
    vectors: Vec<String>,
    /// All four where nothing is said.
    #[serde(default = "all_laws")]
    laws: Vec<Law>,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Law {
    Read,
    Part,
    Write,
    Exchange,
}

fn usual_limit() -> f32 {
    20.0
}

fn all_laws() -> Vec<Law> {
    vec![Law::Read, Law::Part, Law::Write, Law::Exchange]
}

impl Adapter {
    /// Reads the file.
    ///
    /// # Errors
    /// [`AdapterError::Io`] and [`AdapterError::Syntax`].
    pub fn load(path: &Path) -> Result<Self, AdapterError> {
        let text = fs::read_to_string(path).map_err(|error| AdapterError::Io { path: path.to_owned(), error })?;
        let file = toml::from_str(&text).map_err(|error| AdapterError::Syntax { path: path.to_owned(), error })?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// What reports call the implementation.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Why the implementation is said not to support a vector, where it is.
    pub fn reason(&self, vector: &str) -> Option<&str> {
        let rule = self.file.unsupported.iter().find(|rule| rule.vectors.iter().any(|pattern| fits(pattern, vector)));
        rule.map(|rule| rule.why.as_str())
    }

    /// The implementation, in its own process.
    ///
    /// # Errors
    /// [`AdapterError::Variable`].
    pub fn program(&self) -> Result<Program, AdapterError> {
        let here = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_string_lossy();
        let mut command = Vec::new();
        for word in &self.file.program {
            command.push(self.expand(&word.replace("{here}", &here))?);
        }
        let program = Program::new(&self.file.name, command, Duration::from_secs_f32(self.file.limit_seconds.clamp(0.1, 600.0)));
        Ok(if self.file.serves { program.serving() } else { program })
    }

    fn expand(&self, word: &str) -> Result<String, AdapterError> {
        let Some((before, rest)) = word.split_once("{env:") else {
            return Ok(word.to_owned());
        };
        let (variable, after) = rest.split_once('}').unwrap_or((rest, ""));
        let (variable, default) = variable.split_once(':').map_or((variable, None), |(name, default)| (name, Some(default.to_owned())));
        let value = std::env::var(variable).ok().or(default);
        let value = value.ok_or_else(|| AdapterError::Variable { path: self.path.clone(), variable: variable.to_owned() })?;
        Ok(format!("{before}{value}{after}"))
    }

    /// The implementation, to be checked on `vectors`; `reference` reads what it writes.
    ///
    /// # Errors
    /// [`AdapterError::Idle`] when a pattern of what is not supported fits no vector; [`AdapterError::Variable`].
    pub fn under_test(&self, reference: Arc<dyn Implementation>, vectors: Arc<[Vector]>) -> Result<ImplementationUnderTest, AdapterError> {
        let mut unsupported = BTreeSet::new();
        for rule in &self.file.unsupported {
            for pattern in &rule.vectors {
                let found: Vec<&Vector> = vectors.iter().filter(|vector| fits(pattern, &vector.id)).collect();
                if found.is_empty() {
                    return Err(AdapterError::Idle { path: self.path.clone(), pattern: pattern.clone() });
                }
                for (vector, law) in found.iter().flat_map(|vector| rule.laws.iter().map(move |law| (vector, law))) {
                    // No id of a vector begins another one, so each of these declares one vector.
                    unsupported.insert(format!("{}/{}", law.prefix(), vector.id));
                }
            }
        }
        let subject = ImplementationUnderTest::new(Arc::new(self.program()?), reference, vectors);
        Ok(unsupported.into_iter().fold(subject, ImplementationUnderTest::without))
    }
}

impl Law {
    fn prefix(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Part => "part",
            Self::Write => "write",
            Self::Exchange => "exchange",
        }
    }
}

/// Whether `text` is `pattern`, in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => {
            text.strip_prefix(before).is_some_and(|rest| (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| fits(after, rest))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, yes) in [
            ("a/b", "a/b", true),
            ("a/*", "a/", true),
            ("a/*-c", "a/b-c-c", true),
            ("a/*-c", "a/b-c-d", false),
            ("*", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern, text), yes, "{pattern} {text}");
        }
    }
}
