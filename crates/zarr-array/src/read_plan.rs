//! The plan as a public state machine.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zarr_buffer_api::{OwnedTiles, TileWriter};
use zarr_codec_api::Scratch;
use zarr_store_api::{ByteRange, StoreKey};

use crate::plan::{ChunkNode, ChunkPart, Fetch, Plan, Steps, Then, bytes_of, index_of};
use crate::read::{Sink, short, vanished};
use crate::{Array, ArrayError, Selection};

/// A read without the I/O.
///
/// Ask for [`ReadPlan::next_requests`], fetch them in any way and order, hand the bytes to [`ReadPlan::supply`], and run the [`DecodeJob`]s that it gives,
/// on any thread, into tiles of one output. The plan is done when [`ReadPlan::is_done`] says so. Requests are made chunk by chunk as they are asked for, so
/// that a plan over millions of chunks takes no memory for those not yet begun.
///
/// A shard's index and its inner chunks are several requests for one key. Whoever fetches them sees to it that the answers are of one version of the value: bytes of
/// another one are an error, or, without a compressor, other elements.
///
/// ```no_run
/// # fn fetch(_: &zarr_array::Request) -> Option<Vec<bytes::Bytes>> { None }
/// # fn read(array: &zarr_array::Array) -> Result<Vec<u8>, zarr_array::ArrayError> {
/// let mut plan = array.plan(&zarr_array::Selection::all())?;
/// let output = plan.output(vec![0; plan.output_len()])?;
/// let mut scratch = zarr_codec_api::Scratch::new();
/// while !plan.is_done() {
///     for request in plan.next_requests(8)? {
///         let bytes = fetch(&request); // yours
///         for job in plan.supply(request.id, bytes)? {
///             job.run(&output, &mut scratch)?;
///         }
///     }
/// }
/// # Ok(output.into_bytes())
/// # }
/// ```
#[derive(Debug)]
pub struct ReadPlan {
    plan: Arc<Plan>,
    /// Chunks of the grid not yet begun.
    chunks: Range<usize>,
    /// Requests made by an answer, not yet given out.
    ready: Vec<Fetch>,
    /// Chunks found absent, to be handed out with the next answer.
    absent: Vec<ChunkNode>,
    waiting: HashMap<RequestId, Fetch>,
    next: u64,
    scratch: Scratch,
}

/// Tells the requests of a plan apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

/// Byte ranges of one value that a plan wants.
#[derive(Debug, Clone)]
pub struct Request {
    /// To be named in [`ReadPlan::supply`].
    pub id: RequestId,
    /// Which value.
    pub key: StoreKey,
    /// Which bytes of it.
    pub ranges: Vec<ByteRange>,
}

/// A chunk to decode (or to fill, if it is absent) into its tile of the output.
#[derive(Debug)]
pub struct DecodeJob {
    plan: Arc<Plan>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Decode(ChunkPart, Bytes),
    Fill(ChunkNode),
}

impl Array {
    /// Plans a read of elements of fixed length.
    ///
    /// # Errors
    /// [`ArrayError::Selection`] when the selection does not fit; [`ArrayError::Parameter`] for elements of variable length.
    pub fn plan(&self, selection: &Selection) -> Result<ReadPlan, ArrayError> {
        if self.item_size().is_none() {
            return Err(ArrayError::parameter("elements of variable length are read by `Array::read`"));
        }
        let plan = Arc::new(self.internal_plan(selection)?);
        let chunks = 0..plan.chunk_count();
        Ok(ReadPlan { plan, chunks, ready: Vec::new(), absent: Vec::new(), waiting: HashMap::new(), next: 0, scratch: Scratch::new() })
    }
}

impl ReadPlan {
    /// The shape of the result.
    pub fn shape(&self) -> Vec<u64> {
        self.plan.cut.result_shape()
    }

    /// Bytes of the result.
    pub fn output_len(&self) -> usize {
        self.plan.output_layout().and_then(|layout| Ok(layout.span()?.len())).unwrap_or(0)
    }

    /// An output over memory of [`ReadPlan::output_len`] bytes, cut as the jobs need it. It can be shared by threads in an `Arc`.
    ///
    /// # Errors
    /// [`ArrayError::Buffer`] when the memory is too small.
    pub fn output(&self, memory: Vec<u8>) -> Result<OwnedTiles, ArrayError> {
        Ok(OwnedTiles::new(memory, self.plan.output_layout()?, self.plan.tiles())?)
    }

