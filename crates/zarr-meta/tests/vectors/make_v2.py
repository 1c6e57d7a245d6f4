"""Writes zarr_python_v2.json: version 2 documents of zarr-python 2.

Python 3.11, zarr 2.18.3, numcodecs 0.13.1. Each case holds the texts of `.zarray` and `.zattrs`, and the bytes of the fill
value in the machine's byte order (little-endian) as hexadecimal digits, where there is one.
"""

import json
import warnings

import numcodecs
import numpy as np
import zarr

warnings.filterwarnings("ignore")
cases = []


def add(name, dtype, fill=0, attributes=None, **options):
    store = {}
    options = {"shape": (7, 5), "chunks": (3, 2), **options}
    array = zarr.create(store=store, dtype=dtype, fill_value=fill, **options)
    if attributes:
        array.attrs.update(attributes)
    case = {"name": name, "zarray": store[".zarray"].decode()}
    if ".zattrs" in store:
        case["zattrs"] = store[".zattrs"].decode()
    if array.fill_value is not None and array.dtype != object:
        case["fill"] = np.array(array.fill_value, dtype=array.dtype).astype(array.dtype.newbyteorder("<")).tobytes().hex()
    cases.append(case)


for dtype in "|b1 |i1 <i2 >i4 <i8 |u1 >u2 <u4 >u8 <f2 >f4 <f8 <c8 >c16".split():
    add(f"{dtype} zero", dtype)
    add(f"{dtype} one", dtype, 1)
    if np.dtype(dtype).kind == "f":
        for value in (np.nan, np.inf, -np.inf, 0.1, -0.0):
            add(f"{dtype} {value}", dtype, value)
    if np.dtype(dtype).kind == "c":
        add(f"{dtype} special", dtype, complex(np.nan, -2.5))
add("null", "<i4", None)
add("datetime", "<M8[ns]", np.datetime64(5, "ns"))
add("datetime big", ">M8[D]", np.datetime64("NaT"))
add("timedelta", "<m8[10s]", 0)
add("S", "|S6", b"ab")
add("S zero", "|S6", 0)
add("U", "<U4", "né")
add("U big", ">U4", "xyz")
add("V", "|V3", b"\x01\x02\x03")
add("struct", [("a", "<i4"), ("b", "|u1"), ("c", "<f8")], (7, 8, 0.5))
add("struct big", [("a", ">i4"), ("b", ">f8")], (7, 0.5))
add("struct nested", [("p", [("x", "<f4"), ("y", "<f4")]), ("v", "<i2", (2, 3))], None)
add("struct sub-array", [("p", [("x", "<f4"), ("y", "<c8")]), ("v", "<i2", (2,))], ((1, 2 + 3j), (4, 5)))
add("struct aligned", np.dtype([("a", "|i1"), ("b", "<i4")], align=True), None)
add("vlen-utf8", object, "", object_codec=numcodecs.VLenUTF8())
add("vlen-bytes", object, None, object_codec=numcodecs.VLenBytes())
add("vlen-array", object, None, object_codec=numcodecs.VLenArray("<i4"))
add("json2", object, "", object_codec=numcodecs.JSON())
add("pickle", object, 0, object_codec=numcodecs.Pickle())
add("msgpack2", object, None, object_codec=numcodecs.MsgPack())
add("order F", "<i4", order="F")
add("slash", "<i4", dimension_separator="/")
add("zero dimensions", "<i4", 3, shape=(), chunks=())
add("zero length", "<i4", 3, shape=(0, 4), chunks=(2, 4))
for codec in (None, numcodecs.Zstd(3), numcodecs.Zstd(-5, checksum=True), numcodecs.GZip(7), numcodecs.Zlib(1),
              numcodecs.Blosc("zstd", 3, 2), numcodecs.Blosc("lz4", 5, -1), numcodecs.Blosc("snappy", 1, 0), numcodecs.LZ4(),
              numcodecs.BZ2(), numcodecs.LZMA()):
    add(f"compressor {codec}", ">i4", compressor=codec)
add("filters delta", ">i4", filters=[numcodecs.Delta(">i4", "<i2")])
add("filters scale", "<f8", filters=[numcodecs.FixedScaleOffset(0, 10, "<f8", "|u1")], compressor=numcodecs.Blosc(shuffle=-1))
add("filters quantize", "<f8", filters=[numcodecs.Quantize(2, "<f8", ">f4")])
add("filters astype", "<i8", filters=[numcodecs.AsType("<i4", "<i8")])
add("filters shuffle", "<i4", filters=[numcodecs.Shuffle(4)], compressor=numcodecs.Zlib(5))
add("filters bytes", "<i4", filters=[numcodecs.Delta("<i4"), numcodecs.Shuffle(4), numcodecs.Fletcher32()])
add("filters packbits", "|b1", filters=[numcodecs.PackBits()])
add("filters bitround", "<f4", filters=[numcodecs.BitRound(5)], order="F")
add("attributes", "<f4", np.nan, attributes={"_ARRAY_DIMENSIONS": ["x", "y"], "nan": float("nan"), "big": 2**70, "b": {"z": 1, "a": 2}})

store = {}
root = zarr.group(store)
root.attrs["t"] = 1
root.create_group("g").create_dataset("__a", shape=4, dtype="<f4")
zarr.consolidate_metadata(store)

with open("zarr_python_v2.json", "w") as out:
    json.dump({"arrays": cases, "zmetadata": store[".zmetadata"].decode()}, out, indent=1)
    out.write("\n")
