//! Forms of the results.

pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod text;
