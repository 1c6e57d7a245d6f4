//! Clearing what is stored outside of a shape: by a shape that gets smaller, or by a shrink that was cut off.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use zarr_codec_api::VariableData;
use zarr_meta::ChunkGrid;

use crate::data::Elements;
use crate::gate::Gate;
use crate::node;
use crate::write::{fill_all, is_all};
use crate::{Array, ArrayError, Selection};

/// Where to look for chunks outside of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// Wherever they can be found: in the listing, where there is one, unless there are few places to look at.
    Grid,
    /// As `Grid`, but nowhere if there is no listing, and more than a few places.
    Cheaply,
    /// In the listing, or nowhere.
    Listing,
}

/// The most chunks that are looked at without asking first which are there.
const FEW: u64 = 4096;

/// Sets what is stored of an array outside of the shape `kept` to the fill value, in the chunks of `grid`; those without an element inside are removed. An axis of
/// which `kept` has `u64::MAX` elements is left as it is.
pub(crate) async fn clear_outside(array: &Array, kept: Vec<u64>, grid: Vec<u64>, search: Search) -> Result<(), ArrayError> {
    let of_array = array.chunk_grid();
    let first: Vec<u64> = kept.iter().enumerate().map(|(axis, &end)| first_outside(of_array, axis, end)).collect();
    let inside: Vec<u64> = first.iter().zip(&grid).map(|(&first, &count)| first.min(count)).collect();
    let few = count(&grid).saturating_sub(count(&inside)) <= FEW.min(count(&inside)) && count(&grid) < u64::MAX;
    let is_listable = array.store().is_listable();
    let chunks: Box<dyn Iterator<Item = Vec<u64>> + Send> = if is_listable && (!few || search == Search::Listing) {
        let prefix = node::prefix(array.path())?;
        let encoding = &array.metadata().chunk_key_encoding;
        let keys = array.storage.list(&prefix).await?;
        let stored = keys.iter().filter_map(|key| encoding.decode(prefix.strip(key)?, kept.len()));
        let outside = stored.filter(|chunk| chunk.iter().zip(&first).any(|(index, first)| index >= first));
        Box::new(outside.collect::<Vec<_>>().into_iter())
    } else if search == Search::Grid || (few && search == Search::Cheaply) {
        Box::new(outside(inside, grid.clone()))
    } else {
        return Ok(());
    };

    // With all elements of the chunks that `kept` cuts.
    let shape = grid.iter().enumerate().map(|(axis, &count)| count.checked_sub(1).map_or(0, |last| chunk_end(of_array, axis, last)));
    let wide = array.alone().with_shape(shape.collect());
    let (gate, kept, grid) = (Gate::new(array.options()), Arc::new(kept), Arc::new(grid));
    let cleared = stream::iter(chunks).map(|chunk| {
        let (wide, gate, kept, grid) = (wide.clone(), Arc::clone(&gate), Arc::clone(&kept), Arc::clone(&grid));
        async move {
            if chunk.iter().zip(&*kept).enumerate().any(|(axis, (&index, &end))| wide.chunk_grid().chunk_origin(axis, index) >= end) {
                let _pass = gate.enter(1, Some(0)).await;
                // Whoever grows an array may not be allowed to erase.
                if search == Search::Cheaply && wide.stored_chunk_size_async(&chunk).await?.is_none() {
                    return Ok(());
                }
                return wide.erase_chunk_async(&chunk).await;
            }
            if chunk.iter().zip(&*grid).any(|(index, count)| index >= count) {
                return Ok(());
            }
            let _pass = gate.enter(1, wide.chunks.byte_len_at(&chunk)).await;
            blank(&wide, &kept, &chunk).await
        }
    });
    cleared.buffer_unordered(gate.requests()).try_collect().await
}

