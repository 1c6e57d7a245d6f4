"""The data types of the cover: their spelling in both formats, their fill values, and their elements.

An element has one canonical form, which is what the `.raw` files hold, in C order:

* fixed size: its little-endian bytes (for a struct, its packed fields; a sub-byte integer is sign-extended to a
  byte, a sub-byte float fills the low bits of one);
* variable size: a little-endian u32 length in bytes, then the bytes (UTF-8 for strings, little-endian elements
  for variable-length arrays).
"""

import base64
import hashlib
import struct

import ml_dtypes
import numpy as np

WORDS = ["", "a", "zarr", "é", "漢字", "🦀 crab", "nul\0inside", "x" * 40, "tab\t", "Ω≈ç√"]


class DType:
    """One data type: `v2` and `v3` give its metadata spelling, or `None` where the format has none."""

    def __init__(self, name, kind, np_dtype, v2=None, v3=None, multibyte=True):
        self.name = name
        self.kind = kind
        self.np = None if np_dtype is None else np.dtype(np_dtype)
        self._v2 = v2
        self.v3 = v3
        self.multibyte = multibyte

    @property
    def variable(self):
        return self.np is None

    @property
    def narrow(self):
        """Whether numpy keeps the sign of a byte's worth of integer in fewer bits."""
        return self.name in ("int2", "int4")

    @property
    def size(self):
        return None if self.variable else self.np.itemsize

    def v2(self, big):
        return self._v2(big) if callable(self._v2) else self._v2

    def canonical(self, kind):
        """What the other side must know to compare: the size of an element, or the kind of a variable one."""
        return {"variable": self.kind} if self.variable else {"size": self.size}

    # Elements.

    def values(self, count, style, seed):
        """`count` elements: an array of `np` for a fixed size, else a list of bytes."""
        rng = np.random.default_rng(seed)
        if self.kind == "string":
            return [self._word(i, style, rng).encode() for i in range(count)]
        if self.kind == "bytes":
            return [self._blob(i, style, rng) for i in range(count)]
        if self.kind == "varray":
            return [self._varray(i, style, rng) for i in range(count)]
        return fixed_values(self.np, count, style, rng)

    def _word(self, i, style, rng):
        if style == "smooth":
            return f"row {i // 7}"
        return WORDS[int(rng.integers(len(WORDS)))]

    def _blob(self, i, style, rng):
        if style == "smooth":
            return bytes([i // 5 % 256]) * ((i + 1) % 4)
        return rng.bytes(int(rng.integers(9)))

    def _varray(self, i, style, rng):
        n = i % 4 if style == "smooth" else int(rng.integers(5))
        start = i // 3 if style == "smooth" else int(rng.integers(1000))
        return np.arange(start, start + n, dtype="<i4").tobytes()

    # Fill values.

    def fill(self, level):
        """The canonical fill value of a level, or `None` where the type has no such level."""
        if level in ("zero", "null"):
            return b"" if self.variable else bytes(self.size)
        if self.kind == "string":
            return {"value": b"missing", "special": "é漢🦀".encode()}[level]
        if self.kind in ("bytes", "varray"):
            return {"value": b"\x01\x02\xff", "special": None}[level] if self.kind == "bytes" else None
        return fixed_fill(self.np, level)

    def fill_json(self, level, version):
        """The fill value as the metadata of `version` spells it."""
        if level == "null":
            return None
        raw = self.fill(level)
        if self.kind == "string":
            return raw.decode()
        if self.kind == "bytes":
            return base64.b64encode(raw).decode()
        if self.kind == "varray":
            return 0
        return fixed_fill_json(self.np, raw, version)


def fixed_values(dt, count, style, rng):
    out = np.zeros(count, dt)
    if dt.subdtype is not None:
        raise AssertionError("sub-arrays only occur inside structs")
    if dt.fields:
        for name in dt.names:
            field = dt.fields[name][0]
            if field.subdtype:
                base, shape = field.subdtype
                out[name] = fixed_values(base, count * int(np.prod(shape)), style, rng).reshape((count, *shape))
            else:
                out[name] = fixed_values(field, count, style, rng)
        return out
    index = np.arange(count)
    if dt == np.dtype(ml_dtypes.int4) or dt == np.dtype(ml_dtypes.int2):
        width = 8 if dt == np.dtype(ml_dtypes.int4) else 2
        v = index // 3 % width - width // 2 if style != "random" else rng.integers(-width, width, count)
        return v.astype(np.int8).astype(dt)
    if dt == np.dtype(ml_dtypes.float4_e2m1fn):
        v = (index // 3 + 1) % 16 if style != "random" else rng.integers(0, 16, count)
        return v.astype(np.uint8).view(dt)
    if dt.kind == "b":
        return (index // 5 % 2 == 0) if style != "random" else rng.integers(0, 2, count).astype(bool)
    if dt.kind == "U":
        letters = np.array([ord(c) for c in "az é漢🦀"], "<u4")
        n = dt.itemsize // 4
        v = (
            np.repeat(letters[index // 5 % len(letters)], n).reshape(count, n)
            if style != "random"
            else letters[rng.integers(0, len(letters), (count, n))]
        )
        return np.ascontiguousarray(v, "<u4").view(dt).reshape(count)
    if dt.kind == "S":
        v = (
            np.repeat(index // 5 % 26 + 65, dt.itemsize).reshape(count, dt.itemsize)
            if style != "random"
            else rng.integers(1, 256, (count, dt.itemsize))
        )
        return np.ascontiguousarray(v.astype(np.uint8)).view(dt).reshape(count)
    if style == "random" or dt.kind == "V" and dt.itemsize not in (1, 2):
        v = np.frombuffer(rng.bytes(count * dt.itemsize), np.uint8)
        if style != "random":
            v = (np.arange(count * dt.itemsize) // 11 % 255 + 1).astype(np.uint8)
        return v.view(dt) if count else out
    if style == "small":
        # Integers that survive arithmetic codecs, one to forty.
        return (index * 7 // 3 % 40 + 1).astype(dt)
    if dt.kind in "iu":
        return (index // 3 % 100 + 1).astype(dt)
    if dt.kind == "f":
        return (np.sin(index / 9.0) * 40 + index // 4 + 1).astype(dt)
    if dt.kind == "c":
        return (np.sin(index / 9.0) * 40 + 1j * (index // 4 + 1)).astype(dt)
    if dt.kind in "mM":
        return (index // 3 * 1000 + 1_600_000_000).astype("<i8").view(dt)
    # bfloat16, float8 and the like, and raw bytes.
    if dt.itemsize == 1:
        return (index // 5 % 120 + 1).astype(np.uint8).view(dt)
    return (index // 5 % 30000 + 1).astype("<u2").view(dt)


def fixed_fill(dt, level):
    if dt.fields:
        parts = b""
        for name in dt.names:
            field = dt.fields[name][0]
            if field.subdtype:
                base, shape = field.subdtype
                one = fixed_fill(base, level)
                parts += (one if one is not None else bytes(base.itemsize)) * int(np.prod(shape))
            else:
                one = fixed_fill(field, level)
                parts += one if one is not None else bytes(field.itemsize)
        return parts
    size = dt.itemsize
    if dt.kind == "b":
        return b"\x01" if level == "value" else None
    if dt.kind == "U":
        text = {"value": "a", "special": "漢🦀"}[level][: size // 4]
        return text.encode("utf-32-le").ljust(size, b"\0")
    if dt.kind == "S":
        return {"value": b"ab", "special": b"\x7f~"}[level][:size].ljust(size, b"\0")
    if dt.kind in "iu":
        info = np.iinfo(dt)
        return np.array(7 if level == "value" else (info.max if dt.kind == "u" else info.min), dt).tobytes()
    if dt.kind in "mM":
        return np.array(7 if level == "value" else -(2**63), "<i8").tobytes()
    if dt.kind == "f":
        return np.array(7.0 if level == "value" else np.nan, dt).tobytes()
    if dt.kind == "c":
        return np.array(7.25 - 2j if level == "value" else complex(np.nan, -np.inf), dt).tobytes()
    if dt in (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int2)):
        return np.array(1 if level == "value" else (-8 if dt == np.dtype(ml_dtypes.int4) else -2), np.int8).tobytes()
    if dt.type.__module__.startswith("ml_dtypes"):
        if level == "special" and dt == np.dtype(ml_dtypes.float4_e2m1fn):
            return None
        return np.array(2.0 if level == "value" else np.nan).astype(dt).tobytes()
    return (b"\x01\x02\xff\x80" * size)[:size] if level == "value" else None


def float_json(v):
    if np.isnan(v):
        return "NaN"
    if np.isinf(v):
        return "Infinity" if v > 0 else "-Infinity"
    return float(v)


def fixed_fill_json(dt, raw, version):
    if dt.fields:
        if version == 2:
            return base64.b64encode(raw).decode()
        out, at = {}, 0
        for name in dt.names:
            field = dt.fields[name][0]
            out[name] = fixed_fill_json(field, raw[at : at + field.itemsize], version)
            at += field.itemsize
        return out
    value = np.frombuffer(raw, dt)[0]
    if dt.kind == "b":
        return bool(value)
    if dt.kind == "U":
        return raw.decode("utf-32-le").rstrip("\0")
    if dt.kind == "S":
        if version == 2:
            return base64.b64encode(raw).decode()
        return base64.b64encode(raw.rstrip(b"\0")).decode()
    if dt.kind in "iu":
        return int(value)
    if dt.kind in "mM":
        return int(np.frombuffer(raw, "<i8")[0])
    if dt.kind == "f":
        return float_json(value)
    if dt.kind == "c":
        return [float_json(value.real), float_json(value.imag)]
    if dt in (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int2)):
        return int(value)
    if dt.type.__module__.startswith("ml_dtypes"):
        return float_json(np.float64(value))
    return base64.b64encode(raw).decode()


def _numeric(name, code):
    size = np.dtype(code).itemsize
    return DType(
        name,
        "numeric",
        ("<" if size > 1 else "") + code,
        v2=lambda big: ("|" if size == 1 else ">" if big else "<") + code,
        v3=name,
        multibyte=size > 1,
    )


def _ml(name, v2=True):
    dt = np.dtype(getattr(ml_dtypes, name))
    return DType(name, "ml", dt, v2=name if v2 else None, v3=name, multibyte=dt.itemsize > 1)


def _time(name, code, unit, scale):
    text = "" if unit == "generic" else f"[{scale if scale > 1 else ''}{unit}]"
    v3 = "numpy.datetime64" if code == "M8" else "numpy.timedelta64"
    return DType(
        name,
        "time",
        "<" + code + text,
        v2=lambda big: (">" if big else "<") + code + text,
        v3={"name": v3, "configuration": {"unit": unit, "scale_factor": scale}},
    )


def _struct(name, fields, v2_only=False):
    """`fields`: (name, code, shape); a code that is a list is a nested struct."""

    def numpy_fields(fs):
        return [(n, numpy_fields(c) if isinstance(c, list) else _le(c), *([s] if s else [])) for n, c, s in fs]

    def v2_fields(fs, big):
        return [
            [n, v2_fields(c, big) if isinstance(c, list) else _endian(c, big), *([list(s)] if s else [])]
            for n, c, s in fs
        ]

    def v3_fields(fs):
        return [{"name": n, "data_type": _v3_struct(v3_fields(c)) if isinstance(c, list) else V3_OF[c]} for n, c, s in fs]

    return DType(
        name,
        "struct",
        np.dtype(numpy_fields(fields)),
        v2=lambda big: v2_fields(fields, big),
        v3=None if v2_only else _v3_struct(v3_fields(fields)),
    )


def _v3_struct(fields):
    return {"name": "struct", "configuration": {"fields": fields}}


def _le(code):
    return code if np.dtype(code).itemsize == 1 or code[0] in "SV" else "<" + code


def _endian(code, big):
    return ("|" if np.dtype(code).itemsize == 1 or code[0] in "SV" else ">" if big else "<") + code


V3_OF = {
    "b1": "bool",
    "u1": "uint8",
    "i2": "int16",
    "i4": "int32",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "S3": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}},
    "U2": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}},
}

DTYPES = {
    d.name: d
    for d in [
        DType("bool", "numeric", "?", v2="|b1", v3="bool", multibyte=False),
        *(_numeric(f"int{8 * s}", f"i{s}") for s in (1, 2, 4, 8)),
        *(_numeric(f"uint{8 * s}", f"u{s}") for s in (1, 2, 4, 8)),
        *(_numeric(f"float{8 * s}", f"f{s}") for s in (2, 4, 8)),
        *(_numeric(f"complex{8 * s}", f"c{s}") for s in (8, 16)),
        _ml("int2"),
        _ml("int4"),
        _ml("bfloat16"),
        _ml("float8_e3m4"),
        _ml("float8_e4m3fn"),
        _ml("float8_e4m3b11fnuz"),
        _ml("float8_e4m3fnuz"),
        _ml("float8_e5m2"),
        _ml("float8_e5m2fnuz"),
        _ml("float8_e8m0fnu"),
        _ml("float4_e2m1fn"),
        DType("r24", "raw", "V3", v2="|V3", v3="r24", multibyte=False),
        DType(
            "raw_bytes",
            "raw",
            "V5",
            v3={"name": "raw_bytes", "configuration": {"length_bytes": 5}},
            multibyte=False,
        ),
        DType(
            "utf32",
            "text",
            "<U3",
            v2=lambda big: (">" if big else "<") + "U3",
            v3={"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}},
        ),
        DType(
            "null_terminated",
            "text",
            "S5",
            v2="|S5",
            v3={"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}},
            multibyte=False,
        ),
        _time("datetime_s", "M8", "s", 1),
        _time("datetime_ns", "M8", "ns", 1),
        _time("datetime_10us", "M8", "us", 10),
        _time("datetime_generic", "M8", "generic", 1),
        _time("timedelta_ms", "m8", "ms", 1),
        _struct("struct", [("a", "i2", None), ("b", "f4", None), ("c", "u1", None)]),
        _struct(
            "struct_nested",
            [("t", "i4", None), ("n", [("ok", "b1", None), ("z", "c8", None)], None), ("s", "S3", None), ("u", "U2", None)],
        ),
        _struct("struct_subarray", [("m", "i2", (2, 3)), ("v", "f8", (2,)), ("k", "b1", None)], v2_only=True),
        DType("string", "string", None, v2="|O", v3="string", multibyte=False),
        DType("bytes", "bytes", None, v2="|O", v3="bytes", multibyte=False),
        DType("varray_int32", "varray", None, v2="|O", v3=None, multibyte=False),
    ]
}


def seed_of(*parts):
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def pack(dtype, values):
    """Elements as one canonical byte string."""
    if dtype.variable:
        return b"".join(struct.pack("<I", len(v)) + v for v in values)
    if dtype.narrow:
        values = np.asarray(values).astype(np.int8)
    return np.ascontiguousarray(values).tobytes()


def unpack(dtype, raw, shape):
    """The inverse of `pack`: an array of `np`, or a flat list of bytes."""
    if dtype.narrow:
        return np.frombuffer(raw, np.int8).astype(dtype.np).reshape(shape)
    if not dtype.variable:
        return np.frombuffer(raw, np.uint8).view(dtype.np).reshape(shape) if raw else np.zeros(shape, dtype.np)
    out, at = [], 0
    while at < len(raw):
        (n,) = struct.unpack_from("<I", raw, at)
        out.append(raw[at + 4 : at + 4 + n])
        at += 4 + n
    return out


def from_numpy(dtype, array):
    """A peer's array, in whatever byte order and memory order, as canonical bytes."""
    if dtype.kind == "string":
        return pack(dtype, [str(v).encode() for v in array.reshape(-1)])
    if dtype.kind == "bytes":
        return pack(dtype, [bytes(v) for v in array.reshape(-1)])
    if dtype.kind == "varray":
        return pack(dtype, [np.asarray(v, "<i4").tobytes() for v in array.reshape(-1)])
    array = np.asarray(array)
    if array.dtype.newbyteorder("<") != dtype.np:
        raise TypeError(f"the array has data type {array.dtype}, not {dtype.np}")
    return pack(dtype, to_order(array, dtype.np))


def to_order(array, target):
    """The array in the byte order of `target`, bit for bit: a cast by value would quiet signalling NaNs."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.fields:
        out = np.empty(array.shape, target)
        for name in array.dtype.names:
            out[name] = to_order(array[name], target.fields[name][0].base)
        return out
    # Not by `!=`: numpy takes generic datetimes of both byte orders for equal.
    return array.byteswap().view(target) if array.dtype.str != target.str else array


def object_array(dtype, raw, shape):
    """A variable-size array as numpy objects."""
    items = unpack(dtype, raw, shape)
    out = np.empty(len(items), object)
    for i, v in enumerate(items):
        if dtype.kind == "string":
            out[i] = v.decode()
        elif dtype.kind == "bytes":
            out[i] = v
        else:
            out[i] = np.frombuffer(v, "<i4")
    return out.reshape(shape)