    /// An output over borrowed memory.
    ///
    /// # Errors
    /// [`ArrayError::Buffer`] when the memory is too small.
    pub fn output_in<'a>(&self, memory: &'a mut [u8]) -> Result<TileWriter<'a>, ArrayError> {
        Ok(TileWriter::new(memory, self.plan.output_layout()?, self.plan.tiles())?)
    }

    /// The next requests, at most `most`. None are left when this is empty and nothing is waited for.
    ///
    /// # Errors
    /// When a chunk's key or codec chain cannot be made.
    pub fn next_requests(&mut self, most: usize) -> Result<Vec<Request>, ArrayError> {
        let mut requests = Vec::new();
        while requests.len() < most {
            let fetch = match self.ready.pop() {
                Some(fetch) => fetch,
                None => match self.chunks.next() {
                    Some(chunk) => {
                        let steps = self.plan.start(chunk, |_| Ok(None))?;
                        self.take(steps);
                        continue;
                    }
                    None => break,
                },
            };
            let id = RequestId(self.next);
            self.next += 1;
            requests.push(Request { id, key: fetch.key.clone(), ranges: fetch.ranges.clone() });
            self.waiting.insert(id, fetch);
        }
        Ok(requests)
    }

    /// Takes the answer to a request: one piece for each range, or `None` when there is no such value. Gives the chunks that can now be decoded.
    ///
    /// # Errors
    /// When the bytes are not what a shard's index allows, or the request is not one that waits.
    pub fn supply(&mut self, id: RequestId, bytes: Option<Vec<Bytes>>) -> Result<Vec<DecodeJob>, ArrayError> {
        let fetch = self.waiting.remove(&id).ok_or_else(|| ArrayError::parameter("no such request waits for an answer"))?;
        let mut jobs = Vec::new();
        match fetch.then {
            Then::Index(node) => {
                let steps = self.plan.supply_index(&node, index_of(bytes.as_deref()), &mut self.scratch)?;
                self.take(steps);
            }
            Then::Chunks(parts) => {
                for part in parts {
                    let work = match &bytes {
                        Some(ranges) => {
                            let found = bytes_of(&part, ranges).ok_or_else(|| short(&self.plan, &part.node))?;
                            let whole = ranges.get(part.range).map(|range| range.slice_ref(found));
                            Work::Decode(part, whole.unwrap_or_default())
                        }
                        None if part.within.is_some() => return Err(vanished(&self.plan, std::slice::from_ref(&part))),
                        None => Work::Fill(part.node),
                    };
                    jobs.push(DecodeJob { plan: Arc::clone(&self.plan), work });
                }
            }
        }
        jobs.extend(self.absent.drain(..).map(|node| DecodeJob { plan: Arc::clone(&self.plan), work: Work::Fill(node) }));
        Ok(jobs)
    }

    /// Whether every request was made and answered.
    pub fn is_done(&self) -> bool {
        self.chunks.is_empty() && self.ready.is_empty() && self.waiting.is_empty() && self.absent.is_empty()
    }

    fn take(&mut self, steps: Steps) {
        self.ready.extend(steps.fetches.into_iter().rev());
        self.absent.extend(steps.absent);
    }
}

impl DecodeJob {
    /// The key of the value that holds the chunk.
    pub fn key(&self) -> &StoreKey {
        match &self.work {
            Work::Decode(part, _) => &part.node.key,
            Work::Fill(node) => &node.key,
        }
    }

    /// The chunk's encoded bytes; `None` when it is absent.
    pub fn encoded(&self) -> Option<&Bytes> {
        match &self.work {
            Work::Decode(_, bytes) => Some(bytes),
            Work::Fill(_) => None,
        }
    }

    /// Decodes the chunk into its tile of `output`.
    ///
    /// # Errors
    /// When the bytes are bad; other jobs are not affected.
    pub fn run(&self, output: &OwnedTiles, scratch: &mut Scratch) -> Result<(), ArrayError> {
        self.run_in(output.writer(), scratch)
    }

    /// Decodes the chunk into its tile of a borrowed output.
    ///
    /// # Errors
    /// As [`DecodeJob::run`].
    pub fn run_in(&self, output: &TileWriter<'_>, scratch: &mut Scratch) -> Result<(), ArrayError> {
        match &self.work {
            Work::Decode(part, encoded) => output.chunk(&self.plan, part, encoded, scratch),
            Work::Fill(node) => output.absent(&self.plan, node),
        }
    }
}
