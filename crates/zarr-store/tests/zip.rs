//! Zip archives that others wrote, and such that no one should have written.

use std::sync::Arc;

use zarr_store::{MemoryStore, ZipLimits, ZipStore, ZipWriteOptions};
use zarr_store_api::{
    ByteRange, Bytes, ListableStore, ReadableStore, StoreError, StoreErrorKind, StoreKey, StorePrefix, StoredValue, WritableStore,
};

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn open(bytes: &[u8]) -> Result<ZipStore, StoreError> {
    open_with(bytes, ZipLimits::default())
}

fn open_with(bytes: &[u8], limits: ZipLimits) -> Result<ZipStore, StoreError> {
    let outer = MemoryStore::new();
    outer.set(&key("x.zip"), Bytes::copy_from_slice(bytes)).unwrap();
    ZipStore::open_in(Arc::new(outer), key("x.zip"), limits)
}

fn read_all(archive: &ZipStore) -> Vec<(String, Result<Bytes, StoreErrorKind>)> {
    let keys = archive.list(&StorePrefix::root()).unwrap();
    let read = |key: &StoreKey| archive.get(key, ByteRange::All).map(Option::unwrap).map_err(|error| error.kind());
    keys.iter().map(|key| (key.to_string(), read(key))).collect()
}

/// What `vectors/make_zip.py` put into its archives.
fn expected() -> Vec<(String, Result<Bytes, StoreErrorKind>)> {
    let numbers: Bytes = (0..5000u32).flat_map(|n| ((n * n) as u16).to_le_bytes()).collect();
    vec![
        ("array/c/0/0".to_owned(), Ok(numbers)),
        ("array/c/0/1".to_owned(), Ok(Bytes::new())),
        ("array/zarr.json".to_owned(), Ok("{\"zarr_format\": 3}".into())),
        ("température/é".to_owned(), Ok("unicode".into())),
    ]
}

macro_rules! vector {
    ($name:literal) => {
        include_bytes!(concat!("vectors/", $name, ".zip"))
    };
}

#[test]
fn archives_of_the_python_standard_library() {
    for (name, bytes) in [
        ("stored", &vector!("stored")[..]),
        ("deflated", vector!("deflated")),
        ("zip64", vector!("zip64")),
        ("streamed", vector!("streamed")),
        ("prefixed", vector!("prefixed")),
        ("commented", vector!("commented")),
    ] {
        assert_eq!(read_all(&open(bytes).unwrap()), expected(), "{name}");
    }
}

#[test]
fn the_last_of_several_entries_counts() {
    let archive = open(vector!("duplicates")).unwrap();
    assert_eq!(read_all(&archive), [("k".to_owned(), Ok("new".into()))]);
}

#[test]
fn names_that_cannot_be_keys_are_not_seen() {
    let archive = open(vector!("names")).unwrap();
    assert_eq!(read_all(&archive), [("good".to_owned(), Ok("1".into()))]);
}

#[test]
fn what_cannot_be_read_is_said() {
    let archive = open(vector!("methods")).unwrap();
    let error = archive.get(&key("bzip2"), ByteRange::All).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unsupported);
    assert!(error.to_string().contains("method 12"), "{error}");
    assert_eq!(archive.get(&key("stored"), ByteRange::All).unwrap().as_deref(), Some(&b"fine"[..]));
}

