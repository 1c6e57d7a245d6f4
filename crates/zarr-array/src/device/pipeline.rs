//! Plan, fetch, upload, decode: who does what, and when.
//!
//! One thread drives. It has threads of the pool make requests and fill batches of staging memory, as many at a time as the budget allows, and enqueues the
//! upload of each as it comes. Chunks that are elements already are uploaded to their places; the others are gathered, and decoded many at a time.
//! Uploads behind the first decoding have a queue of their own, so that they go on while the device decodes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::Poll;

use futures::future::{BoxFuture, Either, poll_fn};
use futures::stream::FuturesOrdered;
use futures::{Stream, StreamExt, stream};
use rayon::ScopeFifo;
use zarr_buffer_api::{Buffer, Queue, Region};
use zarr_store_api::AnyStore;

use super::batch::{ALIGN, Load};
use super::decode::{Gathered, scatter};
use super::fetch::{Batch, Chunk, Fetched, Filled, Memory, Reader, Work, expand};
use super::filling::Filling;
use super::observe::Stage;
use super::ring::Ring;
use super::scatter::{Scatter, take_runs};
use super::{Crossings, DeviceTarget, Verdicts};
use crate::gate::Gate;
use crate::plan::{ChunkNode, Plan};
use crate::read::{fetch_gated, is_replaced, read_again};
use crate::{Array, ArrayError};

/// Bytes of a batch that one thread fetches, or a third of the staging memory if that is less: many are filled while others are uploaded.
const BATCH: usize = 2 << 20;
/// A read of no more bytes is one batch, which all threads fetch.
const SMALL: usize = 8 << 20;
/// Chunks of the grid whose requests one thread makes in a row, where there are no shard indexes to read.
const ROW: usize = 64;
/// Rows, and batches, that are planned ahead.
const AHEAD: usize = 32;

/// Who does the host's part of a pipeline, and its waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The calling thread, which may block.
    Caller,
    /// The pool: the caller is an async task.
    Pool,
}

pub(super) struct Pipeline {
    reader: Arc<Reader>,
    staging: Ring,
    /// Memory of the device that a store reads to.
    landing: Ring,
    gathered: Gathered,
    /// For uploads beside decoding.
    uploads: Option<Arc<dyn Queue>>,
    crossings: Crossings,
}

/// What a thread of the pool did.
enum Done {
    /// Loads and absent chunks of a row.
    Planned(usize, Result<Row, ArrayError>),
    Fetched(Memory, Result<Filled, ArrayError>),
    /// It panicked: the scope goes on with that.
    Lost,
}

type Row = (Vec<Load>, Vec<ChunkNode>);

/// Answers even if the work panics, so that nobody waits for ever.
struct Reply {
    sender: Sender<Done>,
    sent: bool,
}

impl Reply {
    fn send(mut self, done: Done) {
        self.sent = true;
        // Nobody waits for an answer after an error.
        let _ = self.sender.send(done);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.sent {
            let _ = self.sender.send(Done::Lost);
        }
    }
}

/// What an async store answered for a chunk.
pub(super) enum Answer {
    Absent(ChunkNode),
    Load(Box<Load>, Fetched),
    /// A shard was replaced while it was read. What was answered of it before is written to the output first, and what comes then over that.
    Replaced,
}

/// Asks an async store for a read; it answers in the order of the chunks.
pub(super) fn answers<'a>(array: &'a Array, plan: &'a Plan, gate: Arc<Gate>) -> impl Stream<Item = Result<Answer, ArrayError>> + 'a {
    let asked = Asked {
        array,
        plan,
        gate,
        next: 0,
        replaced: HashMap::new(),
        planned: FuturesOrdered::new(),
        loads: VecDeque::new(),
        answers: FuturesOrdered::new(),
        bytes: 0,
    };
    stream::try_unfold(asked, |mut asked| async move { Ok(asked.next().await?.map(|answer| (answer, asked))) })
}

