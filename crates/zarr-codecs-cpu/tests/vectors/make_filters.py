"""Writes filters.json: what the reference implementations make of small arrays; and filter_chains.json: whole chunks by zarr-python.

    python3.12 -m venv /tmp/filters
    /tmp/filters/bin/pip install numpy==2.5.5 numcodecs==0.17.1 zarr==3.4.2 pcodec==1.1.0 zfpy==1.0.1 cast-value-rs==0.5.1 ml_dtypes==0.6.0
    /tmp/filters/bin/python make_filters.py

Bytes are places in the list `bytes`, in base64; numbers little-endian. `encoded` is what encoding gives of `decoded`, and `back` what decoding gives of that, where it is
not `decoded` again. Numbers are made without a generator of random numbers, so that the file is the same on every run. Meant for x86-64: numpy leaves some
conversions to the machine.
"""

import base64
import json
import os
import warnings
from importlib.metadata import version

import cast_value_rs
import ml_dtypes
import numcodecs
import numcodecs.vlen
import numpy as np
import zarr
import zarr.codecs.numcodecs
import zfpy
from numcodecs import AsType, BitRound, Delta, FixedScaleOffset, PackBits, PCodec, Quantize
from zarr.codecs.scale_offset import _decode, _encode

warnings.simplefilter("ignore")

NAMES = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}
cases = []
blobs = {}


def blob(data):
    return blobs.setdefault(base64.b64encode(bytes(data)).decode(), len(blobs))


def code(dtype):
    dtype = np.dtype(dtype)
    return f"{dtype.kind}{dtype.itemsize}"


def add(name, configuration, decoded, encoded, back=None, shape=None, data_type=None, **more):
    case = {
        "name": name,
        "configuration": configuration,
        "data_type": data_type or NAMES[code(decoded.dtype)],
        "shape": list(decoded.shape if shape is None else shape),
        "decoded": blob(np.ascontiguousarray(decoded).tobytes()),
        "encoded": blob(encoded),
    }
    if back is not None and bytes(back) != decoded.tobytes():
        case["back"] = blob(back)
    case.update(more)
    cases.append(case)


def mix(count, seed=1):
    """Numbers below 2^32 that look random."""
    state = seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 32


def integers(dtype, count, seed=1):
    info = np.iinfo(dtype)
    values = [info.min, info.max, 0, 1, info.max // 2] + [info.min + (a << 32 | b) % (info.max - info.min + 1) for a, b in zip(mix(count, seed), mix(count, seed + 1))]
    return np.array(values[:count], dtype)


def floats(dtype, count, scale=100.0, seed=1):
    return np.array([(value / 2**31 - 1) * scale for value in mix(count, seed)], "f8").astype(dtype)


def values_of(dtype, count=11, seed=1):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([value % 2 for value in mix(count, seed)], "?")
    if dtype.kind in "iu":
        return integers(dtype, count, seed)
    if dtype.kind == "c":
        return (floats("f8", count, seed=seed) + 1j * floats("f8", count, seed=seed + 1)).astype(dtype)
    return floats(dtype, count, seed=seed)


def filter_case(name, codec, values, **more):
    encoded = np.asarray(codec.encode(values))
    back = np.asarray(codec.decode(encoded.copy()))
    configuration = codec.get_config()
    configuration.pop("id")
    add(name, configuration, values, encoded.tobytes(), back.tobytes(), **more)


# numcodecs.delta
for dtype in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]:
    filter_case("numcodecs.delta", Delta(f"<{dtype}"), values_of(dtype))
    filter_case("numcodecs.delta", Delta(f"<{dtype}"), values_of(dtype, 1))
for dtype, astype in [("i2", "i1"), ("u1", "i2"), ("u1", "u8"), ("i8", "i4"), ("u8", "f4"), ("f4", "i2"), ("f8", "f4"), ("f8", "f2"), ("f2", "f8"), ("i4", "f2"), ("u8", "i8"), ("i8", "u8"), ("u1", "i1"), ("c16", "c8"), ("f4", "c8"), ("c8", "f4")]:
    values = values_of(dtype)
    # Newer numpy refuses a first element that does not fit.
    values[0] = 3
    filter_case("numcodecs.delta", Delta(f"<{dtype}", f"<{astype}"), values)
