//! What is particular to files: links, foreign things in the directory, names, errors.

use std::fs;
use std::time::Duration;

use zarr_store::FilesystemStore;
use zarr_store_api::{ByteRange, ListableStore, ReadableStore, StoreErrorKind, StoreKey, StorePrefix, StoredValue, WritableStore};

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn prefix(text: &str) -> StorePrefix {
    StorePrefix::new(text).unwrap()
}

fn listed(store: &FilesystemStore) -> Vec<String> {
    store.list(&StorePrefix::root()).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn a_replaced_file_is_seen_and_an_open_read_is_not_disturbed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (FilesystemStore::new(dir.path()).unwrap(), FilesystemStore::new(dir.path()).unwrap());
    one.set(&key("a"), "old".into()).unwrap();
    assert_eq!(other.get(&key("a"), ByteRange::All).unwrap().as_deref(), Some(&b"old"[..]));
    one.set(&key("a"), "newer".into()).unwrap();
    assert_eq!(other.get(&key("a"), ByteRange::All).unwrap().as_deref(), Some(&b"newer"[..]));
}

#[test]
fn temporary_names_are_no_keys_and_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    store.set(&key("a/b"), "value".into()).unwrap();
    let left = dir.path().join("a/.zarr-partial.1.2.3");
    fs::write(&left, "half of something").unwrap();
    fs::create_dir_all(dir.path().join(".zarr-partial.4/c")).unwrap();
    assert_eq!(listed(&store), ["a/b"]);
    assert!(store.list_dir(&StorePrefix::root()).unwrap().prefixes == [prefix("a")]);
    let error = store.get(&key("a/.zarr-partial.1.2.3"), ByteRange::All).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InvalidKey);

    assert_eq!(store.remove_abandoned(Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(store.remove_abandoned(Duration::ZERO).unwrap(), 2);
    assert!(!left.exists());
    assert_eq!(listed(&store), ["a/b"]);
}

#[test]
fn a_part_is_read_whether_it_ends_in_the_value_or_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    store.set(&key("a/b"), "value".into()).unwrap();
    let part = |text: &str, range: std::ops::Range<u64>, room: usize| {
        let mut dst = vec![b'-'; room];
        let read = store.get_into(&key(text), range.into(), &mut dst).map_err(|error| error.kind())?;
        Ok(read.map(|len| (len, String::from_utf8(dst).unwrap())))
    };
    let some = |len: usize, bytes: &str| Ok(Some((len, bytes.to_owned())));
    assert_eq!(part("a/b", 1..4, 3), some(3, "alu"));
    assert_eq!(part("a/b", 1..4, 5), some(3, "alu--"));
    assert_eq!(part("a/b", 3..9, 6), some(2, "ue----"));
    // No more is asked of the memory than is there to be read.
    assert_eq!(part("a/b", 3..9, 2), some(2, "ue"));
    assert_eq!(part("a/b", 5..9, 4), some(0, "----"));
    assert_eq!(part("a/b", 1..4, 2), Err(StoreErrorKind::Parameter));
    assert_eq!(part("a/b", 6..9, 3), Err(StoreErrorKind::OutOfRange));
    assert_eq!(part("a/b", u64::MAX - 2..u64::MAX, 2), Err(StoreErrorKind::OutOfRange));
    for absent in ["a", "a/c", "a/b/c"] {
        assert_eq!(part(absent, 0..2, 2), Ok(None), "{absent}");
        assert_eq!(part(absent, 0..2, 0), Ok(None), "{absent}");
    }
}

