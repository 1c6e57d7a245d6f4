"""Small stores on which real implementations part ways, or might: `VECTORS`.

What each must be read as, or whether it must be refused, is in `verdicts.py`.
"""

import base64
import json
import pathlib
import struct
import tempfile
import zlib

import numpy as np

VECTORS = {}


def vector(name, why, store, intended, node=""):
    """`intended`: what whoever wrote it meant, little-endian in C order; `None` where it means nothing, as in corrupt data."""
    assert name not in VECTORS, name
    VECTORS[name] = {"why": why, "store": store, "node": node, "intended": intended}


# --- Metadata.

DATA = np.arange(1, 31, dtype="<i4").reshape(6, 5)


def v3(codecs, *, data=DATA, data_type="int32", chunk=(6, 5), fill=0, **more):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(np.shape(data)),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        **more,
    }


def v2(*, data=DATA, dtype="<i4", chunk=(6, 5), fill=0, compressor=None, filters=None, order="C", **more):
    return {
        "zarr_format": 2,
        "shape": list(np.shape(data)),
        "chunks": list(chunk),
        "dtype": dtype,
        "compressor": compressor,
        "fill_value": fill,
        "order": order,
        "filters": filters,
        **more,
    }


def codec(name, **configuration):
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


LE = codec("bytes", endian="little")
ZSTD = codec("zstd", level=1, checksum=False)
GZIP = codec("gzip", level=1)
CRC = codec("crc32c")


def one3(codecs, obj, **kw):
    return {"zarr.json": v3(codecs, **kw), "c/0/0": obj}


def one2(obj, key="0.0", **kw):
    return {".zarray": v2(**kw), key: obj}


def strings(items):
    return b"".join(struct.pack("<I", len(s)) + s for s in (i.encode() if isinstance(i, str) else i for i in items))


# --- zstd.

import crc32c  # noqa: E402
import numcodecs  # noqa: E402
import zstandard  # noqa: E402

RAW = DATA.tobytes()
SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"


def zst(data, **kw):
    return zstandard.ZstdCompressor(level=1, **kw).compress(data)


NO_SIZE = zst(RAW, write_content_size=False)
vector("zstd-no-content-size", "a frame that does not say how large its content is", one3([LE, ZSTD], NO_SIZE), RAW)
vector("zstd-two-frames-sized", "the chunk in two frames, one after the other", one3([LE, ZSTD], zst(RAW[:48]) + zst(RAW[48:])), RAW)
vector("zstd-two-frames-no-size", "two frames, neither saying its size", one3([LE, ZSTD], zst(RAW[:48], write_content_size=False) + zst(RAW[48:], write_content_size=False)), RAW)
vector("zstd-skippable-first", "a skippable frame before the data", one3([LE, ZSTD], SKIPPABLE + zst(RAW)), RAW)
vector("zstd-skippable-last", "a skippable frame after the data", one3([LE, ZSTD], zst(RAW) + SKIPPABLE), RAW)
vector("zstd-skippable-between", "a skippable frame between two frames", one3([LE, ZSTD], zst(RAW[:48]) + SKIPPABLE + zst(RAW[48:])), RAW)
vector("zstd-empty-frame-first", "a frame of nothing before the data", one3([LE, ZSTD], zst(b"") + zst(RAW)), RAW)
vector("zstd-trailing-zeros", "zero bytes after the frame", one3([LE, ZSTD], zst(RAW) + bytes(8)), None)
vector("zstd-trailing-byte", "one byte after the frame", one3([LE, ZSTD], zst(RAW) + b"x"), None)
vector("zstd-truncated", "the frame without its last byte", one3([LE, ZSTD], zst(RAW)[:-1]), None)
vector("zstd-empty-object", "an object of no bytes", one3([LE, ZSTD], b""), None)
vector("zstd-checksum-present-not-declared", "a content checksum although the metadata says false", one3([LE, ZSTD], zst(RAW, write_checksum=True)), RAW)
vector("zstd-checksum-declared-not-present", "no content checksum although the metadata says true", one3([LE, codec("zstd", level=1, checksum=True)], zst(RAW)), RAW)
BAD_SUM = bytearray(zst(RAW, write_checksum=True))
BAD_SUM[-1] ^= 1
vector("zstd-checksum-wrong", "a content checksum that does not hold", one3([LE, codec("zstd", level=1, checksum=True)], bytes(BAD_SUM)), None)
vector("zstd-content-too-long", "four bytes more than the chunk holds", one3([LE, ZSTD], zst(RAW + b"abcd")), None)
vector("zstd-content-too-short", "four bytes less than the chunk holds", one3([LE, ZSTD], zst(RAW[:-4])), None)
vector("zstd-checksum-key-absent", "the configuration has no checksum key, as tensorstore and older writers have it", one3([LE, codec("zstd", level=1)], zst(RAW)), RAW)
vector("zstd-configuration-absent", "the codec as a bare name in an object", one3([LE, codec("zstd")], zst(RAW)), RAW)
vector("zstd-level-out-of-range", "level 40", one3([LE, codec("zstd", level=40, checksum=False)], zst(RAW)), RAW)

# --- gzip and zlib.


