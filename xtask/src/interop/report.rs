//! What came out, held against what the support tables declare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{Paths, Result};

/// Another implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    ZarrPython,
    Zarrs,
    Tensorstore,
    Numcodecs,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::ZarrPython, Self::Zarrs, Self::Tensorstore, Self::Numcodecs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ZarrPython => "zarr-python",
            Self::Zarrs => "zarrs",
            Self::Tensorstore => "tensorstore",
            Self::Numcodecs => "numcodecs",
        }
    }
}

#[derive(Deserialize)]
struct Cover {
    /// Per peer, the pairs of levels that it supports and that the cases therefore cover.
    pairs: BTreeMap<String, u64>,
    rules: BTreeMap<String, Vec<serde_json::Value>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    levels: BTreeMap<String, String>,
    /// Whether no chunk is stored, so that a codec that a peer lacks is never asked for.
    vacuous: bool,
    declared: BTreeMap<String, Declared>,
}

#[derive(Deserialize)]
struct Declared {
    write: Option<usize>,
    read: Option<usize>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    verdict: String,
    #[serde(default)]
    message: String,
}

type Verdicts = BTreeMap<String, Line>;

/// How a case went with one peer in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Declared,
    Failed,
}

#[derive(Clone, Copy, Default)]
struct Count {
    ok: u32,
    declared: u32,
    failed: u32,
}

impl Count {
    fn add(&mut self, status: Status) {
        match status {
            Status::Ok => self.ok += 1,
            Status::Declared => self.declared += 1,
            Status::Failed => self.failed += 1,
        }
    }
}

/// What one run found.
pub(crate) struct Outcome {
    cover: Cover,
    /// By factor, level, peer: what we read of theirs, what they read of ours.
    counts: BTreeMap<(String, String, &'static str), [Count; 2]>,
    /// By what went wrong, the cases with which it did.
    failures: BTreeMap<String, Vec<String>>,
    stale: Vec<String>,
    /// Hierarchies that were written or read as they should be.
    trees: u32,
}

/// The factors of which the table shows every level.
const SHOWN: [&str; 5] = ["layout", "filter", "compressor", "dtype", "shape"];
const TOTAL: &str = "all cases";

impl Outcome {
    /// Reads the reports of both sides.
    ///
    /// # Errors
    /// When a report is absent, incomplete or not what it should be.
    pub(crate) fn gather(paths: &Paths) -> Result<Self> {
        let cover: Cover = serde_json::from_slice(&fs::read(paths.cases.join("cases.json"))?)?;
        let mut out = Self { cover, counts: BTreeMap::new(), failures: BTreeMap::new(), stale: Vec::new(), trees: 0 };
        let our_writes = read(&paths.our_writes())?;
        for (id, line) in &our_writes {
            if line.verdict != "ok" {
                Self::fail(&mut out.failures, "we write", line, id, "");
            }
        }
        for peer in Peer::ALL {
            let written = read(&paths.peer_report(peer, "write"))?;
            let our_reads = read(&paths.our_reads(peer))?;
            let their_reads = read(&paths.peer_report(peer, "read"))?;
            out.judge(peer, 0, |case| [&written, &our_reads].map(|v| v.get(&case.id)))?;
            out.judge(peer, 1, |case| [&our_writes, &their_reads].map(|v| v.get(&case.id)))?;
        }
        for (path, who) in paths.tree_reports().iter().zip([
            "zarr-python writes hierarchies",
            "we read hierarchies of zarr-python",
            "we write hierarchies",
            "zarr-python reads our hierarchies",
        ]) {
            let lines = read(path)?;
            for (id, line) in &lines {
                if line.verdict == "ok" {
                    out.trees += 1;
                } else {
                    Self::fail(&mut out.failures, who, line, id, "");
                }
            }
        }
        Ok(out)
    }

