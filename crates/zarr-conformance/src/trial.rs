use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::feed;
use crate::samples::Random;

/// How cases are run: what they draw at random, how long they may take, and who is told what they are about to do. The same seed draws the same
/// again.
#[derive(Debug, Clone)]
pub struct Trial {
    seed: u64,
    time_limit: Duration,
    guard_pages: bool,
    journal: Option<Arc<dyn Journal>>,
}

impl Default for Trial {
    /// Draws from 0, and gives each case two minutes: many times what a slow machine takes for one.
    fn default() -> Self {
        Self { seed: 0, time_limit: Duration::from_secs(120), guard_pages: false, journal: None }
    }
}

/// Is told what a subject is about to be given, so that it is known should the subject take the process down.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Keeps `bytes`, in the place of what was kept before. [`items`](crate::items) takes a batch apart.
    fn input(&self, bytes: &[u8]);
}

impl Trial {
    /// Draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// How long one case of a [`crate::Suite`] may take; longer is a failure.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// How long one case may take.
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Tells `journal` of inputs.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Lets bad input of codecs on the host end where a page ends, with one behind it that cannot be read: who reads on takes the process down. For
    /// those who run subjects in processes of their own. On Unix, with the feature `guard-pages`; elsewhere the input is an allocation of just its
    /// size.
    #[must_use]
    pub fn with_guard_pages(mut self) -> Self {
        self.guard_pages = true;
        self
    }

    /// Whether [`Trial::with_guard_pages`] was asked for.
    pub fn guard_pages(&self) -> bool {
        self.guard_pages
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

    /// Says that the subject is about to be given a batch.
    pub(crate) fn batch(&self, items: &[&[u8]]) {
        if let Some(journal) = &self.journal {
            journal.input(&feed::batch(items));
        }
    }
}
