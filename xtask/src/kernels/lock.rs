//! What a fatbin was compiled from: a hash of each source, of the compiler and of how it was called.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

use super::compiler::{PINS, SCRIPT};
use super::{FLAGS, Unit};
use crate::Result;

/// The lines of a lock but the last, which is the hash of the fatbin itself.
pub(super) struct Lock(String);

impl Lock {
    /// What a lock says of the sources in `folder` when they are compiled for `architectures` now.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub(super) fn of_sources(folder: &Path, architectures: &[String]) -> Result<Self> {
        let mut text = String::from("# Made by `cargo xtask kernels`.\n");
        for pin in PINS.lines() {
            writeln!(text, "compiler {}", pin.split_whitespace().next().unwrap_or_default())?;
        }
        writeln!(text, "driver {}", hash(SCRIPT.as_bytes()))?;
        writeln!(text, "flags {}", FLAGS.join(" "))?;
        writeln!(text, "for {}", architectures.join(" "))?;
        let mut sources = Vec::new();
        walk(folder, &mut sources)?;
        sources.sort();
        for source in sources {
            let name: Vec<_> = source.strip_prefix(folder)?.iter().map(|part| part.to_string_lossy()).collect();
            // Line ends may differ between checkouts.
            let bytes: Vec<u8> = fs::read(&source)?.into_iter().filter(|byte| *byte != b'\r').collect();
            writeln!(text, "source {} {}", name.join("/"), hash(&bytes))?;
        }
        Ok(Self(text))
    }

    /// Whether the unit's fatbin was compiled so.
    pub(super) fn is_met_by(&self, unit: &Unit) -> bool {
        self.difference(unit).is_none()
    }

    /// The first thing that differs between this and what the unit's fatbin was compiled from.
    pub(super) fn difference(&self, unit: &Unit) -> Option<String> {
        let Ok(locked) = fs::read_to_string(unit.file("lock")) else { return Some("is not there".to_owned()) };
        let Ok(fatbin) = fs::read(unit.file("fatbin")) else { return Some("has no fatbin beside it".to_owned()) };
        let wanted = self.with_fatbin(&fatbin);
        let (mut wanted, mut locked) = (wanted.lines(), locked.lines());
        loop {
            match (wanted.next(), locked.next()) {
                (None, None) => return None,
                (wanted, locked) if wanted == locked => {}
                (wanted, locked) => return Some(format!("has `{}` where there is `{}`", locked.unwrap_or(""), wanted.unwrap_or(""))),
            }
        }
    }

    /// Writes the lock of a fatbin that was just compiled.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(super) fn write(&self, unit: &Unit) -> Result<()> {
        Ok(fs::write(unit.file("lock"), self.with_fatbin(&fs::read(unit.file("fatbin"))?))?)
    }

    fn with_fatbin(&self, fatbin: &[u8]) -> String {
        format!("{}fatbin {}\n", self.0, hash(fatbin))
    }
}

/// All sources below `folder`: whatever is not made from them.
fn walk(folder: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, out)?;
        } else if path.extension().is_some_and(|extension| ["cu", "cuh", "h", "hpp", "inc"].iter().any(|known| extension == *known)) {
            out.push(path);
        }
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
