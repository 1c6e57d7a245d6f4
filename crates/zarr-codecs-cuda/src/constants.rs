//! The numbers that kernels and host share, as the kernels' sources have them.

#![expect(dead_code, reason = "some are for kernels alone")]

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
