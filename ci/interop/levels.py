"""The factors of the cover, which combinations of them mean something, and the metadata of a combination."""

import numpy as np

from dtypes import DTYPES

CNAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
BLOSC = [f"blosc-{c}-{s}" for c in CNAMES for s in SHUFFLES]

SHAPES = {
    # name: (array shape, chunk shape)
    "even": ((24, 20), (12, 10)),
    "uneven": ((25, 21), (10, 8)),
    "uneven-1d": ((101,), (33,)),
    "uneven-3d": ((5, 7, 9), (2, 3, 4)),
    # Chunks of one element along some axes.
    "lines": ((4, 9, 5), (1, 4, 1)),
    "long": ((4096,), (1024,)),
    "one-chunk": ((33, 40), (33, 40)),
    "0-d": ((), ()),
    "zero-size": ((0, 7), (3, 4)),
    "zero-size-inner": ((7, 0, 3), (2, 2, 2)),
    "chunk-larger": ((5, 4), (8, 9)),
}

FACTORS = {
    "dtype": list(DTYPES),
    "endian": ["little", "big"],
    "layout": [
        "v2-c",
        "v2-f",
        "v3",
        "rectilinear",
        "shard",
        "shard-index-start",
        "shard-index-bare",
        "shard-index-big",
        "shard-then-zstd",
        "transpose-then-shard",
        "shard-nested",
    ],
    "filter": [
        "none",
        "transpose",
        "transpose-cycle",
        "delta",
        "delta-astype",
        "fixedscaleoffset",
        "fixedscaleoffset-astype",
        "quantize",
        "bitround",
        "packbits",
        "astype",
        "categorize",
        "cast_value",
        "scale_offset",
        "scale_offset+cast_value",
        "pcodec",
        "zfpy",
        "zfpy-accuracy",
        "zfpy-precision",
        "zfpy-rate",
    ],
    "compressor": [
        "none",
        "gzip",
        "zlib",
        "zstd",
        "zstd-negative",
        "zstd-checksum",
        "crc32c",
        "zstd+crc32c",
        "lz4",
        "bz2",
        "lzma",
        "shuffle+zlib",
        *BLOSC,
        "blosc-autoshuffle",
        "numcodecs-blosc",
        "numcodecs-zstd",
        "fletcher32",
        "adler32",
        "crc32",
        "jenkins_lookup3",
    ],
    "shape": list(SHAPES),
    "fill": ["zero", "value", "special", "null"],
    "key": ["default-slash", "default-dot", "v2-slash", "v2-dot"],
    "content": ["random", "smooth", "sparse", "fill"],
}

# Filters that only work for some data types, and only on values that survive them.
FILTER_TYPES = {
    "delta": {"int16", "int32", "int64", "uint16", "uint32", "uint8", "int8", "float32", "float64"},
    "delta-astype": {"int32", "int64", "uint32", "float64"},
    "fixedscaleoffset": {"float32", "float64", "int32", "int16"},
    "fixedscaleoffset-astype": {"float32", "float64", "int32", "uint16"},
    "quantize": {"float16", "float32", "float64"},
    "bitround": {"float16", "float32", "float64"},
    "packbits": {"bool"},
    "astype": {"float64", "float32", "int32", "int64", "uint16"},
    "categorize": {"utf32"},
    "cast_value": {"int16", "int32", "int64", "uint8", "uint16", "float16", "float32", "float64"},
    "scale_offset": {"int8", "int16", "int32", "int64", "uint16", "uint64", "float32", "float64"},
    "scale_offset+cast_value": {"float32", "float64", "int32"},
    "pcodec": {"int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64"},
    "zfpy": {"float32", "float64", "int32", "int64"},
    "zfpy-accuracy": {"float32", "float64"},
    "zfpy-precision": {"float32", "float64", "int32", "int64"},
    "zfpy-rate": {"float32", "float64", "int32", "int64"},
}
LOSSY = {"fixedscaleoffset", "fixedscaleoffset-astype", "quantize", "bitround", "categorize"}
ARITHMETIC = {"delta", "delta-astype", "astype", "cast_value", "scale_offset", "scale_offset+cast_value"} | LOSSY - {"categorize"}
ZFPY = ["zfpy", "zfpy-accuracy", "zfpy-precision", "zfpy-rate"]
# Array->bytes codecs, beneath which there are no elements any more.
OPAQUE = {"pcodec", *ZFPY}
# What these lose depends on the whole chunk, and is lost again when a chunk is written a second time.
LOSSY_BY_CHUNK = set(ZFPY[1:])