    fn fail(failures: &mut BTreeMap<String, Vec<String>>, who: &str, line: &Line, id: &str, levels: &str) {
        // Failures that differ in numbers only are one.
        let mut what = String::new();
        for c in format!("{who}: {} {}", line.verdict, line.message).chars() {
            match c {
                '0'..='9' if what.ends_with('#') => (),
                '0'..='9' => what.push('#'),
                _ => what.push(c),
            }
        }
        failures.entry(what).or_default().push(format!("{id} {levels}"));
    }

    /// Direction 0: the peer writes and we read. Direction 1: we write and the peer reads.
    fn judge<'a>(&mut self, peer: Peer, direction: usize, verdicts: impl Fn(&Case) -> [Option<&'a Line>; 2]) -> Result<()> {
        let words = ["writes, we read", "reads what we wrote"][direction];
        // Per rule, the cases that it excludes: those that work, and whether any does not.
        let mut excluded: BTreeMap<usize, (Vec<&str>, bool)> = BTreeMap::new();
        for case in &self.cover.cases {
            let declared = case.declared.get(peer.name()).ok_or("a case without a declaration")?;
            let rule = if direction == 0 { declared.write } else { declared.read };
            let [Some(write), Some(read)] = verdicts(case) else {
                return Err(format!("{} {words}: no verdict on case {}", peer.name(), case.id).into());
            };
            let works = write.verdict == "ok" && read.verdict == "ok";
            let status = match (rule, works) {
                (None, true) => Status::Ok,
                (None, false) => Status::Failed,
                (Some(_), _) => Status::Declared,
            };
            if let Some(rule) = rule
                && !case.vacuous
            {
                let (working, fails) = excluded.entry(rule).or_default();
                if works { working.push(&case.id) } else { *fails = true }
            }
            if status == Status::Failed && rule.is_none() {
                let side = if write.verdict == "ok" { read } else { write };
                let levels = case.levels.values().cloned().collect::<Vec<_>>().join(" ");
                Self::fail(&mut self.failures, &format!("{} {words}", peer.name()), side, &case.id, &levels);
            }
            for factor in SHOWN {
                let level = case.levels.get(factor).ok_or("a case without one of the factors")?;
                let key = (factor.to_owned(), level.clone(), peer.name());
                self.counts.entry(key).or_default()[direction].add(status);
            }
            let key = (String::new(), TOTAL.to_owned(), peer.name());
            self.counts.entry(key).or_default()[direction].add(status);
        }
        for (number, (working, fails)) in excluded {
            let rules = self.cover.rules.get(peer.name()).ok_or("a peer without rules")?;
            let rule = rules.get(number).ok_or("a rule without a text")?;
            // Of a rule that says it holds in part, one case must fail still.
            let partly = rule.get("partly").is_some();
            let fine = working.is_empty() || (partly && fails);
            if !fine {
                let some: Vec<&str> = working.iter().take(5).copied().collect();
                self.stale.push(format!(
                    "{} {words}: of what is declared not to work, {} cases do ({}): {rule}",
                    peer.name(),
                    working.len(),
                    some.join(" ")
                ));
            }
        }
        Ok(())
    }

    /// Prints the table: per level and peer, what we read of theirs and what they read of ours.
    pub(crate) fn print(&self, versions: &BTreeMap<String, String>) {
        let list: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        println!("{} cases; {}", self.cover.cases.len(), list.join(", "));
        println!("Per peer: what we read of theirs | what they read of ours; ok, then -declared skips, then !failed");
        println!("{:<28}{}", "", Peer::ALL.map(|p| format!("{:<30}", p.name())).join(""));
        for factor in ["", "layout", "filter", "compressor", "dtype", "shape"] {
            let levels: BTreeSet<&String> = self.counts.keys().filter(|k| k.0 == factor).map(|k| &k.1).collect();
            if !factor.is_empty() {
                println!("{factor}");
            }
            for level in levels {
                let cells = Peer::ALL.map(|peer| {
                    let key = (factor.to_owned(), level.clone(), peer.name());
                    let counts = self.counts.get(&key).copied().unwrap_or_default();
                    format!("{:<30}", counts.map(cell).join(" | "))
                });
                println!("  {level:<26}{}", cells.join("").trim_end());
            }
        }
        println!("hierarchies, with zarr-python: {} writes and reads as they should be", self.trees);
        for (what, cases) in &self.failures {
            println!("FAILED {} times: {what}", cases.len());
            for case in cases.iter().take(4) {
                println!("       {case}");
            }
        }
        for line in &self.stale {
            println!("STALE {line}");
        }
    }

    /// The record of the run, as JSON.
    ///
    /// # Errors
    /// When a figure is not JSON.
    pub(crate) fn record(&self, versions: &BTreeMap<String, String>, took: Duration) -> Result<String> {
        let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
        let commit = head.ok().and_then(|o| String::from_utf8(o.stdout).ok()).map(|c| c.trim().to_owned());
        // By factor and level: per peer, ok, declared and failed of what we read, then of what they read.
        let mut levels: BTreeMap<String, BTreeMap<&str, [[u32; 3]; 2]>> = BTreeMap::new();
        for ((factor, level, peer), counts) in &self.counts {
            let name = if factor.is_empty() { level.clone() } else { format!("{factor} {level}") };
            levels.entry(name).or_default().insert(peer, counts.map(|c| [c.ok, c.declared, c.failed]));
        }
        let record = json!({
            "command": "cargo xtask interop --record",
            "commit": commit,
            "cases": self.cover.cases.len(),
            "pairs": self.cover.pairs,
            "versions": versions,
            "seconds": took.as_secs(),
            "hierarchies": self.trees,
            "failures": self.failures,
            "stale": self.stale,
            "declared": self.cover.rules,
            "counts_are": "ok, declared, failed: of what we read of theirs, of what they read of ours",
            "counts": levels,
        });
        let mut out = String::new();
        lines(&record, 2, &mut out)?;
        Ok(out + "\n")
    }

    /// Whether all is as declared.
    ///
    /// # Errors
    /// When a case failed or a table is stale.
    pub(crate) fn verdict(&self) -> Result<()> {
        if self.failures.is_empty() && self.stale.is_empty() {
            return Ok(());
        }
        let failed: usize = self.failures.values().map(Vec::len).sum();
        Err(format!("interop: {failed} failed, {} stale rules", self.stale.len()).into())
    }
}

