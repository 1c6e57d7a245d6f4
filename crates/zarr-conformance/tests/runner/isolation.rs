use std::process::Command;

use super::{case, json, program, run, subject, text, trouble};

/// Ids and outcomes of the cases of a subject.
fn outcomes(subject: &serde_json::Value) -> Vec<(&str, &str)> {
    let cases = subject["cases"].as_array().expect("cases");
    cases.iter().map(|case| (case["id"].as_str().expect("an id"), case["outcome"].as_str().expect("an outcome"))).collect()
}

#[test]
fn a_case_that_takes_the_process_down_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(trouble(&folder.path().join("saved")).args(["--json", "-", "--jobs", "2"]));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = json(&text(&output.stdout));
    let cases = subject(&report, "trouble/cases");
    assert_eq!(
        outcomes(cases),
        [
            ("trouble/first", "pass"),
            ("trouble/abort", "fail"),
            ("trouble/between", "pass"),
            ("trouble/hang", "fail"),
            ("trouble/panic", "fail"),
            ("trouble/exit", "fail"),
            ("trouble/fails", "fail"),
            ("trouble/unsupported", "unsupported"),
            ("trouble/last", "pass"),
        ]
    );
    let message = |id: &str| case(cases, id)["message"].as_str().unwrap().to_owned();
    assert_eq!(message("trouble/abort"), "the process was ended by signal 6 (abort); it said last:\nabout to abort");
    assert_eq!(message("trouble/hang"), "not over after 2 s, and stopped");
    assert_eq!(message("trouble/panic"), "panicked: <panics> & \"says\" so");
    assert_eq!(message("trouble/exit"), "the process left early");
    // What the subject was given last lies in a file.
    for (id, bytes) in [("trouble/abort", &b"the last input"[..]), ("trouble/hang", b"hangs"), ("trouble/panic", &[0, 0xFF])] {
        let input = &case(cases, id)["input"];
        assert_eq!(std::fs::read(input["file"].as_str().unwrap()).unwrap(), bytes, "{id}");
        assert_eq!(input["bytes"], bytes.len());
    }
    assert_eq!(case(cases, "trouble/panic")["input"]["hex"], "00ff");
    assert!(case(cases, "trouble/exit")["input"].is_null(), "an input of another case");

    assert_eq!(outcomes(subject(&report, "trouble/good")), [("trouble/first", "pass"), ("trouble/seed", "pass")]);
    assert_eq!(subject(&report, "trouble/absent")["skipped"], "there is none here");
    assert_eq!(case(subject(&report, "trouble/broken"), "runner/process")["message"], "cannot be made");
    let aborted = case(subject(&report, "trouble/aborts-in-building"), "runner/process");
    assert_eq!(aborted["message"], "the process was ended by signal 6 (abort)");
    assert_eq!(outcomes(subject(&report, "trouble/dies-after-its-cases")), [("trouble/thread", "pass"), ("trouble/wait", "fail")]);
    assert_eq!(report["summary"], serde_json::json!({ "passed": 6, "failed": 8, "unsupported": 1, "subjects_skipped": 1 }));
}

#[test]
fn the_command_of_a_failure_fails_again() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--json", "-", "--subject", "trouble/cases", "--filter", "panic", "--filter", "fails", "--filter", "abort"];
    let output = run(trouble(&folder.path().join("it's saved")).args(arguments));
    let report = json(&text(&output.stdout));
    let again = |replay: &serde_json::Value| {
        let output = Command::new("sh").args(["-c", replay.as_str().unwrap()]).env("ZARR_CONFORMANCE_TROUBLE", "1").output().unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let cases = subject(&report, "trouble/cases");
    for (id, says) in [("trouble/panic", "panicked: <panics>"), ("trouble/fails", "found:  is wrong"), ("trouble/abort", "about to abort")]
    {
        let (good, said) = again(&case(cases, id)["replay"]);
        assert!(!good && said.contains(says), "{said}");
    }
    // The input alone, without its case.
    for (id, says) in [("trouble/panic", "input: 2 bytes\n    00 ff\n"), ("trouble/abort", "input: 14 bytes\n    74 68 65 20 6c 61 73 74")]
    {
        let (good, said) = again(&case(cases, id)["input"]["replay"]);
        assert!(!good && said.contains(says) && !said.contains("about to abort"), "{said}");
    }
    assert!(case(cases, "trouble/fails")["input"].is_null());
}

#[test]
fn an_input_is_given_to_the_subject_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    let replay = |subject: &str, case: &str| {
        let output = run(program().args(["replay", case, "--subject", subject, "--input"]).arg(&path));
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let good = vec![7; 510];
    let good = [&good[..], &crc32c::crc32c(&good).to_le_bytes()].concat();
    for (bytes, says) in [
        (good.clone(), ["crc32c accepts: 510 bytes\n    07 07", "cpu accepts: 510 bytes\n    07 07"]),
        (good[1..].to_vec(), ["crc32c refuses: ", "cpu refuses: "]),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let (status, said) = replay("pair/cpu-crc32c/crc32c/uint8", "pair/exchange");
        assert_eq!(status, Some(0), "{said}");
        let input = format!("input: {} bytes\n    07 07", bytes.len());
        assert!(says.into_iter().chain([&input[..]]).all(|says| said.contains(says)), "{said}");
    }
    let (status, said) = replay("cpu/crc32c/float32", "codec/round-trip");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("cpu refuses: "), "{said}");
    let (status, said) = replay("device/host", "device/copy/round-trip");
    assert_eq!(status, Some(2), "{said}");
}

#[test]
fn what_is_missing_fails_where_a_device_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let absent =
        |require: &str| run(trouble(folder.path()).env("ZARR_REQUIRE_GPU", require).args(["--subject", "trouble/absent"])).status.code();
    assert_eq!((absent("0"), absent("1")), (Some(0), Some(1)));
}

#[test]
fn the_seed_reaches_the_cases() {
    let folder = tempfile::tempdir().unwrap();
    let seed = |seed: &str| run(trouble(folder.path()).args(["--subject", "trouble/good", "--seed", seed])).status.code();
    assert_eq!((seed("6"), seed("7")), (Some(0), Some(1)));
}
