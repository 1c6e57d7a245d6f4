//! What came out, in short: counts, and each divergence with who says what is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::Result;

/// What reports call ours.
const OURS: &str = "zarr";
/// The columns, ours first.
const ORDER: [&str; 4] = [OURS, "zarr-python", "tensorstore", "zarrs"];

/// What the example wrote.
#[derive(Deserialize)]
pub(super) struct Outcome {
    format: String,
    vectors: BTreeMap<String, Vector>,
    implementations: BTreeMap<String, Implementation>,
}

#[derive(Deserialize)]
struct Vector {
    says: String,
    verdict: String,
    cite: String,
}

#[derive(Deserialize)]
struct Implementation {
    identity: String,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    outcome: String,
    message: Option<String>,
}

/// The committed record.
#[derive(Serialize, Deserialize, PartialEq)]
struct Record {
    format: String,
    vectors: usize,
    implementations: BTreeMap<String, Recorded>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Recorded {
    identity: String,
    passed: usize,
    unsupported: usize,
    /// By the id of the case.
    failed: BTreeMap<String, String>,
}

impl Outcome {
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        Ok(serde_json::from_slice(text)?)
    }

    fn record(&self) -> Record {
        let implementations = self.implementations.iter().map(|(name, found)| {
            let count = |outcome: &str| found.cases.values().filter(|case| case.outcome == outcome).count();
            let failed = found.failures().map(|(id, message)| (id.to_owned(), tidy(message))).collect();
            (name.clone(), Recorded { identity: found.identity.clone(), passed: count("pass"), unsupported: count("unsupported"), failed })
        });
        Record { format: self.format.clone(), vectors: self.vectors.len(), implementations: implementations.collect() }
    }

    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.record())? + "\n")
    }

    /// Ours has nothing to be excused but what others cannot read.
    pub(super) fn ours_is_right(&self) -> Result<()> {
        let failed: Vec<String> = self
            .implementations
            .get(OURS)
            .into_iter()
            .flat_map(Implementation::failures)
            .filter(|(id, _)| !id.starts_with("exchange/"))
            .map(|(id, message)| format!("{id}: {message}"))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("conformance-peers: ours fails\n  {}", failed.join("\n  ")).into()) }
    }

    /// Compares which cases fail; messages may differ.
    pub(super) fn compare(&self, known: &[u8]) -> Result<()> {
        let known: Record = serde_json::from_slice(known)?;
        let ids = |record: &Record| -> BTreeSet<String> {
            let all = record.implementations.iter();
            all.flat_map(|(name, found)| found.failed.keys().map(move |id| format!("{name}: {id}"))).collect()
        };
        let (before, now) = (ids(&known), ids(&self.record()));
        let list = |what: &str, of: &BTreeSet<String>, but: &BTreeSet<String>| -> String {
            of.difference(but).map(|id| format!("\n  {what} {id}")).collect()
        };
        if before == now {
            println!("conformance-peers: {} divergences, all of them known", now.len());
            return Ok(());
        }
        let text = list("new: ", &now, &before) + &list("gone:", &before, &now);
        Err(format!("conformance-peers: not what the record says{text}").into())
    }

    /// The record for readers.
    pub(super) fn markdown(&self) -> String {
        let mut out = String::from(HEAD);
        self.matrix(&mut out);
        self.exchanges(&mut out);
        self.divergences(&mut out);
        out
    }

    fn matrix(&self, out: &mut String) {
        let _ = writeln!(out, "\n## Ran\n\n{} vectors of form {}.\n", self.vectors.len(), self.format);
        for name in ORDER {
            if let Some(found) = self.implementations.get(name) {
                let _ = writeln!(out, "* {name}: {}", found.identity);
            }
        }
        out.push_str(
            "\n## By family\n\nVectors that are read or refused as they must be, of those not declared unsupported.\n\n| family |",
        );
        ORDER.iter().for_each(|name| {
            let _ = write!(out, " {name} |");
        });
        out.push_str("\n|---|---|---|---|---|\n");
        let families: BTreeSet<&str> = self.vectors.keys().filter_map(|id| Some(id.split_once('/')?.0)).collect();
        for family in families {
            let _ = write!(out, "| {family} |");
            for name in ORDER {
                let (passed, failed, _) = self.count(name, &format!("read/{family}/"), "");
                let _ = write!(out, " {} |", share(passed, failed));
            }
            out.push('\n');
        }
        for (law, what) in [("part/", "*boxes of arrays*"), ("write/", "*written, read by ours*")] {
            let _ = write!(out, "| {what} |");
            for name in ORDER {
                let (passed, failed, _) = self.count(name, law, "");
                let _ = write!(out, " {} |", share(passed, failed));
            }
            out.push('\n');
        }
        out.push_str("| *cases declared unsupported* |");
        for name in ORDER {
            let _ = write!(out, " {} |", self.count(name, "", "").2);
        }
        out.push('\n');
    }

    fn exchanges(&self, out: &mut String) {
        out.push_str("\n## Who reads what whom writes\n\nEach of the arrays that the writer writes and the reader does not declare unsupported.\n\n| writer |");
        ORDER.iter().for_each(|name| {
            let _ = write!(out, " read by {name} |");
        });
        out.push_str("\n|---|---|---|---|---|\n");
        for writer in ORDER {
            let _ = write!(out, "| {writer} |");
            for reader in ORDER {
                // What cannot be written is a failure of the writer, counted above.
                let written = |id: &str| {
                    let vector = id.trim_start_matches("exchange/").trim_end_matches(&format!("/{reader}")).to_owned();
                    self.implementations
                        .get(writer)
                        .and_then(|found| found.cases.get(&format!("write/{vector}")))
                        .is_some_and(|case| case.outcome == "pass")
                };
                let cases = self.implementations.get(writer).into_iter().flat_map(|found| &found.cases);
                let cases = cases.filter(|(id, _)| id.starts_with("exchange/") && id.ends_with(&format!("/{reader}")) && written(id));
                let (passed, failed): (Vec<_>, Vec<_>) =
                    cases.filter(|(_, case)| case.outcome != "unsupported").partition(|(_, case)| case.outcome == "pass");
                let _ = match writer == reader {
                    true => write!(out, " |"),
                    false => write!(out, " {} |", share(passed.len(), failed.len())),
                };
            }
            out.push('\n');
        }
    }

    /// Failures with the same cause as one row.
    fn divergences(&self, out: &mut String) {
        out.push_str("\n## Divergences\n\nWhat each does otherwise than the citation says. Cases of `part` and `exchange` are left out where the same array fails to be read or written alone.\n");
        for name in ORDER {
            let Some(found) = self.implementations.get(name) else { continue };
            let mut rows: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
            for (id, message) in found.failures() {
                let Some((law, rest)) = id.split_once('/') else { continue };
                let vector = rest.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
                let fails = |law: &str| found.cases.get(&format!("{law}/{vector}")).is_some_and(|case| case.outcome == "fail");
                let reader = rest.splitn(3, '/').nth(2);
                let reader_fails = reader
                    .and_then(|reader| self.implementations.get(reader)?.cases.get(&format!("read/{vector}")))
                    .is_some_and(|case| case.outcome == "fail");
                let repeated = match law {
                    "part" => fails("read"),
                    "write" => fails("read"),
                    "exchange" => fails("write") || reader_fails,
                    _ => false,
                };
                if let (false, Some(known)) = (repeated, self.vectors.get(&vector)) {
                    rows.entry((cause(message), known.cite.clone())).or_default().push(id);
                }
            }
            let _ = writeln!(out, "\n### {name}\n");
            if rows.is_empty() {
                out.push_str("None.\n");
                continue;
            }
            out.push_str("| case | must | what it does | who says so |\n|---|---|---|---|\n");
            for ((cause, cite), ids) in rows {
                let vector = ids[0].splitn(4, '/').skip(1).take(2).collect::<Vec<_>>().join("/");
                let known = &self.vectors[&vector];
                let more = if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { format!(": {}", known.says) };
                let must = match known.verdict.as_str() {
                    "must_accept" => "accept",
                    "must_reject" => "reject",
                    _ => "if read, as meant",
                };
                let _ = writeln!(out, "| `{}`{} | {must} | {} | {} |", ids[0], cell(&more), cell(&cause), cell(&cite));
            }
        }
    }

    /// Passed, failed, unsupported.
    fn count(&self, name: &str, start: &str, end: &str) -> (usize, usize, usize) {
        let cases = self.implementations.get(name).into_iter().flat_map(|found| &found.cases);
        let mut counts = (0, 0, 0);
        for (_, case) in cases.filter(|(id, _)| id.starts_with(start) && id.ends_with(end)) {
            match case.outcome.as_str() {
                "pass" => counts.0 += 1,
                "fail" => counts.1 += 1,
                _ => counts.2 += 1,
            }
        }
        counts
    }
}

