//! Forms of the results.

pub(crate) mod junit;
pub(crate) mod text;