def gz(data, name=None, extra=None, comment=None, hcrc=False):
    flags = (8 if name else 0) | (4 if extra else 0) | (16 if comment else 0) | (2 if hcrc else 0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(4) + b"\x00\x03"
    if extra:
        head += struct.pack("<H", len(extra)) + extra
    if name:
        head += name + b"\0"
    if comment:
        head += comment + b"\0"
    if hcrc:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    return head + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


vector("gzip-members", "two members, one after the other", one3([LE, GZIP], gz(RAW[:48]) + gz(RAW[48:])), RAW)
vector("gzip-file-name", "a member with a file name", one3([LE, GZIP], gz(RAW, name=b"chunk.bin")), RAW)
vector("gzip-all-fields", "a member with an extra field, a name, a comment and a header checksum", one3([LE, GZIP], gz(RAW, b"n", b"AB\x02\x00xy", b"c", True)), RAW)
vector("gzip-trailing-zeros", "zero bytes after the member, as a tape would pad it", one3([LE, GZIP], gz(RAW) + bytes(8)), None)
vector("gzip-trailing-junk", "other bytes after the member", one3([LE, GZIP], gz(RAW) + b"junk"), None)
vector("gzip-empty-member-last", "a member of nothing after the data", one3([LE, GZIP], gz(RAW) + gz(b"")), RAW)
GZ_BAD = bytearray(gz(RAW))
GZ_BAD[-8] ^= 1
vector("gzip-checksum-wrong", "a member whose checksum does not hold", one3([LE, GZIP], bytes(GZ_BAD)), None)
GZ_SIZE = bytearray(gz(RAW))
GZ_SIZE[-1] ^= 1
vector("gzip-size-wrong", "a member whose trailing size does not hold", one3([LE, GZIP], bytes(GZ_SIZE)), None)
vector("gzip-truncated", "the member without its last byte", one3([LE, GZIP], gz(RAW)[:-1]), None)
vector("gzip-content-too-long", "four bytes more than the chunk holds", one3([LE, GZIP], gz(RAW + b"abcd")), None)
vector("v2-gzip-is-zlib", "format 2 says gzip and the bytes are zlib", one2(zlib.compress(RAW), compressor={"id": "gzip", "level": 1}), None)
vector("v2-zlib-is-gzip", "format 2 says zlib and the bytes are gzip", one2(gz(RAW), compressor={"id": "zlib", "level": 1}), None)
vector("v2-zlib-trailing", "bytes after a zlib stream", one2(zlib.compress(RAW) + b"junk", compressor={"id": "zlib", "level": 1}), None)

# --- Chunks of another size.

EDGE = np.arange(1, 31, dtype="<i4").reshape(6, 5)


def edge_store(codecs, right):
    """Chunks of 4 x 3 over 6 x 5; `right` makes the bytes of a chunk from its valid part."""
    store = {"zarr.json": v3(codecs, chunk=(4, 3))}
    for i in range(2):
        for j in range(2):
            part = EDGE[4 * i : 4 * i + 4, 3 * j : 3 * j + 3]
            store[f"c/{i}/{j}"] = right(part)
    return store


def padded(part, fill=0, shape=(4, 3)):
    out = np.full(shape, fill, "<i4")
    out[: part.shape[0], : part.shape[1]] = part
    return out.tobytes()


vector("edge-chunks-trimmed-raw", "edge chunks hold only what lies inside the array", edge_store([LE], lambda p: p.tobytes()), EDGE.tobytes())
vector("edge-chunks-trimmed-gzip", "the same, compressed", edge_store([LE, GZIP], lambda p: gz(p.tobytes())), EDGE.tobytes())
vector("edge-chunks-odd-padding", "the padding of edge chunks is not the fill value", edge_store([LE], lambda p: padded(p, -1)), EDGE.tobytes())
vector("chunks-longer", "every chunk has four bytes too many", edge_store([LE], lambda p: padded(p) + b"abcd"), None)
vector("chunk-shorter", "the one chunk lacks its last element", one3([LE], RAW[:-4]), None)
vector("chunk-empty-object", "the one chunk is an object of no bytes", one3([LE], b""), None)
vector("v2-chunk-shorter", "format 2: the one chunk lacks its last element", one2(RAW[:-4]), None)
vector("v2-chunk-longer", "format 2: the one chunk has four bytes too many", one2(RAW + b"abcd"), None)
vector("v2-f-order-edges", "format 2 in F order with edge chunks", {".zarray": v2(chunk=(4, 3), order="F"), **{f"{i}.{j}": np.frombuffer(padded(EDGE[4 * i : 4 * i + 4, 3 * j : 3 * j + 3]), "<i4").reshape(4, 3).tobytes(order="F") for i in range(2) for j in range(2)}}, EDGE.tobytes())

# --- Values.

BOOLS = np.array([[0, 1], [2, 255]], np.uint8)
vector("bool-other-bytes", "true written as 2 and as 255", one3([codec("bytes")], BOOLS.tobytes(), data=BOOLS, data_type="bool", chunk=(2, 2), fill=False), bytes([0, 1, 1, 1]))
vector("v2-bool-other-bytes", "format 2: true written as 2 and as 255", one2(BOOLS.tobytes(), data=BOOLS, dtype="|b1", chunk=(2, 2), fill=False), bytes([0, 1, 1, 1]))
NANS = np.array([0x7FA00001, 0xFFC12345, 0x7F800000, 0x80000000], "<u4").view("<f4").reshape(2, 2)
vector("nan-payloads-little-endian", "signalling and other NaNs, infinity, minus zero", one3([LE], NANS.tobytes(), data=NANS, data_type="float32", chunk=(2, 2), fill=0.0), NANS.tobytes())
vector("nan-payloads-big-endian", "the same, big-endian", one3([codec("bytes", endian="big")], NANS.byteswap().tobytes(), data=NANS, data_type="float32", chunk=(2, 2), fill=0.0), NANS.tobytes())


def only_fill(name, why, data_type, fill, raw, **more):
    raw = raw if raw is None else bytes(raw)
    vector(name, why, {"zarr.json": v3([LE], data=np.zeros(2), chunk=(2,), data_type=data_type, fill=fill, **more)}, raw and raw * 2)


only_fill("fill-hex-signalling-nan", "a signalling NaN in hex digits", "float32", "0x7fa00001", bytes.fromhex("0100a07f"))
only_fill("fill-hex-upper-case", "hex digits in upper case", "float32", "0x7FC0ABCD", bytes.fromhex("cdabc07f"))
only_fill("fill-hex-short", "too few hex digits", "float32", "0x7fc0", None)
only_fill("fill-minus-infinity", "a word", "float64", "-Infinity", struct.pack("<d", -np.inf))
only_fill("fill-minus-nan", "a word of no specification", "float64", "-NaN", None)
only_fill("fill-inf-short", "infinity as numpy spells it", "float64", "inf", None)
only_fill("fill-integer-as-float", "an integer with a fraction of zero", "int32", 1.0, struct.pack("<i", 1))
only_fill("fill-integer-with-fraction", "an integer with a fraction", "int32", 1.5, None)
only_fill("fill-integer-as-text", "an integer in quotes", "int32", "1", None)
only_fill("fill-integer-exponent", "an integer with an exponent", "int32", None, struct.pack("<i", 100))
VECTORS["fill-integer-exponent"]["store"]["zarr.json"] = json.dumps(VECTORS["fill-integer-exponent"]["store"]["zarr.json"]).replace('"fill_value": null', '"fill_value": 1e2')
only_fill("fill-integer-overflow", "an integer out of range", "int8", 300, None)
only_fill("fill-unsigned-negative", "a negative unsigned integer", "uint8", -1, None)
only_fill("fill-uint64-max", "the largest unsigned integer", "uint64", 2**64 - 1, struct.pack("<Q", 2**64 - 1))
only_fill("fill-bool-as-number", "a bool written 0", "bool", 0, bytes([0]))
only_fill("fill-float-as-integer", "a float without a fraction", "float64", 1, struct.pack("<d", 1.0))
only_fill("fill-float-overflow", "a float out of range", "float32", 1e300, None)
only_fill("fill-null", "null in format 3", "float64", None, None)
only_fill("fill-complex-words", "a complex of words and hex", "complex64", ["NaN", "0xff800000"], bytes.fromhex("0000c07f000080ff"))
only_fill("fill-datetime-nat-word", "NaT as the word", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, "NaT", struct.pack("<q", -(2**63)))
only_fill("fill-datetime-nat-number", "NaT as the number", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, -(2**63), struct.pack("<q", -(2**63)))
only_fill("fill-struct-base64", "the older structured type: fields in pairs, fill in base64", {"name": "structured", "configuration": {"fields": [["a", "int16"], ["b", "float32"]]}}, base64.b64encode(struct.pack("<hf", 7, 1.5)).decode(), struct.pack("<hf", 7, 1.5))
only_fill("fill-struct-object", "the struct type: an object of every field", {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float32"}]}}, {"a": 7, "b": 1.5}, struct.pack("<hf", 7, 1.5))
only_fill("fill-struct-zero", "the struct type with a fill of plain 0", {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float32"}]}}, 0, struct.pack("<hf", 0, 0))
only_fill("fill-r16-byte-list", "raw bits, fill as a list of bytes", "r16", [1, 2], bytes([1, 2]))
only_fill("fill-r16-base64", "raw bits, fill in base64 as tensorstore writes it", "r16", base64.b64encode(b"\x01\x02").decode(), bytes([1, 2]))
only_fill("fill-raw-bytes", "zarr-python's own name for raw bits", {"name": "raw_bytes", "configuration": {"length_bytes": 2}}, base64.b64encode(b"\x01\x02").decode(), bytes([1, 2]))
only_fill("type-float8-e4m3fn", "tensorstore's spelling of a float8", "float8_e4m3fn", 1.0, bytes([0x38]))
only_fill("type-unknown", "a data type that does not exist", "float33", 0, None)
only_fill("type-object-bare-name", "a data type as an object without a configuration", {"name": "int32"}, 7, struct.pack("<i", 7))
only_fill("type-must-understand-false", "must_understand on a data type", {"name": "int32", "must_understand": False}, 7, struct.pack("<i", 7))

# --- Metadata, format 3.


def plain(name, why, change, intended=RAW, chunk=RAW, key="c/0/0"):
    document = v3([LE])
    change(document)
    vector(name, why, {"zarr.json": document, key: chunk}, intended)


plain("meta-unknown-key", "an unknown key", lambda m: m.update(colour="red"), None)
plain("meta-unknown-object", "an unknown key, an object that says nothing of must_understand", lambda m: m.update(colour={"name": "red"}), None)
plain("meta-unknown-may-ignore", "an unknown key that may be ignored", lambda m: m.update(colour={"must_understand": False}))
plain("meta-unknown-must-understand", "an unknown key that must be understood", lambda m: m.update(colour={"must_understand": True}), None)
plain("meta-codec-bare-string", "codecs as bare strings, as 3.1 allows", lambda m: m.update(codecs=["bytes", "crc32c"], data_type="uint8", shape=[2, 2], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 2]}}), b"\x01\x02\x03\x04", b"\x01\x02\x03\x04" + struct.pack("<I", crc32c.crc32c(b"\x01\x02\x03\x04")))
plain("meta-codec-may-ignore", "an unknown codec that may be ignored", lambda m: m["codecs"].append({"name": "red", "must_understand": False}))
plain("meta-codec-unknown", "an unknown codec", lambda m: m["codecs"].append({"name": "red"}), None)
plain("meta-codecs-empty", "no codecs at all", lambda m: m.update(codecs=[]), None)
plain("meta-endian-codec", "the bytes codec under its draft name", lambda m: m.update(codecs=[codec("endian", endian="little")]))
plain("meta-bytes-no-endian", "four-byte elements and no byte order", lambda m: m.update(codecs=[codec("bytes")]), None)
plain("meta-bytes-needless-endian", "one-byte elements and a byte order", lambda m: m.update(codecs=[LE], data_type="uint8", shape=[2, 2], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 2]}}), b"\x01\x02\x03\x04", b"\x01\x02\x03\x04")
plain("meta-dimension-names-null", "one dimension without a name", lambda m: m.update(dimension_names=["y", None]))
plain("meta-dimension-names-short", "too few dimension names", lambda m: m.update(dimension_names=["y"]), None)
plain("meta-storage-transformers-empty", "an empty list of storage transformers", lambda m: m.update(storage_transformers=[]))
plain("meta-storage-transformers-one", "a storage transformer", lambda m: m.update(storage_transformers=[{"name": "red"}]), None)
plain("meta-no-fill-value", "no fill value", lambda m: m.pop("fill_value"), None)
plain("meta-no-key-encoding", "no chunk key encoding", lambda m: m.pop("chunk_key_encoding"), None)
plain("meta-key-encoding-no-configuration", "a chunk key encoding without a configuration", lambda m: m.update(chunk_key_encoding={"name": "default"}))
plain("meta-key-encoding-bare", "a chunk key encoding as a bare string", lambda m: m.update(chunk_key_encoding="default"))
plain("meta-key-encoding-v2-default", "the v2 key encoding without its separator", lambda m: m.update(chunk_key_encoding={"name": "v2"}), key="0.0")
plain("meta-chunk-shape-zero-full-axis", "a chunk length of zero on an axis that is not empty", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[6, 0]), None)
plain("meta-chunk-rank", "a chunk shape of another rank", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[6]), None)
plain("meta-transpose-letters", "a transposition as the letter F, from a draft", lambda m: m["codecs"].insert(0, codec("transpose", order="F")), DATA.tobytes(), DATA.tobytes(order="F"))
plain("meta-transpose-not-permutation", "an order that repeats an axis", lambda m: m["codecs"].insert(0, codec("transpose", order=[0, 0])), None)
plain("meta-attributes-absent", "no attributes", lambda m: m.pop("attributes", None))
plain("meta-shape-float", "a shape of floats", lambda m: m.update(shape=[6.0, 5.0]), None)
vector(
    "meta-chunk-shape-zero-empty-axis",
    "a chunk length of zero on an axis of length zero",
    {"zarr.json": v3([LE], data=np.zeros((0, 3)), chunk=(0, 3))},
    b"",
)
ATTRIBUTES = '{"big": 18446744073709551616, "bigger": -123456789012345678901234567890, "z": 1, "a": 2, "float": 1e400, "exact": 0.10000000000000000555, "é漢": "🦀"}'
document = json.dumps(v3([LE], attributes="@")).replace('"@"', ATTRIBUTES)
vector("attributes-large-numbers", "integers past 2^64, a float past the largest, keys out of order", {"zarr.json": document, "c/0/0": RAW}, RAW)
document = json.dumps(v3([LE], attributes="@")).replace('"@"', '{"missing": NaN, "limit": -Infinity}')
vector("attributes-bare-nan", "NaN and infinity as no JSON has them, as zarr-python writes them", {"zarr.json": document, "c/0/0": RAW}, RAW)

