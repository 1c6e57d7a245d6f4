//! The adapters between blocking and async stores, and the store that fails on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use zarr_conformance::assert_conforms;
use zarr_conformance::store::StoreUnderTest;
use zarr_store::{AsyncToBlocking, BlockingToAsync, Fault, FaultyStore, FilesystemStore, MemoryStore, When};
use zarr_store_api::{
    AnyStore, AsyncReadableStore, AsyncReadableStoreExt, AsyncStore, ByteRange, Bytes, ReadableStore, Store, StoreError, StoreErrorKind,
    StoreKey, StoredValue, WritableStore, async_trait,
};

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

/// Hides that a store is only a face of another one, so that the face itself is put to the test.
#[derive(Debug)]
struct Opaque<S>(S);

mod opaque {
    use super::*;
    use zarr_store_api::{
        AsyncListableStore, AsyncWritableStore, Buffer, Destination, Device, DeviceId, ListableStore, Queue, WritableStore,
    };

    impl<S: Store> ReadableStore for Opaque<S> {
        fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
            self.0.get(key, range)
        }

        fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
            self.0.size(key)
        }

        fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
            self.0.get_ranges(key, ranges)
        }

        fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
            self.0.get_into(key, range, dst)
        }

        fn get_into_buffer(
            &self,
            key: &StoreKey,
            range: ByteRange,
            dst: &Buffer,
            device: &Arc<dyn Device>,
            queue: &Arc<dyn Queue>,
        ) -> Result<Option<usize>, StoreError> {
            self.0.get_into_buffer(key, range, dst, device, queue)
        }

        fn reads_to_device(&self, device: DeviceId) -> bool {
            self.0.reads_to_device(device)
        }
    }

    impl<S: Store> Store for Opaque<S> {
        fn as_writable(&self) -> Option<&dyn WritableStore> {
            self.0.as_writable()
        }

        fn as_listable(&self) -> Option<&dyn ListableStore> {
            self.0.as_listable()
        }

        fn name(&self) -> String {
            self.0.name()
        }
    }

    #[async_trait]
    impl<S: AsyncStore> AsyncReadableStore for Opaque<S> {
        async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
            self.0.get(key, range).await
        }

        async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
            self.0.size(key).await
        }

        async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
            self.0.get_ranges(key, ranges).await
        }

        async fn get_into(
            &self,
            key: &StoreKey,
            range: ByteRange,
            dst: Box<dyn Destination>,
        ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
            self.0.get_into(key, range, dst).await
        }

        async fn get_into_buffer(
            &self,
            key: &StoreKey,
            range: ByteRange,
            dst: &Buffer,
            device: &Arc<dyn Device>,
            queue: &Arc<dyn Queue>,
        ) -> Result<Option<usize>, StoreError> {
            self.0.get_into_buffer(key, range, dst, device, queue).await
        }

        fn reads_to_device(&self, device: DeviceId) -> bool {
            self.0.reads_to_device(device)
        }
    }

    impl<S: AsyncStore> AsyncStore for Opaque<S> {
        fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
            self.0.as_writable()
        }

        fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
            self.0.as_listable()
        }

        fn name(&self) -> String {
            self.0.name()
        }
    }
}

/// Has checks run where futures find the runtime.
fn inside(runtime: Runtime, store: StoreUnderTest) -> StoreUnderTest {
    store.within(move |check| {
        let _entered = runtime.enter();
        check();
    })
}

#[test]
fn blocking_to_async() {
    let make = || AnyStore::asynchronous(Opaque(BlockingToAsync::new(MemoryStore::new())));
    assert_conforms(inside(Runtime::new().unwrap(), StoreUnderTest::writable("memory, async", make)));
    let dir = tempfile::tempdir().unwrap();
    let number = AtomicUsize::new(0);
    let make = move || {
        let store = FilesystemStore::new(dir.path().join(number.fetch_add(1, Ordering::Relaxed).to_string())).unwrap();
        AnyStore::asynchronous(Opaque(BlockingToAsync::new(store)))
    };
    assert_conforms(inside(Runtime::new().unwrap(), StoreUnderTest::writable("filesystem, async", make)));
}

#[test]
fn async_to_blocking_and_back() {
    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    let make = move || {
        let inner = Opaque(BlockingToAsync::with_handle(MemoryStore::new(), handle.clone()));
        AnyStore::blocking(Opaque(AsyncToBlocking::new(inner).unwrap()))
    };
    assert_conforms(StoreUnderTest::writable("memory, async, blocking", make));
}

