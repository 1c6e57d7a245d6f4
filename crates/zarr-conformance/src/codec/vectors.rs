//! The law of encoded chunks that reference implementations made: a codec is the one that its name says, and not only its own inverse.
//!
//! ```
//! use std::sync::Arc;
//! use zarr_conformance::codec::vectors::VectorsUnderTest;
//! # let provider = zarr_codecs_cpu::provider();
//!
//! zarr_conformance::assert_conforms(VectorsUnderTest::of(Arc::new(provider), "zstd")?);
//! # Ok::<(), zarr_conformance::vectors::VectorError>(())
//! ```

use std::fmt;
use std::sync::Arc;

use zarr_codec_api::{CodecProvider, Representation};

use super::CodecUnderTest;
use super::bound::Codec;
use crate::Sample;
use crate::suite::{Broken, Case, Subject, Suite, ensure_same};
use crate::vectors::{ChunkVector, VectorError, Verdict, directory, load_chunks};

/// A codec, and encoded chunks for it.
#[derive(Clone)]
pub struct VectorsUnderTest {
    provider: Arc<dyn CodecProvider>,
    vectors: Vec<ChunkVector>,
    unsupported: Vec<String>,
}

impl VectorsUnderTest {
    /// The codecs of `provider`, over these vectors; on big-endian machines, over those that are not of arrays.
    pub fn new(provider: Arc<dyn CodecProvider>, mut vectors: Vec<ChunkVector>) -> Self {
        vectors.retain(|vector| cfg!(target_endian = "little") || matches!(vector.decoded, Representation::Bytes(_)));
        Self { provider, vectors, unsupported: Vec::new() }
    }

    /// The codec of that name, as metadata have it, over all vectors for it that are in [`directory`].
    ///
    /// # Errors
    /// As [`load_chunks`].
    pub fn of(provider: Arc<dyn CodecProvider>, codec: &str) -> Result<Self, VectorError> {
        let vectors = load_chunks(&directory())?;
        Ok(Self::new(provider, vectors.into_iter().filter(|vector| vector.codec.name == codec).collect()))
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl fmt::Debug for VectorsUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vectors for {}", self.vectors.len(), self.provider.name())
    }
}

impl Subject for VectorsUnderTest {
    fn name(&self) -> String {
        format!("{} over {} chunks of others", self.provider.name(), self.vectors.len())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl From<VectorsUnderTest> for Suite {
    fn from(subject: VectorsUnderTest) -> Self {
        let cases = subject.vectors.iter().cloned().map(case).collect();
        Self::new(Arc::new(subject), cases)
    }
}

/// The law; the ids of its cases are `vectors/` and those of the vectors.
const LAW: &str = "vectors";

fn case(vector: ChunkVector) -> Case<VectorsUnderTest> {
    let says = "what reference implementations encoded decodes to what it was, and bytes that must be refused are";
    Case::of_law(LAW, format!("{LAW}/{}", vector.id), says, move |subject: &VectorsUnderTest, _| holds(&subject.provider, &vector))
}

fn holds(provider: &Arc<dyn CodecProvider>, vector: &ChunkVector) -> Result<(), Broken> {
    let about = format!("{}, by {}; {}", vector.says, vector.made_by, vector.cite);
    let subject = CodecUnderTest::new(Arc::clone(provider), vector.codec.clone(), vector.decoded.clone());
    match (Codec::of(&subject)?.decode(&vector.encoded), vector.verdict, &vector.expected) {
        (Ok(Sample::Bytes(decoded)), Verdict::MustAccept | Verdict::May, Some(expected)) => ensure_same(&about, &decoded, expected),
        (Ok(_), Verdict::MustReject, _) => Err(Broken::Failed(format!("is accepted, and must not be: {about}"))),
        (Err(error), Verdict::MustAccept, _) => Err(Broken::Failed(format!("is refused: {error}: {about}"))),
        _ => Ok(()),
    }
}