filter_case("numcodecs.delta", Delta("<f4"), floats("f4", 1100))
filter_case("numcodecs.delta", Delta("<u2", "|u1"), np.concatenate([np.array([9], "u2"), integers("u2", 1100)]))
filter_case("numcodecs.delta", Delta("<i4"), integers("i4", 12).reshape(3, 4))

# numcodecs.astype
special = [np.nan, np.inf, -np.inf, -0.0, 0.5, -1.5, 2.5, 127.9, 128.2, 255.7, -300.9, 65504, 65520, 7e4, 2.0**31, 3e9, -3e9, 2.0**32 + 5, 1e19, -1e19, 1.8e19, 2.0**64, 6e-8, 1e-45, 3.4028235677973366e38]
edges = [0, 1, -1, 127, 128, 255, 256, 2**15, 65504, 65519, 65520, 16777217, 2**31 - 1, 2**31, 2**32 + 1, 2**53 + 1, 2**62 + 2**38 + 1, -(2**63)]
for source in NAMES:
    for target in NAMES:
        kind = np.dtype(source).kind
        if kind == "f":
            values = np.array(special, "f8").astype(source)
        elif kind == "c":
            values = np.array(special[3:12], "f8").astype(source) + 1j * np.arange(9)
            values = values.astype(source)
        elif kind == "b":
            values = np.array([0, 1, 1], "?")
        else:
            values = np.array([edge % 2**64 for edge in edges], "u8").astype(source)
        # A NaN has no bits that anyone promises.
        if source in ("f2", "f4", "f8") and target in ("f2", "f4", "f8", "c8", "c16") and source != target:
            values = values[~np.isnan(values)]
        # Of half precision numpy converts one by one, of others with vector instructions, which differ in what C leaves undefined.
        if source == "f2" and target == "u4":
            values = values[np.isfinite(values)]
        filter_case("numcodecs.astype", AsType(np.dtype(target).str, np.dtype(source).str), values)

# numcodecs.fixedscaleoffset
for dtype in ["f2", "f4", "f8"]:
    for astype in ["u1", "i2", "i4", "i8", "f2", "f4", "f8"]:
        for offset, scale in [(0, 1), (5, 10), (-3.7, 0.3), (1.5, -7)]:
            filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(offset, scale, f"<{dtype}", f"<{astype}"), floats(dtype, 9))
for dtype in ["u1", "i2", "i4", "i8", "u8"]:
    for astype in ["u1", "i2", "i8", "f4"]:
        for offset, scale in [(0, 1), (5, 10), (3, 0.3), (1.5, 7)]:
            filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(offset, scale, f"<{dtype}", f"<{astype}"), integers(dtype, 9))
filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(300, 3, "<i2", "<i4"), integers("i2", 9))
filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(1e6, 1e-3, "<f2", "<f2"), floats("f2", 9))
filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(1000, 10, "<f8", "|u1"), 1000 + floats("f8", 1100, 10))
filter_case("numcodecs.fixedscaleoffset", FixedScaleOffset(0, 3, "|b1", "|u1"), values_of("?", 5))

# numcodecs.quantize
for dtype in ["f2", "f4", "f8"]:
    for astype in ["f2", "f4", "f8"]:
        for digits in [0, 1, 2, 3, 5, 9, -1, -2]:
            filter_case("numcodecs.quantize", Quantize(digits, f"<{dtype}", f"<{astype}"), floats(dtype, 7))

# bitround
for dtype, bits in [("f2", 10), ("f4", 23), ("f8", 52)]:
    for keepbits in [0, 1, 3, bits - 1, bits]:
        values = np.concatenate([floats(dtype, 9), np.array([np.inf, -np.inf, 0.0, -0.0, 1e-7, np.finfo(dtype).max], dtype)])
        filter_case("bitround", BitRound(keepbits), values)

# numcodecs.packbits
for count in [1, 4, 8, 9, 17, 1100]:
    values = np.array([value % 3 == 0 for value in mix(count)], "?")
    filter_case("numcodecs.packbits", PackBits(), values)

