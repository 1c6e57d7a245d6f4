use super::{case, json, program, read, run, subject, text, trouble};

#[test]
fn list_names_subjects_and_cases() {
    let names = text(&run(program().args(["list", "--device", "cpu"])).stdout);
    for name in ["cpu/zstd.level-1/float32", "cuda-host/zstd/float64", "device/host"] {
        assert!(names.lines().any(|line| line == name), "{name}");
    }
    let listed = json(&text(&run(program().args(["list", "--subject", "device/host", "--filter", "device/cop", "--json"])).stdout));
    let case = &listed[0]["cases"][0];
    assert!(case["id"].as_str().unwrap().starts_with("device/cop"), "{listed}");
    assert!(!case["says"].as_str().unwrap().is_empty());
}

#[test]
fn run_passes_and_says_so_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let (report, junit) = (folder.path().join("report.json"), folder.path().join("junit.xml"));
    let mut command = program();
    command.args(["run", "--subject", "cpu/crc32c", "--subject", "device/host", "--json"]).arg(&report).arg("--junit").arg(&junit);
    let output = run(&mut command);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "", "no progress where nobody looks");
    assert!(text(&output.stdout).contains("\npassed: "));
    let report = json(&read(report));
    assert_eq!(report["schema"], "zarr-conformance/1");
    assert_eq!(report["summary"]["failed"], 0);
    let subject = subject(&report, "cpu/crc32c/float32");
    assert_eq!(subject["place"], serde_json::json!({ "implementation": "cpu", "codec": "crc32c", "data_type": "float32" }));
    assert_eq!(case(subject, "codec/round-trip")["outcome"], "pass");
    assert!(report["laws"]["codec/round-trip"].as_str().unwrap().contains("decodes to itself"));
    let cases: usize = report["subjects"].as_array().unwrap().iter().map(|subject| subject["cases"].as_array().unwrap().len()).sum();
    let summary = |name: &str| report["summary"][name].as_u64().unwrap() as usize;
    assert_eq!(summary("passed") + summary("unsupported"), cases);
    assert_eq!(read(junit).matches("<testcase ").count(), cases);
}

#[test]
fn junit_is_as_others_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("junit.xml");
    run(trouble(folder.path()).arg("--junit").arg(&path));
    let xml = read(path);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let root = document.root_element();
    assert_eq!((root.tag_name().name(), root.attribute("tests"), root.attribute("failures")), ("testsuites", Some("16"), Some("8")));
    for suite in root.children().filter(roxmltree::Node::is_element) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        let cases: Vec<_> = suite.children().filter(|child| child.has_tag_name("testcase")).collect();
        let with = |name: &str| cases.iter().filter(|case| case.children().any(|child| child.has_tag_name(name))).count().to_string();
        assert_eq!(suite.attribute("tests"), Some(cases.len().to_string().as_str()));
        assert_eq!(suite.attribute("failures"), Some(with("failure").as_str()));
        assert_eq!(suite.attribute("skipped"), Some(with("skipped").as_str()));
        assert_eq!(suite.attribute("errors"), Some("0"));
        for node in cases.iter().chain([&suite]) {
            assert!(node.attribute("name").is_some());
            node.attribute("time").unwrap().parse::<f64>().unwrap();
        }
        assert!(cases.iter().all(|case| case.attribute("classname") == suite.attribute("name")));
    }
    let failure =
        document.descendants().find(|node| node.attribute("name") == Some("trouble/panic")).unwrap().first_element_child().unwrap();
    assert_eq!(failure.attribute("message"), Some("panicked: <panics> & \"says\" so"));
    assert!(failure.text().unwrap().contains("replay: "));
}

#[test]
fn the_matrix_comes_from_a_run_or_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    assert!(run(program().args(["run", "--subject", "cpu/crc32c", "--json"]).arg(&report)).status.success());
    let of_report = run(program().args(["matrix", "--report"]).arg(&report));
    let of_run = run(program().args(["matrix", "--subject", "cpu/crc32c"]));
    assert!(of_run.status.success() && of_run.stdout == of_report.stdout);
    assert!(text(&of_run.stdout).lines().any(|line| line.split_whitespace().eq(["crc32c", "ok", "7"])), "{}", text(&of_run.stdout));
    let of_one = text(&run(program().args(["matrix", "--implementation", "cpu", "--report"]).arg(&report)).stdout);
    assert!(of_one.lines().any(|line| line.split_whitespace().eq(["float32", "ok"])), "{of_one}");
    assert_eq!(run(program().args(["matrix", "--implementation", "nobody", "--report"]).arg(&report)).status.code(), Some(2));
}

#[test]
fn wrong_commands_are_said_to_be() {
    for arguments in [
        &["run", "--subject", "there-is-none"][..],
        &["run", "--subject", "device/host", "--filter", "there-is-none"],
        &["run", "--device", "abacus"],
        &["replay", "device/none", "--subject", "device/host"],
        &["replay", "device/none", "--subject", "none"],
        &["nothing"],
    ] {
        let output = run(program().args(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("error"), "{arguments:?}");
    }
}
