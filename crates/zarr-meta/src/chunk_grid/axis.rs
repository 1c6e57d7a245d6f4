//! One axis of a rectilinear grid.

/// How chunks divide one axis of a rectilinear grid.
///
/// Runs of equal chunks are kept as runs, so the size does not grow with the number of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridAxis(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Step(u64),
    Edges(Vec<Run>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    length: u64,
    count: u64,
    /// The index of the first chunk of the run.
    first: u64,
    /// Where that chunk starts.
    start: u64,
}

impl GridAxis {
    /// Chunks of one length, as many as the array needs. `None` if the length is 0.
    pub fn step(length: u64) -> Option<Self> {
        (length > 0).then_some(Self(Kind::Step(length)))
    }

    /// Chunks of the given lengths, as pairs of a length and how often it comes in a row. `None`
    /// if a length or count is 0, or the end of the last chunk exceeds `u64`.
    pub fn runs(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut all: Vec<Run> = Vec::new();
        let (mut first, mut start) = (0u64, 0u64);
        for (length, count) in runs {
            if length == 0 || count == 0 {
                return None;
            }
            match all.last_mut() {
                Some(last) if last.length == length => last.count = last.count.checked_add(count)?,
                _ => all.push(Run { length, count, first, start }),
            }
            first = first.checked_add(count)?;
            start = start.checked_add(length.checked_mul(count)?)?;
        }
        Some(Self(Kind::Edges(all)))
    }

    /// Chunks of the given lengths. `None` as for [`runs`](Self::runs).
    pub fn edges(lengths: impl IntoIterator<Item = u64>) -> Option<Self> {
        Self::runs(lengths.into_iter().map(|length| (length, 1)))
    }

    /// The length of all chunks, if the axis was given as one length.
    pub fn as_step(&self) -> Option<u64> {
        match self.0 {
            Kind::Step(length) => Some(length),
            Kind::Edges(_) => None,
        }
    }

    /// The lengths as pairs of a length and how often it comes in a row, neighbours of equal length
    /// joined. Empty for an axis given as one length.
    pub fn as_runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let runs: &[Run] = match &self.0 {
            Kind::Step(_) => &[],
            Kind::Edges(runs) => runs,
        };
        runs.iter().map(|run| (run.length, run.count))
    }

    pub(super) fn uniform(&self) -> Option<u64> {
        match &self.0 {
            Kind::Step(length) => Some(*length),
            Kind::Edges(runs) => match runs.as_slice() {
                [run] => Some(run.length),
                _ => None,
            },
        }
    }

    pub(super) fn origin(&self, index: u64) -> u64 {
        match &self.0 {
            Kind::Step(length) => length.saturating_mul(index),
            Kind::Edges(runs) => run_before(runs, |run| run.first, index).map_or(0, |run| {
                let within = index.saturating_sub(run.first).min(run.count);
                run.start.saturating_add(run.length.saturating_mul(within))
            }),
        }
    }

    pub(super) fn length(&self, index: u64) -> u64 {
        match &self.0 {
            Kind::Step(length) => *length,
            Kind::Edges(runs) => run_before(runs, |run| run.first, index)
                .filter(|run| index.saturating_sub(run.first) < run.count)
                .map_or(0, |run| run.length),
        }
    }

    pub(super) fn locate(&self, element: u64) -> Option<(u64, u64)> {
        match &self.0 {
            Kind::Step(length) => Some((element.checked_div(*length)?, element.checked_rem(*length)?)),
            Kind::Edges(runs) => {
                let run = run_before(runs, |run| run.start, element)?;
                let within = element.checked_sub(run.start)?;
                let chunk = within.checked_div(run.length)?;
                (chunk < run.count).then_some(())?;
                Some((run.first.checked_add(chunk)?, within.checked_rem(run.length)?))
            }
        }
    }
}

/// The last run whose key does not exceed `at`.
fn run_before(runs: &[Run], key: impl Fn(&Run) -> u64, at: u64) -> Option<&Run> {
    let after = runs.partition_point(|run| key(run) <= at);
    runs.get(after.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_agrees_with_counting() {
        let lengths = [4, 4, 1, 1, 1, 7, 4, 2, 2];
        let Some(axis) = GridAxis::edges(lengths) else { panic!("no axis") };
        assert_eq!(axis.as_runs().collect::<Vec<_>>(), [(4, 2), (1, 3), (7, 1), (4, 1), (2, 2)]);
        let mut element = 0;
        for (index, length) in (0u64..).zip(lengths) {
            assert_eq!(axis.origin(index), element);
            assert_eq!(axis.length(index), length);
            for offset in 0..length {
                assert_eq!(axis.locate(element), Some((index, offset)));
                element += 1;
            }
        }
        assert_eq!(axis.locate(element), None);
        assert_eq!(axis.origin(9), element);
        assert_eq!(axis.origin(u64::MAX), element);
        assert_eq!(axis.length(9), 0);
    }

    #[test]
    fn long_runs_take_no_space() {
        let Some(axis) = GridAxis::runs([(3, 1 << 60)]) else { panic!("no axis") };
        assert_eq!(axis.locate(3 * (1 << 60) - 1), Some(((1 << 60) - 1, 2)));
        assert_eq!(axis.locate(3 * (1 << 60)), None);
    }

    #[test]
    fn lengths_of_zero_and_overflows_are_refused() {
        assert_eq!(GridAxis::edges([1, 0]), None);
        assert_eq!(GridAxis::runs([(1, 0)]), None);
        assert_eq!(GridAxis::step(0), None);
        assert_eq!(GridAxis::runs([(u64::MAX, 2)]), None);
        assert_eq!(GridAxis::runs([(u64::MAX, 1), (1, 1)]), None);
    }
}
