"""Makes the vectors anew: `arrays/<family>/<name>/{case.toml, store/, expected.raw}`.

    pip install -r ../../adapters/requirements.txt     # or `cargo xtask conformance-peers`, which makes target/conformance-venv
    python make.py

It takes Python 3.12 or later. The same versions make the same bytes.
"""

import gzip
import importlib.metadata
import json
import math
import pathlib
import shutil
import sys
import tempfile
import types
import warnings

import ordinary
import unusual
import verdicts
import zstandard

OUT = pathlib.Path(__file__).resolve().parent.parent / "arrays"
# Beginnings of names, and the family they go to, where it is not the beginning itself.
FAMILIES = {
    "attributes-": "meta/attributes-",
    "bool-": "values/bool-",
    "both-formats": "nodes/both-formats",
    "chunk-": "chunks/",
    "consolidated-": "nodes/consolidated-",
    "edge-chunks-": "chunks/edge-",
    "names-": "nodes/",
    "nan-": "values/nan-",
    "shrunk-": "chunks/shrunk-",
    "transpose-then-shard": "shard/behind-transpose",
    "transpose-": "order/transpose-",
    "type-": "meta/type-",
    "v2-f-order-": "order/v2-f-",
    "v3-": "order/",
    "zero-": "chunks/zero-",
}


def version(package):
    return f"{package} {importlib.metadata.version(package)}"


def makers():
    zstd = ".".join(map(str, zstandard.ZSTD_VERSION))
    blosc = f"c-blosc of {version('numcodecs')}"
    plain = f"{version('numpy')}, {version('crc32c')}"
    return [
        ("zstd-", f"libzstd {zstd} ({version('zstandard')})"),
        ("v2-zstd-", f"libzstd {zstd} ({version('zstandard')})"),
        ("gzip-", "zlib of CPython"),
        ("v2-gzip-", "zlib of CPython"),
        ("v2-zlib-", "zlib of CPython"),
        ("blosc-", blosc),
        ("v2-blosc-", blosc),
        ("vlen-", version("numcodecs")),
        ("v3-transpose-vlen", version("numcodecs")),
        ("v3-transpose-delta", version("numcodecs")),
        ("v2-f-order-", version("numcodecs")),
        ("shrunk-", f"zarr-python {importlib.metadata.version('zarr')}"),
        ("", plain),
    ]


def identify(name):
    for start, replacement in FAMILIES.items():
        if name.startswith(start):
            return replacement + name[len(start) :]
    family, rest = name.split("-", 1)
    return f"{family}/{rest}"


def toml(values):
    """Enough of TOML: strings, integers, booleans, lists of integers."""
    lines = []
    for key, value in values.items():
        if value is not None:
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def put(folder, case, expected):
    (folder / "case.toml").write_text(toml(case))
    if expected is not None:
        (folder / "expected.raw").write_bytes(expected)


def put_store(store, where):
    for key, value in store.items():
        file = where / key
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, dict):
            value = json.dumps(value, ensure_ascii=False)
        file.write_bytes(value.encode() if isinstance(value, str) else value)


def shape_of(vector):
    for name in ("zarr.json", ".zarray"):
        key = f"{vector['node']}/{name}".removeprefix("/")
        if key in vector["store"]:
            document = vector["store"][key]
            document = document if isinstance(document, dict) else json.loads(document)
            kind = document.get("data_type", document.get("dtype"))
            return [int(n) for n in document["shape"]], kind in ("string", "bytes", "|O")
    raise AssertionError(vector)


def one_unusual(name, vector, made_by):
    verdict, expected, cite = verdicts.verdict(name, unusual.VECTORS)
    folder = OUT / identify(name)
    put_store(vector["store"], folder / "store")
    shape = element = None
    if expected is not None:
        shape, variable = shape_of(vector)
        count = math.prod(shape)
        # Empty arrays are all of int32.
        element = "variable" if variable else len(expected) // count if count else 4
    case = {"says": vector["why"], "verdict": verdict, "cite": cite, "made_by": made_by, "node": vector["node"] or None, "shape": shape, "element": element}
    put(folder, case, expected)


def one_ordinary(name, case, cite):
    with tempfile.TemporaryDirectory() as scratch:
        where = pathlib.Path(scratch) / "store"
        writer = ordinary.write(case, where)
        if writer is None:
            return False
        folder = OUT / name
        shutil.copytree(where, folder / "store")
    package = {"zarr-python": "zarr"}.get(writer, writer)
    made_by = f"{writer} {importlib.metadata.version(package)}" + (f", {version('numcodecs')}" if writer != "tensorstore" else "")
    levels = case["levels"]
    says = ", ".join(f"{key} {value}" for key, value in levels.items() if key in ("dtype", "layout", "shape") or value != ordinary.BASE[key])
    why = ordinary.unspecified(case)
    values = {"says": says, "verdict": "may" if why else "must_accept", "cite": why or cite, "made_by": made_by, "shape": case["shape"], "element": case["element"], "writable": True if not case["lossy"] else None}
    put(folder, values, case["expected"])
    return True


def main():
    warnings.simplefilter("ignore")
    # gzip members carry the time: not that of today.
    gzip.time = types.SimpleNamespace(time=lambda: 0)
    shutil.rmtree(OUT, ignore_errors=True)
    by = makers()
    for name, vector in unusual.VECTORS.items():
        one_unusual(name, vector, next(made for start, made in by if name.startswith(start)))
    left = []
    for name, case, cite in ordinary.found():
        if not one_ordinary(name, case, cite):
            left.append(name)
    print(len(unusual.VECTORS), "unusual,", sum(1 for _ in OUT.glob("*/*")) - len(unusual.VECTORS), "ordinary")
    print("that no implementation writes:", " ".join(left), file=sys.stderr)


if __name__ == "__main__":
    main()