/// What is under way at an async store. All of it is polled together: an index that nobody polls would keep its room at the gate.
struct Asked<'a> {
    array: &'a Array,
    plan: &'a Plan,
    gate: Arc<Gate>,
    /// The next chunk of the grid to plan.
    next: usize,
    /// How often chunks of the grid were replaced while they were read.
    replaced: HashMap<usize, usize>,
    planned: FuturesOrdered<BoxFuture<'a, (Attempt, Result<Row, ArrayError>)>>,
    /// What nobody has asked for yet.
    loads: VecDeque<(Attempt, Answer)>,
    /// With the bytes that are taken for each.
    answers: FuturesOrdered<BoxFuture<'a, Answered>>,
    /// Of all answers that are under way or wait.
    bytes: usize,
}

/// What came of a request of an attempt, and the bytes that were taken for it.
type Answered = (Attempt, usize, Result<Answer, ArrayError>);

/// A read of a chunk of the grid, after so many others during which it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attempt {
    chunk: usize,
    number: usize,
}

impl<'a> Asked<'a> {
    async fn next(&mut self) -> Result<Option<Answer>, ArrayError> {
        loop {
            self.ask();
            let done = poll_fn(|context| {
                if let Poll::Ready(Some(answer)) = self.answers.poll_next_unpin(context) {
                    return Poll::Ready(Some(Either::Left(answer)));
                }
                match self.planned.poll_next_unpin(context) {
                    Poll::Ready(Some(row)) => Poll::Ready(Some(Either::Right(row))),
                    _ if self.answers.is_empty() && self.planned.is_empty() => Poll::Ready(None),
                    _ => Poll::Pending,
                }
            });
            match done.await {
                None => return Ok(None),
                Some(Either::Left((attempt, bytes, answer))) => {
                    self.bytes = self.bytes.saturating_sub(bytes);
                    match answer {
                        // Of an attempt that was given up.
                        _ if attempt != self.attempt(attempt.chunk) => {}
                        Err(error) if is_replaced(&error) => {
                            self.again(attempt)?;
                            return Ok(Some(Answer::Replaced));
                        }
                        answer => return answer.map(Some),
                    }
                }
                Some(Either::Right((attempt, row))) => match row {
                    Err(error) if is_replaced(&error) => self.again(attempt)?,
                    row => {
                        let (loads, absent) = row?;
                        self.loads.extend(absent.into_iter().map(|node| (attempt, Answer::Absent(node))));
                        self.loads.extend(loads.into_iter().map(|load| (attempt, Answer::Load(Box::new(load), None))));
                    }
                },
            }
        }
    }

    /// The attempt at a chunk of the grid that counts.
    fn attempt(&self, chunk: usize) -> Attempt {
        Attempt { chunk, number: self.replaced.get(&chunk).copied().unwrap_or(0) }
    }

    /// Gives an attempt up, and begins the next one.
    fn again(&mut self, Attempt { chunk, number }: Attempt) -> Result<(), ArrayError> {
        read_again(self.plan, chunk, number + 1)?;
        self.replaced.insert(chunk, number + 1);
        self.loads.retain(|(attempt, _)| attempt.chunk != chunk);
        self.plan_chunk(chunk);
        Ok(())
    }

    fn plan_chunk(&mut self, chunk: usize) {
        let (array, plan, gate, attempt) = (self.array, self.plan, Arc::clone(&self.gate), self.attempt(chunk));
        self.planned.push_back(Box::pin(async move { (attempt, expand(array, plan, chunk, Some(&gate)).await) }));
    }

    /// Whether there is room for an answer. The first one always has some.
    fn has_room(&self, answer: &Answer) -> bool {
        self.answers.is_empty() || self.bytes.saturating_add(room(answer)) <= self.gate.bytes()
    }

