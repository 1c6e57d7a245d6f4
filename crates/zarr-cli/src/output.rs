//! Where a command writes what it was asked for: standard output, or a file that is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Context as _, Result};

pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// Standard output or a file, written through a buffer.
pub(crate) struct Output {
    writer: BufWriter<Box<dyn Write>>,
    /// What errors call it.
    name: String,
    /// The file under the name that it has while it is written.
    growing: Option<Growing>,
}

/// A file that gets its name in the end, and is removed if it does not.
struct Growing {
    now: PathBuf,
    name: PathBuf,
}

impl Output {
    /// What is at `file` stays until [`Output::finish`]; devices and pipes are written as they are.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self> {
        let Some(file) = file else { return Ok(Self::of(io::stdout(), STANDARD_OUTPUT.to_owned(), None)) };
        let shown = file.display().to_string();
        // A link stays one, and what it leads to is replaced.
        let name = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let direct = || File::create(file).context(|| format!("cannot create {}", file.display()));
        // A link that leads nowhere yet is none to replace either.
        let is_plain = fs::metadata(file).map_or_else(|_| fs::symlink_metadata(file).is_err(), |found| found.is_file());
        if !is_plain || file.starts_with("/dev") || file.starts_with("/proc") {
            return Ok(Self::of(direct()?, shown, None));
        }
        let now = name.with_file_name(format!(".{}.{}.part", name.file_name().unwrap_or_default().to_string_lossy(), std::process::id()));
        match File::create(&now) {
            Ok(part) => Ok(Self::of(part, shown, Some(Growing { now, name }))),
            // A file may be writable in a directory that is not.
            Err(_) => Ok(Self::of(direct()?, shown, None)),
        }
    }

    fn of(writer: impl Write + 'static, name: String, growing: Option<Growing>) -> Self {
        Self { writer: BufWriter::with_capacity(1 << 18, Box::new(writer)), name, growing }
    }

    fn named<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| io::Error::new(error.kind(), format!("cannot write to {}: {error}", self.name)))
    }

    /// Writes what is left in the buffer, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let Some(growing) = &self.growing {
            fs::rename(&growing.now, &growing.name).context(|| format!("cannot create {}", growing.name.display()))?;
        }
        self.growing = None;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.writer.write(bytes);
        self.named(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.writer.flush();
        self.named(done)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(growing) = &self.growing {
            // What cannot be removed lies there under a name that says what it is.
            let _ = fs::remove_file(&growing.now);
        }
    }
}
