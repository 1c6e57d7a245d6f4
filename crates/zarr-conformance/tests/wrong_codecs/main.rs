//! Deliberately wrong codecs, on the host and on devices, alone and beside others: the laws find each of them, and no law is idle.

mod arrays;
mod devices;
mod framed;
mod pairs;
mod providers;

use std::collections::BTreeSet;
use std::time::Duration;

use zarr_conformance::codec::{self, device, pair};
use zarr_conformance::{Outcome, Suite, Trial};

/// A wrong implementation, and the law that finds it.
struct Wrong {
    name: String,
    /// A law whose cases must fail.
    law: &'static str,
    /// Whether that law alone finds it.
    alone: bool,
    suite: Box<dyn Fn() -> Suite>,
}

impl Wrong {
    /// That law alone finds it: without the law it passes.
    fn alone(name: impl std::fmt::Debug, law: &'static str, suite: impl Fn() -> Suite + 'static) -> Self {
        Self { name: format!("{name:?}"), law, alone: true, suite: Box::new(suite) }
    }

    /// That law finds it, and others may.
    fn found(name: impl std::fmt::Debug, law: &'static str, suite: impl Fn() -> Suite + 'static) -> Self {
        Self { alone: false, ..Self::alone(name, law, suite) }
    }
}

fn wrong() -> Vec<Wrong> {
    [framed::wrong(), providers::wrong(), arrays::wrong(), pairs::wrong(), devices::wrong()].into_iter().flatten().collect()
}

/// The laws that a suite's subject breaks.
fn broken(suite: &Suite, trial: &Trial) -> BTreeSet<String> {
    let broken = suite.cases().iter().filter(|case| matches!(case.run(trial), Outcome::Fail(_)));
    broken.map(|case| case.law().to_owned()).collect()
}

/// What goes wrong on purpose says so on a thread of its own, again and again.
fn quietly() {
    std::panic::set_hook(Box::new(|info| {
        let test = std::thread::current().name().is_some_and(|name| !name.contains('/'));
        if test {
            eprintln!("{info}");
        }
    }));
}

#[test]
fn honest_codecs_pass() {
    let honest = [framed::honest(), providers::honest(), arrays::honest(), pairs::honest(), devices::honest()];
    for suite in honest.into_iter().flatten() {
        suite.run(&Trial::default()).assert_conforms();
    }
}

#[test]
fn every_wrong_codec_is_found_and_no_law_is_idle() {
    quietly();
    let trial = Trial::default();
    let mut needed = BTreeSet::new();
    let mut mistakes = Vec::new();
    let all = wrong();
    for wrong in &all {
        let suite = (wrong.suite)();
        let broken = broken(&suite, &trial);
        if !broken.contains(wrong.law) {
            mistakes.push(format!("{} is not found by {}, but by {broken:?}", wrong.name, wrong.law));
        } else if wrong.alone && broken.len() > 1 {
            mistakes.push(format!("{} is found by {broken:?}, not by {} alone", wrong.name, wrong.law));
        } else if wrong.alone && needed.insert(wrong.law.to_owned()) {
            let without = (wrong.suite)().without_law(wrong.law).run(&trial);
            if !without.conforms() {
                mistakes.push(format!("{} fails without {}: {without}", wrong.name, wrong.law));
            }
        }
    }
    let codecs = codec::cases().iter().map(|case| case.law().to_owned()).collect::<BTreeSet<_>>();
    let pairs = pair::cases().iter().map(|case| case.law().to_owned()).collect::<BTreeSet<_>>();
    let devices = device::cases().iter().map(|case| case.law().to_owned()).collect::<BTreeSet<_>>();
    let laws: BTreeSet<String> = [codecs, pairs, devices].into_iter().flatten().collect();
    let idle: Vec<&String> = laws.difference(&needed).collect();
    assert!(mistakes.is_empty() && idle.is_empty(), "{}\nidle: {idle:?}", mistakes.join("\n"));
    assert!(all.len() >= 25, "only {} wrong codecs", all.len());
}

#[test]
fn a_hang_is_found() {
    let limit = Duration::from_secs(3);
    let broken = broken(&framed::hanging(), &Trial::default().with_time_limit(limit));
    assert!(broken.contains("codec/decode/bad-input"), "{broken:?}");
}

#[test]
fn ids_are_unique_and_begin_with_their_laws() {
    let codecs = codec::cases().iter().map(|case| (case.id().to_owned(), case.law().to_owned())).collect::<Vec<_>>();
    let pairs = pair::cases().iter().map(|case| (case.id().to_owned(), case.law().to_owned())).collect::<Vec<_>>();
    let devices = device::cases().iter().map(|case| (case.id().to_owned(), case.law().to_owned())).collect::<Vec<_>>();
    let mut seen = BTreeSet::new();
    for (id, law) in [codecs, pairs, devices].into_iter().flatten() {
        assert!(id.starts_with(&law), "{id} is a case of {law}");
        assert!(seen.insert(id.clone()), "{id} twice");
    }
}
