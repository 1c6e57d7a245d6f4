//! Removing what falls outside of a smaller shape.

use std::collections::BTreeSet;

use zarr_buffer_api::unwritten;
use zarr_codec_api::VariableData;

use crate::node;
use crate::write::fill_all;
use crate::{Array, ArrayError, Selection};

/// Removes chunks of `old` that hold no element of `new`, and sets what `new` keeps of the chunks at its edge, outside its shape, to the fill value.
pub(crate) async fn forget_outside(old: &Array, new: &Array, old_shape: &[u64]) -> Result<(), ArrayError> {
    let shrinks: Vec<usize> = (0..old_shape.len()).filter(|&axis| new.shape().get(axis) < old_shape.get(axis)).collect();
    if shrinks.is_empty() {
        return Ok(());
    }
    let (old_grid, new_grid) = (old.chunk_grid_shape(), new.chunk_grid_shape());
    let storage = &old.storage;
    // What is there is asked of the store: a sparse array has far fewer chunks than its grid. Stores that cannot list are asked chunk by chunk.
    let prefix = node::prefix(old.path())?;
    let listed = if storage.0.is_listable() { Some(storage.list(&prefix).await?) } else { None };
    let outside = |chunk: &[u64]| chunk.iter().zip(&new_grid).any(|(index, count)| index >= count);
    match listed {
        Some(keys) => {
            for key in keys {
                let encoding = &old.metadata().chunk_key_encoding;
                let chunk = prefix.strip(&key).and_then(|key| encoding.decode(key, old_shape.len()));
                if let Some(chunk) = chunk
                    && outside(&chunk)
                {
                    storage.erase(&key).await?;
                }
            }
        }
        None => {
            for chunk in product(old_grid) {
                if outside(&chunk) {
                    storage.erase(&old.chunk_key(&chunk)?).await?;
                }
            }
        }
    }
    let mut done = BTreeSet::new();
    for axis in shrinks {
        let (Some(&end), Some(&count)) = (new.shape().get(axis), new_grid.get(axis)) else { continue };
        let Some(last) = count.checked_sub(1) else { continue };
        let grid = old.chunk_grid();
        if grid.chunk_origin(axis, last).saturating_add(grid.chunk_len(axis, last)) <= end {
            continue;
        }
        let mut counts = new_grid.clone();
        if let Some(count) = counts.get_mut(axis) {
            *count = 1;
        }
        for mut chunk in product(counts) {
            if let Some(index) = chunk.get_mut(axis) {
                *index = last;
            }
            if done.insert(chunk.clone()) && storage.size(&old.chunk_key(&chunk)?).await?.is_some() {
                blank(old, new, &chunk).await?;
            }
        }
    }
    Ok(())
}

/// Sets the elements of one chunk inside the old and outside the new shape to the fill value, one slab along each axis.
async fn blank(old: &Array, new: &Array, chunk: &[u64]) -> Result<(), ArrayError> {
    let grid = old.chunk_grid();
    let ranges: Vec<(u64, u64)> = chunk
        .iter()
        .enumerate()
        .map(|(axis, &index)| {
            let start = grid.chunk_origin(axis, index);
            let end = start.saturating_add(grid.chunk_len(axis, index)).min(old.shape().get(axis).copied().unwrap_or(0));
            (start, end)
        })
        .collect();
    for axis in 0..chunk.len() {
        let kept = new.shape().get(axis).copied().unwrap_or(0);
        let Some(&(start, end)) = ranges.get(axis) else { continue };
        if kept >= end {
            continue;
        }
        let slab = ranges.iter().enumerate().map(|(other, &(from, to))| if other == axis { start.max(kept)..end } else { from..to });
        let selection = Selection::ranges(slab);
        let elements: u64 = old.selection_shape(&selection)?.iter().product();
        let elements = usize::try_from(elements).map_err(|_| ArrayError::parameter("a chunk does not fit the address space"))?;
        match old.item_size() {
            Some(size) => {
                let len = elements.checked_mul(size).ok_or_else(|| ArrayError::parameter("a chunk does not fit the address space"))?;
                let mut bytes = unwritten(len)?;
                fill_all(&mut bytes, old.chunks.fill_bytes());
                old.write_async(&selection, bytes).await?;
            }
            None => {
                let fill: VariableData = std::iter::repeat_n(old.chunks.fill_bytes(), elements).collect();
                old.write_variable_async(&selection, fill).await?;
            }
        }
    }
    Ok(())
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