#[test]
fn readers_get_the_native_path() {
    let any = AnyStore::asynchronous(BlockingToAsync::new(MemoryStore::new()));
    assert!(matches!(any, AnyStore::Blocking(_)));
    let inner = Opaque(BlockingToAsync::new(MemoryStore::new()));
    let any = AnyStore::blocking(zarr_store::ReadOnly::new(AsyncToBlocking::new(inner).unwrap()));
    assert!(matches!(any, AnyStore::Async(_)) && !any.is_writable());
}

#[test]
fn blocking_calls_in_async_code_work() {
    for runtime in [Builder::new_current_thread().build().unwrap(), Runtime::new().unwrap()] {
        runtime.block_on(async {
            let own = Runtime::new().unwrap();
            let inner = BlockingToAsync::with_handle(MemoryStore::new(), own.handle().clone());
            let store = AsyncToBlocking::new(inner).unwrap();
            store.set(&key("a"), "value".into()).unwrap();
            assert_eq!(store.size(&key("a")).unwrap(), Some(5));
            // Both runtimes end within async code.
            own.shutdown_background();
            drop(store);
        });
    }
}

#[test]
fn an_owned_destination_comes_back_as_it_was() {
    let runtime = Runtime::new().unwrap();
    let memory = MemoryStore::new();
    memory.set(&key("a"), "value".into()).unwrap();
    let store = BlockingToAsync::new(memory);
    runtime.block_on(async {
        let dst = vec![0u8; 8];
        let address = dst.as_ptr();
        let (dst, read) = store.get_into_owned(&key("a"), ByteRange::Suffix(3), dst).await.unwrap();
        assert_eq!((dst.as_ptr(), &dst[..3], read), (address, &b"lue"[..], Some(3)));
        let (boxed, result) = store.get_into(&key("a"), ByteRange::All, Box::new(vec![0u8; 2])).await;
        assert_eq!(result.unwrap_err().kind(), StoreErrorKind::Parameter);
        drop(boxed);
    });
}

#[test]
fn faults_strike_where_they_are_told_to() {
    let store = FaultyStore::new(MemoryStore::new())
        .with(When::Write(1), Fault::Fail(StoreErrorKind::NoSpace))
        .with(When::Write(2), Fault::FailAfter(StoreErrorKind::Transient))
        .with(When::Write(3), Fault::Tear(2))
        .with(When::Read(0), Fault::Tear(1))
        .with(When::Key(key("bad")), Fault::Fail(StoreErrorKind::Permission));
    store.set(&key("a"), "first".into()).unwrap();
    assert_eq!(store.set(&key("a"), "second".into()).unwrap_err().stored(), Some(StoredValue::Old));
    assert_eq!(store.inner().size(&key("a")).unwrap(), Some(5));
    assert_eq!(store.set(&key("a"), "second".into()).unwrap_err().stored(), Some(StoredValue::OldOrNew));
    assert_eq!(store.inner().size(&key("a")).unwrap(), Some(6));
    store.set_vectored(&key("a"), &[b"t", b"orn"]).unwrap_err();
    assert_eq!(store.get(&key("a"), ByteRange::All).unwrap().as_deref(), Some(&b"t"[..]));
    assert_eq!(store.get(&key("a"), ByteRange::All).unwrap().as_deref(), Some(&b"to"[..]));
    assert_eq!(store.get(&key("bad"), ByteRange::All).unwrap_err().kind(), StoreErrorKind::Permission);

    store.heal();
    store.inject(When::CrashAtWrite(1), Fault::Fail(StoreErrorKind::Io));
    store.set(&key("a"), "before".into()).unwrap();
    assert!(store.size(&key("a")).is_ok());
    store.set(&key("a"), "after".into()).unwrap_err();
    store.size(&key("a")).unwrap_err();
    assert_eq!(store.inner().size(&key("a")).unwrap(), Some(6));
}

#[test]
fn delays_delay_in_both_forms() {
    let delayed = |fault| FaultyStore::new(MemoryStore::new()).with(When::Always, fault);
    let begun = Instant::now();
    delayed(Fault::Delay(Duration::from_millis(20))).size(&key("a")).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));

    let runtime = Runtime::new().unwrap();
    let store = FaultyStore::new(BlockingToAsync::new(MemoryStore::new())).with(When::Always, Fault::Delay(Duration::from_millis(50)));
    let store: Arc<dyn AsyncStore> = Arc::new(store);
    let begun = Instant::now();
    runtime.block_on(async {
        let key = key("a");
        futures::join!(store.size(&key), store.size(&key), store.size(&key)).0.unwrap();
    });
    assert!(begun.elapsed() >= Duration::from_millis(50) && begun.elapsed() < Duration::from_millis(140));
}
