//! The implementation of this workspace over all vectors, in this process and behind the command line.
#![cfg(feature = "reference")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zarr_conformance::implementation::{Exchange, Implementation, ImplementationUnderTest, Program, ReadJob, Trouble, ours};
use zarr_conformance::vectors::{self, Vector, VectorError, Verdict};
use zarr_conformance::{Suite, Trial, assert_conforms};

fn all() -> Arc<[Vector]> {
    vectors::load(&vectors::directory()).unwrap().into()
}

#[test]
fn ours_conforms() {
    let vectors = all();
    assert!(vectors.len() > 700, "{}", vectors.len());
    assert_conforms(ImplementationUnderTest::new(ours(), ours(), vectors));
}

/// What a specification leaves to readers: all but these are read, as meant.
#[test]
fn what_may_be_refused_is_read_but_for_a_few() {
    let implementation = ours();
    let vectors = all();
    let may = vectors.iter().filter(|vector| vector.verdict == Verdict::May);
    let refused: Vec<&str> = may
        .filter(|vector| implementation.read(&ReadJob { store: &vector.store, node: &vector.node, part: None }).is_err())
        .map(|vector| vector.id.as_str())
        .collect();
    let expected = [
        // A codec is never optional for reading.
        "meta/codec-may-ignore",
        "blosc/trailing-bytes",
        "meta/shape-float",
        // NumPy writes structured fills in base64.
        "v2/fill-struct-list",
        "vlen/trailing-bytes",
        // The registry bounds it.
        "zstd/level-out-of-range",
    ];
    let (mut refused, mut expected) = (refused, expected.to_vec());
    refused.sort_unstable();
    expected.sort_unstable();
    assert_eq!(refused, expected);
}

/// The same through a process that serves, and a few arrays through one process each.
#[test]
fn the_command_line_is_the_same() {
    let command = vec![env!("CARGO_BIN_EXE_zarr-conformance-adapter").to_owned()];
    let program = || Program::new("zarr-process", command.clone(), Duration::from_secs(30));
    let vectors = all();
    let chosen: Vec<Vector> = vectors.iter().step_by(9).cloned().collect();
    let served: Arc<dyn Implementation> = Arc::new(program().serving());
    assert!(served.identity().unwrap().starts_with("zarr-array "));
    assert_conforms(ImplementationUnderTest::new(Arc::clone(&served), ours(), chosen));
    let few: Vec<Vector> = vectors.iter().step_by(61).cloned().collect();
    let once: Arc<dyn Implementation> = Arc::new(program());
    assert!(once.identity().unwrap().starts_with("zarr-array "));
    assert_conforms(ImplementationUnderTest::new(once, ours(), few));
}

#[test]
fn what_one_writes_all_read() {
    let command = vec![env!("CARGO_BIN_EXE_zarr-conformance-adapter").to_owned()];
    let served: Arc<dyn Implementation> = Arc::new(Program::new("served", command, Duration::from_secs(30)).serving());
    let vectors: Arc<[Vector]> = all().iter().filter(|vector| vector.writable).step_by(11).cloned().collect::<Vec<_>>().into();
    let under_test = |implementation: Arc<dyn Implementation>| ImplementationUnderTest::new(implementation, ours(), Arc::clone(&vectors));
    let suite = Suite::from(Exchange::new(under_test(ours()), [under_test(ours()), under_test(Arc::clone(&served))]));
    assert_eq!(suite.cases().len(), 2 * vectors.len());
    suite.run(&Trial::default()).assert_conforms();
    suite.without_law("exchange").run(&Trial::default()).assert_conforms();
    assert_conforms(Exchange::new(under_test(served), [under_test(ours())]));
}

/// A program made of a line of shell.
fn shell(line: &str, serves: bool) -> Program {
    let command = ["sh", "-c", line, "sh"].map(str::to_owned).to_vec();
    let program = Program::new("shell", command, Duration::from_millis(500));
    if serves { program.serving() } else { program }
}

