//! Public behaviour of the crate, in one binary: it links once.

mod any;
mod arrays;
mod chunks;
mod common;
mod devices;
mod model;
mod providers;
mod read_each;
mod remote;
mod shapes;
mod versions;
