use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, once};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use zarr_store_api::async_trait;

/// A client that is made anew in a process that was forked: connections, and the tasks that serve them, are the parent's.
pub(super) struct PerProcess {
    make: Box<dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync>,
    made: Mutex<(u32, Arc<dyn ObjectStore>)>,
}

impl PerProcess {
    pub(super) fn new<S: ObjectStore>(make: impl Fn() -> Result<S> + Send + Sync + 'static) -> Result<Self> {
        let make = move || Ok(Arc::new(make()?) as Arc<dyn ObjectStore>);
        Ok(Self { made: Mutex::new((std::process::id(), make()?)), make: Box::new(make) })
    }

    fn here(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::process::id();
        if made.0 != here {
            let parents = std::mem::replace(&mut *made, (here, (self.make)()?));
            // What the parent still uses is not for this process to close.
            std::mem::forget(parents);
        }
        Ok(Arc::clone(&made.1))
    }
}

impl fmt::Debug for PerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).1.fmt(f)
    }
}

impl fmt::Display for PerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).1.fmt(f)
    }
}

fn failed<T: Send + 'static>(error: object_store::Error) -> BoxStream<'static, Result<T>> {
    once(async { Err(error) }).boxed()
}

#[async_trait]
impl ObjectStore for PerProcess {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.here()?.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.here()?.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.here()?.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.here()?.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.here().map_or_else(failed, |store| store.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.here().map_or_else(failed, |store| store.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.here().map_or_else(failed, |store| store.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.here()?.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.here()?.copy_opts(from, to, options).await
    }
}