CHECKSUMS = {"crc32c", "fletcher32", "adler32", "crc32", "jenkins_lookup3"}
SHARDED = {f for f in FACTORS["layout"] if "shard" in f}
V3_ONLY_FILTERS = {"transpose", "transpose-cycle", "cast_value", "scale_offset", "scale_offset+cast_value"}
V2_ONLY_FILTERS = {"categorize"}
V2_ONLY_COMPRESSORS = {"blosc-autoshuffle"}
V3_ONLY_COMPRESSORS = {"numcodecs-blosc", "numcodecs-zstd"}

CONSTRAINTS = []


def constraint(*factors):
    return lambda f: CONSTRAINTS.append((factors, f)) or f


@constraint("dtype", "endian")
def endian_needs_bytes_to_order(dtype, endian):
    return endian == "little" or DTYPES[dtype].multibyte


@constraint("endian", "filter")
def encoded_order_is_the_codecs(endian, filter):
    return endian == "little" or filter not in OPAQUE


@constraint("dtype", "layout")
def format_has_type(dtype, layout):
    d = DTYPES[dtype]
    return (d._v2 if layout.startswith("v2") else d.v3) is not None


@constraint("dtype", "filter")
def filter_takes_type(dtype, filter):
    if DTYPES[dtype].variable and filter in OPAQUE:
        return False
    return filter not in FILTER_TYPES or dtype in FILTER_TYPES[filter]


@constraint("layout", "filter")
def format_has_filter(layout, filter):
    return filter not in (V3_ONLY_FILTERS if layout.startswith("v2") else V2_ONLY_FILTERS)


@constraint("layout", "compressor")
def format_has_compressor(layout, compressor):
    return compressor not in (V3_ONLY_COMPRESSORS if layout.startswith("v2") else V2_ONLY_COMPRESSORS)


@constraint("layout", "fill")
def only_v2_has_null(layout, fill):
    return fill != "null" or layout.startswith("v2")


@constraint("layout", "key")
def v2_keys_in_v2(layout, key):
    return key.startswith("v2") or not layout.startswith("v2")


@constraint("dtype", "fill")
def type_has_fill(dtype, fill):
    d = DTYPES[dtype]
    return d.fill(fill) is not None and not (d.kind == "varray" and fill not in ("null",))


@constraint("fill", "content")
def null_is_no_value(fill, content):
    return fill != "null" or content in ("random", "smooth")


@constraint("filter", "content")
def arithmetic_needs_small_numbers(filter, content):
    return content != "random" or filter not in ARITHMETIC | set(ZFPY)


@constraint("filter", "fill")
def arithmetic_needs_small_fill(filter, fill):
    # The fill value passes through the codec too.
    return fill != "special" or filter not in ARITHMETIC | set(ZFPY)


@constraint("shape", "filter")
def no_axes_no_permutation(shape, filter):
    ndim = len(SHAPES[shape][0])
    if filter in ZFPY and ndim == 0:
        return False
    return (filter != "transpose" or ndim >= 1) and (filter != "transpose-cycle" or ndim == 3)


@constraint("shape", "layout")
def grid_fits(shape, layout):
    ndim = len(SHAPES[shape][0])
    if layout == "rectilinear":
        return shape in ("even", "uneven", "uneven-1d", "uneven-3d", "long")
    if layout == "transpose-then-shard":
        return ndim >= 1
    return layout != "v2-f" or ndim >= 2


@constraint("layout", "filter")
def zfp_reads_c_order(layout, filter):
    return layout != "v2-f" or filter not in ZFPY


@constraint("layout", "filter")
def shards_are_not_transposed_twice(layout, filter):
    return layout != "transpose-then-shard" or filter not in ("transpose", "transpose-cycle")


@constraint("filter", "compressor")
def shuffle_needs_elements(filter, compressor):
    return compressor != "shuffle+zlib" or filter not in OPAQUE | {"packbits"}


@constraint("filter", "compressor")
def casts_need_aligned_memory(filter, compressor):
    # zarr-python panics, or not, by where in a shard the bytes happen to lie.
    return "cast_value" not in filter or compressor not in CHECKSUMS