# scale_offset
for dtype in ["i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8"]:
    for offset, scale in [(0, 1), (5, 2), (100, -1), (3, 5), (0.1, 0.3), (-7.5, 1000)]:
        kind = np.dtype(dtype).kind
        if kind != "f" and not (isinstance(offset, int) and isinstance(scale, int)) or (kind == "u" and scale < 0):
            continue
        values = floats(dtype, 9) if kind == "f" else np.array([offset + k for k in range(9)], dtype)
        encoded = _encode(values, values.dtype.type(offset), values.dtype.type(scale))
        back = _decode(encoded, values.dtype.type(offset), values.dtype.type(scale), scale_repr=scale)
        add("scale_offset", {"offset": offset, "scale": scale}, values, encoded.tobytes(), back.tobytes(), fill=blob(values[:1].tobytes()))

# cast_value
REAL = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]
for index, source in enumerate(REAL):
    for target in REAL:
        for rounding in ROUNDINGS if np.dtype(target).kind == "f" or np.dtype(source).kind == "f" else ROUNDINGS[:1]:
            for out_of_range in [None, "clamp", "wrap"]:
                if out_of_range == "wrap" and np.dtype(target).kind == "f":
                    continue
                if rounding not in ROUNDINGS[:2] and (out_of_range or target in ("i2", "u2", "i4", "u4")):
                    continue
                if np.dtype(source).kind == "f":
                    values = np.array([0.5, -1.5, 2.5, -0.0, 1e-3, 100.0 / 3, -77.7, 1e-8], "f8").astype(source)
                    if out_of_range:
                        values = np.concatenate([values, np.array([1e3, -1e3, 6e4, 3e9, -3e9, 1e19, 1e30, 1e39], "f8").astype(source)])
                        values = values[np.isfinite(values)]
                else:
                    values = np.array([edge % 2**64 for edge in edges], "u8").astype(source)
                configuration = {"data_type": NAMES[target]} | ({"rounding": rounding} if rounding != ROUNDINGS[0] else {})
                if out_of_range:
                    configuration["out_of_range"] = out_of_range
                arguments = {"rounding_mode": rounding, "out_of_range_mode": out_of_range}
                try:
                    encoded = cast_value_rs.cast_array(values, target_dtype=NAMES[target], **arguments)
                except ValueError:
                    add("cast_value", configuration, values, b"", error="encode")
                    continue
                add("cast_value", configuration, values, encoded.tobytes(), one_way=1)

# cast_value between single precision and the narrow types; every pattern that is a number
for name in ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16"]:
    narrow = np.dtype(getattr(ml_dtypes, name))
    width = {"float4": 4, "float6": 6, "bfloat": 16}.get(name[:6], 8)
    patterns = np.arange(0, 2**width, 1 if width < 16 else 251).astype("u2" if width == 16 else "u1")
    wide = patterns.view(narrow).astype("f4")
    finite = np.isfinite(wide)
    # ml_dtypes takes the least value of float8_e8m0fnu, a subnormal number in single precision, for the next one.
    finite[0] &= name != "float8_e8m0fnu"
    patterns, wide = patterns[finite], wide[finite]
    add("cast_value", {"data_type": name}, wide, patterns.tobytes(), wide.tobytes(), fill=blob(b"\0\0\x80?"))
    between = (np.sort(wide)[:-1].astype("f8") * 0.7 + np.sort(wide)[1:].astype("f8") * 0.3).astype("f4")
    between = between[between != 0]
    rounded = between.astype(narrow)
    add("cast_value", {"data_type": name}, between, rounded.tobytes(), rounded.astype("f4").tobytes(), fill=blob(b"\0\0\x80?"))

# numcodecs.pcodec
for dtype in ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]:
    smooth = (np.arange(200) * 3 + np.array(list(mix(200))) % 7).astype(dtype) if dtype != "f2" else floats("f2", 200)
    for config in [{}, {"level": 2, "mode_spec": "classic", "delta_spec": "no_op"}, {"level": 4, "delta_spec": "try_consecutive", "delta_encoding_order": 2}, {"equal_pages_up_to": 90}]:
        codec = PCodec(**config)
        add("numcodecs.pcodec", codec.get_config() | {"id": None}, smooth.reshape(20, 10), codec.encode(smooth))
        cases[-1]["configuration"].pop("id")
