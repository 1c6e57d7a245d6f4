#!/bin/sh
# Builds the wheel into target/wheels of the repository; with --test also installs it and runs the tests.
# Tools come from PyPI into an environment of their own, target/python-venv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
venv=$root/target/python-venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import dask, maturin, numpy, pytest, xarray, zarr' 2>/dev/null || "$venv/bin/pip" install -q 'maturin>=1.9,<2' 'numpy>=2.1' pytest ml_dtypes dask xarray zarr
rm -f "$root"/target/wheels/zarrgpu-*.whl
"$venv/bin/maturin" build --release --interpreter "$venv/bin/python" --manifest-path "$here/Cargo.toml" --out "$root/target/wheels"
ls -l "$root"/target/wheels/zarrgpu-*.whl
if [ "${1-}" = --test ]; then
    "$venv/bin/pip" install -q --force-reinstall --no-deps "$root"/target/wheels/zarrgpu-*.whl
    cd "$root"
    exec "$venv/bin/python" -m pytest python/tests
fi
