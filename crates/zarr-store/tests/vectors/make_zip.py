"""Writes the zip archives of this directory with Python's standard library (run with 3.11)."""

import io
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).parent
VALUES = {
    "array/zarr.json": b'{"zarr_format": 3}',
    "array/c/0/0": b"".join(struct.pack("<H", n * n & 0xFFFF) for n in range(5000)),
    "array/c/0/1": b"",
    "température/é": "unicode".encode(),
}


def info(name, method=zipfile.ZIP_STORED):
    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    entry.compress_type = method
    return entry


class Unseekable(io.RawIOBase):
    """Makes zipfile write data descriptors, as to a pipe."""

    def __init__(self, target):
        self.target = target

    def writable(self):
        return True

    def write(self, data):
        return self.target.write(data)


def fill(target, method=zipfile.ZIP_STORED, force_zip64=False, comment=b""):
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, value in VALUES.items():
            with archive.open(info(name, method), "w", force_zip64=force_zip64) as entry:
                entry.write(value)
        archive.comment = comment


fill(HERE / "stored.zip")
fill(HERE / "deflated.zip", zipfile.ZIP_DEFLATED)
with open(HERE / "streamed.zip", "wb") as file:
    fill(Unseekable(file), zipfile.ZIP_DEFLATED)
# A comment that contains the signature of an end record.
fill(HERE / "commented.zip", comment=b"PK\x05\x06" + bytes(18) + b" is not the end")
with open(HERE / "prefixed.zip", "wb") as file:
    file.write(b"#!/bin/sh\necho this was put before the archive\n")
    plain = (HERE / "stored.zip").read_bytes()
    file.write(plain)

# zip64 records that nothing in so small an archive asks for.
limits = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = 10, 1
fill(HERE / "zip64.zip", force_zip64=True)
zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limits

with zipfile.ZipFile(HERE / "duplicates.zip", "w") as archive:
    archive.writestr(info("k"), b"old")
    archive.writestr(info("k"), b"new")

with zipfile.ZipFile(HERE / "names.zip", "w") as archive:
    for name in ["dir/", "/absolute", "../outside", "a//b", "a/./b", "good"]:
        archive.writestr(info(name), b"1")

with zipfile.ZipFile(HERE / "methods.zip", "w") as archive:
    archive.writestr(info("bzip2", zipfile.ZIP_BZIP2), b"x" * 100)
    archive.writestr(info("stored"), b"fine")