# --- Sharding.

NONE = 2**64 - 1


def shard(entries, chunks, *, endian="little", checksum=True, start=False, index_bytes=None):
    """A shard whose index holds `entries` and whose data part is `chunks`."""
    index = b"".join(struct.pack("<QQ" if endian == "little" else ">QQ", *e) for e in entries)
    if index_bytes:
        index = index_bytes(index)
    if checksum:
        index += struct.pack("<I", crc32c.crc32c(index))
    return index + chunks if start else chunks + index


def sharding(codecs=(LE,), *, chunk=(2, 2), index=(LE, CRC), location="end", **kw):
    return codec("sharding_indexed", chunk_shape=list(chunk), codecs=list(codecs), index_codecs=list(index), index_location=location, **kw)


SQUARE = np.arange(1, 17, dtype="<i4").reshape(4, 4)
PARTS = [SQUARE[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes() for i in range(2) for j in range(2)]
ENTRIES = [(16 * k, 16) for k in range(4)]
HEAD = 4 * 16 + 4
KW = dict(data=SQUARE, chunk=(4, 4))
ALL = SQUARE.tobytes()
THREE = np.array(SQUARE)
THREE[:2, 2:] = 0


def sharded(name, why, obj, intended=ALL, metadata=None):
    vector(name, why, {"zarr.json": v3([metadata or sharding()], **KW), "c/0/0": obj}, intended)


JOINED = b"".join(PARTS)
sharded("shard-plain", "nothing unusual, to compare with", shard(ENTRIES, JOINED))
sharded("shard-index-start-plain", "the index at the start", shard([(o + HEAD, n) for o, n in ENTRIES], JOINED, start=True), metadata=sharding(location="start"))
sharded("shard-index-start-empty-inner", "the index at the start, one inner chunk absent", shard([(HEAD, 16), (NONE, NONE), (HEAD + 16, 16), (HEAD + 32, 16)], PARTS[0] + PARTS[2] + PARTS[3], start=True), THREE.tobytes(), sharding(location="start"))
sharded("shard-empty-inner-zero", "one inner chunk absent", shard([(0, 16), (NONE, NONE), (16, 16), (32, 16)], PARTS[0] + PARTS[2] + PARTS[3]), THREE.tobytes())
sharded("shard-all-inner-empty", "every inner chunk absent", shard([(NONE, NONE)] * 4, b""), bytes(64))
sharded("shard-index-no-checksum", "an index without a checksum", shard(ENTRIES, JOINED, checksum=False), metadata=sharding(index=(LE,)))
sharded("shard-index-big-endian", "a big-endian index", shard(ENTRIES, JOINED, endian="big"), metadata=sharding(index=(codec("bytes", endian="big"), CRC)))
sharded("shard-index-compressed", "an index that is compressed, and so of no fixed size", shard(ENTRIES, JOINED, checksum=False, index_bytes=gz), None, sharding(index=(LE, GZIP)))
sharded("shard-index-transposed", "an index whose axes are exchanged", JOINED + np.array(ENTRIES, "<u8").reshape(2, 2, 2).transpose(2, 1, 0).tobytes(), metadata=sharding(index=(codec("transpose", order=[2, 1, 0]), LE)))
sharded("shard-index-checksum-wrong", "an index whose checksum does not hold", shard(ENTRIES, JOINED)[:-1] + b"\0", None)
sharded("shard-index-twice-summed", "two checksums over the index", (lambda s: s + struct.pack("<I", crc32c.crc32c(s[64:])))(shard(ENTRIES, JOINED)), metadata=sharding(index=(LE, CRC, CRC)))
sharded("shard-reordered", "inner chunks in another order", shard([(48, 16), (32, 16), (16, 16), (0, 16)], b"".join(PARTS[::-1])))
sharded("shard-gaps", "bytes that belong to no inner chunk", shard([(o + 5 * (k + 1), n) for k, (o, n) in enumerate(ENTRIES)], b"".join(b"-----" + p for p in PARTS) + b"tail"))
SAME = np.tile(SQUARE[:2, :2], (2, 2))
sharded("shard-entries-overlap", "four inner chunks that are the same bytes", shard([(0, 16)] * 4, PARTS[0]), SAME.tobytes())
sharded("shard-entry-in-index", "an entry that points into the index itself", shard([(0, 16), (16, 16), (32, 16), (64, 16)], JOINED), None)
sharded("shard-entry-past-end", "an entry that ends past the shard", shard([(0, 16), (16, 16), (32, 16), (1 << 20, 16)], JOINED), None)
sharded("shard-entry-overflow", "an entry whose end overflows 64 bits", shard([(0, 16), (16, 16), (32, 16), (NONE - 1, 16)], JOINED), None)
sharded("shard-entry-huge-size", "an entry of 2^63 bytes", shard([(0, 16), (16, 16), (32, 16), (48, 1 << 63)], JOINED), None)
sharded("shard-entry-offset-none-only", "an offset that means absent with a size that does not", shard([(0, 16), (16, 16), (32, 16), (NONE, 16)], JOINED), None)
sharded("shard-entry-size-none-only", "a size that means absent with an offset that does not", shard([(0, 16), (16, 16), (32, 16), (48, NONE)], JOINED), None)
sharded("shard-entry-size-zero", "an inner chunk of no bytes", shard([(0, 16), (16, 16), (32, 16), (48, 0)], JOINED), None)
sharded("shard-entry-short", "an inner chunk that lacks an element", shard([(0, 16), (16, 16), (32, 16), (48, 12)], JOINED), None)
sharded("shard-shorter-than-index", "an object shorter than its index", b"\x01" * 20, None)
sharded("shard-empty-object", "an object of no bytes", b"", None)
sharded("shard-no-index-location", "no index_location, which means the end", shard(ENTRIES, JOINED), metadata={"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [LE], "index_codecs": [LE, CRC]}})
sharded("shard-no-index-codecs", "no index codecs", shard(ENTRIES, JOINED), None, {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [LE]}})
vector("shard-then-gzip", "a codec after the sharding codec", {"zarr.json": v3([sharding(), GZIP], **KW), "c/0/0": gz(shard(ENTRIES, JOINED))}, ALL)
vector("shard-then-crc32c", "a checksum after the sharding codec", {"zarr.json": v3([sharding(), CRC], **KW), "c/0/0": (lambda s: s + struct.pack("<I", crc32c.crc32c(s)))(shard(ENTRIES, JOINED))}, ALL)
TRANSPOSED = [np.ascontiguousarray(SQUARE.T)[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes() for i in range(2) for j in range(2)]
vector("transpose-then-shard", "a transposition before the sharding codec", {"zarr.json": v3([codec("transpose", order=[1, 0]), sharding()], **KW), "c/0/0": shard(ENTRIES, b"".join(TRANSPOSED))}, ALL)
vector("shard-does-not-divide", "inner chunks that do not divide the shard", {"zarr.json": v3([sharding(chunk=(3, 3))], **KW), "c/0/0": shard(ENTRIES, JOINED)}, None)
vector("shard-inner-larger", "inner chunks larger than the shard", {"zarr.json": v3([sharding(chunk=(8, 8))], **KW), "c/0/0": shard([(0, 64)], JOINED)}, None)


def nested_shard():
    """4 x 4 in shards of 2 x 2 (index at the start) in one shard (index at the end)."""
    inner = []
    for i in range(2):
        for j in range(2):
            block = SQUARE[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            cells = [block[a : a + 1, b : b + 1].tobytes() for a in range(2) for b in range(2)]
            inner.append(shard([(HEAD + 4 * k, 4) for k in range(4)], b"".join(cells), start=True))
    entries, at = [], 0
    for part in inner:
        entries.append((at, len(part)))
        at += len(part)
    return shard(entries, b"".join(inner))


sharded("shard-nested-full", "shards within a shard", nested_shard(), metadata=sharding((sharding(chunk=(1, 1), location="start"),)))

# --- blosc.


def blosc(data, **kw):
    return bytes(numcodecs.Blosc(**kw).encode(np.frombuffer(data, f"V{kw.pop('item', 4)}") if "item" in kw else data))


MANY = (np.arange(1024, dtype="<i4") // 3).reshape(32, 32)
B = codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)


def bloscs(name, why, obj, intended=MANY.tobytes(), metadata=B):
    vector(name, why, {"zarr.json": v3([LE, metadata], data=MANY, chunk=(32, 32)), "c/0/0": obj}, intended)


bloscs("blosc-header-cname", "the header says zstd, the metadata lz4", bytes(numcodecs.Blosc(cname="zstd", shuffle=1).encode(MANY)))
bloscs("blosc-header-shuffle", "the header says bitshuffle, the metadata shuffle", bytes(numcodecs.Blosc(cname="lz4", shuffle=2).encode(MANY)))
bloscs("blosc-header-typesize", "the header says eight bytes, the metadata four", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY.view("<i8"))))
bloscs("blosc-header-no-shuffle", "the header says no shuffle, the metadata shuffle", bytes(numcodecs.Blosc(cname="lz4", shuffle=0).encode(MANY)))
bloscs("blosc-memcpyed", "a chunk that is stored as it is", bytes(numcodecs.Blosc(cname="lz4", clevel=0, shuffle=1).encode(MANY)))
bloscs("blosc-trailing-bytes", "bytes after the blosc chunk", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY)) + b"junk", None)
bloscs("blosc-truncated", "a blosc chunk without its last byte", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY))[:-1], None)
bloscs("blosc-content-too-short", "a blosc chunk of fewer bytes than the chunk holds", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY[:31])), None)
bloscs("blosc-no-typesize", "shuffle without a typesize in the metadata", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY)), metadata=codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", blocksize=0))
bloscs("blosc-shuffle-number", "shuffle as a number, as format 2 has it", bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY)), metadata=codec("blosc", cname="lz4", clevel=5, shuffle=1, typesize=4, blocksize=0))


