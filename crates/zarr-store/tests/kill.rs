//! Writers that are killed, and writers that run out of room, leave each key old or new.
//!
//! The writers are this test program again, started with a variable that tells it what to be.

#![cfg(unix)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use zarr_store::{Durability, FilesystemStore};
use zarr_store_api::{ByteRange, ListableStore, ReadableStore, StoreErrorKind, StoreKey, StorePrefix, StoredValue, WritableStore};

const ROLE: &str = "ZARR_STORE_TEST_WRITER";
const KEYS: usize = 4;
/// Large enough that a write takes a while.
const LENGTH: usize = 1 << 20;

fn key(number: usize) -> StoreKey {
    StoreKey::new(format!("array/c/{number}")).unwrap()
}

/// A value that tells which generation it is of, in every byte, and is as long as it should be.
fn value(generation: u8) -> Vec<u8> {
    vec![generation; LENGTH + usize::from(generation)]
}

fn assert_whole(store: &FilesystemStore, key: &StoreKey) {
    let read = store.get(key, ByteRange::All).unwrap().expect("the key has a value");
    let generation = *read.first().expect("no value is empty");
    assert_eq!(read.len(), LENGTH + usize::from(generation), "{key} has a torn value");
    assert!(read.iter().all(|byte| *byte == generation), "{key} has a mixed value");
}

/// The store of a writer, and the file in which it marks that it is in the middle of a write.
fn places(dir: &Path) -> (FilesystemStore, File) {
    let marks = File::options().create(true).truncate(false).read(true).write(true).open(dir.join("marks")).unwrap();
    (FilesystemStore::new(dir.join("store")).unwrap(), marks)
}

/// What the killed children do: not a test of its own.
#[test]
fn writer() {
    let (Ok(dir), Ok(kind)) = (std::env::var(ROLE), std::env::var(format!("{ROLE}_KIND"))) else { return };
    let (store, marks) = places(Path::new(&dir));
    let store = store.with_durability(if kind == "durable" { Durability::File } else { Durability::Process });
    for (round, generation) in (1..=250).cycle().enumerate() {
        for number in 0..KEYS {
            let (key, value) = (key(number + if kind == "new" { round * KEYS } else { 0 }), value(generation));
            marks.write_all_at(&[1], 0).unwrap();
            match number % 2 {
                0 => store.set(&key, value.into()).unwrap(),
                _ => {
                    let parts: Vec<&[u8]> = value.chunks(100_000).collect();
                    store.set_vectored(&key, &parts).unwrap();
                }
            }
            marks.write_all_at(&[0], 0).unwrap();
        }
    }
}

fn start_writer(dir: &Path, kind: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer"])
        .env(ROLE, dir)
        .env(format!("{ROLE}_KIND"), kind)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills writers until several were in the middle of a write, and looks at the store after each.
fn kill_writers(dir: &Path, kind: &str, mut look: impl FnMut(&FilesystemStore)) {
    let (store, marks) = places(dir);
    let mut killed_while_writing = 0;
    let mut rounds = 0..400u64;
    // Unless several are caught at it, the test shows nothing: on a machine that is busy with other things, writers take longer to begin.
    while let Some(round) = rounds.next().filter(|&round| round < 40 || killed_while_writing <= 3) {
        marks.write_all_at(&[0], 0).unwrap();
        let mut child = start_writer(dir, kind);
        // Moments spread over starting up, the first write and later ones.
        std::thread::sleep(Duration::from_micros((500 + round * 1171 % 25_000) * (1 + round / 40)));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut mark = [0];
        marks.read_exact_at(&mut mark, 0).unwrap();
        killed_while_writing += u64::from(mark[0]);
        look(&store);
    }
    assert!(killed_while_writing > 3, "only {killed_while_writing} writers were killed in a write");
    println!("{killed_while_writing} of {} writers were killed in the middle of a write", rounds.start);
}

fn kill_replacing_writers(kind: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = places(dir.path());
    (0..KEYS).for_each(|number| store.set(&key(number), value(0).into()).unwrap());
    let mut left = 0;
    kill_writers(dir.path(), kind, |store| {
        (0..KEYS).for_each(|number| assert_whole(store, &key(number)));
        let keys = store.list(&StorePrefix::root()).unwrap();
        assert_eq!(keys.len(), KEYS, "something else is listed: {keys:?}");
        left += store.remove_abandoned(Duration::ZERO).unwrap();
    });
    println!("they left {left} files");
}

#[test]
fn killed_at_any_moment() {
    kill_replacing_writers("replacing");
}

#[test]
fn killed_at_any_moment_of_a_durable_write() {
    kill_replacing_writers("durable");
}

#[test]
fn killed_while_writing_new_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut left = 0;
    kill_writers(dir.path(), "new", |store| {
        store.list(&StorePrefix::root()).unwrap().iter().for_each(|key| assert_whole(store, key));
        left += store.remove_abandoned(Duration::ZERO).unwrap();
        store.erase_prefix(&StorePrefix::root()).unwrap();
    });
    if has_unnamed_files(dir.path()) {
        assert_eq!(left, 0, "killed writers left files behind");
    } else {
        eprintln!("skipped: there are no unnamed files here");
    }
}

