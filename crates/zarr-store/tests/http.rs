//! Web servers, over a small one on loopback: with ranges, and without.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tokio::runtime::Runtime;
use zarr_conformance::assert_conforms;
use zarr_conformance::store::StoreUnderTest;
use zarr_store::{AsyncToBlocking, OpenOptions, ZipStore, open_url};
use zarr_store_api::{AnyStore, ByteRange, Bytes, ReadableStore, Store, StoreErrorKind, StoreKey, StorePrefix, WritableStore};

/// How a server treats ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ranges {
    Given,
    Ignored,
    /// Every request is answered with an error.
    Broken,
}

/// A server that answers GET and HEAD below `/data/`.
struct Server {
    address: std::net::SocketAddr,
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Server {
    fn start(values: BTreeMap<String, Bytes>, ranges: Ranges) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default(), bytes: Arc::default() };
        let (values, requests, bytes) = (Arc::new(values), Arc::clone(&server.requests), Arc::clone(&server.bytes));
        // Ends with the test program.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (values, requests, bytes) = (Arc::clone(&values), Arc::clone(&requests), Arc::clone(&bytes));
                thread::spawn(move || serve(connection, &values, ranges, &requests, &bytes));
            }
        });
        server
    }

    fn with(values: &[(StoreKey, Bytes)], ranges: Ranges) -> Self {
        Self::start(values.iter().map(|(key, value)| (key.to_string(), value.clone())).collect(), ranges)
    }

    fn url(&self) -> String {
        format!("http://{}/data", self.address)
    }

    fn open(&self) -> AnyStore {
        open_url(&self.url(), &OpenOptions::read()).unwrap()
    }
}

fn serve(connection: TcpStream, values: &BTreeMap<String, Bytes>, ranges: Ranges, requests: &AtomicU64, sent: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut writer = connection;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        requests.fetch_add(1, Ordering::Relaxed);
        let mut request = lines.first()?.split(' ');
        let (method, path) = (request.next()?, request.next()?);
        let value = path.strip_prefix("/data/").and_then(|path| values.get(&percent_decoded(path)));
        let range = lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
        let (head, body) = match value {
            _ if ranges == Ranges::Broken => ("503 Service Unavailable\r\nContent-Length: 0".to_owned(), Bytes::new()),
            None => ("404 Not Found\r\nContent-Length: 0".to_owned(), Bytes::new()),
            Some(value) => match range.filter(|_| ranges == Ranges::Given) {
                None => (format!("200 OK\r\nContent-Length: {}", value.len()), value.clone()),
                Some(range) => match part(&range, value.len()) {
                    Some(bounds) => {
                        let body = value.slice(bounds.clone());
                        let content = format!("bytes {}-{}/{}", bounds.start, bounds.end - 1, value.len());
                        (format!("206 Partial Content\r\nContent-Range: {content}\r\nContent-Length: {}", body.len()), body)
                    }
                    None => {
                        (format!("416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0", value.len()), Bytes::new())
                    }
                },
            },
        };
        let mut answer = format!("HTTP/1.1 {head}\r\nETag: \"x\"\r\n\r\n").into_bytes();
        if method == "GET" {
            answer.extend_from_slice(&body);
            sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        }
        writer.write_all(&answer).ok()?;
    }
}

/// The bytes of a `Range` header, as RFC 9110, section 14.1.2 has it.
fn part(range: &str, size: usize) -> Option<std::ops::Range<usize>> {
    let (first, last) = range.split_once('-')?;
    let bounds = match (first.parse::<usize>().ok(), last.parse::<u64>().ok()) {
        (Some(first), last) => first..last.map_or(size, |last| usize::try_from(last.saturating_add(1)).unwrap().min(size)),
        (None, Some(suffix)) => size.saturating_sub(usize::try_from(suffix).unwrap())..size,
        (None, None) => return None,
    };
    (bounds.start < bounds.end).then_some(bounds)
}

fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match escaped.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn laws(ranges: Ranges) {
    let runtime = Runtime::new().unwrap();
    let store = StoreUnderTest::filled(format!("a server, ranges {ranges:?}"), move |values| Server::with(values, ranges).open());
    assert_conforms(store.not_listable().within(move |check| {
        let _entered = runtime.enter();
        check();
    }));
}

