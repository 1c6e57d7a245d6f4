"""Makes the vectors of single codecs anew: `chunks/<codec>/<name>/{case.toml, encoded, expected.raw}`.

    pip install -r ../../adapters/requirements.txt     # or `cargo xtask conformance-peers --environment`, which makes target/conformance-venv
    python chunks.py

It takes Python 3.12 or later. The same versions make the same bytes. All numbers are little-endian, on both sides of a codec.
"""

import bz2
import gzip
import importlib.metadata
import json
import lzma
import pathlib
import shutil
import struct
import sys
import zlib

import crc32c
import numcodecs
import numcodecs.zfpy
import numpy as np
import zstandard

OUT = pathlib.Path(__file__).resolve().parent.parent / "chunks"

NUMCODECS = f"numcodecs {importlib.metadata.version('numcodecs')}"
CPYTHON = f"CPython {sys.version_info.major}.{sys.version_info.minor}"
LIBZSTD = f"libzstd {'.'.join(map(str, zstandard.ZSTD_VERSION))} (zstandard {importlib.metadata.version('zstandard')})"
C_BLOSC = f"c-blosc of {NUMCODECS}"
LIBLZMA = f"liblzma of {CPYTHON}"
LIBBZIP2 = f"libbzip2 of {CPYTHON}"
ZLIB = f"zlib {zlib.ZLIB_RUNTIME_VERSION} of {CPYTHON}"


def toml(values):
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value is not None)


def put(codec, name, says, configuration, encoded, made_by, cite, expected=None, verdict="must_accept", bytes_=None, data_type=None, shape=None):
    folder = OUT / codec.removeprefix("numcodecs.").replace("_", "-") / name
    folder.mkdir(parents=True)
    case = {
        "says": says,
        "verdict": verdict,
        "cite": cite,
        "made_by": made_by,
        "codec": json.dumps({"name": codec, "configuration": configuration}),
        "bytes": None if data_type else bytes_ if bytes_ is not None else len(expected),
        "data_type": data_type,
        "shape": shape,
    }
    (folder / "case.toml").write_text(toml(case))
    (folder / "encoded").write_bytes(bytes(encoded))
    if expected is not None:
        (folder / "expected.raw").write_bytes(bytes(expected))


def ramp(count, dtype="<i2"):
    return (np.arange(count, dtype="i8") * 7 % 251).astype(dtype)


def noise(count):
    state, out = 1, bytearray()
    for _ in range(count):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        out.append(state >> 16 & 0xFF)
    return bytes(out)


DATA = {"ramp": ramp(500).tobytes(), "zeros": bytes(1000), "noise": noise(300), "nothing": b""}


def damage(codec, configuration, good, expected, made_by, cite, trailing=None):
    """What every codec refuses: a stream cut short, and one that was changed where a checksum or a size tells."""
    put(codec, "cut-short", "the last byte is missing", configuration, good[:-1], made_by + ", cut", cite, verdict="must_reject", bytes_=len(expected))
    put(codec, "empty", "no bytes at all", configuration, b"", "hand", cite, verdict="must_reject", bytes_=len(expected))
    put(codec, "too-few", "decodes to less than the metadata says", configuration, good, made_by, cite, verdict="must_reject", bytes_=len(expected) + 1)
    put(codec, "too-many", "decodes to more than the metadata says", configuration, good, made_by, cite, verdict="must_reject", bytes_=len(expected) - 1)


SIZE = "core 3.1: a chunk decodes to the array of the metadata"