@constraint("dtype", "compressor")
def shuffle_needs_fixed_size(dtype, compressor):
    return compressor != "shuffle+zlib" or not DTYPES[dtype].variable


def valid(case):
    return all(f(*(case[k] for k in keys)) for keys, f in CONSTRAINTS)


def vacuous(case):
    """Whether no chunk is stored, so that no codec runs."""
    return case["shape"].startswith("zero-size") or case["content"] == "fill"


def element_style(case):
    if case["filter"] in ARITHMETIC:
        return "small"
    return "smooth" if case["content"] in ("smooth", "sparse", "fill") else "random"


def permutation(name, ndim):
    return list(range(ndim))[::-1] if name == "transpose" else [2, 0, 1]


def bitround_keepbits(dtype):
    return {"float16": 5, "float32": 9, "float64": 20}[dtype]


def filter_configs(case, big):
    """The numcodecs configurations of the case's filter, in encoding order."""
    name, d = case["filter"], DTYPES[case["dtype"]]

    def code(dt):
        dt = np.dtype(dt)
        return dt.newbyteorder(">" if big else "<").str

    own = code(d.np) if not d.variable else None
    match name:
        case "delta":
            return [{"id": "delta", "dtype": own, "astype": own}]
        case "delta-astype":
            return [{"id": "delta", "dtype": own, "astype": code("<f8" if d.np.kind == "f" else "<i8")}]
        case "fixedscaleoffset":
            return [{"id": "fixedscaleoffset", "offset": 3, "scale": 2, "dtype": own, "astype": own}]
        case "fixedscaleoffset-astype":
            return [{"id": "fixedscaleoffset", "offset": 0 if own.endswith("u2") else 1, "scale": 4, "dtype": own, "astype": code("<i2")}]
        case "quantize":
            return [{"id": "quantize", "digits": 1, "dtype": own, "astype": own}]
        case "bitround":
            return [{"id": "bitround", "keepbits": bitround_keepbits(case["dtype"])}]
        case "packbits":
            return [{"id": "packbits"}]
        case "astype":
            narrow = {"float64": "<f4", "float32": "<f8", "int32": "<i2", "int64": "<f8", "uint16": "<u4"}
            return [{"id": "astype", "encode_dtype": code(narrow[case["dtype"]]), "decode_dtype": own}]
        case "categorize":
            # Words that some elements are, and every fill value.
            labels = ["aaa", "\u00e9\u00e9\u00e9", "\U0001f980\U0001f980\U0001f980", "a", "\u6f22\U0001f980"]
            return [{"id": "categorize", "labels": labels, "dtype": own, "astype": "|u1"}]
        case "pcodec":
            return [{"id": "pcodec", "level": 6, "mode_spec": "auto", "delta_spec": "auto", "paging_spec": "equal_pages_up_to", "delta_encoding_order": None, "equal_pages_up_to": 262144}]
        case "zfpy":
            # The negative tolerance asks for the reversible mode.
            return [{"id": "zfpy", "mode": 4, "tolerance": -1, "rate": -1, "precision": -1}]
        case "zfpy-accuracy":
            return [{"id": "zfpy", "mode": 4, "tolerance": 0.01, "rate": -1, "precision": -1}]
        case "zfpy-precision":
            return [{"id": "zfpy", "mode": 3, "tolerance": -1, "rate": -1, "precision": 14}]
        case "zfpy-rate":
            return [{"id": "zfpy", "mode": 2, "tolerance": -1, "rate": 11, "precision": -1}]
    return []


def encoded_size(case):
    """The size of an element where the bytes->bytes codecs begin, or 1 where there are no elements any more."""
    d = DTYPES[case["dtype"]]
    if d.variable or case["filter"] in OPAQUE | {"packbits", "categorize"}:
        return 1
    match case["filter"]:
        case "delta-astype":
            return 8
        case "fixedscaleoffset-astype":
            return 2
        case "astype":
            return {"float64": 4, "float32": 8, "int32": 2, "int64": 8, "uint16": 4}[case["dtype"]]
        case "cast_value" | "scale_offset+cast_value":
            return 8 if d.np.kind in "iu" else 4
    return d.size


def blosc_config(name):
    _, cname, shuffle = name.split("-")
    return cname, SHUFFLES.index(shuffle)