#[test]
fn no_runtime_is_needed() {
    let server = Server::with(&[(key("a"), "value".into())], Ranges::Given);
    let AnyStore::Async(store) = server.open() else { panic!("blocking") };
    let value = futures::executor::block_on(store.get(&key("a"), ByteRange::Suffix(2)));
    assert_eq!(value.unwrap().as_deref(), Some(&b"ue"[..]));
    // Requests are repeated after a while, which takes a timer.
    let broken = Server::with(&[], Ranges::Broken);
    let AnyStore::Async(store) = broken.open() else { panic!("blocking") };
    thread::spawn(move || futures::executor::block_on(store.get(&key("a"), ByteRange::All)));
    let start = std::time::Instant::now();
    while broken.requests.load(Ordering::Relaxed) < 2 {
        assert!(start.elapsed().as_secs() < 20, "the request was not repeated");
        thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn laws_without_a_runtime() {
    let open = |values: &[(StoreKey, Bytes)]| Server::with(values, Ranges::Given).open();
    assert_conforms(StoreUnderTest::filled("a server, and no runtime", open).not_listable());
}

#[test]
fn laws_with_ranges() {
    laws(Ranges::Given);
}

#[test]
fn laws_without_ranges() {
    laws(Ranges::Ignored);
}

fn blocking(any: AnyStore) -> Arc<dyn Store> {
    match any {
        AnyStore::Blocking(store) => store,
        AnyStore::Async(store) => Arc::new(AsyncToBlocking::new(store).unwrap()),
    }
}

#[test]
fn only_what_is_asked_for_is_sent() {
    let server = Server::with(&[(key("a"), vec![7; 1_000_000].into())], Ranges::Given);
    let store = blocking(server.open());
    store.get(&key("a"), ByteRange::Suffix(100)).unwrap().unwrap();
    store.get(&key("a"), (500..600).into()).unwrap().unwrap();
    store.get_into(&key("a"), ByteRange::From(999_000), &mut [0; 2000]).unwrap().unwrap();
    assert_eq!(server.requests.load(Ordering::Relaxed), 3);
    assert_eq!(server.bytes.load(Ordering::Relaxed), 1200);
    assert!(store.as_writable().is_none() && store.as_listable().is_none());
}

#[test]
fn a_zip_archive_on_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zip");
    let archive = ZipStore::create(&path).unwrap();
    archive.set(&key("array/zarr.json"), "{}".into()).unwrap();
    archive.set(&key("array/c/0"), vec![7; 1_000_000].into()).unwrap();
    archive.close().unwrap();
    let mut bytes = Vec::new();
    std::fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();

    let server = Server::with(&[(key("in/x.zip"), bytes.into())], Ranges::Given);
    let store = blocking(open_url(&format!("{}/in/x.zip", server.url()), &OpenOptions::read()).unwrap());
    assert_eq!(store.as_listable().unwrap().list(&StorePrefix::root()).unwrap(), [key("array/c/0"), key("array/zarr.json")]);
    assert_eq!(store.get(&key("array/c/0"), (10..20).into()).unwrap().as_deref(), Some(&[7; 10][..]));
    assert!(server.bytes.load(Ordering::Relaxed) < 200_000, "the directory and ten bytes took more");

    let error = open_url(&format!("{}/none.zip", server.url()), &OpenOptions::read()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotFound, "{error}");
}

#[test]
fn a_server_that_is_not_there() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = OpenOptions::read().with("connect_timeout", "1s").with("timeout", "1s");
    assert!(open_url(&format!("http://{gone}/data"), &settings).is_ok(), "nothing is asked yet");
    let error = open_url("http://127.0.0.1/data", &OpenOptions::read().with("colour", "red")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Parameter);
    assert!(error.to_string().contains("colour"), "{error}");
}

#[test]
fn without_a_server_that_works_nothing_is_missing() {
    // An error must never look like a key that is not there. The client repeats the request for a
    // while, so only the first answers are waited for.
    let server = Server::with(&[(key("a"), "value".into())], Ranges::Broken);
    let store = Arc::new(blocking(server.open()));
    let (send, receive) = std::sync::mpsc::channel();
    thread::spawn(move || send.send(store.get(&key("a"), ByteRange::All).map_err(|error| error.kind())));
    match receive.recv_timeout(std::time::Duration::from_secs(2)) {
        Ok(answer) => assert!(answer.is_err(), "{answer:?}"),
        Err(_) => assert!(server.requests.load(Ordering::Relaxed) > 1, "the request was not repeated"),
    }
}

#[cfg(feature = "s3")]
#[test]
fn an_object_store_that_ignores_ranges() {
    // What `object_store` says then is known by its text alone.
    let server = Server::with(&[(key("a"), "a longer value".into())], Ranges::Ignored);
    let settings = OpenOptions::read().with("endpoint", format!("http://{}", server.address)).with("allow_http", "true");
    let store = blocking(open_url("s3://data/", &settings.with("skip_signature", "true")).unwrap());
    assert_eq!(store.get(&key("a"), ByteRange::Suffix(5)).unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(server.requests.load(Ordering::Relaxed), 2);
    assert_eq!(store.get(&key("a"), (2..8).into()).unwrap().as_deref(), Some(&b"longer"[..]));
    assert_eq!(server.requests.load(Ordering::Relaxed), 3, "it was tried again");
}
