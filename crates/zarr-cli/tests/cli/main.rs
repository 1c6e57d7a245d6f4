//! The command, run as its users run it: on the sample data of the repository, and on stores made here.

mod cat;
mod common;
mod copy;
mod devices;
mod http;
mod look;
mod s3;
mod validate;