lookback = np.array([value % 50 * 1000003 for value in mix(300)] * 3, "i8")
add("numcodecs.pcodec", {"level": 8, "delta_spec": "try_lookback"}, lookback, PCodec(delta_spec="try_lookback").encode(lookback))
empty = np.array([], "f4")
add("numcodecs.pcodec", {"level": 8}, empty, PCodec().encode(empty))


# zfp and numcodecs.zfpy
def field(dtype, shape):
    count = int(np.prod(shape))
    grid = np.linspace(0, 3, count).reshape(shape)
    smooth = np.sin(grid * 2) * 1000 + np.array(list(mix(count))).reshape(shape) / 2**32
    return smooth.astype(dtype) if dtype[0] == "f" else (smooth * (1000 if dtype == "i4" else 10**9)).astype(dtype)


MODES = [
    ({"mode": "reversible"}, {}),
    ({"mode": "fixed_rate", "rate": 7.5}, {"rate": 7.5}),
    ({"mode": "fixed_precision", "precision": 14}, {"precision": 14}),
    ({"mode": "fixed_accuracy", "tolerance": 0.05}, {"tolerance": 0.05}),
]
SHAPES = [(1,), (4,), (37,), (5, 7), (8, 4), (3, 5, 6), (4, 4, 4), (2, 3, 5, 3), (4, 4, 4, 4)]
for dtype in ["i4", "i8", "f4", "f8"]:
    for shape in SHAPES if dtype[1] == "4" else SHAPES[2::2]:
        for configuration, arguments in MODES:
            if dtype[0] == "i" and "tolerance" in arguments:
                continue
            values = field(dtype, shape)
            encoded = zfpy.compress_numpy(values, write_header=False, **arguments)
            kind = {"i4": zfpy.type_int32, "i8": zfpy.type_int64, "f4": zfpy.type_float, "f8": zfpy.type_double}[dtype]
            back = zfpy._decompress(encoded, kind, shape, **arguments)
            add("zfp", configuration, values, encoded, back.tobytes())
for dtype in ["i4", "i8", "f4", "f8"]:
    for configuration, arguments in MODES[1:]:
        if dtype[0] == "i" and "tolerance" in arguments:
            continue
        number = {"fixed_rate": 2, "fixed_precision": 3, "fixed_accuracy": 4}[configuration["mode"]]
        values = field(dtype, (6, 9))
        encoded = zfpy.compress_numpy(values, write_header=True, **arguments)
        back = zfpy.decompress_numpy(encoded)
        add("numcodecs.zfpy", {"mode": number, "tolerance": -1, "rate": -1, "precision": -1} | arguments, values, encoded, back.tobytes())
values = np.array([0.0, -0.0, 1e-40, 1e38, -1e38, 3e-45, 1.0, 2.0, np.float32(0.1)], "f4")
for configuration, arguments in MODES:
    encoded = zfpy.compress_numpy(values, write_header=False, **arguments)
    back = zfpy._decompress(encoded, zfpy.type_float, values.shape, **arguments)
    add("zfp", configuration, values, encoded, back.tobytes())
zeros = np.zeros((5, 5))
for configuration, arguments in MODES:
    encoded = zfpy.compress_numpy(zeros, write_header=False, **arguments)
    add("zfp", configuration, zeros, encoded, zfpy._decompress(encoded, zfpy.type_double, zeros.shape, **arguments).tobytes())

# vlen
strings = ["", "a", "zwölf", "\U0001f600", "x" * 300]
objects = np.array(strings, dtype=object)
variable = [
    {"name": "vlen-utf8", "configuration": {}, "data_type": "string", "elements": [blob(text.encode()) for text in strings], "encoded": blob(numcodecs.vlen.VLenUTF8().encode(objects))},
]
raw = np.array([b"", b"\xff\x00", b"y" * 70], dtype=object)
variable.append({"name": "vlen-bytes", "configuration": {}, "data_type": "bytes", "elements": [blob(element) for element in raw], "encoded": blob(numcodecs.vlen.VLenBytes().encode(raw))})
ragged = np.empty(3, dtype=object)
ragged[:] = [np.array([1, 2], ">i2"), np.array([], ">i2"), np.array([-3], ">i2")]
variable.append({"name": "numcodecs.vlen-array", "configuration": {"dtype": ">i2"}, "data_type": "bytes", "elements": [blob(element.tobytes()) for element in ragged], "encoded": blob(numcodecs.vlen.VLenArray(">i2").encode(ragged))})

