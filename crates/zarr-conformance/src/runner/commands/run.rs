use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::runner::args::{Choice, RunArgs, Running};
use crate::runner::failure::{Context as _, Failure, Result, print};
use crate::runner::report::{html, junit, text};
use crate::runner::results::{Machine, Results, SCHEMA, SubjectResult, Summary};
use crate::runner::subjects;
use crate::runner::supervisor::{Assigned, Supervisor};

/// More would only wait for the same device, and each has its own context there.
const MOST_PROCESSES_OF_A_LANE: usize = 8;

/// A lane, and which of its processes.
type Process = (&'static str, usize);

pub(crate) fn run(args: &RunArgs, prefix: &[&str]) -> Result<ExitCode> {
    let results = results(&args.choice, &args.running, prefix)?;
    let json = || serde_json::to_string_pretty(&results).context(|| "cannot write the results".to_owned());
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = args.json.as_deref().filter(|_| !to_stdout) {
        write(path, &json()?)?;
    }
    if let Some(path) = &args.junit {
        write(path, &junit::render(&results))?;
    }
    if let Some(path) = &args.html {
        write(path, &html::render(&results)?)?;
    }
    print(&if to_stdout { json()? + "\n" } else { text::render(&results) })?;
    Ok(if results.summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, content: &str) -> Result<()> {
    std::fs::write(path, content).context(|| format!("cannot write {}", path.display()))
}

/// Runs what was chosen.
pub(crate) fn results(choice: &Choice, running: &Running, prefix: &[&str]) -> Result<Results> {
    let (started, clock) = (SystemTime::now(), Instant::now());
    let supervisor = Supervisor {
        program: env::current_exe().context(|| "cannot find this program".to_owned())?,
        prefix: prefix.iter().map(|&word| word.to_owned()).collect(),
        device: choice.device.to_string(),
        seed: running.seed,
        filters: choice.filters.clone(),
        time_limit: Duration::from_secs(running.time_limit),
        save: running.save.clone(),
        require_gpu: env::var_os("ZARR_REQUIRE_GPU").is_some_and(|value| value == "1"),
        laws: Mutex::default(),
    };
    let mut order = BTreeMap::new();
    let jobs = running.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    // Those of one lane take turns in so many processes.
    let (width, mut taken) = (jobs.min(MOST_PROCESSES_OF_A_LANE), BTreeMap::<&'static str, usize>::new());
    let mut lanes: Vec<(Option<Process>, Vec<Assigned>)> = Vec::new();
    for (index, entry) in subjects::chosen(choice)?.into_iter().enumerate() {
        order.insert(entry.name.clone(), index);
        let assigned = Assigned { name: entry.name, place: entry.place };
        let lane = entry.lane.map(|lane| {
            let turn = taken.entry(lane).or_default();
            *turn += 1;
            (lane, *turn % width)
        });
        match lanes.iter_mut().find(|(other, _)| other.is_some() && *other == lane) {
            Some((_, subjects)) => subjects.push(assigned),
            None => lanes.push((lane, vec![assigned])),
        }
    }
    // Those that share a process take long together: they go first.
    lanes.sort_by_key(|(lane, _)| lane.is_none());
    let mut subjects = in_parallel(&supervisor, lanes.into_iter().map(|(_, subjects)| subjects).collect(), jobs, order.len())?;
    if !choice.filters.is_empty() {
        subjects.retain(|subject| !subject.cases.is_empty());
        if subjects.is_empty() {
            return Err(Failure::usage("no case has such an id").hint("`list --cases` shows all"));
        }
    }
    subjects.sort_by_key(|subject| order.get(&subject.name).copied());
    Ok(Results {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine::this(),
        arguments: env::args().skip(1).collect(),
        seed: running.seed,
        started: started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        seconds: clock.elapsed().as_secs_f64(),
        summary: Summary::of(&subjects),
        laws: supervisor.laws.into_inner().unwrap_or_else(PoisonError::into_inner),
        subjects,
    })
}

/// Each list of subjects in a process of its own, several at a time.
fn in_parallel(supervisor: &Supervisor, lanes: VecDeque<Vec<Assigned>>, jobs: usize, count: usize) -> Result<Vec<SubjectResult>> {
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} subjects, {msg}  {elapsed}") {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar.set_message("0 failures");
    let (lanes, done) = (Mutex::new(lanes), Mutex::new((Vec::new(), 0)));
    let work = || -> Result<()> {
        loop {
            let next = lanes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(subjects) = next else { return Ok(()) };
            supervisor.run(&subjects, |result| {
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                let (results, failed) = &mut *done;
                *failed += Summary::of([&result]).failed;
                bar.set_message(format!("{failed} failures"));
                bar.inc(1);
                results.push(result);
            })?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Failure::new("a thread of the runner panicked"))))
    })?;
    bar.finish_and_clear();
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}
