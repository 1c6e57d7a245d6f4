//! This project, as a user would call it. The allocator is the one the zarrs driver has. It keeps shard indexes between calls, as it does by default, also where the peers are not `cached`.

use peers_harness::{Item, Peer, Result};
use zarr::{Array, ArrayData, Selection};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Ours(Array);

struct Bytes(ArrayData);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes().unwrap_or_default()
    }
}

impl Ours {
    fn read(&self, selection: &Selection) -> Result<Bytes> {
        Ok(Bytes(self.0.read(selection)?))
    }
}

fn chunk(item: &Item) -> Selection {
    Selection::Blocks(item.chunk.iter().map(|&chunk| chunk..chunk + 1).collect())
}

impl Peer for Ours {
    type Bytes = Bytes;

    fn open(path: &str, setup: &str) -> Result<Self> {
        // The first argument is the mode.
        let writes = std::env::args().nth(1).is_some_and(|mode| mode == "write_all");
        let how = if writes { zarr::OpenOptions::write() } else { zarr::OpenOptions::read() };
        let (store, node) = zarr::locate(path, &how)?;
        let options = match setup {
            "" | "cached" => zarr::options(),
            _ => return Err(format!("unknown setup {setup}").into()),
        };
        Ok(Self(Array::open(store, &node, &options)?))
    }

    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    fn item_size(&self) -> usize {
        self.0.item_size().unwrap_or(1)
    }

    fn read_all(&self) -> Result<Bytes> {
        self.read(&Selection::all())
    }

    fn read_chunk(&self, item: &Item) -> Result<Bytes> {
        self.read(&chunk(item))
    }

    fn read_inner(&self, item: &Item) -> Result<Bytes> {
        self.read_box(item)
    }

    fn read_box(&self, item: &Item) -> Result<Bytes> {
        self.read(&Selection::ranges(item.ranges()))
    }

    fn read_ahead(&self, items: &[Item], each: &mut dyn FnMut(&Item, Bytes) -> Result<()>) -> Result<()> {
        let reads = self.0.read_each(items.iter().map(chunk));
        items.iter().zip(reads).try_for_each(|(item, read)| each(item, Bytes(read?)))
    }

    fn read_all_into(&self, memory: &mut [u8]) -> Result<()> {
        self.0.read_into(&Selection::all(), memory)?;
        Ok(())
    }

    fn write_all(&self, data: &[u8]) -> Result<()> {
        Ok(self.0.write(&Selection::all(), data)?)
    }
}

fn main() -> Result<()> {
    peers_harness::run::<Ours>()
}
