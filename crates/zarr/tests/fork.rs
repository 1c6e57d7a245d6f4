//! A process that was forked has none of its parent's threads and connections, and reads and writes all the same.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zarr::store::MemoryStore;
use zarr::{Array, ArrayBuilder, DataType, Node, OpenOptions, Pool, Selection};

/// Whether `work` succeeds in a process forked from this one, within half a minute.
#[expect(unsafe_code, reason = "forks")]
fn in_a_fork(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child is this thread alone, takes no lock but those that this test is about, and leaves without running anything else.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "cannot fork");
    if child == 0 {
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: waits for a child of this process, and writes where it is told.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if start.elapsed() > Duration::from_secs(30) {
            // SAFETY: a child of this process.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child does not come to an end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Many chunks, and one shard of many.
fn layouts() -> [ArrayBuilder; 2] {
    let chunks = ArrayBuilder::new([64, 10_000], DataType::Float32).chunks([5, 300]);
    [chunks.clone(), chunks.chunks([1, 10_000]).shards([64, 10_000])]
}

fn elements() -> Vec<u8> {
    (0..640_000u32).flat_map(|number| (number as f32).to_ne_bytes()).collect()
}

fn reads(array: &Array, expected: &[u8]) -> bool {
    array.read(&Selection::all()).is_ok_and(|data| data.as_bytes() == Some(expected))
}

fn works(array: &Array, expected: &[u8]) -> bool {
    reads(array, expected) && array.write(&Selection::all(), expected).is_ok() && reads(array, expected)
}

/// Whoever has threads of a pool shares it.
fn own_pool() -> Pool {
    Pool::new(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap()))
}

/// A parent that has counted the threads of the pool, which starts them, and not used them.
fn counted() {
    let [chunks, _] = layouts();
    let array = chunks.create(MemoryStore::new(), "/", &zarr::options()).unwrap();
    drop(array.read_each(array.chunk_selections()));
    let expected = elements();
    assert!(in_a_fork(|| array.write(&Selection::all(), &expected).is_ok() && works(&array, &expected)), "after counting");
}

fn threads() {
    let mut arrays = Vec::new();
    for pool in [Pool::global(), own_pool()] {
        let options = zarr::options().with_pool(pool);
        arrays.extend(layouts().map(|builder| builder.create(MemoryStore::new(), "/", &options).unwrap()));
    }
    let expected = elements();
    let all_work = || arrays.iter().all(|array| works(array, &expected));
    arrays.iter().for_each(|array| array.write(&Selection::all(), &expected).unwrap());
    assert!(all_work());
    assert!(in_a_fork(all_work), "in a child");
    assert!(in_a_fork(|| all_work() && in_a_fork(all_work)), "in a child of a child");
    assert!(all_work(), "in the parent, afterwards");
}

/// Reads that run ahead while the process forks, for a thread of a pool too, go on in a child: whatever its parent's threads had hold of is not waited for.
fn running_ahead() {
    const ROWS: u64 = 64;
    let pool = || Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    let (parents, expected) = (pool(), elements());
    let folder = tempfile::tempdir().unwrap();
    let store = zarr::AnyStore::blocking(zarr::store::FilesystemStore::new(folder.path()).unwrap());
    let rows = || (0..ROWS).map(|row| Selection::ranges([row..row + 1, 0..10_000]));
    for (name, builder) in ["chunks", "shards"].into_iter().zip(layouts()) {
        let options = zarr::options().with_pool(Pool::new(Arc::clone(&parents)));
        let array = builder.create(store.clone(), name, &options).unwrap();
        array.write(&Selection::all(), &expected).unwrap();
        for begun in [1, 3, 8, 16] {
            for of_pool in [false, true] {
                let mut each = array.read_each(rows());
                let mut begin = || each.by_ref().take(begun).all(|read| read.is_ok());
                assert!(if of_pool { parents.install(begin) } else { begin() });
                let mut rest = || each.by_ref().filter(Result::is_ok).count() + begun == ROWS as usize;
                let good = in_a_fork(|| if of_pool { pool().install(&mut rest) } else { rest() } && works(&array, &expected));
                assert!(good, "in a child, after {begun}");
                assert!(if of_pool { parents.install(&mut rest) } else { rest() }, "in the parent, afterwards");
            }
        }
    }
}

/// Answers requests for files below a folder, until the process ends. Connections stay open.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |connection: TcpStream, folder: &Path| -> Option<()> {
        let mut lines = BufReader::new(connection.try_clone().ok()?).lines();
        loop {
            let first = lines.next()?.ok()?;
            while !lines.next()?.ok()?.is_empty() {}
            let file = std::fs::read(folder.join(first.split(' ').nth(1)?.trim_start_matches('/')));
            let status = if file.is_ok() { "200 OK" } else { "404 Not Found" };
            let body = file.unwrap_or_default();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            (&connection).write_all(head.as_bytes()).ok()?;
            if first.starts_with("GET") {
                (&connection).write_all(&body).ok()?;
            }
        }
    };
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || answer(connection, &folder));
        }
    });
    format!("http://{address}")
}

fn connections() {
    let folder = tempfile::tempdir().unwrap();
    let [chunks, _] = layouts();
    let stored = zarr::store::FilesystemStore::new(folder.path().join("data.zarr")).unwrap();
    chunks.create(stored, "/", &zarr::options()).unwrap().write(&Selection::all(), &elements()).unwrap();
    let url = format!("{}/data.zarr", serve(folder.path().to_owned()));
    let (store, inside) = zarr::locate(&url, &OpenOptions::read()).unwrap();
    let Node::Array(array) = Node::open(store, &inside, &zarr::options()).unwrap() else { panic!("an array") };
    let expected = elements();
    assert!(reads(&array, &expected));
    assert!(in_a_fork(|| reads(&array, &expected)), "in a child");
    assert!(reads(&array, &expected), "in the parent, afterwards");
}

/// One test, so that no other thread holds a lock when the process forks.
#[test]
fn a_forked_process_has_threads_and_connections_of_its_own() {
    counted();
    threads();
    running_ahead();
    connections();
}