def v2blosc(name, why, compressor, obj=None):
    vector(name, why, {".zarray": v2(data=MANY, chunk=(32, 32), compressor=compressor), "0.0": obj or bytes(numcodecs.Blosc(cname="lz4", shuffle=1).encode(MANY))}, MANY.tobytes())


v2blosc("v2-blosc-autoshuffle", "shuffle -1", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0})
v2blosc("v2-blosc-typesize", "a typesize in format 2", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, "typesize": 4})
v2blosc("v2-blosc-no-blocksize", "no blocksize", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1})
v2blosc("v2-zstd-checksum-key", "the checksum key in zstd", {"id": "zstd", "level": 1, "checksum": True}, zst(MANY.tobytes(), write_checksum=True))

# --- Metadata, format 2.


def plain2(name, why, change, intended=RAW, chunk=RAW, key="0.0"):
    document = v2()
    change(document)
    vector(name, why, {".zarray": document, key: chunk}, intended)


plain2("v2-filters-absent", "no filters key", lambda m: m.pop("filters"))
plain2("v2-filters-empty", "an empty list of filters", lambda m: m.update(filters=[]))
plain2("v2-compressor-absent", "no compressor key", lambda m: m.pop("compressor"))
plain2("v2-fill-absent", "no fill value", lambda m: m.pop("fill_value"))
plain2("v2-order-absent", "no order", lambda m: m.pop("order"))
plain2("v2-unknown-key", "an unknown key", lambda m: m.update(colour="red"))
plain2("v2-separator-slash", "chunk keys with a slash", lambda m: m.update(dimension_separator="/"), key="0/0")
plain2("v2-separator-null", "a separator of null", lambda m: m.update(dimension_separator=None))
plain2("v2-attributes-in-zarray", "attributes in the array document", lambda m: m.update(attributes={"a": 1}))


