//! Implementations, codecs and data types: who passes with what.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;

use super::failure::{Failure, Result};
use super::results::{Place, Results, Verdict};
use super::table::{DIM, GREEN, RED, Table, YELLOW};

/// What is known of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) unsupported: usize,
}

/// What a place, or several together, come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Nothing is known.
    Untested,
    /// It says that it does not take this.
    Unsupported,
    Pass,
    Fail,
}

impl Cell {
    fn standing(self) -> Standing {
        match self {
            Self { failed: 1.., .. } => Standing::Fail,
            Self { passed: 1.., .. } => Standing::Pass,
            Self { unsupported: 1.., .. } => Standing::Unsupported,
            _ => Standing::Untested,
        }
    }
}

/// All places.
#[derive(Debug, Default)]
pub(crate) struct Matrix(BTreeMap<Place, Cell>);

impl Matrix {
    pub(crate) fn of(results: &Results) -> Self {
        let mut places: BTreeMap<Place, Cell> = BTreeMap::new();
        for subject in &results.subjects {
            if let (Some(place), Some(_)) = (&subject.place, &subject.skipped) {
                places.entry(place.clone()).or_default().unsupported += 1;
            }
            for case in &subject.cases {
                let Some(place) = subject.place_of(case) else { continue };
                let cell = places.entry(place.clone()).or_default();
                match case.outcome {
                    Verdict::Pass => cell.passed += 1,
                    Verdict::Fail => cell.failed += 1,
                    Verdict::Unsupported => cell.unsupported += 1,
                }
            }
        }
        Self(places)
    }

    fn names(&self, of: impl Fn(&Place) -> &String) -> Vec<&str> {
        self.0.keys().map(|place| of(place).as_str()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Codecs down, implementations across; a cell counts data types.
    pub(crate) fn render(&self) -> String {
        let implementations = self.names(|place| &place.implementation);
        let mut table = Table::new(std::iter::once("codec").chain(implementations.iter().copied()));
        for codec in self.names(|place| &place.codec) {
            let cells = implementations.iter().map(|implementation| {
                let here = |place: &&Place| place.codec == codec && place.implementation == *implementation;
                let standings: Vec<Standing> =
                    self.0.keys().filter(here).filter_map(|place| self.0.get(place)).map(|cell| cell.standing()).collect();
                let count = |wanted| standings.iter().filter(|standing| **standing == wanted).count();
                match standings.iter().max() {
                    Some(Standing::Fail) => (format!("FAIL {} of {}", count(Standing::Fail), standings.len()), RED.bold()),
                    Some(Standing::Pass) => (format!("ok {}", count(Standing::Pass)), GREEN),
                    Some(Standing::Unsupported) => ("unsupported".to_owned(), YELLOW),
                    _ => (".".to_owned(), DIM),
                }
            });
            table.row(std::iter::once((codec.to_owned(), Style::new())).chain(cells));
        }
        format!("{}\nok N: passes with N data types. `.`: not tested. --implementation NAME shows the data types of one.\n", table.render())
    }

    /// Codecs down, data types across, of one implementation.
    ///
    /// # Errors
    /// When there is none of this name.
    pub(crate) fn render_one(&self, implementation: &str) -> Result<String> {
        let known = self.names(|place| &place.implementation);
        if !known.contains(&implementation) {
            return Err(Failure::usage(format!("there is no implementation `{implementation}`; there are: {}", known.join(", "))));
        }
        let here: BTreeMap<(&str, &str), Cell> = self
            .0
            .iter()
            .filter(|(place, _)| place.implementation == implementation)
            .map(|(place, cell)| ((place.codec.as_str(), place.data_type.as_str()), *cell))
            .collect();
        let codecs: BTreeSet<&str> = here.keys().map(|(codec, _)| *codec).collect();
        let types: BTreeSet<&str> = here.keys().map(|(_, data_type)| *data_type).collect();
        let mut table = Table::new(std::iter::once("data type").chain(codecs.iter().copied()));
        for data_type in types {
            let cells = codecs.iter().map(|codec| match here.get(&(*codec, data_type)).copied().unwrap_or_default().standing() {
                Standing::Fail => ("FAIL".to_owned(), RED.bold()),
                Standing::Pass => ("ok".to_owned(), GREEN),
                Standing::Unsupported => ("-".to_owned(), YELLOW),
                Standing::Untested => (".".to_owned(), DIM),
            });
            table.row(std::iter::once((data_type.to_owned(), Style::new())).chain(cells));
        }
        Ok(format!("{}\n`-`: said to be unsupported. `.`: not tested.\n", table.render()))
    }
}
