//! Many reads as one.

use futures::{StreamExt, TryStreamExt, stream};
use zarr_buffer_api::TileWriter;
use zarr_store_api::AnyStore;

use crate::data::{ArrayData, Elements};
use crate::plan::Plan;
use crate::read::{Job, read_blocking};
use crate::storage::block_on;
use crate::{Array, ArrayError, Selection};

/// Selections of many arrays (seventy variables at one time step, say), read as one: their chunks share the threads and the requests in flight.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    reads: Vec<(Array, Selection)>,
}

impl ReadSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a selection of an array.
    #[must_use]
    pub fn with(mut self, array: &Array, selection: Selection) -> Self {
        self.reads.push((array.clone(), selection));
        self
    }

    /// Adds a selection of an array.
    pub fn push(&mut self, array: &Array, selection: Selection) {
        self.reads.push((array.clone(), selection));
    }

    pub(crate) fn reads(&self) -> impl Iterator<Item = &(Array, Selection)> {
        self.reads.iter()
    }

    /// Number of reads.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether there are no reads.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Reads them all; one result for each, in order. Runs on the threads of the first array.
    ///
    /// # Errors
    /// The first chunk or request that fails.
    pub fn read(&self) -> Result<Vec<ArrayData>, ArrayError> {
        let native = self.reads.iter().all(|(array, _)| matches!(array.storage.0, AnyStore::Blocking(_)) && array.item_size().is_some());
        let Some((first, _)) = self.reads.first().filter(|_| native) else { return block_on(self.read_async()) };
        let plans: Vec<Plan> = self.reads.iter().map(|(array, selection)| array.internal_plan(selection)).collect::<Result<_, _>>()?;
        let mut outputs = Vec::with_capacity(plans.len());
        for plan in &plans {
            let layout = plan.output_layout()?;
            outputs.push(first.options().pool.unwritten::<u8>(layout.span()?.len(), plan.is_spread(&layout))?);
        }
        {
            let mut writers = Vec::with_capacity(plans.len());
            for (plan, output) in plans.iter().zip(&mut outputs) {
                writers.push(TileWriter::new(output, plan.output_layout()?, plan.tiles())?);
            }
            let jobs: Vec<Job<'_>> = self
                .reads
                .iter()
                .zip(plans.iter().zip(&writers))
                .filter_map(|((array, _), (plan, tiles))| match &array.storage.0 {
                    AnyStore::Blocking(store) => Some(Job { plan, store: &**store, sink: tiles }),
                    AnyStore::Async(_) => None,
                })
                .collect();
            read_blocking(&jobs, &first.options().pool)?;
        }
        let results = self.reads.iter().zip(plans.iter().zip(outputs));
        Ok(results
            .map(|((array, _), (plan, output))| ArrayData {
                shape: plan.cut.result_shape(),
                data_type: array.data_type().clone(),
                elements: Elements::Fixed(output),
            })
            .collect())
    }

    /// As [`ReadSet::read`]. All reads are under way at the same time, with as many requests as the first array's [`Options`](crate::Options) allow one of them.
    ///
    /// # Errors
    /// As [`ReadSet::read`].
    pub async fn read_async(&self) -> Result<Vec<ArrayData>, ArrayError> {
        let Some((first, _)) = self.reads.first() else { return Ok(Vec::new()) };
        let gate = first.gate();
        let futures = self.reads.iter().map(|(array, selection)| {
            let (array, selection) = (array.behind(&gate), selection.clone());
            async move { array.read_async(&selection).await }
        });
        stream::iter(futures).buffered(self.reads.len().max(1)).try_collect().await
    }
}