def fill2(name, why, dtype, fill, raw, text=False):
    document = v2(data=np.zeros(2), chunk=(2,), dtype=dtype, fill=fill)
    if text:
        document = json.dumps(document).replace(json.dumps(fill), text)
    vector(name, why, {".zarray": document}, raw and raw * 2)


fill2("v2-fill-null", "a null fill value", "<i4", None, bytes(4))
fill2("v2-fill-nan-word", "NaN as a word", "<f4", "NaN", bytes.fromhex("0000c07f"))
fill2("v2-fill-nan-bare", "NaN as no JSON has it", "<f4", "@", bytes.fromhex("0000c07f"), "NaN")
fill2("v2-fill-integer-as-float", "an integer with a fraction of zero", "<i4", 1.0, struct.pack("<i", 1))
fill2("v2-fill-bool-zero", "a bool written 0", "|b1", 0, bytes([0]))
fill2("v2-fill-bool-one", "a bool written 1", "|b1", 1, bytes([1]))
fill2("v2-fill-bytes-zero", "fixed-size bytes written 0", "|S4", 0, bytes(4))
fill2("v2-fill-bytes-empty", "fixed-size bytes written as an empty string", "|S4", "", bytes(4))
fill2("v2-fill-bytes-base64", "fixed-size bytes in base64", "|S4", base64.b64encode(b"ab").decode(), b"ab\0\0")
fill2("v2-fill-text-zero", "fixed-size text written 0", "<U2", 0, bytes(8))
fill2("v2-fill-text-accent", "fixed-size text", "<U2", "é", "é".encode("utf-32-le") + bytes(4))
fill2("v2-fill-datetime-number", "a datetime as a number", "<M8[s]", 7, struct.pack("<q", 7))
fill2("v2-fill-datetime-nat", "a datetime that is NaT, as the word", "<M8[s]", "NaT", struct.pack("<q", -(2**63)))
fill2("v2-fill-struct-base64", "a struct in base64", [["a", "<i2"], ["b", "<f4"]], base64.b64encode(struct.pack("<hf", 7, 1.5)).decode(), struct.pack("<hf", 7, 1.5))
fill2("v2-fill-struct-zero", "a struct written 0", [["a", "<i2"], ["b", "<f4"]], 0, bytes(6))
fill2("v2-fill-struct-list", "a struct as a list", [["a", "<i2"], ["b", "<f4"]], [7, 1.5], struct.pack("<hf", 7, 1.5))
fill2("v2-fill-complex", "a complex as a list", "<c8", [1.0, "NaN"], struct.pack("<f", 1) + bytes.fromhex("0000c07f"))
fill2("v2-fill-infinity", "infinity as a word", "<f8", "-Infinity", struct.pack("<d", -np.inf))
for spelled in ("<u1", ">i1", "<b1", "|u1"):
    code = {"<": "little-", ">": "big-", "|": "any-"}[spelled[0]] + spelled[1:]
    vector(f"v2-one-byte-{code}", f"a one-byte type spelled {spelled}", one2(b"\1\0\1\1", data=np.zeros((2, 2)), chunk=(2, 2), dtype=spelled, fill=0 if "b" not in spelled else False), b"\1\0\1\1")
