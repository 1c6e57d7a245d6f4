"""Writes zarr_python_v3.json and tensorstore_v3.json: version 3 documents of other implementations.

Python 3.11, zarr 3.1.6, numpy 2.4.6, tensorstore, ml_dtypes. Each case holds the text of `zarr.json`, and for arrays
the bytes of the fill value in little-endian order as hexadecimal digits.
"""

import json
import warnings

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec

warnings.filterwarnings("ignore")
cases = []


def text(store, key="zarr.json"):
    return store._store_dict[key].to_bytes().decode()


def add(name, dtype, fill, **options):
    store = {}
    store = zarr.storage.MemoryStore()
    options = {"shape": (7, 5), "chunks": (3, 2), **options}
    array = zarr.create_array(store=store, dtype=dtype, fill_value=fill, zarr_format=3, **options)
    value = array.metadata.fill_value
    if isinstance(value, str) and not isinstance(value, np.str_):
        data = value.encode()
    elif isinstance(value, bytes) and not isinstance(value, np.bytes_):
        data = value
    else:
        native = array.metadata.dtype.to_native_dtype().newbyteorder("<")
        data = np.array(value, dtype=native).tobytes()
    cases.append({"name": name, "document": text(store), "fill": data.hex()})


for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
    kind = np.dtype(dtype).kind
    add(f"{dtype} zero", dtype, 0)
    if kind == "b":
        add(f"{dtype} true", dtype, True)
    if kind in "iu":
        info = np.iinfo(dtype)
        add(f"{dtype} min", dtype, info.min)
        add(f"{dtype} max", dtype, info.max)
    if kind == "f":
        info = np.finfo(dtype)
        for value in (0.1, -0.0, 1.5, info.max, info.tiny, info.smallest_subnormal, np.nan, np.inf, -np.inf):
            add(f"{dtype} {value}", dtype, value)
    if kind == "c":
        for value in (0.1 - 2j, complex(np.nan, np.inf), complex(-np.inf, -0.0)):
            add(f"{dtype} {value}", dtype, value)

add("fixed utf32", "<U5", "añ😀")
add("fixed utf32 empty", "<U3", "")
add("bytes S", "S6", b"abc")
add("raw V", "V4", b"\x00\x01\xfe\xff")
add("string", str, "né\n\"q\"")
add("vlen bytes", zarr.dtype.VariableLengthBytes(), b"\x00\xff")
add("datetime", "M8[10us]", np.datetime64(12345670, "us"))
add("datetime nat", "M8[ns]", np.datetime64("NaT"))
add("timedelta", "m8[s]", np.timedelta64(-5, "s"))
add("structured", np.dtype([("a", "<i4"), ("b", "u1"), ("c", "<f8")]), (1, 2, 0.5))
add("structured nested", np.dtype([("a", [("x", "<i2"), ("y", "S3")]), ("b", "<M8[s]")]), 0)
add("zero dimensions", "uint8", 3, shape=(), chunks=())
add("zero length", "uint8", 3, shape=(0, 4), chunks=(1, 4))
add("dot separator", "uint8", 3, chunk_key_encoding={"name": "default", "separator": "."})
add("v2 keys", "uint8", 3, chunk_key_encoding={"name": "v2", "separator": "/"})
add("names", "int16", 3, dimension_names=["x", None])
add("sharded", "int16", 3, chunks=(3, 2), shards=(6, 4), compressors=[ZstdCodec(level=3)])
add("codecs", "int16", 3, filters=[TransposeCodec(order=(1, 0))], serializer=BytesCodec(endian="big"),
    compressors=[BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"), GzipCodec(level=5)])
add("attributes", "int8", 0, attributes={
    "z": [1, 2.5, None, True, {"nested": {}}], "a": 2**70, "nan": float("nan"), "inf": [float("inf"), -float("inf")],
    "ünï": "名\u0000\u001f\U0001f600", "small": 1e-300})

store = zarr.storage.MemoryStore()
root = zarr.create_group(store, attributes={"title": "t"})
sub = root.create_group("sub", attributes={"k": 1})
sub.create_array("x", shape=(2,), dtype="float32", fill_value=np.nan)
root.create_array("y", shape=(2,), dtype=str)
cases.append({"name": "group", "document": text(store, "sub/zarr.json")})
zarr.consolidate_metadata(store)
cases.append({"name": "consolidated", "document": text(store)})

with open("zarr_python_v3.json", "w") as out:
    json.dump(cases, out, indent=1)
    out.write("\n")

import ml_dtypes
import tensorstore as ts

cases = []
for name in ("bool int8 uint64 bfloat16 float16 float32 float64 complex64 complex128 int4 uint4 "
             "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e4m3fn "
             "float4_e2m1fn int2 uint2").split():
    for fill in (0, 1, "NaN", "Infinity", "0x7f", "0x7fa1", "0x7fa00001", "0x7ff4000000000001", 0.1, -3, True,
                 [1.5, "NaN"], ["-Infinity", "0x7fa00001"]):
        context = {"driver": "zarr3", "kvstore": {"driver": "memory"},
                   "metadata": {"data_type": name, "shape": [4], "fill_value": fill,
                                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}}}
        if name == "float4_e2m1fn" and fill == "0x7f":
            continue  # tensorstore keeps the bits above the type's four in memory and drops them in the document
        try:
            spec = ts.open({**context, "create": True}).result()
        except Exception:
            continue
        document = spec.kvstore.read("zarr.json").result().value
        data = np.ascontiguousarray(np.asarray(spec.read().result())[:1]).tobytes()
        cases.append({"name": f"{name} {fill}", "document": bytes(document).decode(), "fill": data.hex()})

with open("tensorstore_v3.json", "w") as out:
    json.dump(cases, out, indent=1)
    out.write("\n")