#[test]
fn a_reader_stays_with_the_value_that_it_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    store.set(&key("a"), "old value".into()).unwrap();
    let (reader, absent) = (store.reader(&key("a")).unwrap(), store.reader(&key("b")).unwrap());
    store.set(&key("a"), "new".into()).unwrap();
    store.set(&key("b"), "new".into()).unwrap();
    let mut bytes = [0; 4];
    assert_eq!(reader.get_into(ByteRange::from(4..8), &mut bytes).unwrap(), Some(4));
    assert_eq!((&bytes, reader.get(ByteRange::Suffix(5)).unwrap().as_deref()), (b"valu", Some(&b"value"[..])));
    assert_eq!(reader.get_ranges(&[ByteRange::All, ByteRange::from(0..3)]).unwrap().unwrap(), ["old value", "old"]);
    assert_eq!(reader.get_into(ByteRange::All, &mut bytes).unwrap_err().kind(), StoreErrorKind::Parameter);
    assert_eq!(absent.get(ByteRange::All).unwrap(), None);
    assert_eq!(store.reader(&key("a")).unwrap().get(ByteRange::All).unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_value_is_made_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    for (len, piece) in [(100, 40), (100, 100), (100, 0), (7, 40), (0, 40), (0, 0)] {
        let mut lengths = Vec::new();
        let mut make = |at: u64, piece: &mut [u8]| {
            assert_eq!(at as usize, lengths.iter().sum::<usize>());
            piece.iter_mut().zip(at as u8..).for_each(|(byte, value)| *byte = value);
            lengths.push(piece.len());
        };
        store.set_pieces(&key("a/b"), len, &mut vec![0; piece], &mut make).unwrap();
        assert!(lengths.iter().all(|&length| piece == 0 || length <= piece), "{lengths:?}");
        let expected: Vec<u8> = (0..len as u8).collect();
        assert_eq!(store.get(&key("a/b"), ByteRange::All).unwrap().unwrap(), expected);
    }
    assert_eq!(listed(&store), ["a/b"]);
}

#[test]
fn pieces_come_in_order_and_from_one_value() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    let value: Vec<u8> = (0..100).collect();
    store.set(&key("a"), value.clone().into()).unwrap();
    let pieces = |range: ByteRange, piece: usize| {
        let (mut read, mut lengths) = (Vec::new(), Vec::new());
        let len = store
            .get_pieces(&key("a"), range, &mut vec![0; piece], &mut |at, bytes| {
                assert_eq!(at, read.len() as u64);
                if at == 0 {
                    store.set(&key("a"), vec![0; 7].into()).unwrap();
                }
                read.extend_from_slice(bytes);
                lengths.push(bytes.len());
            })
            .unwrap();
        store.set(&key("a"), value.clone().into()).unwrap();
        assert_eq!(len, Some(read.len() as u64));
        (read, lengths)
    };
    assert_eq!(pieces(ByteRange::All, 40), (value.clone(), vec![40, 40, 20]));
    assert_eq!(pieces(ByteRange::Suffix(60), 30), (value[40..].to_vec(), vec![30, 30]));
    assert_eq!(pieces(ByteRange::All, 0), (value.clone(), vec![100]));
    assert_eq!(pieces(ByteRange::from(9..9), 5), (Vec::new(), Vec::new()));
    assert_eq!(store.get_pieces(&key("b"), ByteRange::All, &mut [0; 5], &mut |_, _| panic!("no such value")).unwrap(), None);
    assert!(store.get_pieces(&key("a"), ByteRange::From(101), &mut [0; 5], &mut |_, _| panic!("no such range")).is_err());
}

#[test]
fn a_value_and_a_prefix_cannot_share_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    store.set(&key("a/b"), "value".into()).unwrap();
    for clash in ["a", "a/b/c", "a/b/c/d"] {
        let error = store.set(&key(clash), "other".into()).unwrap_err();
        assert_eq!((error.kind(), error.stored()), (StoreErrorKind::InvalidKey, Some(StoredValue::Old)), "{clash}: {error}");
    }
    assert_eq!(listed(&store), ["a/b"]);
    // An empty directory, on the other hand, is nothing.
    fs::create_dir(dir.path().join("empty")).unwrap();
    store.set(&key("empty"), "value".into()).unwrap();
    assert_eq!(store.size(&key("empty")).unwrap(), Some(5));
}

#[test]
fn long_names_use_the_whole_length_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = FilesystemStore::new(dir.path()).unwrap();
    let longest = key(&"n".repeat(255));
    store.set(&longest, "value".into()).unwrap();
    assert_eq!(store.size(&longest).unwrap(), Some(5));
    let error = store.set(&key(&"n".repeat(256)), "value".into()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InvalidKey, "{error}");
}

#[test]
fn a_path_that_is_a_file_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "x").unwrap();
    assert_eq!(FilesystemStore::new(path).unwrap_err().kind(), StoreErrorKind::Parameter);
}