def streams():
    """zstd, gzip, zlib, bz2, lzma and lz4: what their libraries make."""
    rfc = {"zstd": "RFC 8878", "gzip": "RFC 1952", "numcodecs.zlib": "RFC 1950"}
    for name, data in DATA.items():
        for level, checksum in [(1, False), (19, True), (-5, False)]:
            label = f"{name}-level-{str(level).replace('-', 'minus-')}"
            encoded = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compress(data)
            put("zstd", label, f"{name}, level {level}", {"level": level, "checksum": checksum}, encoded, LIBZSTD, rfc["zstd"], data)
        for level in (0, 1, 9):
            put("gzip", f"{name}-level-{level}", f"{name}, level {level}", {"level": level}, gzip.compress(data, level, mtime=0), ZLIB, rfc["gzip"], data)
            put("numcodecs.zlib", f"{name}-level-{level}", f"{name}, level {level}", {"level": level}, zlib.compress(data, level), ZLIB, rfc["numcodecs.zlib"], data)
        put("numcodecs.bz2", name, f"{name}, level 5", {"level": 5}, bz2.compress(data, 5), LIBBZIP2, "the manual of bzip2", data)
        put("numcodecs.lzma", f"xz-{name}", f"{name}, .xz", {"format": 1, "check": -1, "preset": 1}, lzma.compress(data, preset=1), LIBLZMA, "The .xz File Format", data)
        alone = lzma.compress(data, format=lzma.FORMAT_ALONE, preset=1)
        put("numcodecs.lzma", f"alone-{name}", f"{name}, .lzma", {"format": 2, "preset": 1}, alone, LIBLZMA, "The .lzma File Format", data)
        chain = [{"id": lzma.FILTER_DELTA, "dist": 2}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
        raw = lzma.compress(data, format=lzma.FORMAT_RAW, filters=chain)
        put("numcodecs.lzma", f"raw-delta-{name}", f"{name}, raw, delta before LZMA2", {"format": 3, "filters": chain}, raw, LIBLZMA, "numcodecs, LZMA", data)
        if data:
            put("numcodecs.lz4", name, name, {"acceleration": 1}, numcodecs.LZ4(1).encode(data), f"liblz4 of {NUMCODECS}", "numcodecs, LZ4; LZ4 Block Format", data)

    data = DATA["ramp"]
    for check, label in [(0, "none"), (1, "crc32"), (10, "sha256")]:
        encoded = lzma.compress(data, check=check, preset=1)
        put("numcodecs.lzma", f"xz-check-{label}", f"the check is {label}", {"format": 1, "check": check, "preset": 1}, encoded, LIBLZMA, "The .xz File Format 2.1.1.2", data)

    half = len(data) // 2
    two = [data[:half], data[half:]]
    compress = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
    frames = b"".join(map(compress, two))
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"skip!"
    config = {"level": 3, "checksum": True}
    put("zstd", "two-frames", "two frames", config, frames, LIBZSTD, "RFC 8878 §3: frames are appended", data)
    put("zstd", "skippable", "a skippable frame before the frame, and one behind it", config, skippable + compress(data) + skippable, LIBZSTD, "RFC 8878 §3.1.2", data)
    no_size = zstandard.ZstdCompressor(level=3, write_content_size=False).compress(data)
    put("zstd", "no-content-size", "the frame does not say its size", config, no_size, LIBZSTD, "RFC 8878 §3.1.1.1.4: the field is optional", data)
    wrong = bytearray(compress(data))
    wrong[-1] ^= 1
    put("zstd", "wrong-checksum", "a wrong checksum of the content", config, wrong, LIBZSTD + ", changed", "RFC 8878 §3.1.1: Content_Checksum", verdict="must_reject", bytes_=len(data))
    put("zstd", "trailing-bytes", "bytes behind the frame that are no frame", config, compress(data) + b"????", LIBZSTD, "RFC 8878 §3.1", verdict="must_reject", bytes_=len(data))
    damage("zstd", config, compress(data), data, LIBZSTD, SIZE)

    members = b"".join(gzip.compress(part, 5, mtime=0) for part in two)
    put("gzip", "two-members", "two members", {"level": 5}, members, ZLIB, "RFC 1952 §2.2: members follow one another", data)
    good = gzip.compress(data, 5, mtime=0)
    extra = good[:3] + bytes([good[3] | 4 | 8 | 16]) + good[4:10] + struct.pack("<H", 4) + b"AB\0\0" + b"name\0" + b"comment\0" + good[10:]
    put("gzip", "header-fields", "a header with extra field, name and comment", {"level": 5}, extra, ZLIB + ", header by hand", "RFC 1952 §2.3", data)
    wrong = bytearray(good)
    wrong[-8] ^= 1
    put("gzip", "wrong-checksum", "a wrong CRC-32", {"level": 5}, wrong, ZLIB + ", changed", "RFC 1952 §2.3.1", verdict="must_reject", bytes_=len(data))
    damage("gzip", {"level": 5}, good, data, ZLIB, SIZE)

    good = zlib.compress(data, 5)
    wrong = bytearray(good)
    wrong[-1] ^= 1
    put("numcodecs.zlib", "wrong-checksum", "a wrong Adler-32", {"level": 5}, wrong, ZLIB + ", changed", "RFC 1950 §2.2", verdict="must_reject", bytes_=len(data))
    damage("numcodecs.zlib", {"level": 5}, good, data, ZLIB, SIZE)
    damage("numcodecs.bz2", {"level": 5}, bz2.compress(data, 5), data, LIBBZIP2, SIZE)
    damage("numcodecs.lzma", {"format": 1, "check": -1, "preset": 1}, lzma.compress(data, preset=1), data, LIBLZMA, SIZE)
    damage("numcodecs.lz4", {"acceleration": 1}, numcodecs.LZ4(1).encode(data), data, f"liblz4 of {NUMCODECS}", SIZE)
    put("numcodecs.bz2", "two-streams", "two streams", {"level": 5}, b"".join(bz2.compress(part, 5) for part in two), LIBBZIP2, "numcodecs, BZ2: Python's bz2.decompress", data)
    put("numcodecs.lzma", "xz-two-streams", "two streams", {"format": 1, "check": -1, "preset": 1}, b"".join(lzma.compress(part, preset=1) for part in two), LIBLZMA, "The .xz File Format 2: streams may be concatenated", data)


def blosc():
    data, cite = ramp(600, "<i4").tobytes(), "c-blosc, README_CHUNK_FORMAT.rst"
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for number, shuffle in enumerate(("noshuffle", "shuffle", "bitshuffle")):
            encoded = numcodecs.Blosc(cname, 5, number, 0).encode(np.frombuffer(data, "<i4"))
            config = {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": 0}
            put("blosc", f"{cname}-{shuffle}", f"{cname}, {shuffle}", config, encoded, C_BLOSC, cite, data)
    config = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 256}
    good = numcodecs.Blosc("lz4", 5, 1, 256).encode(np.frombuffer(data, "<i4"))
    put("blosc", "blocks", "several blocks, the last one shorter", config, good, C_BLOSC, cite, data)
    stored = numcodecs.Blosc("lz4", 0, 1, 0).encode(np.frombuffer(data, "<i4"))
    put("blosc", "memcpyed", "stored as it is", {**config, "clevel": 0}, stored, C_BLOSC, cite + ": flag 0x2", data)
    damage("blosc", config, good, data, C_BLOSC, SIZE)


def checksums():
    data = DATA["ramp"]
    sum32 = crc32c.crc32c(data)
    made_by = f"crc32c {importlib.metadata.version('crc32c')}"
    put("crc32c", "ramp", "the checksum is behind the bytes", {}, data + struct.pack("<I", sum32), made_by, "core codec crc32c; RFC 3720", data)
    put("crc32c", "wrong-checksum", "another checksum", {}, data + struct.pack("<I", sum32 ^ 1), made_by, "core codec crc32c", verdict="must_reject", bytes_=len(data))
    for name, codec, config in [
        ("crc32", numcodecs.CRC32(), {}),
        ("adler32", numcodecs.Adler32(), {}),
        ("fletcher32", numcodecs.Fletcher32(), {}),
        ("jenkins_lookup3", numcodecs.JenkinsLookup3(), {"initval": 0, "prefix": None}),
    ]:
        encoded = bytes(codec.encode(np.frombuffer(data, "u1")))
        put(f"numcodecs.{name}", "ramp", "as numcodecs has it", config, encoded, NUMCODECS, f"numcodecs, {name}", data)
        wrong = bytearray(encoded)
        # A byte of the data, wherever the checksum is.
        wrong[len(wrong) // 2] ^= 1
        put(f"numcodecs.{name}", "changed", "a byte of the data was changed", config, wrong, NUMCODECS + ", changed", f"numcodecs, {name}", verdict="must_reject", bytes_=len(data))
    encoded = bytes(numcodecs.CRC32(location="end").encode(np.frombuffer(data, "u1")))
    put("numcodecs.crc32", "at-end", "the checksum is behind the bytes", {"location": "end"}, encoded, NUMCODECS, "numcodecs, crc32: location", data)
    put("numcodecs.shuffle", "ramp", "elements of two bytes", {"elementsize": 2}, bytes(numcodecs.Shuffle(2).encode(np.frombuffer(data, "<i2"))), NUMCODECS, "numcodecs, Shuffle", data)
    put("numcodecs.base64", "ramp", "with padding", {}, numcodecs.Base64().encode(data[:100]), NUMCODECS, "numcodecs, Base64; RFC 4648", data[:100])


def arrays():
    """Codecs of arrays: encoded and decoded by numcodecs."""
    integers, floats = ramp(120, "<i4").reshape(8, 15), (ramp(120, "<f8") / 8 - 3).astype("<f4").reshape(8, 15)
    bits = (ramp(120) % 3 == 0).reshape(8, 15)
    for name, codec, config, array, type_ in [
        ("delta", numcodecs.Delta(dtype="<i4"), {"dtype": "<i4"}, integers, "int32"),
        ("astype", numcodecs.AsType("<f8", "<i4"), {"encode_dtype": "<f8", "decode_dtype": "<i4"}, integers, "int32"),
        ("fixedscaleoffset", numcodecs.FixedScaleOffset(2, 4, "<f4", "<i4"), {"offset": 2, "scale": 4, "dtype": "<f4", "astype": "<i4"}, floats, "float32"),
        ("quantize", numcodecs.Quantize(1, "<f4"), {"digits": 1, "dtype": "<f4"}, floats, "float32"),
        ("bitround", numcodecs.BitRound(3), {"keepbits": 3}, floats, "float32"),
        ("packbits", numcodecs.PackBits(), {}, bits, "bool"),
        ("pcodec", numcodecs.PCodec(), {}, integers, "int32"),
        ("zfpy", numcodecs.zfpy.ZFPY(mode=4, tolerance=-1), {"mode": 4, "tolerance": -1}, floats, "float32"),
    ]:
        encoded = codec.encode(array.reshape(-1) if name == "packbits" else array)
        back = np.asarray(codec.decode(encoded)).reshape(-1)
        decoded = back.view(array.dtype) if back.dtype != array.dtype else back
        raw = encoded.tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)
        put(f"numcodecs.{name}", type_, f"{type_}, as numcodecs has it", config, raw, NUMCODECS, f"numcodecs, {name}", decoded.tobytes(), data_type=type_, shape=list(array.shape))
    big = integers.astype(">i4").tobytes()
    put("bytes", "big-endian", "the other byte order", {"endian": "big"}, big, f"numpy {np.__version__}", "core codec bytes", integers.tobytes(), data_type="int32", shape=[8, 15])


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    streams()
    blosc()
    checksums()
    arrays()
    print(sum(1 for _ in OUT.glob("*/*")), "vectors of", sum(1 for _ in OUT.glob("*")), "codecs")


if __name__ == "__main__":
    main()