/// Sets the elements of one chunk outside of `kept` to the fill value, one slab along each axis.
async fn blank(array: &Array, kept: &[u64], chunk: &[u64]) -> Result<(), ArrayError> {
    let grid = array.chunk_grid();
    let mut left: Vec<(u64, u64)> =
        chunk.iter().enumerate().map(|(axis, &index)| (grid.chunk_origin(axis, index), chunk_end(grid, axis, index))).collect();
    for (axis, &end) in kept.iter().enumerate() {
        let mut slab = left.clone();
        let (Some(of_slab), Some(of_left)) = (slab.get_mut(axis), left.get_mut(axis)) else { continue };
        if end >= of_left.1 {
            continue;
        }
        (of_slab.0, of_left.1) = (end, end);
        let slab = Selection::ranges(slab.into_iter().map(|(start, end)| start..end));
        let fill = array.chunks.fill_bytes();
        match array.read_async(&slab).await?.elements {
            Elements::Fixed(bytes) if is_all(&bytes, fill) => {}
            Elements::Fixed(mut bytes) => {
                fill_all(&mut bytes, fill);
                array.write_async(&slab, bytes).await?;
            }
            Elements::Variable(elements) if elements.iter().all(|element| element == fill) => {}
            Elements::Variable(elements) => {
                let fill: VariableData = std::iter::repeat_n(fill, elements.len()).collect();
                array.write_variable_async(&slab, fill).await?;
            }
        }
    }
    Ok(())
}

/// The first chunk along an axis with an element at or behind `end`.
fn first_outside(grid: &ChunkGrid, axis: usize, end: u64) -> u64 {
    if end == u64::MAX {
        return end;
    }
    grid.locate(axis, end).map_or(u64::MAX, |(chunk, _)| chunk)
}

fn chunk_end(grid: &ChunkGrid, axis: usize, chunk: u64) -> u64 {
    grid.chunk_origin(axis, chunk).saturating_add(grid.chunk_len(axis, chunk))
}

fn count(grid: &[u64]) -> u64 {
    grid.iter().fold(1, |product, &count| product.saturating_mul(count))
}

/// The coordinates of a grid that do not lie in its first chunks along each axis, the `inside`.
fn outside(inside: Vec<u64>, grid: Vec<u64>) -> impl Iterator<Item = Vec<u64>> + Send {
    (0..grid.len()).flat_map(move |axis| {
        // Inside along the axes before, outside along this one, anything along those behind.
        let start = inside.get(axis).copied().unwrap_or(0);
        let counts = grid.iter().zip(&inside).enumerate().map(|(other, (&count, &inside))| match other.cmp(&axis) {
            std::cmp::Ordering::Less => inside,
            std::cmp::Ordering::Equal => count - inside,
            std::cmp::Ordering::Greater => count,
        });
        product(counts.collect()).map(move |mut chunk| {
            if let Some(index) = chunk.get_mut(axis) {
                *index += start;
            }
            chunk
        })
    })
}

/// All coordinates of a grid in C order.
pub(crate) fn product(counts: Vec<u64>) -> impl Iterator<Item = Vec<u64>> + use<> {
    let total = counts.iter().try_fold(1u64, |product, &count| product.checked_mul(count)).unwrap_or(u64::MAX);
    (0..total).map(move |mut flat| {
        let mut coordinates = vec![0; counts.len()];
        for (coordinate, &count) in coordinates.iter_mut().zip(&counts).rev() {
            *coordinate = flat % count.max(1);
            flat /= count.max(1);
        }
        coordinates
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_is_all_but_the_inside() {
        for (inside, grid) in [([2, 1, 3], [4, 3, 3]), ([0, 1, 1], [2, 2, 1]), ([2, 2, 2], [2, 2, 2]), ([0, 0, 0], [1, 2, 1])] {
            let mut expected: Vec<_> = product(grid.to_vec()).collect();
            expected.retain(|chunk| chunk.iter().zip(&inside).any(|(index, inside)| index >= inside));
            let mut found: Vec<_> = outside(inside.to_vec(), grid.to_vec()).collect();
            found.sort();
            assert_eq!(found, expected);
        }
    }
}
