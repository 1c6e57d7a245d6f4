//! What is asked of a table of wrong implementations.

use zarr_conformance::{Outcome, Suite, Trial};

/// A wrong implementation and the laws that find it.
pub(crate) struct Wrong {
    /// What is wrong.
    pub(crate) what: String,
    /// The ids of the laws that it breaks, all of them.
    pub(crate) laws: Vec<&'static str>,
    /// Makes it, as a suite.
    pub(crate) suite: Box<dyn Fn() -> Suite>,
}

impl Wrong {
    pub(crate) fn new<S: Into<Suite>>(what: impl Into<String>, laws: &[&'static str], subject: impl Fn() -> S + 'static) -> Self {
        Self { what: what.into(), laws: laws.to_vec(), suite: Box::new(move || subject().into()) }
    }
}

/// Asserts that the suite finds each wrong implementation by just the laws that the table says, and that no law is idle: for each, there is a wrong
/// implementation that passes the suite without that law.
pub(crate) fn assert_no_law_is_idle(wrong: &[Wrong]) {
    let trial = Trial::default();
    let mut idle: Vec<String> = wrong.first().map_or_else(Vec::new, |wrong| laws(&(wrong.suite)()));
    let mut surprises = Vec::new();
    for Wrong { what, laws, suite } in wrong {
        let without = || laws.iter().fold(suite(), |suite, law| suite.without_law(law));
        let mut others = Vec::new();
        // Made anew for each case, so that what happened in one does not matter in another.
        for index in 0..without().cases().len() {
            let suite = without();
            let case = &suite.cases()[index];
            if let Outcome::Fail(how) = case.run(&trial) {
                others.push(format!("{what}: found by {} as well: {how}", case.id()));
            }
        }
        for index in (0..suite().cases().len()).filter(|index| laws.contains(&suite().cases()[*index].law())) {
            let suite = suite();
            let case = &suite.cases()[index];
            if !matches!(case.run(&trial), Outcome::Fail(_)) {
                surprises.push(format!("{what}: not found by {}", case.id()));
            }
        }
        if let ([law], true) = (&laws[..], others.is_empty()) {
            idle.retain(|idle| idle != law);
        }
        surprises.extend(others);
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    assert!(idle.is_empty(), "without these laws, no wrong implementation passes: {idle:#?}");
}

fn laws(suite: &Suite) -> Vec<String> {
    let mut laws: Vec<String> = suite.cases().iter().map(|case| case.law().to_owned()).collect();
    laws.dedup();
    laws
}
