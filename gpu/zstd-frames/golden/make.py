"""Writes golden frames by the `zstandard` package's streaming and threaded writers: `python make.py FOLDER`. Needs zstandard 0.25.0."""

import sys
from pathlib import Path

import zstandard

folder = Path(sys.argv[1])
text = b"".join(b"line %d of a text that goes on, %d\n" % (i, i * i % 977) for i in range(900))


def flushed(level, every, **options):
    """A frame without content size, of a block for each `every` bytes."""
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, **options).compressobj()
    out = b""
    for at in range(0, len(text), every):
        out += compressor.compress(text[at : at + every])
        out += compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return out + compressor.flush()


frames = {
    "python-flushed-100": flushed(3, 100),
    "python-flushed-5000": flushed(19, 5000),
    "python-empty-last-block": flushed(1, len(text)),
    "python-window-10": zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=10, strategy=2, write_content_size=0)
    ).compress(text),
    "python-threads": zstandard.ZstdCompressor(level=3, threads=2).compress(text * 40),
    "python-multi-frame": zstandard.ZstdCompressor(level=3).compress(text[:5000])
    + zstandard.ZstdCompressor(level=-5).compress(text[5000:]),
}
for name, frame in frames.items():
    (folder / f"{name}.zst").write_bytes(frame)
    print(name, len(frame))
