use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use crate::runner::args::ListArgs;
use crate::runner::failure::{Context as _, Result, print};
use crate::runner::results::Place;
use crate::runner::subjects::{self, Unbuilt};
use crate::runner::table::DIM;
use crate::runner::worker::chosen;

/// A subject, as listed.
#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
    place: Option<Place>,
    /// Why it cannot be had here.
    absent: Option<String>,
    cases: Vec<ListedCase>,
}

#[derive(Serialize)]
struct ListedCase {
    id: String,
    law: String,
    says: String,
}

pub(crate) fn run(args: &ListArgs) -> Result<ExitCode> {
    let entries = subjects::chosen(&args.choice)?;
    if !args.json && !args.cases && args.choice.filters.is_empty() {
        print(&entries.iter().map(|entry| format!("{}\n", entry.name)).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut listed = Vec::new();
    for entry in entries {
        let (about, absent, cases) = match entry.build() {
            Ok(suite) => {
                let cases = suite.cases().iter().filter(|case| chosen(case.id(), &args.choice.filters));
                let cases = cases.map(|case| ListedCase { id: case.id().into(), law: case.law().into(), says: case.says().into() });
                (suite.subject(), None, cases.collect())
            }
            Err(Unbuilt::NoDevice(reason) | Unbuilt::Absent(reason) | Unbuilt::NotTaken(reason) | Unbuilt::Broken(reason)) => {
                (String::new(), Some(reason), Vec::new())
            }
        };
        listed.push(Listed { name: entry.name, about, place: entry.place, absent, cases });
    }
    if args.json {
        let text = serde_json::to_string_pretty(&listed).context(|| "cannot write the list".to_owned())?;
        print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for subject in listed {
        let absent = subject.absent.map(|reason| format!("  {DIM}({reason}){DIM:#}")).unwrap_or_default();
        let _ = writeln!(text, "{}{absent}", subject.name);
        for case in subject.cases {
            let _ = writeln!(text, "  {}  {DIM}{}{DIM:#}", case.id, case.says);
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
