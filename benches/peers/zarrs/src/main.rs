//! zarrs, with the allocator that its own tools use. The setup `cached` keeps its decoder of shard indexes between calls.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use peers_harness::{Item, Peer, Result, in_flight};

use zarrs::array::{Array, ArrayBytes, ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset, CodecOptions};
use zarrs::filesystem::FilesystemStore;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Zarrs {
    array: Array<FilesystemStore>,
    cache: Option<ArrayShardedReadableExtCache>,
}

struct Bytes(Cow<'static, [u8]>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn bytes(read: ArrayBytes<'static>) -> Result<Bytes> {
    Ok(Bytes(read.into_fixed()?))
}

fn subset(item: &Item) -> ArraySubset {
    ArraySubset::new_with_ranges(&item.ranges())
}

impl Peer for Zarrs {
    type Bytes = Bytes;

    fn open(path: &str, setup: &str) -> Result<Self> {
        let array = Array::open(Arc::new(FilesystemStore::new(path)?), "/")?;
        let cache = match setup {
            "" => None,
            "cached" => Some(ArrayShardedReadableExtCache::new(&array)),
            _ => return Err(format!("unknown setup {setup}").into()),
        };
        Ok(Self { array, cache })
    }

    fn shape(&self) -> Vec<u64> {
        self.array.shape().to_vec()
    }

    fn item_size(&self) -> usize {
        self.array.data_type().fixed_size().unwrap_or(1)
    }

    fn read_all(&self) -> Result<Bytes> {
        bytes(self.array.retrieve_array_subset(&self.array.subset_all())?)
    }

    fn read_chunk(&self, item: &Item) -> Result<Bytes> {
        bytes(self.array.retrieve_chunk(&item.chunk)?)
    }

    fn read_inner(&self, item: &Item) -> Result<Bytes> {
        match &self.cache {
            Some(cache) => bytes(self.array.retrieve_subchunk_opt(cache, &item.chunk, &CodecOptions::default())?),
            None => self.read_box(item),
        }
    }

    fn read_box(&self, item: &Item) -> Result<Bytes> {
        match &self.cache {
            Some(cache) => bytes(self.array.retrieve_array_subset_sharded_opt(cache, &subset(item), &CodecOptions::default())?),
            None => bytes(self.array.retrieve_array_subset(&subset(item))?),
        }
    }

    /// By Rayon, which zarrs itself uses: each read sends its chunk to whoever wants it next.
    fn read_ahead(&self, items: &[Item], each: &mut dyn FnMut(&Item, Bytes) -> Result<()>) -> Result<()> {
        rayon::in_place_scope_fifo(|scope| {
            let mut begun = VecDeque::new();
            let mut items = items.iter();
            loop {
                while begun.len() < in_flight()
                    && let Some(item) = items.next()
                {
                    let (sender, receiver) = sync_channel(1);
                    scope.spawn_fifo(move |_| drop(sender.send(self.read_chunk(item))));
                    begun.push_back((item, receiver));
                }
                let Some((item, receiver)) = begun.pop_front() else { return Ok(()) };
                each(item, receiver.recv()??)?;
            }
        })
    }

    fn write_all(&self, data: &[u8]) -> Result<()> {
        Ok(self.array.store_array_subset(&self.array.subset_all(), ArrayBytes::new_flen(data))?)
    }
}

fn main() -> Result<()> {
    peers_harness::run::<Zarrs>()
}
