//! What one implementation writes, another one reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::laws::{Written, not_written};
use super::{Implementation, ImplementationUnderTest, Trouble};
use crate::suite::{Broken, Case, Subject, Suite};

/// A writer, and all who read what it writes.
pub struct Exchange {
    writer: ImplementationUnderTest,
    readers: Vec<ImplementationUnderTest>,
    /// By the index of the vector: readers share what was written, or why nothing was.
    written: Mutex<BTreeMap<usize, Arc<Result<Written, Trouble>>>>,
}

impl Exchange {
    /// `writer` writes every vector that can be written, and each of `readers` reads those that it does not declare unsupported, as `read/VECTOR`. All have the same vectors.
    pub fn new(writer: ImplementationUnderTest, readers: impl IntoIterator<Item = ImplementationUnderTest>) -> Self {
        Self { writer, readers: readers.into_iter().collect(), written: Mutex::default() }
    }

    fn written(&self, at: usize) -> Arc<Result<Written, Trouble>> {
        let known = self.written.lock().unwrap_or_else(PoisonError::into_inner).get(&at).cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(Written::by(self.writer.implementation(), &self.writer.vectors[at]));
            self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(at, Arc::clone(&made));
            made
        })
    }

    fn holds(&self, at: usize, id: &str, reader: &dyn Implementation) -> Result<(), Broken> {
        let vector = &self.writer.vectors[at];
        match &*self.written(at) {
            Ok(written) => written.is_read_by(reader, vector),
            Err(trouble) => not_written(&self.writer, id, vector, trouble),
        }
    }

    fn cases(&self) -> Vec<Case<Self>> {
        let mut out = Vec::new();
        for (at, vector) in self.writer.vectors.iter().enumerate().filter(|(_, vector)| vector.writable) {
            for (who, reader) in self.readers.iter().enumerate() {
                if !reader.declares(&format!("read/{}", vector.id)) {
                    let id = format!("exchange/{}/{}", vector.id, reader.name());
                    let says = "what is written is read by every other implementation, bit for bit";
                    let this = id.clone();
                    out.push(Case::of_law("exchange", id, says, move |subject: &Self, _| {
                        subject.holds(at, &this, subject.readers[who].implementation())
                    }));
                }
            }
        }
        out
    }
}

impl Subject for Exchange {
    fn name(&self) -> String {
        self.writer.name()
    }

    fn unsupported(&self) -> &[String] {
        self.writer.unsupported()
    }
}

impl From<Exchange> for Suite {
    fn from(exchange: Exchange) -> Self {
        let cases = exchange.cases();
        Self::new(Arc::new(exchange), cases)
    }
}
