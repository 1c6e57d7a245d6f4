//! Measuring a read, as a whole and its stages apart.

mod cold;
mod stages;
mod timed;

use std::time::{Duration, Instant};

use zarr::{Array, ArrayError, Selection};

use crate::device::{Place, read_to};
use crate::slabs::read_fixed;

pub(crate) use cold::evict;
pub(crate) use stages::{Stages, stages};

/// Times of the same work, done several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Does something as often as is asked, and notes how long it says it took.
    pub(crate) fn of<E>(runs: usize, mut work: impl FnMut() -> Result<Duration, E>) -> Result<Self, E> {
        (0..runs).map(|_| work()).collect::<Result<_, E>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The one in the middle; the later of two. Zero when there is none.
    pub(crate) fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    pub(crate) fn least(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    pub(crate) fn most(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.0.iter().map(Duration::as_secs_f64).collect()
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}

/// Reads every piece once, into memory of the place, and says how long that took. On the CPU, `memory` is used again from read to read.
pub(crate) fn read(array: &Array, pieces: &[Selection], place: &Place, memory: &mut Vec<u8>) -> Result<Duration, ArrayError> {
    let mut time = Duration::ZERO;
    for piece in pieces {
        time += match place.target_for(array) {
            Some(target) => read_to(array, piece, target)?.1,
            None => {
                let start = Instant::now();
                *memory = read_fixed(array, piece, std::mem::take(memory))?;
                start.elapsed()
            }
        };
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_time_that_was_measured() {
        let times: Times = [5, 1, 9, 3].map(Duration::from_secs).into_iter().collect();
        assert_eq!((times.least(), times.median(), times.most()), (Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(9)));
        assert_eq!(Times::default().median(), Duration::ZERO);
    }
}
