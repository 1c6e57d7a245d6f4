use std::fmt;
use std::sync::Arc;

type Covers = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Encoded bytes that one of two implementations is known to accept, and the other to refuse.
///
/// A pair that declares it is held to it: the laws fail when the two agree on the bytes, so that a declaration goes when the divergence does. Of bytes made
/// bad at random, those that the declaration covers may part the two in the same way, and in no other.
#[derive(Clone)]
pub struct Divergence {
    name: String,
    input: Vec<u8>,
    accepted_by: String,
    reason: String,
    citation: String,
    covers: Option<Covers>,
}

impl Divergence {
    /// `input` is accepted by the implementation whose provider has the name `accepted_by`, and refused by the other. `reason`: what about it;
    /// `citation`: where it is written who is right, or that each may be.
    pub fn new(
        name: impl Into<String>,
        input: Vec<u8>,
        accepted_by: impl Into<String>,
        reason: impl Into<String>,
        citation: impl Into<String>,
    ) -> Self {
        let (name, accepted_by, reason, citation) = (name.into(), accepted_by.into(), reason.into(), citation.into());
        Self { name, input, accepted_by, reason, citation, covers: None }
    }

    /// Says of which other bytes the same is known. Without it, of none.
    #[must_use]
    pub fn wherever(mut self, covers: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.covers = Some(Arc::new(covers));
        self
    }

    /// What a report calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes that show it.
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// The name of the provider that accepts them.
    pub fn accepted_by(&self) -> &str {
        &self.accepted_by
    }

    /// What parts the two, and who says what is right.
    pub fn reason(&self) -> String {
        format!("{} ({})", self.reason, self.citation)
    }

    /// Whether the same is known of `bytes`.
    pub fn covers(&self, bytes: &[u8]) -> bool {
        self.covers.as_ref().map_or(bytes == self.input, |covers| covers(bytes))
    }
}

impl fmt::Debug for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} accepts {:02x?}, {}", self.name, self.accepted_by, self.input, self.reason())
    }
}