impl Implementation {
    fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cases
            .iter()
            .filter(|(_, case)| case.outcome == "fail")
            .map(|(id, case)| (id.as_str(), case.message.as_deref().unwrap_or_default()))
    }
}

fn share(passed: usize, failed: usize) -> String {
    match (passed, failed) {
        (0, 0) => "-".into(),
        (passed, 0) => format!("{passed}"),
        (passed, failed) => format!("**{passed} of {}**", passed + failed),
    }
}

/// One line, without places of this machine, process ids, and what the vector says of itself.
fn tidy(message: &str) -> String {
    let lines: Vec<&str> =
        message.lines().filter(|line| !line.trim_start().starts_with(['*', '@']) && !line.contains("stack backtrace")).take(2).collect();
    let text = lines.join(" ");
    let text = text.rsplit_once(" [").map_or(text.as_str(), |(before, _)| before);
    let words: Vec<String> = text.split(' ').map(tidy_word).filter(|word| !word.is_empty()).collect();
    let mut short: String = words.join(" ").replace("not declared as unsupported: ", "refuses: ").chars().take(200).collect();
    if let Some(at) = short.find(" [tensorstore_spec") {
        short.truncate(at);
    }
    short
}

fn tidy_word(word: &str) -> String {
    // The time, and the day before it as some loggers have it.
    let is_time = word.contains(':') && word.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    let is_day = word.len() == 5 && word.strip_prefix('F').is_some_and(|day| day.bytes().all(|byte| byte.is_ascii_digit()));
    if is_time || is_day {
        return String::new();
    }
    let start = word.find('/').filter(|_| word.matches('/').count() > 2);
    match start {
        Some(at) => {
            let file = word.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
            format!("{}{file}", &word[..at])
        }
        None if word.len() > 2
            && word.starts_with('(')
            && word.ends_with(')')
            && word[1..word.len() - 1].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            String::new()
        }
        None => word.to_owned(),
    }
}

/// A message without the numbers and details that differ from case to case.
fn cause(message: &str) -> String {
    let text = tidy(message);
    let text = match text.find("Sharding codec {") {
        Some(at) => format!("{}Sharding codec .. not compatible with what follows", &text[..at]),
        None => text,
    };
    match text.strip_prefix("refuses: ").or(text.strip_prefix("what was written ")) {
        // Numbers tell arrays apart, not causes.
        Some(_) => {
            let digits: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
            let mut out = String::new();
            digits.chars().for_each(|c| {
                if !(c == '#' && out.ends_with('#')) {
                    out.push(c);
                }
            });
            out
        }
        None => text,
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const HEAD: &str = "# Whole implementations over the vectors

`cargo xtask conformance-peers --record` wrote this: every vector of `crates/zarr-conformance/vectors` read by each implementation, boxes of them, and what each writes read by all. A vector
says what must be done with it and who says so; what an adapter declares unsupported is in `crates/zarr-conformance/adapters`. `conformance.json` has every failure with its message.

Implementations were asked through their public interfaces: ours in one process, the others in processes of their own, so that one that dies is seen to die. zarrs is its Rust crate, built with
panics that abort: where a panic is listed as a death, a program that catches panics would see an error.
";