#[test]
#[cfg(unix)]
fn programs_that_die_hang_or_babble_are_told_from_refusals() {
    let job = ReadJob { store: Path::new("nowhere"), node: "", part: None };
    let greeting = r#"echo '{"protocol": 1, "identity": "x"}'"#;
    let broke = [
        ("kill -9 $$".to_owned(), false, "signal: 9"),
        ("sleep 60".to_owned(), false, "no answer within"),
        ("exec >&-; sleep 60".to_owned(), false, "no answer within"),
        ("exit 0".to_owned(), true, "died"),
        ("echo hello".to_owned(), true, "no greeting"),
        (r#"echo '{"protocol": 2, "identity": "x"}'"#.to_owned(), true, "version 2"),
        (format!("{greeting}; read line; kill -11 $$"), true, "signal: 11"),
        (format!("{greeting}; read line; sleep 60"), true, "no answer within"),
        (format!("{greeting}; read line; echo '\"ok\"'; sleep 60"), true, "gave nothing"),
        (format!("{greeting}; read line; echo yes; sleep 60"), true, "no answer of the protocol"),
    ];
    for (line, serves, says) in broke {
        match shell(&line, serves).read(&job) {
            Err(Trouble::Broke(message)) if message.contains(says) => {}
            other => panic!("{line}: {other:?}, expected {says}"),
        }
    }
    let refused = [
        ("echo no >&2; exit 3".to_owned(), false),
        (format!("{greeting}; while read line; do echo '{{\"refused\": \"no\"}}'; done"), true),
    ];
    for (line, serves) in refused {
        assert_eq!(shell(&line, serves).read(&job), Err(Trouble::Refused("no".into())), "{line}");
    }
    assert_eq!(shell("echo read >&2; printf abc", false).read(&job), Ok(b"abc".to_vec()));
}

/// A folder with one vector in it.
fn folder(case: &str, expected: Option<&[u8]>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("VERSION"), "1\n").unwrap();
    let vector = folder.path().join("arrays/some/vector");
    std::fs::create_dir_all(vector.join("store")).unwrap();
    std::fs::write(vector.join("store/zarr.json"), "{}").unwrap();
    std::fs::write(vector.join("case.toml"), case).unwrap();
    if let Some(bytes) = expected {
        std::fs::write(vector.join("expected.raw"), bytes).unwrap();
    }
    folder
}

#[test]
fn inconsistent_vectors_are_found() {
    let head = "says = 'a'\ncite = 'b'\nmade_by = 'c'\n";
    let good = format!("{head}verdict = 'must_accept'\nshape = [2]\nelement = 2\n");
    let load = |case: &str, expected: Option<&[u8]>| vectors::load(folder(case, expected).path());
    assert_eq!(load(&good, Some(b"abcd")).unwrap().len(), 1);
    let wrong: [(&str, Option<&[u8]>, &str); 9] = [
        (&format!("{good}colour = 'red'\n"), Some(b"abcd"), "unknown field"),
        (&good, Some(b"abcde"), "elements"),
        (&good, Some(b"ab"), "elements"),
        (&good, None, "has no expected.raw"),
        (&format!("{head}verdict = 'must_reject'\n"), Some(b""), "has an expected.raw"),
        (&format!("{head}verdict = 'perhaps'\n"), None, "unknown variant"),
        (&format!("{head}verdict = 'may'\nwritable = true\n"), None, "what can be written"),
        (&format!("{head}verdict = 'must_reject'\nnode = 'a'\n"), None, "no array"),
        (&good.replace("'b'", "' '"), Some(b"abcd"), "`cite` is empty"),
    ];
    for (case, expected, says) in wrong {
        let error = load(case, expected).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, VectorError::Inconsistent { .. } | VectorError::Syntax { .. }) && text.contains(says), "{text}");
    }
    let old = folder(&good, Some(b"abcd"));
    std::fs::write(old.path().join("VERSION"), "0").unwrap();
    assert!(matches!(vectors::load(old.path()), Err(VectorError::Version { .. })));
    let strange = folder(&good, Some(b"abcd"));
    std::fs::write(strange.path().join("arrays/some/vector/notes.txt"), "").unwrap();
    assert!(vectors::load(strange.path()).unwrap_err().to_string().contains("notes.txt"));
}