    /// Asks for as much as may be under way.
    fn ask(&mut self) {
        let (array, plan, at_once) = (self.array, self.plan, self.gate.requests());
        while self.answers.len() < at_once && self.loads.front().is_some_and(|(_, load)| self.has_room(load)) {
            let Some((attempt, load)) = self.loads.pop_front() else { break };
            let (gate, bytes) = (Arc::clone(&self.gate), room(&load));
            self.bytes = self.bytes.saturating_add(bytes);
            self.answers.push_back(Box::pin(async move {
                let answer = match load {
                    Answer::Load(mut load, _) => {
                        let fetched = fetch_gated(plan, &array.storage, &gate, &mut load.fetch).await;
                        fetched.map(|(fetched, _)| Answer::Load(load, fetched))
                    }
                    other => Ok(other),
                };
                (attempt, bytes, answer)
            }));
        }
        while self.planned.len() < at_once && self.loads.len() < at_once && self.next < plan.chunk_count() {
            self.plan_chunk(self.next);
            self.next += 1;
        }
    }
}

/// Bytes that are reserved for an answer.
fn room(answer: &Answer) -> usize {
    match answer {
        Answer::Load(load, _) => load.room,
        Answer::Absent(_) | Answer::Replaced => 0,
    }
}

impl Pipeline {
    pub(super) fn new(array: &Array, plan: &Arc<Plan>, output: &Buffer, target: &DeviceTarget) -> Result<Self, ArrayError> {
        let reader = Arc::new(Reader::new(array, plan, output, target)?);
        Ok(Self {
            reader,
            staging: Ring::new(target.staging),
            landing: Ring::new(target.staging),
            gathered: Gathered::default(),
            uploads: None,
            crossings: Crossings::default(),
        })
    }

    /// `ahead`: what an async store has answered already.
    pub(super) async fn run(self, host: Host, ahead: Option<Vec<Answer>>) -> Result<(Vec<Verdicts>, Crossings), ArrayError> {
        let done = match (&self.reader.array.storage.0, host) {
            (AnyStore::Blocking(_), Host::Caller) => self.run_blocking()?,
            (AnyStore::Blocking(_), Host::Pool) => {
                let pool = self.reader.array.options().pool.clone();
                pool.compute(move || self.run_blocking()).await?
            }
            (AnyStore::Async(_), _) => self.run_async(host, ahead).await?,
        };
        Ok((done.gathered.verdicts, done.crossings))
    }

    /// Bytes of a batch.
    fn batch_len(&self) -> usize {
        let third = (self.reader.target.staging / 3).max(ALIGN);
        if self.is_lasting() { third.min(BATCH) } else { third }
    }

    /// Whether encoded bytes stay on the device when their batch is reused: only then can several batches be decoded together.
    fn is_lasting(&self) -> bool {
        !self.reader.target.device.is_unified()
    }

    fn run_blocking(mut self) -> Result<Self, ArrayError> {
        let reader = Arc::clone(&self.reader);
        let driven = reader.array.options().pool.scope(|scope| {
            let driven = self.drive(scope, &reader);
            if driven.is_err() {
                reader.failed.store(true, Ordering::Relaxed);
            }
            driven
        });
        driven?;
        self.gathered.decode(&reader)?;
        Ok(self)
    }

    fn drive<'scope>(&mut self, scope: &ScopeFifo<'scope>, reader: &'scope Reader) -> Result<(), ArrayError> {
        let (sender, receiver) = mpsc::channel();
        let reply = || Reply { sender: sender.clone(), sent: false };
        let count = reader.plan.chunk_count();
        let row = if reader.plan.chunks.levels.is_empty() { ROW } else { 1 };
        let rows = count.div_ceil(row);
        let chunks_of = |index: usize| -> Range<usize> { index * row..count.min((index + 1) * row) };
        let batch_len = self.batch_len();

