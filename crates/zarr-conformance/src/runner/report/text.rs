//! The results for people at a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::Style;

use crate::codec::pair::DIVERGENCES;
use crate::runner::results::{CaseResult, Results, SubjectResult, Summary, Verdict};
use crate::runner::table::{CYAN, DIM, GREEN, RED, Table, YELLOW};

/// How many failures are shown.
const SHOWN: usize = 50;

/// Groups of subjects and what came of them, failures with what runs them again, and a verdict.
pub(crate) fn render(results: &Results) -> String {
    let mut groups: BTreeMap<&str, Vec<&SubjectResult>> = BTreeMap::new();
    for subject in &results.subjects {
        groups.entry(subject.name.split('/').next().unwrap_or_default()).or_default().push(subject);
    }
    let plain = Style::new();
    let count = |number: usize, style: Style| (number.to_string(), if number == 0 { DIM } else { style });
    let mut table = Table::new(["", "subjects", "cases", "passed", "failed", "unsupported", "skipped", "seconds"]);
    for (group, subjects) in groups {
        let summary = Summary::of(subjects.iter().copied());
        let seconds: f64 = subjects.iter().map(|subject| subject.seconds).sum();
        table.row([
            (group.to_owned(), plain),
            count(subjects.len(), plain),
            count(summary.cases(), plain),
            count(summary.passed, GREEN),
            count(summary.failed, RED.bold()),
            count(summary.unsupported, YELLOW),
            count(summary.subjects_skipped, YELLOW),
            (format!("{seconds:.1}"), plain),
        ]);
    }
    let mut text = table.render();
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for subject in &results.subjects {
        if let Some(reason) = &subject.skipped {
            reasons.entry(reason).or_default().push(&subject.name);
        }
    }
    for (reason, names) in reasons {
        let others = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
        let _ = writeln!(text, "\n{YELLOW}skipped{YELLOW:#} {}{others}: {reason}", names.first().copied().unwrap_or_default());
    }
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for subject in &results.subjects {
        for case in subject.cases.iter().filter(|case| case.law == DIVERGENCES && case.outcome == Verdict::Unsupported) {
            known.entry(&case.message).or_default().push(&subject.name);
        }
    }
    for (message, names) in known {
        let others = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
        let _ = writeln!(text, "\n{YELLOW}declared{YELLOW:#} {}{others}: {message}", names.first().copied().unwrap_or_default());
    }
    for (subject, case) in results.failures().take(SHOWN) {
        failure(&mut text, results, subject, case);
    }
    let summary = results.summary;
    if summary.failed > SHOWN {
        let _ = writeln!(text, "\n{} more failures; the reports have all (--json, --junit, --html)", summary.failed - SHOWN);
    }
    let (style, verdict) = if summary.failed == 0 { (GREEN.bold(), "passed") } else { (RED.bold(), "FAILED") };
    let _ = writeln!(
        text,
        "\n{style}{verdict}{style:#}: {} cases on {} subjects, {} passed, {} failed, {} unsupported; {} subjects skipped; {:.1} s, seed {}",
        summary.cases(),
        results.subjects.len(),
        summary.passed,
        summary.failed,
        summary.unsupported,
        summary.subjects_skipped,
        results.seconds,
        results.seed,
    );
    text
}

fn failure(text: &mut String, results: &Results, subject: &SubjectResult, case: &CaseResult) {
    let red = RED.bold();
    let _ = writeln!(text, "\n{red}FAILED{red:#} {} on {}", case.id, subject.name);
    if let Some(law) = results.laws.get(&case.law) {
        let _ = writeln!(text, "  law:    {law}");
    }
    let _ = writeln!(text, "  found:  {}", case.message.replace('\n', "\n          "));
    if let Some(input) = &case.input {
        let _ = writeln!(text, "  input:  {} bytes in {}", input.bytes, input.file);
    }
    if let Some(replay) = &case.replay {
        let _ = writeln!(text, "  {CYAN}replay:{CYAN:#} {replay}");
    }
    if let Some(replay) = case.input.as_ref().and_then(|input| input.replay.as_ref()) {
        let _ = writeln!(text, "  {CYAN}the input alone:{CYAN:#} {replay}");
    }
}
