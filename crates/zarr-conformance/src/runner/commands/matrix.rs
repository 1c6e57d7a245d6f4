use std::process::ExitCode;

use super::run::results;
use crate::runner::args::MatrixArgs;
use crate::runner::failure::{Context as _, Failure, Result, print};
use crate::runner::matrix::Matrix;
use crate::runner::results::{Results, SCHEMA};

pub(crate) fn run(args: &MatrixArgs, prefix: &[&str]) -> Result<ExitCode> {
    let results = match &args.report {
        None => results(&args.choice, &args.running, prefix)?,
        Some(path) => {
            let text = std::fs::read(path).context(|| format!("cannot read {}", path.display()))?;
            let results: Results = serde_json::from_slice(&text).context(|| format!("{} is no JSON report", path.display()))?;
            if results.schema != SCHEMA {
                return Err(Failure::new(format!("{} has the schema {}, and not {SCHEMA}", path.display(), results.schema)));
            }
            results
        }
    };
    let matrix = Matrix::of(&results);
    print(&match &args.implementation {
        None => matrix.render(),
        Some(implementation) => matrix.render_one(implementation)?,
    })?;
    Ok(if results.summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