        // Rows: planned by somebody, at hand, put into batches. Those at hand wait for the ones before them.
        let (mut begun, mut taken) = (0, 0);
        let mut at_hand: BTreeMap<usize, Row> = BTreeMap::new();
        let mut filling = Filling::default();
        let mut ready: VecDeque<Batch> = VecDeque::new();
        let mut at_work = 0usize;
        let mut has_begun = false;
        loop {
            while begun < rows && begun < taken + AHEAD {
                let chunks = chunks_of(begun);
                if rows == 1 {
                    at_hand.insert(begun, reader.expand(chunks)?);
                } else {
                    let (reply, index) = (reply(), begun);
                    scope.spawn_fifo(move |_| {
                        let planned = reader.expand(chunks);
                        reply.send(Done::Planned(index, planned));
                    });
                    at_work += 1;
                }
                begun += 1;
            }
            while ready.len() < AHEAD
                && let Some((loads, absent)) = at_hand.remove(&taken)
            {
                taken += 1;
                self.fill(&absent)?;
                ready.extend(loads.into_iter().filter_map(|load| filling.add(reader, batch_len, load, None)));
                if taken == rows {
                    ready.extend(filling.rest());
                    if !has_begun {
                        share_if_small(reader, &mut ready);
                    }
                }
            }
            while let Some(first) = ready.front() {
                let Some(memory) = self.memory_for(first, batch_len)? else { break };
                let Some(batch) = ready.pop_front() else { break };
                has_begun = true;
                let reply = reply();
                scope.spawn_fifo(move |_| {
                    let filled = reader.fetch(batch, &memory);
                    reply.send(Done::Fetched(memory, filled));
                });
                at_work += 1;
            }
            if at_work == 0 {
                if ready.is_empty() && taken == rows {
                    return Ok(());
                }
                if !ready.is_empty() {
                    self.wait_for_memory()?;
                }
                continue;
            }
            at_work -= 1;
            match receive(&receiver)? {
                Done::Planned(index, planned) => drop(at_hand.insert(index, planned?)),
                Done::Fetched(memory, filled) => {
                    let mut filled = filled?;
                    filling.learn(&filled);
                    let rest = std::mem::take(&mut filled.rest);
                    if let Some(largest) = rest.iter().map(|load| load.room).max() {
                        let room = rest.iter().map(|load| load.room).sum::<usize>().min(batch_len).max(largest);
                        ready.push_front(Batch { loads: rest, room, ..Batch::default() });
                    }
                    self.take_in(memory, filled.chunks)?;
                }
                Done::Lost => return Err(ArrayError::parameter("a thread of the pool panicked")),
            }
        }
    }

    async fn run_async(mut self, host: Host, ahead: Option<Vec<Answer>>) -> Result<Self, ArrayError> {
        let reader = Arc::clone(&self.reader);
        let answers = match ahead {
            Some(answers) => stream::iter(answers).map(Ok).left_stream(),
            None => answers(&reader.array, &reader.plan, reader.array.gate()).right_stream(),
        };
        let mut answers = std::pin::pin!(answers);
        let batch_len = self.batch_len();
        let mut filling = Filling::default();
        while let Some(answer) = answers.next().await {
            match answer? {
                Answer::Absent(node) => self.fill(&[node])?,
                Answer::Replaced => {
                    if let Some(batch) = filling.rest() {
                        self = self.put(batch, batch_len, host).await?;
                    }
                    self.gathered.decode(&reader)?;
                }
                Answer::Load(load, fetched) => {
                    if let Some(batch) = filling.add(&reader, batch_len, *load, Some(fetched)) {
                        self = self.put(batch, batch_len, host).await?;
                    }
                }
            }
        }
        if let Some(batch) = filling.rest() {
            self = self.put(batch, batch_len, host).await?;
        }
        self.gathered.decode(&reader)?;
        Ok(self)
    }

    /// Puts a batch that was fetched into staging memory, and takes it from there.
    async fn put(mut self, mut batch: Batch, batch_len: usize, host: Host) -> Result<Self, ArrayError> {
        batch.shared = true;
        let pool = self.reader.array.options().pool.clone();
        let work = move || -> Result<Self, ArrayError> {
            let memory = loop {
                if let Some(memory) = self.memory_for(&batch, batch_len)? {
                    break memory;
                }
                self.wait_for_memory()?;
            };
            let filled = self.reader.fetch(batch, &memory)?;
            self.take_in(memory, filled.chunks)?;
            Ok(self)
        };
        if host == Host::Caller {
            return work();
        }
        pool.compute(work).await
    }

    /// Memory for a batch; `None` while the budget is used up. The host waits here, and only here, for the device to let go of memory.
    fn memory_for(&mut self, batch: &Batch, batch_len: usize) -> Result<Option<Memory>, ArrayError> {
        let target = &self.reader.target;
        if batch.loads.first().is_some_and(|first| self.reader.goes_direct(first)) {
            let buffer = self.landing.take(batch.room, || target.device.allocate(batch.room, &*target.queue))?;
            return Ok(buffer.map(|buffer| Memory::Landing(buffer, Arc::clone(&target.queue))));
        }
        // Buffers of a large read are alike, so that any batch can have any of them.
        let alike = self.reader.plan.chunk_count() > 1 && batch.room * 2 > batch_len;
        let len = whole(if alike { batch.room.max(batch_len) } else { batch.room });
        Ok(self.staging.take(len, || target.device.allocate_staging(len))?.map(Memory::Staging))
    }

    fn wait_for_memory(&self) -> Result<(), ArrayError> {
        self.staging.wait()?;
        Ok(self.landing.wait()?)
    }

    /// Enqueues what is to be done with a batch that was fetched.
    fn take_in(&mut self, memory: Memory, chunks: Vec<Chunk>) -> Result<(), ArrayError> {
        let (mut boxes, mut encoded, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for mut chunk in chunks {
            match &mut chunk.work {
                Work::Fill => absent.push(chunk.node),
                Work::Place(found) => boxes.append(found),
                Work::Decode(_) => encoded.push(chunk),
            }
        }
        self.fill(&absent)?;
        let (device, base) = match &memory {
            Memory::Landing(landing, _) => {
                self.crossings.direct_batches += 1;
                (landing.clone(), 0)
            }
            Memory::Staging(staging) if !self.is_lasting() => (staging.clone(), 0),
            Memory::Staging(staging) => self.upload(staging, &mut boxes, &encoded)?,
        };
        for (from, _) in &mut boxes {
            from.offset -= base;
        }
        let reader = Arc::clone(&self.reader);
        scatter(&reader, boxes.into_iter().map(|(from, to)| Scatter { source: device.clone(), from, to }).collect())?;
        self.gathered.take(&reader, encoded, &device, base)?;
        let direct = matches!(memory, Memory::Landing(..));
        // Memory of a ring holds the next batch soon.
        if direct || !self.is_lasting() || self.gathered.is_due(&reader.target) {
            self.gathered.decode(&reader)?;
        }
        match memory {
            Memory::Landing(landing, _) => self.landing.give(landing),
            Memory::Staging(staging) => self.staging.give(staging),
        }
        Ok(())
    }

    /// Uploads what is in staging memory: elements that lie side by side in the output as well, to their place, and these boxes are taken out; the rest
    /// to memory of the device, of which the first byte is the byte of staging memory that comes with it.
    fn upload(
        &mut self,
        staging: &Buffer,
        boxes: &mut Vec<(zarr_buffer_api::Layout, zarr_buffer_api::Layout)>,
        encoded: &[Chunk],
    ) -> Result<(Buffer, usize), ArrayError> {
        let reader = Arc::clone(&self.reader);
        let target = &reader.target;
        let runs = take_runs(boxes);
        if !runs.is_empty() {
            let bytes = runs.iter().map(|run| run.from.len() as u64).sum();
            let _stage = reader.observe(Stage::Upload, bytes, Some(&target.queue));
            self.crossings.note(runs.len(), bytes);
            for run in runs {
                target.queue.copy(&staging.slice(run.from.clone())?, &reader.output.slice(run.to..run.to + run.from.len())?)?;
            }
        }
        let mut used: Vec<Range<usize>> = Vec::new();
        for (from, _) in boxes.iter() {
            used.push(from.span()?);
        }
        used.extend(encoded.iter().map(|chunk| chunk.bytes.clone()));
        let used = joined(used);
        let (Some(first), Some(last)) = (used.first(), used.last()) else { return Ok((staging.slice(0..0)?, 0)) };
        let base = first.start;
        let queue = self.upload_queue()?;
        let device = target.device.allocate(last.end - base, &*queue)?;
        let bytes = used.iter().map(|range| range.len() as u64).sum();
        let _stage = reader.observe(Stage::Upload, bytes, Some(&queue));
        self.crossings.note(used.len(), bytes);
        for range in used {
            queue.copy(&staging.slice(range.clone())?, &device.slice(range.start - base..range.end - base)?)?;
        }
        Ok((device, base))
    }

    /// The caller's queue until it has something to decode.
    fn upload_queue(&mut self) -> Result<Arc<dyn Queue>, ArrayError> {
        let target = &self.reader.target;
        if !self.gathered.has_begun() {
            return Ok(Arc::clone(&target.queue));
        }
        if let Some(queue) = &self.uploads {
            return Ok(Arc::clone(queue));
        }
        let queue = target.device.create_queue()?;
        self.uploads = Some(Arc::clone(&queue));
        Ok(queue)
    }

    /// Enqueues the fill value for absent chunks.
    fn fill(&self, absent: &[ChunkNode]) -> Result<(), ArrayError> {
        if absent.is_empty() {
            return Ok(());
        }
        let (reader, queue) = (&self.reader, &self.reader.target.queue);
        let _stage = reader.observe(Stage::Scatter, 0, Some(queue));
        for to in absent.iter().flat_map(|node| reader.boxes_of_absent(node)) {
            queue.fill_region(&Region::new(reader.output.clone(), to)?, reader.plan.chunks.fill_bytes())?;
        }
        Ok(())
    }
}