vector("v2-no-byte-order", "a four-byte type that is neither little- nor big-endian", one2(RAW, dtype="|i4"), None)
vector("v2-python-name", "a type by its numpy name", one2(RAW, dtype="int32"), None)
vector("v2-zero-dimensions", "the key of a 0-d array", {".zarray": v2(data=np.zeros(()), chunk=()), "0": struct.pack("<i", 7)}, struct.pack("<i", 7))
VOID = np.arange(12, dtype=np.uint8)
vector("v2-void", "opaque bytes", one2(VOID.tobytes(), data=np.zeros((2, 2)), chunk=(2, 2), dtype="|V3", fill=None), VOID.tobytes())

# --- Order of elements beneath codecs that flatten.


def enc(chain, array):
    for config in chain:
        array = numcodecs.get_codec(config).encode(array)
    return bytes(array)


DELTA = {"id": "delta", "dtype": "<i4", "astype": "<i4"}
F_DATA = np.asfortranarray(DATA)
vector("v2-f-order-delta", "F order beneath a delta filter: differences along memory", one2(enc([DELTA], F_DATA), order="F", filters=[DELTA]), RAW)
WORDS = np.array([["a", "bc", "é"], ["", "漢字", "x" * 9]], object)
FLAT = [w for w in WORDS.reshape(-1)]
vector("v2-f-order-vlen", "F order beneath vlen-utf8, elements in F order", one2(enc([{"id": "vlen-utf8"}], WORDS.reshape(-1, order="F")), data=WORDS, chunk=(2, 3), dtype="|O", fill="", order="F", filters=[{"id": "vlen-utf8"}]), strings(FLAT))
vector("v3-transpose-vlen", "a transposition beneath vlen-utf8", one3([codec("transpose", order=[1, 0]), codec("vlen-utf8")], enc([{"id": "vlen-utf8"}], WORDS.T.reshape(-1)), data=WORDS, chunk=(2, 3), data_type="string", fill=""), strings(FLAT))
vector("v3-transpose-delta", "a transposition beneath numcodecs.delta", one3([codec("transpose", order=[1, 0]), codec("numcodecs.delta", dtype="<i4", astype="<i4"), LE], enc([DELTA], np.ascontiguousarray(DATA.T))), RAW)
vector("v3-transpose-cast", "a transposition before cast_value", one3([codec("transpose", order=[1, 0]), codec("cast_value", data_type="int16", rounding="nearest-even"), LE], np.ascontiguousarray(DATA.T).astype("<i2").tobytes()), RAW)
vector("v3-scale-transpose", "scale_offset before a transposition", one3([codec("scale_offset", offset=1, scale=2), codec("transpose", order=[1, 0]), LE], np.ascontiguousarray(((DATA - 1) * 2).T).tobytes()), RAW)
vector("v3-cast-narrower", "cast_value to a smaller type", one3([codec("cast_value", data_type="uint8", rounding="nearest-even"), codec("bytes")], DATA.astype(np.uint8).tobytes()), RAW)

# --- vlen.


def vlen(name, why, chunk, intended):
    vector(name, why, one3([codec("vlen-utf8")], chunk, data=WORDS, chunk=(2, 3), data_type="string", fill=""), intended)


GOOD = enc([{"id": "vlen-utf8"}], WORDS.reshape(-1))
vlen("vlen-plain", "nothing unusual, to compare with", GOOD, strings(FLAT))
vlen("vlen-count-larger", "the header counts one element too many", struct.pack("<I", 7) + GOOD[4:], None)
vlen("vlen-count-smaller-only", "the header counts one element too few", struct.pack("<I", 5) + GOOD[4:], None)
vlen("vlen-count-smaller-consistent", "one element too few, consistently", enc([{"id": "vlen-utf8"}], WORDS.reshape(-1)[:5]), None)
vlen("vlen-trailing-bytes", "bytes after the last element", GOOD + b"junk", None)
vlen("vlen-length-past-end", "a length that ends past the chunk", struct.pack("<I", 6) + struct.pack("<I", 0xFFFFFFF0) + GOOD[8:], None)
vlen("vlen-not-utf8", "bytes that are not UTF-8", struct.pack("<I", 6) + strings([b"\xff\xfe", "b", "c", "d", "e", "f"]), None)
vlen("vlen-empty-object", "an object of no bytes", b"", None)

# --- Names, hierarchies, history.

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
vector("names-unicode", "a node whose name is in no ASCII", {"zarr.json": GROUP, "é漢/zarr.json": GROUP, "é漢/数据🦀/zarr.json": v3([LE]), "é漢/数据🦀/c/0/0": RAW}, RAW, node="é漢/数据🦀")
vector("names-spaces", "a node whose name has spaces and dots", {"zarr.json": GROUP, "my data.v1/zarr.json": v3([LE]), "my data.v1/c/0/0": RAW}, RAW, node="my data.v1")
vector("names-siblings", "a sibling whose name begins like this one's", {"zarr.json": GROUP, "foo/zarr.json": v3([LE]), "foo/c/0/0": RAW, "foobar/zarr.json": v3([LE]), "foobar/c/0/0": RAW[::-1]}, RAW, node="foo")
vector("consolidated-null", "a group whose consolidated metadata is null", {"zarr.json": {**GROUP, "consolidated_metadata": None}, "a/zarr.json": v3([LE]), "a/c/0/0": RAW}, RAW, node="a")
vector("v2-consolidated", "a format 2 hierarchy with .zmetadata", {".zgroup": {"zarr_format": 2}, ".zmetadata": {"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": v2(), "a/.zattrs": {}}}, "a/.zarray": v2(), "a/.zattrs": {}, "a/0.0": RAW}, RAW, node="a")
vector("both-formats", "format 2 and format 3 documents for the same node", {"zarr.json": v3([LE]), "c/0/0": RAW, ".zarray": v2(), "0.0": RAW[::-1]}, RAW)


def shrunk():
    import zarr

    with tempfile.TemporaryDirectory() as where:
        a = zarr.create_array(where, shape=(6,), chunks=(4,), dtype="<i4", compressors=None, fill_value=-1)
        a[:] = np.arange(1, 7)
        a.resize((3,))
        a.resize((6,))
        store = read_store(pathlib.Path(where))
        return store, np.asarray(a[:], "<i4").tobytes()