#[test]
fn not_an_archive() {
    for bytes in [&b""[..], b"PK", b"PK\x05\x06", &[0; 100], &vector!("stored")[..200]] {
        assert_eq!(open(bytes).unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
}

#[test]
fn a_changed_value_is_noticed() {
    let mut bytes = vector!("stored").to_vec();
    let at = bytes.windows(8).position(|window| window == b"\"zarr_fo").unwrap();
    bytes[at + 1] ^= 1;
    let archive = open(&bytes).unwrap();
    let error = archive.get(&key("array/zarr.json"), ByteRange::All).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(archive.get_into(&key("array/zarr.json"), ByteRange::All, &mut [0; 100]).is_err());
    let mut pieces = Vec::new();
    let error =
        archive.get_pieces(&key("array/zarr.json"), ByteRange::All, &mut [0; 10], &mut |_, piece| pieces.push(piece.len())).unwrap_err();
    assert_eq!((error.kind(), pieces.as_slice()), (StoreErrorKind::Corrupt, &[10, 8][..]), "{error}");
}

/// Opens and reads whatever there is to read.
fn poke(bytes: &[u8]) {
    let mut limits = ZipLimits::default();
    limits.inflated_bytes = 1 << 20;
    let Ok(archive) = open_with(bytes, limits) else { return };
    let mut dst = vec![0; 20_000];
    for key in archive.list(&StorePrefix::root()).unwrap() {
        let _ = archive.get(&key, ByteRange::All);
        let _ = archive.get(&key, ByteRange::Suffix(10));
        let _ = archive.get(&key, (5..20).into());
        let _ = archive.get_ranges(&key, &[(5..20).into(), ByteRange::From(1)]);
        let _ = archive.get_into(&key, ByteRange::All, &mut dst);
    }
}

#[test]
fn damaged_archives_do_no_harm() {
    for bytes in [&vector!("stored")[..], vector!("deflated"), vector!("zip64"), vector!("streamed")] {
        // Every field of headers and directory is within the first and last bytes.
        let ends = (0..bytes.len()).filter(|at| *at < 200 || at + 700 > bytes.len());
        for at in ends {
            for value in [0, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(0x40)] {
                let mut damaged = bytes.to_vec();
                damaged[at] = value;
                poke(&damaged);
            }
        }
        for length in (0..bytes.len()).step_by(17) {
            poke(&bytes[..length]);
            poke(&bytes[length..]);
        }
    }
}

#[test]
fn a_size_that_is_only_claimed_takes_no_memory() {
    // Sets both sizes in the directory of an archive with one deflated entry to about 4 GiB.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zip");
    let mut options = ZipWriteOptions::default();
    options.deflate_level = Some(6);
    let archive = ZipStore::create_with(&path, options).unwrap();
    archive.set(&key("k"), vec![0; 10_000_000].into()).unwrap();
    archive.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    bytes[at + 24..at + 28].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let claimed = open(&bytes).unwrap().get(&key("k"), ByteRange::All).unwrap_err();
    assert_eq!(claimed.kind(), StoreErrorKind::Corrupt, "{claimed}");
    bytes[at + 24..at + 28].copy_from_slice(&10_000_001u32.to_le_bytes());
    let short = open(&bytes).unwrap().get(&key("k"), ByteRange::All).unwrap_err();
    assert_eq!(short.kind(), StoreErrorKind::Corrupt, "{short}");
    bytes[at + 24..at + 28].copy_from_slice(&9_999_999u32.to_le_bytes());
    let long = open(&bytes).unwrap().get(&key("k"), ByteRange::All).unwrap_err();
    assert_eq!(long.kind(), StoreErrorKind::Corrupt, "{long}");

    let mut limits = ZipLimits::default();
    limits.directory_bytes = 10;
    assert_eq!(open_with(&bytes, limits).unwrap_err().kind(), StoreErrorKind::Limit);
}

#[test]
fn the_old_archive_stays_until_the_new_one_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zip");
    let first = ZipStore::create(&path).unwrap();
    first.set(&key("a"), "1".into()).unwrap();
    assert!(!path.exists());
    drop(first);

    let second = ZipStore::create(&path).unwrap();
    second.set(&key("b"), "2".into()).unwrap();
    assert_eq!(read_all(&ZipStore::open(&path).unwrap()), [("a".to_owned(), Ok("1".into()))]);
    second.abandon();
    assert_eq!(second.set(&key("b"), "3".into()).unwrap_err().kind(), StoreErrorKind::ReadOnly);
    drop(second);
    assert_eq!(read_all(&ZipStore::open(&path).unwrap()), [("a".to_owned(), Ok("1".into()))]);

    let third = ZipStore::append(&path, ZipWriteOptions::default()).unwrap();
    third.set(&key("b"), "2".into()).unwrap();
    third.set(&key("b"), "3".into()).unwrap();
    third.erase(&key("none")).unwrap();
    third.close().unwrap();
    assert_eq!(third.get(&key("b"), ByteRange::All).unwrap().as_deref(), Some(&b"3"[..]));
    let read = read_all(&ZipStore::open(&path).unwrap());
    assert_eq!(read, [("a".to_owned(), Ok("1".into())), ("b".to_owned(), Ok("3".into()))]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");

    std::thread::scope(|scope| {
        let broken = scope.spawn(|| {
            let archive = ZipStore::create(&path).unwrap();
            archive.set(&key("half"), "done".into()).unwrap();
            panic!("on purpose");
        });
        broken.join().unwrap_err();
    });
    assert_eq!(read_all(&ZipStore::open(&path).unwrap()).len(), 2);
}

/// Each adds a value; of those that close at the same time, one does, or they do so one behind the other.
#[test]
fn of_several_writers_that_close_at_once_one_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.zip");
    for round in 0..50 {
        let before = if path.exists() { read_all(&ZipStore::open(&path).unwrap()).len() } else { 0 };
        let begin = || if round == 0 { ZipStore::create(&path) } else { ZipStore::append(&path, Default::default()) };
        let writers: Vec<ZipStore> = (0..4).map(|_| begin().unwrap()).collect();
        let barrier = std::sync::Barrier::new(4);
        let close = |(number, archive): (usize, ZipStore)| {
            archive.set(&key(&format!("{round}-{number}")), Bytes::from_static(b"value")).unwrap();
            barrier.wait();
            usize::from(archive.close().is_ok())
        };
        let closed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = writers
                .into_iter()
                .enumerate()
                .map(|writer| {
                    scope.spawn({
                        let close = &close;
                        move || close(writer)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(closed, 1, "round {round}");
        assert_eq!(read_all(&ZipStore::open(&path).unwrap()).len(), before + 1);
    }
}

#[test]
fn what_somebody_else_wrote_meanwhile_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.zip");
    let write = |archive: &ZipStore, name: &str| archive.set(&key(name), Bytes::from_static(b"value")).unwrap();
    let first = ZipStore::create(&path).unwrap();
    let second = ZipStore::create(&path).unwrap();
    write(&first, "first");
    write(&second, "second");
    first.close().unwrap();
    let error = second.close().unwrap_err();
    assert!(error.to_string().contains("somebody else changed it meanwhile") && error.stored() == Some(StoredValue::Old), "{error}");
    drop(second);

    let (third, fourth) = (ZipStore::append(&path, Default::default()).unwrap(), ZipStore::append(&path, Default::default()).unwrap());
    write(&third, "third");
    write(&fourth, "fourth");
    third.close().unwrap();
    fourth.close().unwrap_err();
    drop(fourth);
    let names: Vec<String> = read_all(&ZipStore::open(&path).unwrap()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["first", "third"]);

    // What was removed meanwhile is nobody's.
    let fifth = ZipStore::append(&path, Default::default()).unwrap();
    std::fs::remove_file(&path).unwrap();
    fifth.close().unwrap();
    assert_eq!(read_all(&ZipStore::open(&path).unwrap()).len(), 2);
    // What a link leads to is replaced.
    #[cfg(unix)]
    {
        let link = directory.path().join("link.zip");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let sixth = ZipStore::append(&link, Default::default()).unwrap();
        write(&sixth, "sixth");
        sixth.close().unwrap();
        assert!(link.is_symlink() && read_all(&ZipStore::open(&path).unwrap()).len() == 3);
        std::fs::remove_file(&path).unwrap();
        let seventh = ZipStore::create(&link).unwrap();
        write(&seventh, "seventh");
        seventh.close().unwrap();
        assert!(link.is_symlink() && read_all(&ZipStore::open(&path).unwrap()).len() == 1);
        std::fs::remove_file(&link).unwrap();
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// As in containers, where every process has the same number.
#[test]
fn what_a_killed_writer_left_does_not_hinder_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let left = format!(".zarr-partial.{:x}.{number:x}.zip", std::process::id());
        std::fs::write(dir.path().join(left), "half an archive").unwrap();
    }
    let path = dir.path().join("x.zip");
    for value in ["first", "second"] {
        let archive = if path.exists() { ZipStore::append(&path, ZipWriteOptions::default()) } else { ZipStore::create(&path) };
        archive.and_then(|archive| archive.set(&key(value), value.into()).and_then(|()| archive.close())).unwrap();
    }
    assert_eq!(ZipStore::open(&path).unwrap().list(&StorePrefix::root()).unwrap(), [key("first"), key("second")]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 101);
}

#[test]
fn many_entries_need_zip64() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zip");
    let archive = ZipStore::create(&path).unwrap();
    for number in 0..70_000u32 {
        archive.set(&key(&format!("c/{number}")), Bytes::copy_from_slice(&number.to_le_bytes())).unwrap();
    }
    archive.close().unwrap();
    let archive = ZipStore::open(&path).unwrap();
    assert_eq!(archive.list(&StorePrefix::root()).unwrap().len(), 70_000);
    assert_eq!(archive.get(&key("c/69999"), ByteRange::All).unwrap().as_deref(), Some(&69_999u32.to_le_bytes()[..]));
}

/// Our archives are read by the zip library of Python, where there is one.
#[test]
fn python_reads_ours() {
    let dir = tempfile::tempdir().unwrap();
    for (name, level) in [("stored.zip", None), ("deflated.zip", Some(6))] {
        let path = dir.path().join(name);
        let mut options = ZipWriteOptions::default();
        options.deflate_level = level;
        let archive = ZipStore::create_with(&path, options).unwrap();
        archive.set(&key("a"), "replaced".into()).unwrap();
        for (name, value) in expected() {
            archive.set(&key(&name), value.unwrap()).unwrap();
        }
        archive.set(&key("a"), "again".into()).unwrap();
        archive.close().unwrap();
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                      print(sum(len(z.read(n)) for n in z.namelist()), *z.namelist(), sep='|')";
        match std::process::Command::new("python3").env("PYTHONIOENCODING", "utf-8").args(["-c", script]).arg(&path).output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!(printed.trim(), "10030|a|array/c/0/0|array/c/0/1|array/zarr.json|température/é");
            }
            Err(error) => eprintln!("skipped: there is no python3: {error}"),
        }
    }
}

/// Counts events, by whether they are errors.
struct Events(Arc<std::sync::atomic::AtomicUsize>);

impl tracing::Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn an_archive_that_is_dropped_and_cannot_be_closed_is_an_event() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let events = |work: &dyn Fn(ZipStore, &std::path::Path)| {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let archive = ZipStore::create(inside.join("x.zip")).unwrap();
        archive.set(&key("a"), Bytes::from_static(b"b")).unwrap();
        let before = count.load(std::sync::atomic::Ordering::Relaxed);
        tracing::subscriber::with_default(Events(Arc::clone(&count)), || work(archive, &inside));
        count.load(std::sync::atomic::Ordering::Relaxed) - before
    };
    assert_eq!(events(&|archive, _| drop(archive)), 0);
    assert_eq!(events(&|archive, _| archive.abandon()), 0);
    assert_eq!(events(&|archive, _| archive.close().unwrap()), 0);
    assert_eq!(
        events(&|archive, inside| {
            std::fs::remove_dir_all(inside).unwrap();
            drop(archive);
        }),
        1
    );
}