def v2_codecs(case):
    """(filters, compressor) of the case's compressor."""
    name = case["compressor"]
    size = encoded_size(case)
    match name:
        case "none":
            return [], None
        case "gzip" | "zlib" | "bz2":
            return [], {"id": name, "level": 1}
        case "zstd":
            return [], {"id": "zstd", "level": 0}
        case "zstd-negative":
            return [], {"id": "zstd", "level": -7}
        case "zstd-checksum":
            return [], {"id": "zstd", "level": 3, "checksum": True}
        case "zstd+crc32c":
            return [{"id": "crc32c"}], {"id": "zstd", "level": 1}
        case "lz4":
            return [], {"id": "lz4", "acceleration": 1}
        case "lzma":
            return [], {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}
        case "shuffle+zlib":
            return [{"id": "shuffle", "elementsize": size}], {"id": "zlib", "level": 1}
        case "blosc-autoshuffle":
            return [], {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
        case "crc32c" | "fletcher32" | "adler32" | "crc32" | "jenkins_lookup3":
            return [{"id": name}], None
    cname, shuffle = blosc_config(name)
    return [], {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle, "blocksize": 0}


def v3_compressors(case):
    name = case["compressor"]
    size = encoded_size(case)
    match name:
        case "none":
            return []
        case "gzip":
            return [codec("gzip", level=1)]
        case "zlib" | "bz2":
            return [codec("numcodecs." + name, level=1)]
        case "zstd":
            return [codec("zstd", level=0, checksum=False)]
        case "zstd-negative":
            return [codec("zstd", level=-7, checksum=False)]
        case "zstd-checksum":
            return [codec("zstd", level=3, checksum=True)]
        case "crc32c":
            return [codec("crc32c")]
        case "zstd+crc32c":
            return [codec("zstd", level=1, checksum=False), codec("crc32c")]
        case "lz4":
            return [codec("numcodecs.lz4", acceleration=1)]
        case "lzma":
            return [codec("numcodecs.lzma", format=1, check=-1, preset=None, filters=None)]
        case "shuffle+zlib":
            return [codec("numcodecs.shuffle", elementsize=size), codec("numcodecs.zlib", level=1)]
        case "numcodecs-blosc":
            return [codec("numcodecs.blosc", cname="zstd", clevel=5, shuffle=1, blocksize=0)]
        case "numcodecs-zstd":
            return [codec("numcodecs.zstd", level=1)]
        case "fletcher32" | "adler32" | "crc32" | "jenkins_lookup3":
            return [codec("numcodecs." + name)]
    cname, shuffle = blosc_config(name)
    return [codec("blosc", cname=cname, clevel=5, shuffle=SHUFFLES[shuffle], typesize=min(size, 255), blocksize=0)]


def codec(name, **configuration):
    # zarr-python wants a configuration, if empty, after every name with this prefix.
    if configuration or name.startswith("numcodecs."):
        return {"name": name, "configuration": configuration}
    return {"name": name}


def v3_filter(case, ndim):
    """(array->array codecs, array->bytes codec or None) of the case's filter."""
    name = case["filter"]
    d = DTYPES[case["dtype"]]
    match name:
        case "none":
            return [], None
        case "transpose" | "transpose-cycle":
            return [codec("transpose", order=permutation(name, ndim))], None
        case "cast_value" | "scale_offset" | "scale_offset+cast_value":
            out = []
            if "scale_offset" in name:
                offset, scale = (0, 2) if d.np.kind == "u" else (-3, 2) if d.np.kind == "i" else (10.5, 0.5)
                out.append(codec("scale_offset", offset=offset, scale=scale))
            if "cast_value" in name:
                target = "float64" if d.np.kind in "iu" else "float32" if "scale" in name else "int32"
                out.append(codec("cast_value", data_type=target, rounding="nearest-even"))
            return out, None
    (config,) = filter_configs(case, False)
    config = dict(config)
    entry = codec("numcodecs." + config.pop("id"), **config)
    return ([], entry) if name in OPAQUE else ([entry], None)


def array_to_bytes(case):
    d = DTYPES[case["dtype"]]
    if d.kind == "string":
        return codec("vlen-utf8")
    if d.kind == "bytes":
        return codec("vlen-bytes")
    return codec("bytes", endian=case["endian"]) if d.multibyte or encoded_multibyte(case) else codec("bytes")


def encoded_multibyte(case):
    return case["filter"] in ("cast_value",)


def shard_chunks(chunk, depth):
    inner = tuple(max(1, c // 2**depth) for c in chunk)
    return [tuple(i * 2**k for i in inner) for k in range(depth, -1, -1)]


def sharding(chunk_shape, codecs, *, endian="little", checksum=True, location="end"):
    return codec(
        "sharding_indexed",
        chunk_shape=list(chunk_shape),
        codecs=codecs,
        index_codecs=[codec("bytes", endian=endian)] + ([codec("crc32c")] if checksum else []),
        index_location=location,
    )


def grid(case):
    """(array shape, shape of the chunks of the grid, the finest chunk shape)."""
    shape, chunk = SHAPES[case["shape"]]
    if case["layout"] not in SHARDED:
        return shape, chunk, chunk
    chain = shard_chunks(chunk, 2 if case["layout"] == "shard-nested" else 1)
    return shape, chain[0], chain[-1]


def chunk_edges(case):
    """Per axis, the lengths of the chunks that the innermost codecs see; the last may reach past the array."""
    shape, _, finest = grid(case)
    if case["layout"] == "rectilinear":
        return rectilinear(shape, SHAPES[case["shape"]][1])["configuration"]["chunk_shapes"]
    return [[c] * -(-n // c) for n, c in zip(shape, finest)]


def metadata(case):
    """The metadata document of a case: `.zarray` for v2, `zarr.json` for v3."""
    shape, chunk, _ = grid(case)
    d = DTYPES[case["dtype"]]
    layout = case["layout"]
    version = 2 if layout.startswith("v2") else 3
    fill = d.fill_json(case["fill"], version)
    if version == 2:
        big = case["endian"] == "big"
        filters = [{"id": {"string": "vlen-utf8", "bytes": "vlen-bytes", "varray": "vlen-array"}[d.kind]}] if d.variable else []
        if d.kind == "varray":
            filters[0]["dtype"] = "<i4"
        filters += filter_configs(case, big)
        extra, compressor = v2_codecs(case)
        filters += extra
        if case["filter"] in OPAQUE and compressor is None and not extra:
            compressor = filters.pop()
        return {
            "zarr_format": 2,
            "shape": list(shape),
            "chunks": list(chunk),
            "dtype": d.v2(big),
            "compressor": compressor,
            "fill_value": fill,
            "order": layout[-1].upper(),
            "filters": filters or None,
            "dimension_separator": "/" if case["key"] == "v2-slash" else ".",
        }
    aa, ab = v3_filter(case, len(shape))
    chain = [*aa, ab or array_to_bytes(case), *v3_compressors(case)]
    match layout:
        case "v3" | "rectilinear":
            codecs = chain
        case "shard-nested":
            _, middle, inner = shard_chunks(SHAPES[case["shape"]][1], 2)
            codecs = [sharding(middle, [sharding(inner, chain)], location="start")]
        case _:
            inner = shard_chunks(SHAPES[case["shape"]][1], 1)[1]
            if layout == "transpose-then-shard":
                inner = inner[::-1]
            codecs = [
                sharding(
                    inner,
                    chain,
                    endian="big" if layout == "shard-index-big" else "little",
                    checksum=layout != "shard-index-bare",
                    location="start" if layout == "shard-index-start" else "end",
                )
            ]
            if layout == "shard-then-zstd":
                codecs.append(codec("zstd", level=1, checksum=False))
            if layout == "transpose-then-shard":
                codecs.insert(0, codec("transpose", order=permutation("transpose", len(shape))))
    style, separator = case["key"].rsplit("-", 1)
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": d.v3,
        "chunk_grid": rectilinear(shape, chunk) if layout == "rectilinear" else {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": style, "configuration": {"separator": "/" if separator == "slash" else "."}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    }


def rectilinear(shape, chunk):
    """Chunks that alternate between shorter and longer than `chunk`, and cover the array exactly."""
    shapes = []
    for n, c in zip(shape, chunk):
        edges, at, k = [], 0, 0
        while at < n:
            step = min(n - at, max(1, c + (-1 if k % 2 else 1)))
            edges.append(step)
            at, k = at + step, k + 1
        shapes.append(edges)
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
