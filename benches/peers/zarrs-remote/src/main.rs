//! zarrs at a URL, by its store for `object_store`. The setup `async` uses its async calls in place of the adapter to blocking ones.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use object_store::ClientOptions;
use object_store::http::HttpBuilder;
use peers_harness::{Item, Peer, Result};
use tokio::runtime::Runtime;
use zarrs::array::{Array, ArrayBytes, ArraySubset};
use zarrs::storage::storage_adapter::async_to_sync::{AsyncToSyncBlockOn, AsyncToSyncStorageAdapter};
use zarrs::storage::{AsyncReadableStorageTraits, ReadableStorageTraits};
use zarrs_object_store::AsyncObjectStore;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct BlockOn(Arc<Runtime>);

impl AsyncToSyncBlockOn for BlockOn {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

enum Zarrs {
    Blocking(Array<dyn ReadableStorageTraits>),
    Async(Array<dyn AsyncReadableStorageTraits>, Arc<Runtime>),
}

struct Bytes(Cow<'static, [u8]>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Zarrs {
    fn read(&self, subset: &ArraySubset) -> Result<Bytes> {
        let read: ArrayBytes<'static> = match self {
            Self::Blocking(array) => array.retrieve_array_subset(subset)?,
            Self::Async(array, runtime) => runtime.block_on(array.async_retrieve_array_subset(subset))?,
        };
        Ok(Bytes(read.into_fixed()?))
    }
}

impl Peer for Zarrs {
    type Bytes = Bytes;

    fn open(path: &str, setup: &str) -> Result<Self> {
        let runtime = Arc::new(Runtime::new()?);
        let client = HttpBuilder::new().with_url(path).with_client_options(ClientOptions::new().with_allow_http(true)).build()?;
        let store = Arc::new(AsyncObjectStore::new(client));
        match setup {
            "" => {
                let store = AsyncToSyncStorageAdapter::new(store, BlockOn(runtime));
                Ok(Self::Blocking(Array::open(Arc::new(store) as Arc<dyn ReadableStorageTraits>, "/")?))
            }
            "async" => {
                let store: Arc<dyn AsyncReadableStorageTraits> = store;
                let array = runtime.block_on(Array::async_open(store, "/"))?;
                Ok(Self::Async(array, runtime))
            }
            _ => Err(format!("unknown setup {setup}").into()),
        }
    }

    fn shape(&self) -> Vec<u64> {
        match self {
            Self::Blocking(array) => array.shape().to_vec(),
            Self::Async(array, _) => array.shape().to_vec(),
        }
    }

    fn item_size(&self) -> usize {
        match self {
            Self::Blocking(array) => array.data_type().fixed_size().unwrap_or(1),
            Self::Async(array, _) => array.data_type().fixed_size().unwrap_or(1),
        }
    }

    fn read_all(&self) -> Result<Bytes> {
        self.read(&ArraySubset::new_with_shape(self.shape()))
    }

    fn read_chunk(&self, item: &Item) -> Result<Bytes> {
        let read: ArrayBytes<'static> = match self {
            Self::Blocking(array) => array.retrieve_chunk(&item.chunk)?,
            Self::Async(array, runtime) => runtime.block_on(array.async_retrieve_chunk(&item.chunk))?,
        };
        Ok(Bytes(read.into_fixed()?))
    }

    fn read_inner(&self, item: &Item) -> Result<Bytes> {
        self.read_box(item)
    }

    fn read_box(&self, item: &Item) -> Result<Bytes> {
        self.read(&ArraySubset::new_with_ranges(&item.ranges()))
    }

    fn read_ahead(&self, _: &[Item], _: &mut dyn FnMut(&Item, Bytes) -> Result<()>) -> Result<()> {
        Err("not measured".into())
    }

    fn write_all(&self, _: &[u8]) -> Result<()> {
        Err("a web server takes no writes".into())
    }
}

fn main() -> Result<()> {
    peers_harness::run::<Zarrs>()
}