def read_store(where):
    out = {}
    for file in sorted(p for p in where.rglob("*") if p.is_file()):
        data = file.read_bytes()
        key = file.relative_to(where).as_posix()
        out[key] = json.loads(data) if key.endswith((".json", ".zarray")) else data
    return out


STORE, SEEN = shrunk()
vector("shrunk-then-grown", "zarr-python: written, cut to 3, grown to 6 again; the chunk keeps what was cut", STORE, SEEN)

RECT = np.arange(1, 21, dtype="<i4").reshape(4, 5)


def rectilinear(name, why, shapes, rows, columns, intended=RECT.tobytes()):
    document = v3([LE], data=RECT)
    document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
    store = {"zarr.json": document}
    at = 0
    for i, h in enumerate(rows):
        left = 0
        for j, w in enumerate(columns):
            part = RECT[at : at + h, left : left + w]
            store[f"c/{i}/{j}"] = padded(part, shape=(h, w))
            left += w
        at += h
    vector(name, why, store, intended)


rectilinear("rectilinear-lists", "chunk lengths listed", [[1, 3], [2, 2, 1]], [1, 3], [2, 2, 1])
rectilinear("rectilinear-runs", "chunk lengths in runs", [[[2, 2]], [[2, 2], 1]], [2, 2], [2, 2, 1])
rectilinear("rectilinear-integer", "one length for an axis", [2, [3, 2]], [2, 2], [3, 2])
rectilinear("rectilinear-overhang", "the last chunk overhangs", [[3, 3], [2, 2, 2]], [3, 3], [2, 2, 2])
rectilinear("rectilinear-short", "the chunks do not reach the end", [[1, 2], [5]], [1, 2], [5], None)

# --- More metadata.

plain("meta-shape-negative", "a negative length", lambda m: m.update(shape=[6, -5]), None)
plain("meta-no-shape", "no shape", lambda m: m.pop("shape"), None)
plain("meta-no-data-type", "no data type", lambda m: m.pop("data_type"), None)
plain("meta-no-codecs", "no codecs key", lambda m: m.pop("codecs"), None)
plain("meta-no-chunk-grid", "no chunk grid", lambda m: m.pop("chunk_grid"), None)
plain("meta-node-type-unknown", "a node that is neither array nor group", lambda m: m.update(node_type="table"), None)
plain("meta-format-four", "a format of the future", lambda m: m.update(zarr_format=4), None)
plain("meta-chunk-grid-unknown", "an unknown chunk grid", lambda m: m.update(chunk_grid={"name": "red"}), None)
plain("meta-chunk-negative", "a negative chunk length", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[6, -5]), None)
plain("meta-chunk-key-unknown", "an unknown chunk key encoding", lambda m: m.update(chunk_key_encoding={"name": "red"}), None)
plain("meta-separator-unknown", "a separator that is neither of the two", lambda m: m.update(chunk_key_encoding={"name": "default", "configuration": {"separator": "-"}}), None)
plain("meta-endian-unknown", "a byte order that is none", lambda m: m.update(codecs=[codec("bytes", endian="middle")]), None)
plain("meta-two-array-to-bytes", "two array->bytes codecs", lambda m: m.update(codecs=[LE, LE]), None)
plain("meta-codec-order", "a bytes->bytes codec before the array->bytes codec", lambda m: m.update(codecs=[GZIP, LE]), None)
plain("meta-transpose-rank", "an order of another rank", lambda m: m["codecs"].insert(0, codec("transpose", order=[0])), None)
plain("meta-truncated-json", "a document that ends too early", lambda m: None, None)
VECTORS["meta-truncated-json"]["store"]["zarr.json"] = json.dumps(VECTORS["meta-truncated-json"]["store"]["zarr.json"])[:-1]
plain("meta-attributes-nested", "attributes of every kind of JSON", lambda m: m.update(attributes={"a": [1, 2.5, None, True, {"b": {}}], "": "empty key", "é漢🦀": []}))
plain2("v2-order-unknown", "an order that is neither C nor F", lambda m: m.update(order="A"), None)
plain2("v2-compressor-unknown", "an unknown compressor", lambda m: m.update(compressor={"id": "red"}), None)
plain2("v2-filter-unknown", "an unknown filter", lambda m: m.update(filters=[{"id": "red"}]), None)
plain2("v2-chunks-rank", "chunks of another rank", lambda m: m.update(chunks=[6]), None)
plain2("v2-format-three", "format 3 in the document of format 2", lambda m: m.update(zarr_format=3), None)
plain2("v2-no-dtype", "no data type", lambda m: m.pop("dtype"), None)

# --- More fill values: bit for bit.

only_fill("fill-minus-zero", "minus zero", "float64", -0.0, struct.pack("<d", -0.0))
only_fill("fill-infinity", "a word", "float32", "Infinity", struct.pack("<f", np.inf))
only_fill("fill-nan-word", "a word", "float64", "NaN", struct.pack("<Q", 0x7FF8000000000000))
only_fill("fill-hex-half-nan", "a NaN of half precision with a payload", "float16", "0x7e01", bytes.fromhex("017e"))
only_fill("fill-hex-double-nan", "a negative NaN of double precision with a payload", "float64", "0xfff8000000000123", struct.pack("<Q", 0xFFF8000000000123))
only_fill("fill-hex-finite", "a finite number in hex digits", "float32", "0x3fc00000", struct.pack("<f", 1.5))
only_fill("fill-subnormal", "the smallest positive number", "float64", 5e-324, struct.pack("<Q", 1))
only_fill("fill-tenth", "a tenth, which binary rounds", "float32", 0.1, struct.pack("<f", 0.1))
only_fill("fill-int64-min", "the smallest integer", "int64", -(2**63), struct.pack("<q", -(2**63)))
only_fill("fill-int64-near-max", "an integer that no double holds", "int64", 2**63 - 3, struct.pack("<q", 2**63 - 3))
only_fill("fill-complex-zeros", "a complex of minus zero and zero", "complex128", [-0.0, 0.0], struct.pack("<dd", -0.0, 0.0))
only_fill("fill-complex-one-part", "a complex without its imaginary part", "complex64", [1.0], None)
only_fill("fill-true", "true", "bool", True, b"\x01")
only_fill("fill-hex-too-long", "too many hex digits", "float32", "0x7fc000000", None)
only_fill("fill-array-for-number", "a list for a number", "int32", [1], None)

# --- Missing chunks, empty arrays, no axes.

