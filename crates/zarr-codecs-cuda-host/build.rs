//! Compiles the kernels of zarr-codecs-cuda with the host's C++ compiler.

use std::env;
use std::path::PathBuf;

fn main() {
    let kernels = PathBuf::from(env::var("DEP_ZARR_CODECS_CUDA_KERNELS_KERNELS").expect("zarr-codecs-cuda says where its kernels are"));
    println!("cargo::rerun-if-changed={}", kernels.display());
    println!("cargo::rerun-if-changed=src/simt.cpp");
    println!("cargo::rerun-if-env-changed=ZARR_KERNELS_SANITIZE");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).include(&kernels).file("src/simt.cpp").flag("-fno-exceptions").flag("-fno-strict-aliasing");
    // Kernels round each operation by itself.
    build.flag("-ffp-contract=off");
    // `address`, `undefined` or both with a comma: the program that links this brings the runtime.
    if let Ok(sanitizers) = env::var("ZARR_KERNELS_SANITIZE") {
        build.flag(format!("-fsanitize={sanitizers}")).flag("-fno-omit-frame-pointer").flag("-g1");
        if sanitizers.contains("undefined") {
            build.flag("-fno-sanitize-recover=undefined");
        }
    }
    build.compile("zarr_kernels_host");
}
