//! Which requests to make for several ranges of one value.

use zarr_store_api::{ByteRange, Bytes, StoreError, StoreErrorKind};

/// The requests, and where in their answers each range is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) requests: Vec<ByteRange>,
    /// For each range the request it is part of.
    request_of: Vec<usize>,
}

/// Joins bounded ranges that lie at most `gap` bytes apart.
pub(super) fn join(ranges: &[ByteRange], gap: u64) -> Plan {
    let mut plan = Plan { requests: Vec::new(), request_of: vec![0; ranges.len()] };
    let mut bounded = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        match *range {
            ByteRange::Bounded { start, end } if start < end => bounded.push((start, end, index)),
            // Where these lie is not known yet, or they need no request, or are in error.
            other => {
                plan.request_of[index] = plan.requests.len();
                plan.requests.push(other);
            }
        }
    }
    bounded.sort_unstable();
    let mut joined: Option<(u64, u64)> = None;
    for (start, end, index) in bounded {
        joined = match joined {
            Some((first, last)) if start <= last.saturating_add(gap) => Some((first, last.max(end))),
            _ => {
                plan.requests.push(ByteRange::All);
                Some((start, end))
            }
        };
        let at = plan.requests.len() - 1;
        plan.request_of[index] = at;
        if let Some((start, end)) = joined {
            plan.requests[at] = ByteRange::Bounded { start, end };
        }
    }
    plan
}

impl Plan {
    /// The bytes of one of the ranges, out of the answers.
    pub(super) fn part(&self, index: usize, range: ByteRange, answers: &[Bytes]) -> Result<Bytes, StoreError> {
        let request = self.request_of[index];
        let answer = &answers[request];
        match (self.requests[request], range) {
            (ByteRange::Bounded { start: first, .. }, ByteRange::Bounded { start, end }) => {
                // The value may end before the request does.
                let have = answer.len() as u64;
                let from = start - first;
                if from > have {
                    let size = first + have;
                    return Err(StoreError::new(StoreErrorKind::OutOfRange, format!("the value has only {size} bytes")).with_range(range));
                }
                let to = (end - first).min(have);
                Ok(answer.slice(from as usize..to as usize))
            }
            _ => Ok(answer.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let ranges: Vec<ByteRange> =
            vec![(100..200).into(), ByteRange::Suffix(5), (0..10).into(), (12..20).into(), (150..160).into(), (7..7).into()];
        let plan = join(&ranges, 2);
        let requests: [ByteRange; 4] = [ByteRange::Suffix(5), (7..7).into(), (0..20).into(), (100..200).into()];
        assert_eq!(plan.requests, requests);
        assert_eq!(plan.request_of, [3, 0, 2, 2, 3, 1]);

        let value = Bytes::from((0..170).collect::<Vec<u8>>());
        let answers: Vec<Bytes> = requests.iter().map(|range| crate::bytes_of(&value, *range).unwrap()).collect();
        for (index, range) in ranges.iter().enumerate() {
            let part = plan.part(index, *range, &answers).unwrap();
            assert_eq!(part, crate::bytes_of(&value, *range).unwrap(), "{range}");
        }
    }

    #[test]
    fn a_range_past_the_end_does_not_hide_behind_its_neighbour() {
        let ranges: Vec<ByteRange> = vec![(0..10).into(), (60..70).into()];
        let plan = join(&ranges, 1000);
        assert_eq!(plan.requests, [(0..70).into()]);
        let answers = [Bytes::from(vec![0; 50])];
        assert_eq!(plan.part(0, ranges[0], &answers).unwrap().len(), 10);
        let error = plan.part(1, ranges[1], &answers).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::OutOfRange);
    }
}