HOLES = np.array(EDGE)
HOLES[4:, :3] = -7
vector("chunks-missing-one", "one chunk missing: its elements are the fill value", {k: v for k, v in edge_store([LE], padded).items() if k != "c/1/0"} | {"zarr.json": v3([LE], chunk=(4, 3), fill=-7)}, HOLES.tobytes())
vector("chunks-missing-all", "no chunk at all", {"zarr.json": v3([LE, GZIP], chunk=(4, 3), fill=-7)}, np.full((6, 5), -7, "<i4").tobytes())
vector("chunks-missing-transposed", "no chunk, and a fill value that array->array codecs do not change", {"zarr.json": v3([codec("transpose", order=[1, 0]), LE], chunk=(4, 3), fill=-7)}, np.full((6, 5), -7, "<i4").tobytes())
vector("chunks-outside", "objects for chunks outside of the array", {**edge_store([LE], padded), "c/7/7": b"junk", "c/2/0": b""}, EDGE.tobytes())
vector("zero-dimensions-stored", "a 0-d array: its key is `c`", {"zarr.json": v3([LE], data=np.zeros(()), chunk=()), "c": struct.pack("<i", 7)}, struct.pack("<i", 7))
vector("zero-dimensions-missing", "a 0-d array without its chunk", {"zarr.json": v3([LE], data=np.zeros(()), chunk=(), fill=9)}, struct.pack("<i", 9))
vector("zero-dimensions-v2-keys", "a 0-d array with version 2 keys: its key is `0`", {"zarr.json": v3([LE], data=np.zeros(()), chunk=(), chunk_key_encoding={"name": "v2"}), "0": struct.pack("<i", 7)}, struct.pack("<i", 7))
vector("zero-size-first-axis", "an axis of length zero", {"zarr.json": v3([LE], data=np.zeros((0, 3)), chunk=(2, 3))}, b"")
vector("zero-size-v2", "format 2: an axis of length zero", {".zarray": v2(data=np.zeros((3, 0)), chunk=(2, 3))}, b"")
vector("zero-size-sharded", "a sharded array of no elements", {"zarr.json": v3([sharding()], data=np.zeros((0, 4)), chunk=(4, 4))}, b"")
CUBE = np.arange(24, dtype="<i2").reshape(2, 3, 4)
vector("transpose-cycle", "three axes, cycled: an order and its inverse differ", one3([codec("transpose", order=[1, 2, 0]), LE], np.ascontiguousarray(CUBE.transpose(1, 2, 0)).tobytes(), data=CUBE, chunk=(2, 3, 4), data_type="int16") | {"c/0/0/0": np.ascontiguousarray(CUBE.transpose(1, 2, 0)).tobytes()}, CUBE.tobytes())
VECTORS["transpose-cycle"]["store"].pop("c/0/0")

# --- More shards.

SEVENS = np.array(SQUARE)
SEVENS[:2, 2:] = -7
GAP = [(0, 16), (NONE, NONE), (16, 16), (32, 16)]
THREE_PARTS = PARTS[0] + PARTS[2] + PARTS[3]
vector("shard-empty-inner-fill", "one inner chunk absent: the fill value, not zero", {"zarr.json": v3([sharding()], **KW, fill=-7), "c/0/0": shard(GAP, THREE_PARTS)}, SEVENS.tobytes())
vector("shard-missing", "no shard at all", {"zarr.json": v3([sharding()], **KW, fill=-7)}, np.full((4, 4), -7, "<i4").tobytes())
sharded("shard-index-start-past-end", "the index at the start, an entry that ends past the shard", shard([(HEAD, 16), (HEAD + 16, 16), (HEAD + 32, 16), (HEAD + 56, 16)], JOINED, start=True), None, sharding(location="start"))
sharded("shard-index-start-checksum-wrong", "the index at the start, a checksum that does not hold", (lambda s: s[: HEAD - 1] + bytes([s[HEAD - 1] ^ 1]) + s[HEAD:])(shard([(o + HEAD, n) for o, n in ENTRIES], JOINED, start=True)), None, sharding(location="start"))
sharded("shard-index-location-unknown", "an index that is neither at the start nor at the end", shard(ENTRIES, JOINED), None, sharding(location="middle"))
sharded("shard-index-entry-flipped", "a bit of an offset flipped beneath the checksum", (lambda s: s[:64] + bytes([s[64] ^ 16]) + s[65:])(shard(ENTRIES, JOINED)), None)
sharded("shard-checksum-missing", "an index without the checksum that the metadata promise", shard(ENTRIES, JOINED, checksum=False), None)
sharded("shard-inner-rank", "inner chunks of another rank", shard(ENTRIES, JOINED), None, sharding(chunk=(2,)))
sharded("shard-partly-overlapping", "inner chunks that share bytes", shard([(0, 16), (8, 16), (16, 16), (24, 16)], JOINED), np.block([[np.frombuffer(JOINED[o : o + 16], "<i4").reshape(2, 2) for o in row] for row in ((0, 8), (16, 24))]).tobytes())
SHORT_GZ = gz(PARTS[3])[:-1]
vector("shard-inner-truncated", "an inner chunk whose gzip member lacks its last byte", {"zarr.json": v3([sharding((LE, GZIP))], **KW), "c/0/0": (lambda parts: shard([(sum(map(len, parts[:k])), len(p)) for k, p in enumerate(parts)], b"".join(parts)))([gz(PARTS[0]), gz(PARTS[1]), gz(PARTS[2]), SHORT_GZ])}, None)
INNER = sharding(chunk=(1, 1))


def nested_gap():
    """One inner shard absent, and one cell of another."""
    cells = [SQUARE[a : a + 1, b : b + 1].tobytes() for a, b in ((0, 0), (0, 1), (1, 0))]
    one = shard([(0, 4), (4, 4), (8, 4), (NONE, NONE)], b"".join(cells))
    return shard([(0, len(one)), (NONE, NONE), (NONE, NONE), (NONE, NONE)], one)


LONELY = np.full((4, 4), -7, "<i4")
LONELY[0, 0], LONELY[0, 1], LONELY[1, 0] = 1, 2, 5
vector("shard-nested-empty", "shards within a shard, most of it absent", {"zarr.json": v3([sharding((INNER,))], **KW, fill=-7), "c/0/0": nested_gap()}, LONELY.tobytes())

# --- Checksums.

SUMMED = RAW + struct.pack("<I", crc32c.crc32c(RAW))
vector("crc32c-plain", "nothing unusual, to compare with", one3([LE, CRC], SUMMED), RAW)
vector("crc32c-wrong", "a checksum that does not hold", one3([LE, CRC], SUMMED[:-1] + bytes([SUMMED[-1] ^ 1])), None)
vector("crc32c-data-flipped", "a bit of the data flipped", one3([LE, CRC], bytes([SUMMED[0] ^ 1]) + SUMMED[1:]), None)
vector("crc32c-big-endian", "a checksum in the other byte order", one3([LE, CRC], RAW + struct.pack(">I", crc32c.crc32c(RAW))), None)
vector("crc32c-crc32", "the checksum of zlib instead of Castagnoli's", one3([LE, CRC], RAW + struct.pack("<I", zlib.crc32(RAW))), None)
vector("crc32c-truncated", "fewer bytes than the checksum has", one3([LE, CRC], b"abc"), None)
