use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::runner::args::ReplayArgs;
use crate::runner::failure::{Context as _, Failure, Result, print};
use crate::runner::subjects::{self, Unbuilt};
use crate::runner::table::{GREEN, RED, YELLOW};
use crate::{Fed, Outcome, Suite, Trial, items};

/// Bytes that are shown of what is long.
const SHOWN: usize = 512;

pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let entry = subjects::all(args.device).into_iter().find(|entry| entry.name == args.subject);
    let entry = entry.ok_or_else(|| {
        Failure::usage(format!("there is no subject `{}`", args.subject)).hint("`list` shows all; --device decides which there are")
    })?;
    let suite = entry.build().map_err(|error| match error {
        Unbuilt::NoDevice(reason) | Unbuilt::Absent(reason) | Unbuilt::NotTaken(reason) | Unbuilt::Broken(reason) => {
            Failure::new(format!("`{}` cannot be had: {reason}", args.subject))
        }
    })?;
    let case = suite.cases().iter().find(|case| case.id() == args.case);
    let case = case.ok_or_else(|| {
        Failure::usage(format!("`{}` has no case `{}`", args.subject, args.case)).hint("`list --cases --subject NAME` shows all")
    })?;
    let trial = Trial::new(args.seed).with_guard_pages();
    if let Some(path) = &args.input {
        print(&format!("{} ({}) is given what {} holds, alone\n", entry.name, suite.subject(), path.display()))?;
        return feed(&suite, path, &trial);
    }
    print(&format!("{} on {} ({})\n  law:    {}\n", case.id(), entry.name, suite.subject(), case.says()))?;
    let outcome = case.run(&trial);
    let red = RED.bold();
    let text = match &outcome {
        Outcome::Pass => format!("{GREEN}passed{GREEN:#}\n"),
        Outcome::Unsupported(message) => format!("{YELLOW}unsupported{YELLOW:#}: {message}\n"),
        Outcome::Fail(message) => format!("  found:  {message}\n{red}FAILED{red:#}\n"),
    };
    print(&text)?;
    Ok(if matches!(outcome, Outcome::Fail(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Gives the subject the bytes of a file, or each item of a batch.
fn feed(suite: &Suite, path: &Path, trial: &Trial) -> Result<ExitCode> {
    let input = std::fs::read(path).context(|| format!("cannot read {}", path.display()))?;
    let items = items(&input);
    let mut failed = 0;
    for (index, item) in items.iter().enumerate() {
        let which = if items.len() > 1 { format!(" {index} of {}", items.len()) } else { String::new() };
        // Said at once: the subject may take the process down.
        print(&format!("  input{which}: {}", dump(item)))?;
        let fed = suite
            .feed(item, trial)
            .ok_or_else(|| Failure::usage("this subject decodes no bytes by themselves").hint("without --input, the case itself runs"))?;
        failed += usize::from(fed.broken.is_some());
        print(&told(&fed))?;
    }
    let red = RED.bold();
    print(&if failed == 0 { format!("{GREEN}passed{GREEN:#}\n") } else { format!("{red}FAILED{red:#}\n") })?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn told(fed: &Fed) -> String {
    let mut text = String::new();
    for answer in &fed.answers {
        let _ = match &answer.decoded {
            Ok(bytes) => write!(text, "  {GREEN}{} accepts{GREEN:#}: {}", answer.by, dump(bytes)),
            Err(why) => writeln!(text, "  {YELLOW}{} refuses{YELLOW:#}: {why}", answer.by),
        };
    }
    if let Some(broken) = &fed.broken {
        let _ = writeln!(text, "  found:  {broken}");
    }
    text
}

/// How many bytes, and the first of them in hexadecimal.
fn dump(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes\n", bytes.len());
    for line in bytes[..bytes.len().min(SHOWN)].chunks(32) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(text, "    {}", hex.join(" "));
    }
    if bytes.len() > SHOWN {
        let _ = writeln!(text, "    and {} more", bytes.len() - SHOWN);
    }
    text
}
