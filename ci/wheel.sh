#!/usr/bin/env bash
# The Python package: clippy, its extension in the dev profile, and its tests, with NumPy, xarray, zarr-python (what xarray reads by is compared) and pytest from PyPI. Tests that need more (a GPU, torch, JAX) are skipped,
# and say so.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$PWD/target/wheel-ci"
python="$target/venv/bin/python"
"$python" -m pip --version >/dev/null 2>&1 || python3 -m venv --clear "$target/venv"
"$python" -c 'import dask, ml_dtypes, numpy, pytest, xarray, zarr' 2>/dev/null || "$python" -m pip install -q 'numpy>=2.1' pytest ml_dtypes dask xarray zarr
# Not linked to Python's library, which need not be there: it is loaded by the interpreter.
export PYO3_BUILD_EXTENSION_MODULE=1 PYO3_PYTHON="$python" CARGO_TARGET_DIR="$PWD/target"
cargo clippy --locked --manifest-path python/Cargo.toml -- -D warnings
cargo build --locked --manifest-path python/Cargo.toml
rm -rf "$target/site"
mkdir "$target/site"
cp -r python/zarrgpu "$target/site"
cp target/debug/lib_zarrgpu.so "$target/site/zarrgpu/_zarrgpu.abi3.so"
PYTHONPATH="$target/site" PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider --durations=5 python/tests