/// Where the system lets nobody make directories, whoever asks.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let store = FilesystemStore::new("/proc/zarr").unwrap();
    let error = store.set(&key("a/b"), "x".into()).unwrap_err();
    assert_eq!((error.kind(), error.stored()), (StoreErrorKind::NotFound, Some(StoredValue::Old)));
    assert_eq!(error.message(), "cannot create the directory /proc/zarr/a");
    let store = FilesystemStore::new("/dev").unwrap();
    if let Err(error) = store.set(&key("null/b"), "x".into()) {
        assert!(error.to_string().contains("key `null/b`"), "{error}");
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_are_followed_to_read_and_replaced_to_write() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = FilesystemStore::new(dir.path()).unwrap();
        fs::write(elsewhere.path().join("chunk"), "outside").unwrap();
        symlink(elsewhere.path(), dir.path().join("c")).unwrap();
        symlink(elsewhere.path().join("chunk"), dir.path().join("link")).unwrap();
        symlink(elsewhere.path().join("nothing"), dir.path().join("dangling")).unwrap();
        assert_eq!(listed(&store), ["c/chunk", "link"]);
        assert_eq!(store.get(&key("c/chunk"), ByteRange::Suffix(4)).unwrap().as_deref(), Some(&b"side"[..]));
        assert_eq!(store.get(&key("dangling"), ByteRange::All).unwrap(), None);

        store.set(&key("link"), "inside".into()).unwrap();
        assert_eq!(fs::read(elsewhere.path().join("chunk")).unwrap(), b"outside");
        store.erase_prefix(&prefix("c")).unwrap();
        assert!(elsewhere.path().join("chunk").exists(), "erasing a prefix went through a link");
        assert_eq!(listed(&store), ["link"]);
    }

    #[test]
    fn links_in_circles_end() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        store.set(&key("a/b/chunk"), "value".into()).unwrap();
        for (number, target) in ["a", ".", "a/b", ".."].into_iter().enumerate() {
            symlink(dir.path().join(target), dir.path().join(format!("a/b/loop{number}"))).unwrap();
        }
        let listed = listed(&store);
        assert!(listed.contains(&"a/b/chunk".to_owned()) && listed.len() < 20, "{listed:?}");
    }

    #[test]
    fn a_named_pipe_is_no_value_and_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no mkfifo");
            return;
        }
        assert_eq!(store.get(&key("pipe"), ByteRange::All).unwrap(), None);
        assert_eq!(store.size(&key("pipe")).unwrap(), None);
        for range in [ByteRange::All, ByteRange::from(0..2)] {
            assert_eq!(store.get_into(&key("pipe"), range, &mut [0; 2]).unwrap(), None, "{range}");
        }
        assert!(listed(&store).is_empty());
    }

    #[test]
    fn names_that_are_not_text_are_not_seen() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "x").unwrap();
        store.set(&key("a"), "value".into()).unwrap();
        assert_eq!(listed(&store), ["a"]);
        store.erase_prefix(&StorePrefix::root()).unwrap();
    }

    /// What the children of the next test do: not a test of its own.
    #[test]
    fn writer_with_a_umask() {
        let Ok(dir) = std::env::var("ZARR_STORE_TEST_UMASK") else { return };
        let dir = std::path::Path::new(&dir);
        fs::write(dir.join("as others do"), "").unwrap();
        let store = FilesystemStore::new(dir).unwrap();
        (0..2).for_each(|_| store.set(&key("new"), "value".into()).unwrap());
        store.set(&key("another"), "value".into()).unwrap();
    }

    #[test]
    fn the_umask_is_heeded() {
        for umask in ["000", "002", "022", "027", "077"] {
            let dir = tempfile::tempdir().unwrap();
            let mut child = std::process::Command::new("sh");
            child.args(["-c", &format!("umask {umask} && exec \"$0\" --exact unix::writer_with_a_umask")]);
            let output = child.arg(std::env::current_exe().unwrap()).env("ZARR_STORE_TEST_UMASK", dir.path()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            let mode = |name| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            for name in ["new", "another"] {
                assert_eq!(mode(name), mode("as others do"), "{umask}");
            }
        }
    }

    #[test]
    fn a_directory_one_may_not_write_to() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        store.set(&key("a/b"), "value".into()).unwrap();
        fs::set_permissions(dir.path().join("a"), fs::Permissions::from_mode(0o555)).unwrap();
        if fs::write(dir.path().join("a/probe"), "x").is_ok() {
            eprintln!("skipped: permissions do not apply to this user");
            return;
        }
        let error = store.set(&key("a/b"), "other".into()).unwrap_err();
        fs::set_permissions(dir.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!((error.kind(), error.stored()), (StoreErrorKind::Permission, Some(StoredValue::Old)));
        assert_eq!(store.get(&key("a/b"), ByteRange::All).unwrap().as_deref(), Some(&b"value"[..]));
    }
}