#[cfg(target_os = "linux")]
fn has_unnamed_files(dir: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(dir, OFlags::TMPFILE | OFlags::WRONLY, Mode::RUSR | Mode::WUSR).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn has_unnamed_files(_: &Path) -> bool {
    false
}

/// What the child with little room does: a write that fits, one that does not.
#[test]
fn writer_without_room() {
    let Ok(dir) = std::env::var(format!("{ROLE}_LIMIT")) else { return };
    let store = FilesystemStore::new(dir).unwrap();
    store.set(&key(0), vec![7; 1000].into()).unwrap();
    for error in [
        store.set(&key(1), value(9).into()).unwrap_err(),
        store.set_vectored(&key(1), &value(9).chunks(4096).collect::<Vec<_>>()).unwrap_err(),
        store.set(&key(2), value(9).into()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::NoSpace, "{error}");
        assert_eq!(error.stored(), Some(StoredValue::Old));
        println!("{error}");
    }
}

fn check_out_of_room(dir: &Path, child: &mut Command) {
    let store = FilesystemStore::new(dir).unwrap();
    store.set(&key(1), "what was there before".into()).unwrap();
    let output = child.env(format!("{ROLE}_LIMIT"), dir).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(store.get(&key(0), ByteRange::All).unwrap().unwrap().len(), 1000);
    assert_eq!(store.get(&key(1), ByteRange::All).unwrap().as_deref(), Some(&b"what was there before"[..]));
    assert_eq!(store.get(&key(2), ByteRange::All).unwrap(), None);
    assert_eq!(store.remove_abandoned(Duration::ZERO).unwrap(), 0, "a failed write left something behind");
}

#[test]
fn file_size_limit() {
    let dir = tempfile::tempdir().unwrap();
    // 512 KiB a file at most; without the trap the kernel would kill the writer.
    let mut child = Command::new("bash");
    child.args(["-c", "trap '' XFSZ; ulimit -f 512; exec \"$0\" --exact writer_without_room --nocapture"]);
    child.arg(std::env::current_exe().unwrap());
    if !Command::new("bash").args(["-c", "ulimit -f 512"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no bash to set a limit with");
        return;
    }
    check_out_of_room(dir.path(), &mut child);
}

#[test]
fn disk_full() {
    let dir = tempfile::tempdir().unwrap();
    // A disk of 600 KiB, visible to the child and its check only.
    let script = "mount -t tmpfs -o size=600k none \"$1\" && exec \"$0\" --exact disk_full_inside --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.arg(std::env::current_exe().unwrap()).arg(dir.path()).env(format!("{ROLE}_FULL"), dir.path());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: no unshare to mount a small disk with: {error}");
            return;
        }
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() && !text.contains("running 1 test") {
        eprintln!("skipped: a small disk cannot be mounted here: {}", text.trim());
        return;
    }
    assert!(output.status.success(), "{text}");
}

/// Runs where the directory is a small disk of its own.
#[test]
fn disk_full_inside() {
    let Ok(dir) = std::env::var(format!("{ROLE}_FULL")) else { return };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "writer_without_room", "--nocapture"]);
    check_out_of_room(Path::new(&dir), &mut child);
}
