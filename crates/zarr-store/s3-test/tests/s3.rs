//! `s3://` over s3s-fs, a real S3 server (with signatures, listings, multipart uploads) on files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use zarr_conformance::store::StoreUnderTest;
use zarr_conformance::{Suite, Trial};
use zarr_store::{AsyncToBlocking, ObjectStoreAdapter, OpenOptions, open_url};
use zarr_store_api::{AnyStore, AsyncReadableStore, AsyncStore, ByteRange, ReadableStore, Store, StoreErrorKind, StoreKey};

/// A server with one bucket, `bucket`.
struct Server {
    runtime: Runtime,
    address: SocketAddr,
    _files: TempDir,
}

impl Server {
    fn start(key: Option<(&str, &str)>) -> Self {
        let files = tempfile::tempdir().unwrap();
        std::fs::create_dir(files.path().join("bucket")).unwrap();
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(files.path()).unwrap());
        if let Some((id, secret)) = key {
            service.set_auth(SimpleAuth::from_single(id, secret));
        }
        let service = service.build();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // Small answers wait for each other otherwise.
                socket.set_nodelay(true).unwrap();
                let service = service.clone();
                tokio::spawn(async move { Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await });
            }
        });
        Self { runtime, address, _files: files }
    }

    fn options(&self) -> OpenOptions {
        OpenOptions::write().with("endpoint", format!("http://{}", self.address)).with("allow_http", "true")
    }

    /// As `open_url` makes it, but without repeating what failed.
    fn adapter(&self) -> ObjectStoreAdapter {
        let s3 = AmazonS3Builder::new()
            .with_bucket_name("bucket")
            .with_endpoint(format!("http://{}", self.address))
            .with_allow_http(true)
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .build();
        ObjectStoreAdapter::new(Arc::new(s3.unwrap()), "s3://bucket")
    }

    fn open(&self, prefix: &str) -> AnyStore {
        let options = self.options().with("access_key_id", "key").with("secret_access_key", "secret");
        open_url(&format!("s3://bucket/{prefix}"), &options).unwrap()
    }
}

fn blocking(any: AnyStore) -> AsyncToBlocking<Arc<dyn zarr_store_api::AsyncStore>> {
    match any {
        AnyStore::Async(store) => AsyncToBlocking::new(store).unwrap(),
        AnyStore::Blocking(_) => panic!("S3 is async by nature"),
    }
}

/// Laws that this server cannot keep, as it takes names for paths of files.
const NOT_ON_FILES: [(&str, &str); 2] = [
    ("store/read/prefix-is-no-key", "a directory is neither there nor missing"),
    ("store/write/erase", "a directory cannot be erased as if it were missing"),
];

#[test]
fn laws() {
    let server = Arc::new(Server::start(Some(("key", "secret"))));
    // The first store installs the TLS implementation, which the client wants even without TLS.
    server.open("");
    let (number, making) = (AtomicUsize::new(0), Arc::clone(&server));
    let make = move || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        making.adapter().with_prefix(Path::from(format!("some/where/{number}"))).into()
    };
    let store = StoreUnderTest::writable("s3", make).within(move |check| {
        let _entered = server.runtime.enter();
        check();
    });
    let report = Suite::from(store).run(&Trial::default());
    let excuse = |id: &str| NOT_ON_FILES.iter().find(|(excused, _)| *excused == id);
    let broken: Vec<_> = report.failures().filter(|(id, _)| excuse(id).is_none()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for (id, why) in NOT_ON_FILES {
        let how = report.failures().find(|(failed, _)| *failed == id);
        println!("excused: {id}, as {why}: {how:?}");
        assert!(how.is_some(), "{id} holds by now: take it off the list");
    }
}

#[test]
fn the_root_of_a_bucket() {
    let server = Server::start(Some(("key", "secret")));
    let store = blocking(server.open(""));
    let key = StoreKey::new("a/b").unwrap();
    let writable = store.as_writable().unwrap();
    writable.set_vectored(&key, &[b"one ", b"two"]).unwrap();
    assert_eq!(store.get(&key, ByteRange::Suffix(3)).unwrap().as_deref(), Some(&b"two"[..]));
    let listing = store.as_listable().unwrap().list_dir(&"".parse().unwrap()).unwrap();
    assert_eq!(listing.prefixes.len(), 1);
}

#[test]
fn several_reads_are_of_one_version() {
    let server = Server::start(Some(("key", "secret")));
    let AnyStore::Async(store) = server.open("") else { panic!("an object store is async") };
    let key = StoreKey::new("a").unwrap();
    server.runtime.block_on(async {
        let set = |value: &'static [u8]| store.as_writable().unwrap().set(&key, value.into());
        set(b"one value").await.unwrap();
        let (bytes, version) = store.get_versioned(&key, &[ByteRange::Suffix(5)], None).await.unwrap().unwrap();
        assert_eq!(bytes, ["value"]);
        let version = version.expect("an entity tag");
        let ranges = [ByteRange::from(0..3), ByteRange::from(4..6)];
        assert_eq!(store.get_versioned(&key, &ranges, Some(&version)).await.unwrap().unwrap().0, ["one", "va"]);
        set(b"two bytes").await.unwrap();
        let error = store.get_versioned(&key, &ranges, Some(&version)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Replaced, "{error}");
    });
}

#[test]
fn large_values_go_up_in_parts() {
    let server = Server::start(Some(("key", "secret")));
    server.open("");
    let store = AsyncToBlocking::new(server.adapter().with_upload_parts(6 << 20, 5 << 20)).unwrap();
    let key = StoreKey::new("large").unwrap();
    let value: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let parts: Vec<&[u8]> = value.chunks(1_234_567).collect();
    store.as_writable().unwrap().set_vectored(&key, &parts).unwrap();
    assert!(store.get(&key, ByteRange::All).unwrap().is_some_and(|read| read == value));

    let error = store.as_writable().unwrap().set(&StoreKey::new("large/below").unwrap(), value.into());
    assert!(error.is_err(), "this server cannot have a file and a directory of one name");
    assert!(store.size(&key).unwrap().is_some());
}

#[test]
fn wrong_credentials_are_no_missing_keys() {
    let server = Server::start(Some(("key", "secret")));
    let options = server.options().with("access_key_id", "key").with("secret_access_key", "wrong");
    let store = blocking(open_url("s3://bucket/x", &options).unwrap());
    let error = store.get(&StoreKey::new("a").unwrap(), ByteRange::All).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permission, "{error}");
}

#[test]
fn without_credentials_requests_are_not_signed() {
    let credentials = ["ACCESS_KEY_ID", "WEB_IDENTITY_TOKEN_FILE", "CONTAINER_CREDENTIALS_RELATIVE_URI", "SKIP_SIGNATURE"];
    if let Some(name) = credentials.into_iter().find(|name| std::env::var_os(format!("AWS_{name}")).is_some()) {
        eprintln!("skipped: AWS_{name} is set in the environment");
        return;
    }
    let server = Server::start(None);
    let store = blocking(open_url("s3://bucket/x", &server.options()).unwrap());
    let key = StoreKey::new("a").unwrap();
    store.as_writable().unwrap().set(&key, "open to all".into()).unwrap();
    assert_eq!(store.size(&key).unwrap(), Some(11));
}