versions = {name: version(name) for name in ["numpy", "numcodecs", "zarr", "pcodec", "zfpy", "cast-value-rs", "ml_dtypes"]}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filters.json")
with open(path, "w") as file:
    file.write('{"versions": ' + json.dumps(versions) + ',\n"variable": [\n')
    file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in variable))
    file.write('\n],\n"bytes": [\n' + ",\n".join(map(json.dumps, blobs)))
    file.write('\n],\n"cases": [\n')
    file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
    file.write("\n]}\n")
print(len(cases), "cases,", os.path.getsize(path), "bytes")

# Whole chunks, in both versions
chains = []


def chain(values, **arguments):
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, shape=values.shape, chunks=values.shape, dtype=values.dtype, **arguments)
    array[...] = values
    files = {key: value.to_bytes() for key, value in store._store_dict.items()}
    metadata = next(json.loads(files[key]) for key in ("zarr.json", ".zarray") if key in files)
    [chunk] = [value for key, value in files.items() if not key.startswith((".z", "zarr.json"))]
    case = {"metadata": metadata, "chunk": base64.b64encode(chunk).decode()}
    if values.dtype.kind == "T" or values.dtype == object:
        case["strings"] = [str(value) for value in values.ravel()]
    else:
        back = array[...]
        case["decoded"] = base64.b64encode(np.ascontiguousarray(back).astype(back.dtype.newbyteorder("<")).tobytes()).decode()
    chains.append(case)


v3 = zarr.codecs.numcodecs
small = np.arange(12, dtype="i4").reshape(3, 4) * 7 - 20
smooth = np.linspace(0, 9, 30).reshape(5, 6)
chain(small.astype(">i4"), zarr_format=2, filters=[Delta(">i4", ">i2")], compressors=None)
chain(small.astype("<i4"), zarr_format=2, filters=[Delta("<i4"), AsType("<i8", "<i4")], compressors=numcodecs.Zlib(), order="F")
chain(smooth.astype(">f4"), zarr_format=2, filters=[FixedScaleOffset(3, 10, ">f4", "|u1")], compressors=None)
chain(smooth, zarr_format=2, filters=[Quantize(2, "<f8", "<f4")], compressors=numcodecs.GZip())
chain(smooth, zarr_format=2, filters=[BitRound(8), numcodecs.Shuffle(8)], compressors=numcodecs.Zstd())
chain(small % 3 == 0, zarr_format=2, filters=[PackBits()], compressors=None)
chain(small, zarr_format=2, compressors=PCodec(level=5))
chain(smooth, zarr_format=2, compressors=numcodecs.ZFPY(mode=4, tolerance=0.01))
chain(np.array(["", "zwölf", "x"], dtype=np.dtypes.StringDType()), zarr_format=2, compressors=numcodecs.Zstd())
chain(small, filters=[v3.Delta(dtype="int32", astype="int16")], compressors=None)
chain(smooth, filters=[v3.FixedScaleOffset(offset=3, scale=10, dtype="float64", astype="uint8")])
chain(smooth, filters=[v3.BitRound(keepbits=8)], compressors=None)
chain(small % 3 == 0, filters=[v3.PackBits()], compressors=None)
chain(smooth, serializer=v3.PCodec(level=5), compressors=None)
chain(smooth, serializer=v3.ZFPY(mode=2, rate=16), compressors=None)
chain(smooth, filters=[zarr.codecs.ScaleOffset(offset=1.5, scale=100), zarr.codecs.CastValue(data_type="int16")], compressors=None)
holes = np.where(smooth > 5, np.nan, smooth).astype("f4")
marked = {"encode": [("NaN", 255)], "decode": [(255, "NaN")]}
chain(holes, filters=[zarr.codecs.CastValue(data_type="uint8", rounding="towards-zero", scalar_map=marked)], fill_value=np.nan, compressors=None)
chain(np.array(["a", "", "zwölf"], dtype=np.dtypes.StringDType()), compressors=None)

path = os.path.join(os.path.dirname(path), "filter_chains.json")
with open(path, "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in chains) + "\n]\n")
print(len(chains), "chains,", os.path.getsize(path), "bytes")
