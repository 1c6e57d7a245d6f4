//! The laws of one implementation.

use std::ops::Range;

use super::{Implementation, ImplementationUnderTest, ReadJob, Trouble, WriteJob};
use crate::suite::{Broken, Case, Trial, ensure, ensure_same};
use crate::vectors::{Vector, Verdict, part, split};

const VALUES: &str = "read/must-accept";
const REFUSALS: &str = "read/must-reject";
const CHOICES: &str = "read/may";
const PARTS: &str = "part";
const WRITES: &str = "write";

/// All cases of an implementation, over `vectors`.
pub fn cases(vectors: &[Vector]) -> Vec<Case<ImplementationUnderTest>> {
    let mut out = Vec::new();
    for (at, vector) in vectors.iter().enumerate() {
        let id = format!("read/{}", vector.id);
        out.push(match vector.verdict {
            Verdict::MustAccept => {
                Case::of_law(VALUES, id, "valid arrays are read, bit for bit", move |subject: &ImplementationUnderTest, _| {
                    must_accept(subject, &subject.vectors[at])
                })
            }
            Verdict::MustReject => {
                Case::of_law(REFUSALS, id, "what has no meaning is refused", move |subject: &ImplementationUnderTest, _| {
                    must_reject(subject, &subject.vectors[at])
                })
            }
            Verdict::May => Case::of_law(
                CHOICES,
                id,
                "what may be refused is refused, or read as meant",
                move |subject: &ImplementationUnderTest, _| may(subject, &subject.vectors[at]),
            ),
        });
    }
    for (at, vector) in vectors.iter().enumerate() {
        if vector.verdict == Verdict::MustAccept && vector.shape.iter().product::<u64>() > 1 {
            let id = format!("part/{}", vector.id);
            out.push(Case::of_law(PARTS, id, "a box of an array holds what that box of the whole holds", move |subject, trial| {
                parts(subject, &subject.vectors[at], trial)
            }));
        }
    }
    for (at, vector) in vectors.iter().enumerate() {
        if vector.writable {
            let id = format!("write/{}", vector.id);
            out.push(Case::of_law(
                WRITES,
                id,
                "what is written is read by the reference implementation, bit for bit",
                move |subject, _| writes(subject, &subject.vectors[at]),
            ));
        }
    }
    out
}

fn whole(vector: &Vector) -> ReadJob<'_> {
    ReadJob { store: &vector.store, node: &vector.node, part: None }
}

/// What is expected, or nothing where a vector has no values.
fn expected(vector: &Vector) -> &[u8] {
    vector.expected.as_deref().unwrap_or_default()
}

/// What a failure says besides: an author wants to know what the vector is, and who is right.
fn explain(vector: &Vector, broken: Broken) -> Broken {
    let more = |message: String| format!("{message} [{}; {}]", vector.says, vector.cite);
    match broken {
        Broken::Failed(message) => Broken::Failed(more(message)),
        Broken::Unsupported(message) => Broken::Unsupported(more(message)),
    }
}

fn must_accept(subject: &ImplementationUnderTest, vector: &Vector) -> Result<(), Broken> {
    let read = subject.implementation.read(&whole(vector)).map_err(Broken::from);
    read.and_then(|bytes| ensure_same("the array", &bytes, expected(vector))).map_err(|broken| explain(vector, broken))
}

fn must_reject(subject: &ImplementationUnderTest, vector: &Vector) -> Result<(), Broken> {
    match subject.implementation.read(&whole(vector)) {
        Ok(bytes) => Err(explain(vector, Broken::Failed(format!("accepted, and read as {}", shown(&bytes))))),
        Err(trouble) => refusal(subject, vector, trouble),
    }
}

fn may(subject: &ImplementationUnderTest, vector: &Vector) -> Result<(), Broken> {
    match (subject.implementation.read(&whole(vector)), &vector.expected) {
        (Ok(bytes), Some(expected)) => ensure_same("the array", &bytes, expected).map_err(|broken| explain(vector, broken)),
        (Ok(_), None) => Ok(()),
        (Err(trouble), _) => refusal(subject, vector, trouble),
    }
}

