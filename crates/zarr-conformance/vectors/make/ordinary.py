"""Ordinary arrays, written by zarr-python, tensorstore or numcodecs: every data type, codec, layout, grid and key encoding.

The spellings come from `ci/interop`, which compares implementations on combinations of the same levels.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "ci/interop"))

import levels  # noqa: E402

# Small: vectors are committed.
levels.SHAPES.update(
    {
        "even": ((8, 8), (4, 4)),
        "uneven": ((7, 9), (4, 4)),
        "uneven-1d": ((11,), (4,)),
        "uneven-3d": ((5, 3, 6), (2, 2, 4)),
        # Long enough that compressors compress.
        "long": ((1100,), (512,)),
        "one-chunk": ((6, 8), (6, 8)),
        "0-d": ((), ()),
        "zero-size": ((0, 7), (3, 4)),
        "zero-size-inner": ((7, 0, 3), (2, 2, 2)),
        "chunk-larger": ((5, 4), (8, 8)),
    }
)

import cases as interop  # noqa: E402
import numpy as np  # noqa: E402
from cover import Support  # noqa: E402
from dtypes import DTYPES, pack  # noqa: E402
from peer import PEERS  # noqa: E402

WRITERS = ("zarr-python", "tensorstore", "numcodecs")
BASE = {
    "dtype": "int32",
    "endian": "little",
    "layout": "v3",
    "filter": "none",
    "compressor": "none",
    "shape": "uneven",
    "fill": "value",
    "key": "default-slash",
    "content": "sparse",
}
TYPE_CITES = {
    "numeric": "core 3.1, Core data types; version 2, Data type encoding",
    "raw": "core 3.1, Core data types: r*; version 2, Data type encoding: V",
    "ml": "zarr-extensions, data-types; OCP Microscaling Formats 1.0; ml_dtypes",
    "text": "zarr-extensions, data-types; version 2, Data type encoding: S, U",
    "time": "zarr-extensions, data-types/numpy.datetime64, numpy.timedelta64; version 2, Data type encoding: M, m",
    "struct": "zarr-extensions, data-types/struct; version 2, Data type encoding: structured types",
    "string": "zarr-extensions, data-types/string, codecs/vlen-utf8; numcodecs, VLenUTF8",
    "bytes": "zarr-extensions, data-types/bytes, codecs/vlen-bytes; numcodecs, VLenBytes",
    "varray": "numcodecs, VLenArray",
}


def choices():
    """(id, levels, citation), whether or not the combination has a meaning."""
    for dtype, d in DTYPES.items():
        content = "random"
        for layout in ("v3", "v2-c"):
            key = "default-slash" if layout == "v3" else "v2-dot"
            for endian in ("little", "big"):
                for fill in ("zero", "value", "special", "null"):
                    if (endian == "little") == (fill in ("value", "null")) or not d.multibyte:
                        shown = f"{layout[:2]}-{endian}" if d.multibyte else layout[:2]
                        content = "sparse" if fill in ("value", "special") and d.kind != "varray" else "random"
                        yield f"types/{dtype}-{shown}-fill-{fill}", {"dtype": dtype, "endian": endian, "layout": layout, "key": key, "fill": fill, "content": content, "shape": "uneven-1d"}, TYPE_CITES[d.kind]
    for compressor in levels.FACTORS["compressor"]:
        for layout, key in (("v3", "default-slash"), ("v2-c", "v2-dot")):
            yield f"codecs/{compressor}-of-{layout[:2]}", {"dtype": "int16", "compressor": compressor, "layout": layout, "key": key, "content": "smooth", "shape": "long"}, "core 3.1, Codecs; zarr-extensions, codecs; numcodecs, codecs of that name"
    for filter in levels.FACTORS["filter"]:
        for layout, key in (("v3", "default-slash"), ("v2-c", "v2-dot")):
            for dtype in ("float64", "int32", "bool"):
                for shape in ("uneven", "uneven-3d"):
                    yield f"filters/{filter}-of-{layout[:2]}", {"dtype": dtype, "filter": filter, "layout": layout, "key": key, "content": "smooth", "shape": shape}, "core 3.1, Codecs; zarr-extensions, codecs; numcodecs, codecs of that name"
    for layout in levels.FACTORS["layout"]:
        key = "v2-dot" if layout.startswith("v2") else "default-slash"
        cite = "version 2, Storing arrays" if layout.startswith("v2") else "zarr-extensions, chunk-grids/rectilinear" if layout == "rectilinear" else "core 3.1, sharding codec" if "shard" in layout else "core 3.1, Regular grids"
        for shape in levels.FACTORS["shape"]:
            yield f"layouts/{layout}-{shape}-stored", {"dtype": "uint16", "layout": layout, "key": key, "shape": shape}, cite
        yield f"layouts/{layout}-all-fill", {"dtype": "uint16", "layout": layout, "key": key, "content": "fill"}, cite
        yield f"layouts/{layout}-big-endian", {"dtype": "float32", "layout": layout, "key": key, "endian": "big"}, cite
        yield f"layouts/{layout}-strings", {"dtype": "string", "layout": layout, "key": key}, cite
        yield f"layouts/{layout}-zstd", {"dtype": "float32", "layout": layout, "key": key, "compressor": "zstd"}, cite
    for key in levels.FACTORS["key"]:
        for shape in ("uneven", "0-d"):
            for layout in ("v3", "v2-c"):
                yield f"keys/{layout[:2]}-{key}-{shape}", {"layout": layout, "key": key, "shape": shape}, "core 3.1, Chunk key encoding; version 2, dimension_separator"


# Spellings of one implementation or another that no specification has.
UNSPECIFIED = {
    "numcodecs, VLenArray; zarr-python 2": lambda case: case["dtype"] == "varray_int32",
    "no specification: tensorstore's and ml_dtypes' names in version 2": lambda case: DTYPES[case["dtype"]].kind == "ml" and case["layout"].startswith("v2"),
    "not registered: tensorstore's name": lambda case: case["dtype"] == "float8_e4m3fn",
    "no specification: zarr-python's name for core's r*": lambda case: case["dtype"] == "raw_bytes",
    "no specification: zarr-python spells fill values of bytes in base64": lambda case: case["dtype"] == "bytes" and case["layout"].startswith("v2"),
}


def unspecified(case):
    """What is known of a spelling that no specification has, or `None`."""
    return next((why for why, fits in UNSPECIFIED.items() if fits(case["levels"])), None)


def found():
    """(id, case document, expected bytes, citation), each with its name once."""
    seen = set()
    for name, change, cite in choices():
        case = BASE | change
        name = name.replace("_", "-").replace("+", "-with-")
        if name in seen or not levels.valid(case):
            continue
        seen.add(name)
        values = interop.values_of(case)
        d = DTYPES[case["dtype"]]
        shape, _, _ = levels.grid(case)
        yield name, {
            "levels": case,
            "shape": list(shape),
            "element": "variable" if d.variable else d.size,
            "metadata": levels.metadata(case),
            "whole": case["filter"] in levels.LOSSY_BY_CHUNK,
            "input": pack(d, values),
            "expected": pack(d, interop.round_trip(case, values)),
            "lossy": case["filter"] in levels.LOSSY_BY_CHUNK or case["filter"] in levels.LOSSY,
        }, cite


def write(case, where):
    """Writes the array with the first implementation that supports it, and gives its name."""
    for name in WRITERS:
        if Support(name).rule_for(case["levels"], "write") is None:
            peer = PEERS[name]()
            peer.write(where, case, case["input"])
            # What it reads itself it wrote as it was asked to.
            assert peer.read(where, case) == case["expected"], (name, case)
            return name
    return None
