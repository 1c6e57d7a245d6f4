//! Whole implementations over all vectors, and what each writes read by every other one.
//!
//! ```text
//! implementations OUT.json ADAPTER.toml ...
//! ```
//!
//! Ours is always among them. Prints a line for each, and writes every outcome as JSON. `cargo xtask conformance-peers` calls this.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use zarr_conformance::implementation::{Adapter, Exchange, ImplementationUnderTest, ours};
use zarr_conformance::vectors::{self, Vector, Verdict};
use zarr_conformance::{Outcome, Suite, Trial};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [out, adapters @ ..] = args.as_slice() else {
        return Err("usage: implementations OUT.json ADAPTER.toml ...".into());
    };
    let vectors: Arc<[Vector]> = vectors::load(&vectors::directory())?.into();
    let mut subjects = vec![(ImplementationUnderTest::new(ours(), ours(), Arc::clone(&vectors)), None)];
    for path in adapters {
        let adapter = Adapter::load(Path::new(path))?;
        subjects.push((adapter.under_test(ours(), Arc::clone(&vectors))?, Some(adapter)));
    }
    let readers: Vec<ImplementationUnderTest> = subjects.iter().map(|(subject, _)| subject.clone()).collect();
    let mut implementations = BTreeMap::new();
    for (subject, adapter) in &subjects {
        let (start, name) = (Instant::now(), subject.implementation().name());
        let identity = subject.implementation().identity()?;
        let others = readers.iter().filter(|reader| reader.implementation().name() != name).cloned();
        let suites = [Suite::from(subject.clone()), Suite::from(Exchange::new(subject.clone(), others))];
        let (mut outcomes, mut counts) = (BTreeMap::new(), [0_u32; 3]);
        for case in suites.iter().flat_map(Suite::cases) {
            let (at, outcome, message) = match case.run(&Trial::default()) {
                Outcome::Pass => (0, "pass", None),
                Outcome::Fail(message) => (1, "fail", Some(message)),
                Outcome::Unsupported(message) => (2, "unsupported", Some(message)),
            };
            counts[at] += 1;
            outcomes.insert(case.id().to_owned(), json!({"outcome": outcome, "message": message}));
        }
        let [passed, failed, unsupported] = counts;
        println!(
            "{name} ({identity}): {passed} passed, {failed} failed, {unsupported} unsupported, {:.0} s",
            start.elapsed().as_secs_f64()
        );
        let reasons = adapter.as_ref().map(|adapter| {
            let declared = vectors.iter().filter_map(|vector| Some((vector.id.as_str(), adapter.reason(&vector.id)?)));
            declared.collect::<BTreeMap<_, _>>()
        });
        implementations.insert(name, json!({"identity": identity, "cases": outcomes, "declared": reasons}));
    }
    let described: BTreeMap<&str, Value> = vectors.iter().map(|vector| (vector.id.as_str(), describe(vector))).collect();
    let record = json!({"format": vectors::FORMAT, "vectors": described, "implementations": implementations});
    std::fs::write(out, serde_json::to_vec_pretty(&record)?)?;
    Ok(())
}

fn describe(vector: &Vector) -> Value {
    let verdict = match vector.verdict {
        Verdict::MustAccept => "must_accept",
        Verdict::MustReject => "must_reject",
        _ => "may",
    };
    json!({"says": vector.says, "verdict": verdict, "cite": vector.cite})
}
