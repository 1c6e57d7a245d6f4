//! How much an async read has under way at a time.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Options;

/// Lets requests through, in the order in which they came, as long as there are not too many of them, nor too many bytes of answers that nobody has decoded.
///
/// Of one read, or of several that are polled together: whoever waits here waits for the others, who must be polled meanwhile, and who must not wait here again with a
/// [`Pass`] in hand.
#[derive(Debug)]
pub(crate) struct Gate {
    requests: usize,
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: u32,
    /// Under way.
    requests: usize,
    /// Of requests under way, and of answers at hand.
    bytes: usize,
    last: u64,
    /// Who waits, by when they came.
    waiting: BTreeMap<u64, Waker>,
}

impl State {
    /// Wakes whoever is next.
    fn wake(&self) {
        if let Some((_, waker)) = self.waiting.first_key_value() {
            waker.wake_by_ref();
        }
    }
}

impl Gate {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self { requests: options.concurrency.max(1), bytes: options.in_flight_bytes.max(1), state: Mutex::default() })
    }

    /// Requests that go through at a time.
    pub(crate) fn requests(&self) -> usize {
        self.requests
    }

    /// Bytes of their answers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Waits for room for so many requests, and for answers of so many bytes; `None`: nobody knows. What is too much for the gate goes through alone.
    pub(crate) fn enter(self: &Arc<Self>, requests: usize, bytes: Option<usize>) -> Enter {
        let bytes = bytes.unwrap_or(self.bytes / self.requests).min(self.bytes);
        Enter { gate: Arc::clone(self), requests: requests.clamp(1, self.requests), bytes, place: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if state.process != process {
            // What was under way when this process was forked never ends here.
            *state = State { process, last: state.last, ..State::default() };
        }
        state
    }
}

/// Waits at a [`Gate`].
pub(crate) struct Enter {
    gate: Arc<Gate>,
    requests: usize,
    bytes: usize,
    place: Option<u64>,
}

impl Future for Enter {
    type Output = Pass;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pass> {
        let gate = Arc::clone(&self.gate);
        let mut state = gate.state();
        let place = *self.place.get_or_insert_with(|| {
            state.last += 1;
            state.last
        });
        let is_next = state.waiting.keys().next().is_none_or(|&first| first >= place);
        if is_next && state.requests + self.requests <= gate.requests && state.bytes + self.bytes <= gate.bytes {
            state.requests += self.requests;
            state.bytes += self.bytes;
            state.waiting.remove(&place);
            state.wake();
            drop(state);
            self.place = None;
            return Poll::Ready(Pass { gate, requests: self.requests, bytes: self.bytes });
        }
        state.waiting.insert(place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut state = self.gate.state();
            state.waiting.remove(&place);
            state.wake();
        }
    }
}

/// Room for a request, and for its answer until that is decoded.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    requests: usize,
    bytes: usize,
}

impl Pass {
    /// Gives the room of the request back, and takes as much for the answer as it has bytes.
    pub(crate) fn answered(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        self.gate.state().bytes += more;
        self.give_back(self.requests, self.bytes - bytes);
    }

    fn give_back(&mut self, requests: usize, bytes: usize) {
        self.requests -= requests;
        self.bytes -= bytes;
        let mut state = self.gate.state();
        // Those of before a fork do not count.
        state.requests = state.requests.saturating_sub(requests);
        state.bytes = state.bytes.saturating_sub(bytes);
        state.wake();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.give_back(self.requests, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use zarr_codec_api::Registry;

    use super::*;

    fn gate(requests: usize, bytes: usize) -> Arc<Gate> {
        Gate::new(&Options::new(Registry::new()).with_concurrency(requests).with_in_flight_bytes(bytes))
    }

    #[test]
    fn lets_through_what_there_is_room_for() {
        let gate = gate(2, 100);
        let enter = |bytes| gate.enter(1, Some(bytes));
        let mut first = enter(60).now_or_never().unwrap();
        let second = enter(40).now_or_never().unwrap();
        let mut third = Box::pin(enter(10));
        let mut fourth = Box::pin(enter(1));
        assert!(third.as_mut().now_or_never().is_none());
        // Behind the third, though there would be bytes for it.
        assert!(fourth.as_mut().now_or_never().is_none());
        // The answer is shorter than it was taken to be.
        first.answered(50);
        assert!(fourth.as_mut().now_or_never().is_none());
        let third = third.as_mut().now_or_never().unwrap();
        assert!(fourth.as_mut().now_or_never().is_none());
        drop(second);
        let fourth = fourth.as_mut().now_or_never().unwrap();
        drop((first, third, fourth));
        let state = gate.state();
        assert_eq!((state.requests, state.bytes, state.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_too_much_goes_alone() {
        let gate = gate(4, 100);
        let first = gate.enter(1, Some(1)).now_or_never().unwrap();
        let mut large = Box::pin(gate.enter(9, Some(1000)));
        assert!(large.as_mut().now_or_never().is_none());
        drop(first);
        let large = large.as_mut().now_or_never().unwrap();
        assert!(gate.enter(1, Some(0)).now_or_never().is_none());
        drop(large);
        assert!(gate.enter(4, Some(100)).now_or_never().is_some());
    }

    #[test]
    fn who_goes_away_does_not_block_the_others() {
        let gate = gate(1, 100);
        let first = gate.enter(1, Some(1)).now_or_never().unwrap();
        let mut second = Box::pin(gate.enter(1, Some(1)));
        let mut third = Box::pin(gate.enter(1, Some(1)));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(second);
        drop(first);
        assert!(third.as_mut().now_or_never().is_some());
        assert!(gate.state().waiting.is_empty());
    }

    #[test]
    fn answers_longer_than_expected_count() {
        let gate = gate(4, 100);
        let mut first = gate.enter(1, None).now_or_never().unwrap();
        assert_eq!(gate.state().bytes, 25);
        first.answered(150);
        let mut second = Box::pin(gate.enter(1, Some(1)));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.as_mut().now_or_never().is_some());
    }
}