/// Writes JSON with a line for each value `depth` levels down, so that records can be compared line by line.
fn lines(value: &serde_json::Value, depth: usize, out: &mut String) -> Result<()> {
    let indent = " ".repeat(3 - depth);
    let (open, close, items): (_, _, Vec<_>) = match value {
        serde_json::Value::Object(object) if depth > 0 && !object.is_empty() => {
            ('{', '}', object.iter().map(|(k, v)| (Some(k), v)).collect())
        }
        serde_json::Value::Array(array) if depth > 0 && !array.is_empty() => ('[', ']', array.iter().map(|v| (None, v)).collect()),
        _ => {
            *out += &serde_json::to_string(value)?;
            return Ok(());
        }
    };
    out.push(open);
    for (number, (key, value)) in items.into_iter().enumerate() {
        *out += if number == 0 { "\n" } else { ",\n" };
        *out += &indent;
        if let Some(key) = key {
            *out += &format!("{}: ", serde_json::to_string(key)?);
        }
        lines(value, depth - 1, out)?;
    }
    out.push('\n');
    *out += &indent[1..];
    out.push(close);
    Ok(())
}

fn cell(count: Count) -> String {
    let mut text = count.ok.to_string();
    if count.declared > 0 {
        text += &format!(" -{}", count.declared);
    }
    if count.failed > 0 {
        text += &format!(" !{}", count.failed);
    }
    text
}

fn read(path: &Path) -> Result<Verdicts> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.lines()
        .map(|line| {
            let line: Line = serde_json::from_str(line).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok((line.id.clone(), line))
        })
        .collect()
}
