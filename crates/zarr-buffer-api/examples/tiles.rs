//! Two threads write disjoint tiles of one matrix, without `unsafe`.

use zarr_buffer_api::{AxisTiles, BufferError, Layout, Offsets, TileWriter};

fn main() -> Result<(), BufferError> {
    let mut matrix = vec![0u8; 4 * 6];
    let layout = Layout::contiguous(&[4, 6], 1)?;
    let halves = AxisTiles::Ranges(vec![0..2, 2..4]);
    let even_and_odd = AxisTiles::Lists(vec![vec![0, 2, 4], vec![1, 3, 5]]);
    let writer = TileWriter::new(&mut matrix, layout, vec![halves, even_and_odd])?;
    std::thread::scope(|scope| {
        let upper = scope.spawn(|| writer.claim(&[0, 1])?.fill(&[1]));
        let lower = scope.spawn(|| writer.claim(&[1, 0])?.copy_from(&[2, 3, 4, 5, 6, 7], 0, &[Offsets::Stride(3), Offsets::Stride(1)]));
        upper.join().expect("no panic")?;
        lower.join().expect("no panic")
    })?;
    // Each tile is lent once.
    assert!(writer.claim(&[0, 1]).is_err());
    for row in matrix.chunks(6) {
        println!("{row:?}");
    }
    Ok(())
}
