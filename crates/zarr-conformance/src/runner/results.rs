//! What came of a run; as JSON, the report for programs.
//!
//! The JSON report is an object with the fields of [`Results`], under `"schema": "zarr-conformance/1"`. Fields may be added under that name;
//! one that changes or goes makes it `/2`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The schema of the JSON report.
pub(crate) const SCHEMA: &str = "zarr-conformance/1";

/// A whole run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// The version of this program.
    pub(crate) version: String,
    pub(crate) machine: Machine,
    /// The arguments of the run.
    pub(crate) arguments: Vec<String>,
    pub(crate) seed: u64,
    /// When the run began, in seconds since 1970, UTC.
    pub(crate) started: u64,
    /// How long it took.
    pub(crate) seconds: f64,
    /// Of all cases.
    pub(crate) summary: Summary,
    /// Ids of laws, and the laws in a sentence.
    pub(crate) laws: BTreeMap<String, String>,
    pub(crate) subjects: Vec<SubjectResult>,
}

/// Where it ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) os: String,
    pub(crate) arch: String,
    /// Processors that the run could use.
    pub(crate) cpus: usize,
    /// CUDA devices, with their drivers; where none is, why.
    pub(crate) cuda: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let cuda = match zarr_buffer_cuda::devices() {
            Ok(found) if found.is_empty() => "the driver finds no device".to_owned(),
            Ok(found) => {
                let driver = zarr_buffer_cuda::driver_version().map(|version| format!(", driver for CUDA {version:?}")).unwrap_or_default();
                found.iter().map(|device| format!("{}{driver}", device.name)).collect::<Vec<_>>().join("; ")
            }
            Err(error) => error.to_string(),
        };
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cuda,
        }
    }
}

/// Numbers of cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) unsupported: usize,
    /// Subjects that could not be had on this machine.
    pub(crate) subjects_skipped: usize,
}

impl Summary {
    pub(crate) fn of<'a>(subjects: impl IntoIterator<Item = &'a SubjectResult>) -> Self {
        let mut summary = Self::default();
        for subject in subjects {
            summary.subjects_skipped += usize::from(subject.skipped.is_some());
            for case in &subject.cases {
                match case.outcome {
                    Verdict::Pass => summary.passed += 1,
                    Verdict::Fail => summary.failed += 1,
                    Verdict::Unsupported => summary.unsupported += 1,
                }
            }
        }
        summary
    }

    pub(crate) fn cases(&self) -> usize {
        self.passed + self.failed + self.unsupported
    }
}

/// One subject and its cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SubjectResult {
    /// The same from version to version.
    pub(crate) name: String,
    /// What it calls itself; empty where it could not be had.
    pub(crate) about: String,
    /// Its place in the matrix.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) place: Option<Place>,
    /// Why no case ran, where the machine lacks what it needs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) skipped: Option<String>,
    /// Of all cases, and of what stands around them.
    pub(crate) seconds: f64,
    pub(crate) cases: Vec<CaseResult>,
}

/// A place in the matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) implementation: String,
    pub(crate) codec: String,
    /// The name of the data type; `any` where the codec does not look at elements.
    pub(crate) data_type: String,
}

impl Place {
    pub(crate) fn new(implementation: impl Into<String>, codec: impl Into<String>, data_type: impl Into<String>) -> Self {
        Self { implementation: implementation.into(), codec: codec.into(), data_type: data_type.into() }
    }
}

/// One case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CaseResult {
    /// The same from version to version; unique within a subject.
    pub(crate) id: String,
    /// Whose sentence is in [`Results::laws`].
    pub(crate) law: String,
    pub(crate) outcome: Verdict,
    /// Of a failure or of what is unsupported.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) message: String,
    pub(crate) seconds: f64,
    /// Its place in the matrix, where it is not that of its subject.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) place: Option<Place>,
    /// What the subject was given last, of a failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) input: Option<Input>,
    /// The command that runs a failure again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) replay: Option<String>,
}

/// How a case went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Unsupported,
}

/// What a subject was given last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Input {
    /// Where it was saved.
    pub(crate) file: String,
    /// How many bytes it has.
    pub(crate) bytes: usize,
    /// The first of them, in hexadecimal.
    pub(crate) hex: String,
    /// The command that gives the subject these bytes alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) replay: Option<String>,
}

impl Input {
    /// Bytes that a report shows.
    const SHOWN: usize = 1024;

    pub(crate) fn new(file: String, bytes: &[u8]) -> Self {
        let hex = bytes.iter().take(Self::SHOWN).map(|byte| format!("{byte:02x}")).collect();
        Self { file, bytes: bytes.len(), hex, replay: None }
    }
}

impl SubjectResult {
    /// The place of one of its cases.
    pub(crate) fn place_of<'a>(&'a self, case: &'a CaseResult) -> Option<&'a Place> {
        case.place.as_ref().or(self.place.as_ref())
    }
}

impl Results {
    /// Subjects and their cases that failed.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&SubjectResult, &CaseResult)> {
        let failed = |case: &&CaseResult| case.outcome == Verdict::Fail;
        self.subjects.iter().flat_map(move |subject| subject.cases.iter().filter(failed).map(move |case| (subject, case)))
    }
}