/// A refusal is right, but it proves nothing where all of its kind is refused.
fn refusal(subject: &ImplementationUnderTest, vector: &Vector, trouble: Trouble) -> Result<(), Broken> {
    match trouble {
        Trouble::Refused(message) if subject.declares(&format!("read/{}", vector.id)) => Err(Broken::Unsupported(message)),
        Trouble::Refused(_) => Ok(()),
        Trouble::Broke(message) => Err(explain(vector, Broken::Failed(message))),
    }
}

fn shown(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 16 { format!("{hex}.. ({} bytes)", bytes.len()) } else { hex }
}

fn parts(subject: &ImplementationUnderTest, vector: &Vector, trial: &Trial) -> Result<(), Broken> {
    let elements = split(expected(vector), vector.element).ok_or_else(|| Broken::Failed("the vector is inconsistent".into()))?;
    for ranges in boxes(&vector.shape, trial) {
        let wanted = part(&elements, &vector.shape, &ranges).ok_or_else(|| Broken::Failed("the box lies outside of the array".into()))?;
        let job = ReadJob { part: Some(&ranges), ..whole(vector) };
        let found = subject.implementation.read(&job).map_err(|trouble| explain(vector, trouble.into()))?;
        ensure_same(&format!("the box {ranges:?}"), &found, &wanted).map_err(|broken| explain(vector, broken))?;
    }
    Ok(())
}

/// The last element, and a box that lies anywhere.
fn boxes(shape: &[u64], trial: &Trial) -> [Vec<Range<u64>>; 2] {
    let mut random = trial.random(7);
    let mut below = |bound: u64| u64::try_from(random.below(usize::try_from(bound).unwrap_or(usize::MAX))).unwrap_or(0);
    let anywhere = shape.iter().map(|&len| {
        let start = below(len);
        start..start + 1 + below(len - start)
    });
    [shape.iter().map(|&len| len - 1..len).collect(), anywhere.collect()]
}

fn writes(subject: &ImplementationUnderTest, vector: &Vector) -> Result<(), Broken> {
    match Written::by(&*subject.implementation, vector) {
        Ok(written) => written.is_read_by(&*subject.reference, vector),
        Err(trouble) => not_written(subject, &format!("write/{}", vector.id), vector, &trouble),
    }
}

/// What need not be read need not be written.
pub(super) fn not_written(subject: &ImplementationUnderTest, id: &str, vector: &Vector, trouble: &Trouble) -> Result<(), Broken> {
    match trouble {
        Trouble::Refused(_) if vector.verdict == Verdict::May && !subject.declares(id) => Ok(()),
        trouble => Err(explain(vector, trouble.clone().into())),
    }
}

/// A store that an implementation wrote; it goes when this goes.
pub(super) struct Written(tempfile::TempDir);

impl Written {
    pub(super) fn by(writer: &dyn Implementation, vector: &Vector) -> Result<Self, Trouble> {
        let folder = tempfile::tempdir().map_err(|error| Trouble::Broke(format!("no folder to write into: {error}")))?;
        let metadata = vector.metadata().map_err(|error| Trouble::Broke(error.to_string()))?;
        let (shape, element, data) = (&vector.shape[..], vector.element, expected(vector));
        writer.write(&WriteJob { store: &folder.path().join("store"), metadata: &metadata, shape, element, data })?;
        Ok(Self(folder))
    }

    pub(super) fn is_read_by(&self, reader: &dyn Implementation, vector: &Vector) -> Result<(), Broken> {
        let store = self.0.path().join("store");
        let name = reader.name();
        ensure!(store.is_dir(), "wrote nothing");
        match reader.read(&ReadJob { store: &store, node: "", part: None }) {
            Ok(found) => ensure_same(&format!("what {name} reads"), &found, expected(vector)).map_err(|broken| explain(vector, broken)),
            Err(Trouble::Refused(_)) if vector.verdict == Verdict::May => Ok(()),
            Err(trouble) => Err(Broken::Failed(format!("what was written {name} {trouble}"))),
        }
    }
}