/// Makes one batch of those of a small read.
fn share_if_small(reader: &Reader, ready: &mut VecDeque<Batch>) {
    let loads = || ready.iter().flat_map(|batch| &batch.loads);
    let room: usize = loads().map(|load| load.room).sum();
    let alike = loads().all(|load| loads().next().map(|first| reader.goes_direct(first)) == Some(reader.goes_direct(load)));
    if alike && (ready.len() == 1 || room <= SMALL.min(reader.target.staging / 3)) {
        let loads = ready.drain(..).flat_map(|batch| batch.loads).collect();
        ready.push_back(Batch { loads, room, shared: true, fetched: None });
    }
}

/// The next answer. A thread of a pool works for the others while it waits, or they could wait for it.
fn receive(receiver: &Receiver<Done>) -> Result<Done, ArrayError> {
    let gone = || ArrayError::parameter("the threads of the pool are gone");
    if rayon::current_thread_index().is_none() {
        return receiver.recv().map_err(|_| gone());
    }
    loop {
        match receiver.try_recv() {
            Ok(done) => return Ok(done),
            Err(mpsc::TryRecvError::Disconnected) => return Err(gone()),
            Err(mpsc::TryRecvError::Empty) => match rayon::yield_now() {
                Some(rayon::Yield::Executed) => {}
                _ => std::thread::yield_now(),
            },
        }
    }
}

/// As long as an allocator that keeps few sizes would make it, so that the budget counts what is there.
fn whole(len: usize) -> usize {
    const SMALL: usize = 1 << 20;
    if len < SMALL { len } else { len.checked_next_multiple_of(len.next_power_of_two() / 8).unwrap_or(len) }
}

/// Ranges in order, joined where nearly nothing is between them: gaps of less than a page are cheaper to copy than to skip.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    const GAP: usize = 4096;
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + GAP => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_over_short_gaps() {
        assert_eq!(joined(vec![9000..9500, 0..100, 64..128, 4000..4100]), [0..4100, 9000..9500]);
        assert!(joined(Vec::new()).is_empty());
    }
}
