//! A file server that answers like an object store far away: `server ROOT --latency MS --rate MBS`. It serves the files below `ROOT` over HTTP/1.1, each request
//! answered so many milliseconds late, and each connection sent at most so many megabytes (10^6) a second; 0: as fast as it goes.
//!
//! Prints its port, then serves until it is killed. `GET /.counts` gives what it was asked for since the last time, as JSON.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue, LAST_MODIFIED, RANGE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, sleep_until};

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Bytes that are sent at a time.
const FRAME: u64 = 128 << 10;

struct Server {
    root: PathBuf,
    latency: Duration,
    /// Bytes a second of each connection.
    rate: Option<f64>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

impl Counts {
    fn take(&self) -> String {
        let [requests, bytes, most] = [&self.requests, &self.bytes, &self.most].map(|count| count.swap(0, Ordering::Relaxed));
        format!("{{\"requests\": {requests}, \"bytes\": {bytes}, \"most_at_once\": {most}}}\n")
    }

    fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }
}

/// A request that is under way.
struct UnderWay(Arc<Server>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.counts.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bytes that a `Range` header wants of a file of so many; none: none of them are there.
fn wanted(header: Option<&HeaderValue>, len: u64) -> Option<Range<u64>> {
    let Some(text) = header else { return Some(0..len) };
    let (first, last) = text.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", suffix) => len.saturating_sub(suffix.parse().ok()?)..len,
        (first, "") => first.parse().ok()?..len,
        (first, last) => first.parse().ok()?..last.parse::<u64>().ok()?.saturating_add(1).min(len),
    };
    Some(range).filter(|range| !range.is_empty())
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Full::from(text).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

async fn answer(server: Arc<Server>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/.counts" {
        return Ok(plain(StatusCode::OK, server.counts.take()));
    }
    server.counts.begin();
    let under_way = UnderWay(Arc::clone(&server));
    sleep(server.latency).await;
    let below = Path::new(request.uri().path().trim_start_matches('/'));
    if below.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Ok(plain(StatusCode::BAD_REQUEST, "no such path\n".into()));
    }
    let Ok(file) = File::open(server.root.join(below)) else { return Ok(plain(StatusCode::NOT_FOUND, "no such file\n".into())) };
    let Some(len) = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|of| of.len()) else {
        return Ok(plain(StatusCode::NOT_FOUND, "no such file\n".into()));
    };
    let part = request.headers().get(RANGE);
    let Some(range) = wanted(part, len) else {
        return Ok(plain(StatusCode::RANGE_NOT_SATISFIABLE, "no such bytes\n".into()));
    };
    let mut response = Response::builder()
        .header(ACCEPT_RANGES, "bytes")
        .header(ETAG, format!("\"{len:x}\""))
        .header(LAST_MODIFIED, "Sun, 01 Nov 2026 00:00:00 GMT");
    if part.is_some() {
        response = response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(CONTENT_RANGE, format!("bytes {}-{}/{len}", range.start, range.end.saturating_sub(1)));
    }
    response = response.header(CONTENT_LENGTH, range.end - range.start);
    if request.method() == Method::HEAD {
        return Ok(response.body(Full::default().map_err(|never| match never {}).boxed_unsync()).unwrap_or_default());
    }
    let (begun, first) = (Instant::now(), range.start);
    let frames = stream::unfold((range, file, under_way), move |(range, file, under_way)| async move {
        if range.is_empty() {
            return None;
        }
        let server = &under_way.0;
        if let Some(rate) = server.rate {
            sleep_until(begun + Duration::from_secs_f64((range.start - first) as f64 / rate)).await;
        }
        let end = range.end.min(range.start + FRAME);
        let mut bytes = vec![0; (end - range.start) as usize];
        let frame = file.read_exact_at(&mut bytes, range.start).map(|()| Frame::data(Bytes::from(bytes)));
        server.counts.bytes.fetch_add(end - range.start, Ordering::Relaxed);
        Some((frame, (end..range.end, file, under_way)))
    });
    Ok(response.body(StreamBody::new(frames).boxed_unsync()).unwrap_or_default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = args.next().ok_or("server ROOT [--latency MS] [--rate MBS]")?;
    let (mut latency, mut rate) = (0.0, 0.0);
    while let Some(flag) = args.next() {
        let value: f64 = args.next().ok_or("a flag without a value")?.parse()?;
        match flag.as_str() {
            "--latency" => latency = value,
            "--rate" => rate = value,
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let rate = Some(rate * 1e6).filter(|&rate| rate > 0.0);
    let server = Arc::new(Server { root: root.into(), latency: Duration::from_secs_f64(latency / 1e3), rate, counts: Counts::default() });
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&server), request));
            // Clients may go away at any time.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
