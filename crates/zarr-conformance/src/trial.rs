use std::fmt;
use std::sync::Arc;

use crate::samples::Random;

/// How cases are run: what they draw at random, and who is told what they are about to do. The same seed draws the same again.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    seed: u64,
    journal: Option<Arc<dyn Journal>>,
}

/// Is told what a subject is about to be given, so that it is known should the subject take the process down.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Keeps `bytes`, in the place of what was kept before.
    fn input(&self, bytes: &[u8]);
}

impl Trial {
    /// Draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, journal: None }
    }

    /// Tells `journal` of inputs.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// What is drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Numbers for one purpose within a case: other ones for another `purpose`.
    pub(crate) fn random(&self, purpose: u64) -> Random {
        Random::new(self.seed.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(purpose))
    }

    /// Says that the subject is about to be given `bytes`.
    pub(crate) fn input(&self, bytes: &[u8]) {
        if let Some(journal) = &self.journal {
            journal.input(bytes);
        }
    }
}
