use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::runner::args::ReplayArgs;
use crate::runner::failure::{Context as _, Failure, Result, print};
use crate::runner::subjects::{self, Unbuilt};
use crate::runner::table::{GREEN, RED, YELLOW};
use crate::{Journal, Outcome, Trial};

pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let input = args.input.as_ref().map(|path| std::fs::read(path).context(|| format!("cannot read {}", path.display()))).transpose()?;
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
    let watch = Arc::new(Watch { wanted: input, met: AtomicUsize::new(0), last: Mutex::default() });
    print(&format!("{} on {} ({})\n  law:    {}\n", case.id(), entry.name, suite.subject(), case.says()))?;
    let outcome = case.run(&Trial::new(args.seed).with_guard_pages().with_journal(Arc::clone(&watch) as Arc<dyn Journal>));
    if watch.wanted.is_some() {
        print(&format!("  input:  met {} times\n", watch.met.load(Ordering::Relaxed)))?;
    }
    let (red, last) = (RED.bold(), watch.last.lock().unwrap_or_else(PoisonError::into_inner).take());
    let text = match &outcome {
        Outcome::Pass => format!("{GREEN}passed{GREEN:#}\n"),
        Outcome::Unsupported(message) => format!("{YELLOW}unsupported{YELLOW:#}: {message}\n"),
        Outcome::Fail(message) => {
            let last = last.map(|bytes| format!("  the last input has {} bytes\n", bytes.len())).unwrap_or_default();
            format!("  found:  {message}\n{last}{red}FAILED{red:#}\n")
        }
    };
    print(&text)?;
    Ok(if matches!(outcome, Outcome::Fail(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Looks out for an input.
#[derive(Debug)]
struct Watch {
    wanted: Option<Vec<u8>>,
    met: AtomicUsize,
    last: Mutex<Option<Vec<u8>>>,
}

impl Journal for Watch {
    fn input(&self, bytes: &[u8]) {
        if self.wanted.as_deref() == Some(bytes) && self.met.fetch_add(1, Ordering::Relaxed) == 0 {
            // Said at once, and not through a buffer: the subject may take the process down.
            eprintln!("  input:  the saved bytes come now");
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes.to_vec());
    }
}
