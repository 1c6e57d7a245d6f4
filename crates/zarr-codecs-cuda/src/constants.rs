//! The numbers that kernels and host share, as the kernels' sources have them.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
