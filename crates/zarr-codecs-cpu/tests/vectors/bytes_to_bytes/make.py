"""Golden bytes for the bytes-to-bytes codecs, from the reference implementations.

    python3 -m venv /tmp/vectors && /tmp/vectors/bin/pip install -r requirements.txt
    /tmp/vectors/bin/python make.py

Writes `golden.bin`, all encoded bytes one behind the other, and `golden.json`, a list of cases: the codec with its configuration, the input (a
generator, a length, and `tests/golden.rs` has the same generators), where the encoded bytes lie, and `exact`: whether our encoder must give the same.
"""

import gzip
import io
import json
import pathlib
import struct
import zlib

import numcodecs
import numcodecs.blosc
import numcodecs.zstd
import numpy as np
import tensorstore
import zstandard

HERE = pathlib.Path(__file__).parent
cases = []
blob = bytearray()


def generate(kind, length):
    index = np.arange(length // 4 + 1, dtype=np.uint64)
    if kind == "steps":  # shrinks to almost nothing
        words = index // 1024
    elif kind == "ramp":  # shrinks when shuffled
        words = index * 7919 >> 5
    elif kind == "noise":  # does not shrink
        words = index * 2654435761 ^ (index * 40503 >> 3) ^ (index * index * 69069 >> 7)
    return (words & 0xFFFFFFFF).astype("<u4").tobytes()[:length]


def case(name, configuration, kind, length, encoded, exact=False, note=None):
    encoded = bytes(encoded)
    entry = {
        "codec": {"name": name, "configuration": configuration},
        "input": kind,
        "length": length,
        "start": len(blob),
        "end": len(blob) + len(encoded),
        "exact": exact,
    }
    if note:
        entry["note"] = note
    blob.extend(encoded)
    cases.append(entry)


# blosc: every inner codec, shuffle, and type size; several blocks, a shorter last one, bytes behind the last element.
for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
    for shuffle, shuffle_name in enumerate(["noshuffle", "shuffle", "bitshuffle"]):
        for typesize in [1, 2, 4, 8, 16, 3, 17]:
            for clevel, kind, length, blocksize in [
                (5, "ramp", 3001, 0),
                (1, "steps", 200003, 8192),
                (9, "ramp", 1536, 256),
                (5, "noise", 600, 0),
            ]:
                if typesize in (1, 8, 16, 17) and clevel != 1:
                    continue
                data = np.frombuffer(generate(kind, length), "u1")
                configuration = {
                    "cname": cname,
                    "clevel": clevel,
                    "shuffle": shuffle_name,
                    "typesize": typesize,
                    "blocksize": blocksize,
                }
                encoded = numcodecs.blosc.compress(data.tobytes(), cname.encode(), clevel, shuffle, blocksize, typesize)
                case("blosc", configuration, kind, length, encoded, exact=cname == "blosclz")
# numcodecs is built without snappy; tensorstore has it.
for shuffle in ["noshuffle", "shuffle", "bitshuffle"]:
    for dtype in ["uint8", "uint16", "float32", "uint64"]:
        for kind, length in [("ramp", 3000), ("steps", 200000), ("noise", 600)]:
            data = np.frombuffer(generate(kind, length), dtype)
            configuration = {"cname": "snappy", "clevel": 5, "shuffle": shuffle, "typesize": data.itemsize, "blocksize": 0}
            store = tensorstore.KvStore.open("memory://").result()
            array = tensorstore.open(
                {
                    "driver": "zarr3",
                    "kvstore": store.spec().to_json(),
                    "metadata": {
                        "shape": data.shape,
                        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": data.shape}},
                        "data_type": dtype,
                        "codecs": [
                            {"name": "bytes", "configuration": {"endian": "little"}},
                            {"name": "blosc", "configuration": configuration},
                        ],
                    },
                    "create": True,
                },
            ).result()
            array.write(data).result()
            case("blosc", configuration, kind, length, array.kvstore.read("c/0").result().value)
for length in [1, 16, 127, 128, 1000]:
    configuration = {"cname": "lz4", "clevel": 0, "shuffle": 1, "blocksize": 0}
    encoded = numcodecs.blosc.compress(generate("ramp", length), b"lz4", 0, 1, 0, 1)
    case("numcodecs.blosc", configuration, "ramp", length, encoded, note="stored")
    encoded = numcodecs.blosc.compress(generate("steps", length), b"zstd", 5, -1, 0, 1)
    case("numcodecs.blosc", {"cname": "zstd", "shuffle": -1}, "steps", length, encoded)

# zstd
for level in [-7, 1, 3, 22]:
    for checksum in [False, True]:
        configuration = {"level": level, "checksum": checksum}
        codec = numcodecs.zstd.Zstd(level=level, checksum=checksum)
        case("zstd", configuration, "ramp", 5003, codec.encode(generate("ramp", 5003)))
        case("zstd", configuration, "steps", 300001, codec.encode(generate("steps", 300001)), note="several blocks")
    case("zstd", {"level": level}, "noise", 700, numcodecs.zstd.Zstd(level=level).encode(generate("noise", 700)), note="raw block")
case("numcodecs.zstd", {"level": 1}, "ramp", 0, numcodecs.zstd.Zstd(level=1).encode(b""), note="empty")


def frame(data, **options):
    return zstandard.ZstdCompressor(level=3, **options).compress(data)


def streamed(data):
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    return compressor.compress(data) + compressor.flush()


ramp = generate("ramp", 5003)
skippable = struct.pack("<II", 0x184D2A53, 5) + b"12345"
for note, encoded in [
    ("no content size", streamed(ramp)),
    ("no content size, checksum", frame(ramp, write_content_size=False, write_checksum=True)),
    ("two frames", frame(ramp[:2000]) + frame(ramp[2000:])),
    ("two frames, one of them empty", frame(ramp) + frame(b"")),
    ("three frames without content size", streamed(ramp[:10]) + streamed(ramp[10:20]) + streamed(ramp[20:])),
    ("skippable frames before, between and behind", skippable + frame(ramp[:2000]) + skippable + frame(ramp[2000:]) + skippable),
]:
    case("zstd", {"level": 3}, "ramp", 5003, encoded, note=note)
case("zstd", {"level": 3}, "steps", 300001, streamed(generate("steps", 300001)), note="no content size, several blocks")

# gzip and zlib
for level in [0, 1, 6, 9]:
    for kind, length in [("ramp", 5003), ("steps", 100001 if level else 1001), ("noise", 700)]:
        data = generate(kind, length)
        case("gzip", {"level": level}, kind, length, gzip.compress(data, level, mtime=0))
        case("numcodecs.gzip", {"level": level}, kind, length, numcodecs.GZip(level).encode(data))
        case("numcodecs.zlib", {"level": level}, kind, length, numcodecs.Zlib(level).encode(data))
case("numcodecs.zlib", {"level": -1}, "ramp", 5003, zlib.compress(ramp, -1))
case("numcodecs.zlib", {"level": 1}, "ramp", 5003, zlib.compress(ramp, 1) + b"behind", note="bytes behind the stream")
case("numcodecs.gzip", {"level": -1}, "ramp", 0, gzip.compress(b"", 6, mtime=0), note="empty")


def member(data, flags=0, extra=b""):
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    header = struct.pack("<BBBBIBB", 0x1F, 0x8B, 8, flags, 123456789, 0, 3) + extra
    return header + body + struct.pack("<II", zlib.crc32(data), len(data))


named = io.BytesIO()
with gzip.GzipFile("name.nc", "wb", fileobj=named, mtime=1) as file:
    file.write(ramp)
header = struct.pack("<BBBBIBB", 0x1F, 0x8B, 8, 0x1E, 1, 0, 3)
extra = struct.pack("<H", 7) + b"RA\x03\x00abc" + b"name\0" + b"comment\0"
check = struct.pack("<H", zlib.crc32(header + extra) & 0xFFFF)
for note, encoded in [
    ("file name", named.getvalue()),
    ("extra field, name, comment, header checksum", member(ramp, 0x1E, extra + check)),
    ("two members", member(ramp[:2000]) + member(ramp[2000:])),
    ("three members, one of them empty", member(ramp[:2000]) + member(b"") + member(ramp[2000:])),
    ("zeros behind", member(ramp) + bytes(13)),
    ("zeros between and behind", member(ramp[:2000]) + bytes(3) + member(ramp[2000:]) + bytes(1)),
]:
    assert gzip.decompress(encoded) == ramp
    case("gzip", {"level": 6}, "ramp", 5003, encoded, note=note)

# lz4, bz2, lzma
for kind, length in [("ramp", 5003), ("steps", 100001), ("noise", 700), ("ramp", 0)]:
    data = generate(kind, length)
    case("numcodecs.lz4", {"acceleration": 1}, kind, length, numcodecs.LZ4(1).encode(data), exact=length <= 5003)
    if length:
        case("numcodecs.bz2", {"level": 1}, kind, length, numcodecs.BZ2(1).encode(data), exact=True)
        case("numcodecs.bz2", {"level": 9}, kind, length, numcodecs.BZ2(9).encode(data))
    for configuration in [
        {"format": 1, "check": -1, "preset": None, "filters": None},
        {"format": 1, "check": 0, "preset": 9},
        {"format": 1, "check": 10, "preset": 1},
        {"format": 2, "preset": 2},
        {"format": 1, "check": 1, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]},
        {"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33, "dict_size": 65536, "lc": 2, "mf": 4, "mode": 1, "nice_len": 32}]},
        {"format": 3, "filters": [{"id": 4}, {"id": 33, "preset": 3}]},
    ]:
        if length < 100000 or configuration.get("preset") == 1:
            encoded = numcodecs.LZMA(**configuration).encode(data)
            case("numcodecs.lzma", configuration, kind, length, encoded, note="dictionary of 64 MiB" if configuration.get("preset") == 9 else None)
bz2 = numcodecs.BZ2(1)
case("numcodecs.bz2", {}, "ramp", 5003, bz2.encode(ramp[:100]) + bz2.encode(ramp[100:]) + b"behind", note="two streams, and bytes behind")
xz = numcodecs.LZMA()
case("numcodecs.lzma", {}, "ramp", 5003, xz.encode(ramp[:100]) + xz.encode(ramp[100:]) + b"behind", note="two streams, and bytes behind")

# checksums and shuffle
for kind, length in [("ramp", 5003), ("noise", 12), ("steps", 1), ("ramp", 0), ("noise", 4099)]:
    data = generate(kind, length)
    for location in ["start", "end"]:
        configuration = {"location": location}
        case("numcodecs.crc32", configuration, kind, length, numcodecs.CRC32(location).encode(data), exact=True)
        case("numcodecs.crc32c", configuration, kind, length, numcodecs.CRC32C(location).encode(data), exact=True)
        case("numcodecs.adler32", configuration, kind, length, numcodecs.Adler32(location).encode(data), exact=True)
    case("numcodecs.crc32", {}, kind, length, numcodecs.CRC32().encode(data), exact=True)
    case("numcodecs.crc32c", {}, kind, length, numcodecs.CRC32C().encode(data), exact=True)
    case("numcodecs.adler32", {}, kind, length, numcodecs.Adler32().encode(data), exact=True)
    case("crc32c", {}, kind, length, numcodecs.CRC32C("end").encode(data), exact=True)
    if length:
        case("numcodecs.fletcher32", {}, kind, length, numcodecs.Fletcher32().encode(data), exact=True)
        case("numcodecs.jenkins_lookup3", {}, kind, length, numcodecs.JenkinsLookup3().encode(data), exact=True)
        prefixed = numcodecs.JenkinsLookup3(initval=1234567, prefix=b"\x01\x02\x03")
        case("numcodecs.jenkins_lookup3", {"initval": 1234567, "prefix": [1, 2, 3]}, kind, length, prefixed.encode(data), exact=True)
high = np.full(5000, 255, "u1")
case("numcodecs.fletcher32", {}, "ones", 5000, numcodecs.Fletcher32().encode(high), exact=True, note="sums that carry")
for elementsize in [1, 2, 3, 4, 8, 16]:
    length = 48 * 21
    encoded = numcodecs.Shuffle(elementsize).encode(np.frombuffer(generate("ramp", length), "u1"))
    case("numcodecs.shuffle", {"elementsize": elementsize}, "ramp", length, encoded, exact=True)

(HERE / "golden.bin").write_bytes(blob)
(HERE / "golden.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in cases) + "\n]\n")
print(len(cases), "cases,", len(blob), "bytes")
