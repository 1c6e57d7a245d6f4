//! The program `zarr-conformance`; all of it is in [`zarr_conformance::runner`].

use std::process::ExitCode;

fn main() -> ExitCode {
    zarr_conformance::runner::main()
}
