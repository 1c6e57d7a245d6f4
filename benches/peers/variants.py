"""The arrays that are measured: what is in them, and how they are stored.

Two sources of about 1 GiB each:

era5    float32, 64 times x 4 levels x 721 x 1440: a smooth field that drifts with time, correlated noise, rounded to 0.01, as reanalyses are
        archived. `era5p` is the same on 768 x 1536, so that shards come out even.
cells   uint16, 512 x 1024 x 1024: blobs over a background with shot noise, as a microscope sees cells.
"""

SHAPES = {
    "era5": ("float32", (64, 4, 721, 1440)),
    "era5p": ("float32", (64, 4, 768, 1536)),
    "cells": ("uint16", (512, 1024, 1024)),
}
# The first axis in `--small` runs, which check the harness rather than measure.
SMALL = {"era5": 8, "era5p": 8, "cells": 256}

ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}


def blosc(cname, clevel, typesize):
    return {
        "name": "blosc",
        "configuration": {"cname": cname, "clevel": clevel, "shuffle": "shuffle", "typesize": typesize, "blocksize": 0},
    }


FIELD = (1, 1, 721, 1440)
CUBE = (128, 128, 128)
# name: source, chunk, inner chunk, codecs from bytes to bytes
VARIANTS = {
    "f32-raw": ("era5", (1, 4, 721, 1440), None, []),
    "f32-zstd": ("era5", FIELD, None, [ZSTD]),
    "f32-blosc-lz4": ("era5", FIELD, None, [blosc("lz4", 5, 4)]),
    "f32-blosc-zstd": ("era5", FIELD, None, [blosc("zstd", 3, 4)]),
    "f32-gzip": ("era5", FIELD, None, [GZIP]),
    "f32-shard-zstd": ("era5p", (4, 4, 768, 1536), (1, 1, 256, 256), [ZSTD]),
    "f32-small-zstd": ("era5", (1, 1, 103, 240), None, [ZSTD]),
    "u16-raw": ("cells", (256, 256, 256), None, []),
    "u16-zstd": ("cells", CUBE, None, [ZSTD]),
    "u16-blosc-lz4": ("cells", CUBE, None, [blosc("lz4", 5, 2)]),
    "u16-blosc-zstd": ("cells", CUBE, None, [blosc("zstd", 3, 2)]),
    "u16-gzip": ("cells", CUBE, None, [GZIP]),
    "u16-shard-zstd": ("cells", (256, 256, 256), (32, 32, 32), [ZSTD]),
    "u16-small-raw": ("cells", (32, 32, 32), None, []),
    "u16-small-blosc-lz4": ("cells", (32, 32, 32), None, [blosc("lz4", 5, 2)]),
}
MODES = ["read_all", "read_inner", "read_box", "read_plane", "read_chunks", "read_ahead", "write_all", "memory", "copy", "read_all_into"]
# What `zarr copy` is asked for, within COPY_MEMORY bytes.
COPY_MEMORY = 256 << 20
COPIES = {
    "f32-zstd": ["--chunks", "8,4,103,240"],
    "f32-shard-zstd": ["--shards", "none", "--chunks", "1,1,768,1536", "--codec", "blosc:lz4:5:shuffle"],
    "u16-blosc-lz4": ["--chunks", "32,32,32", "--shards", "256,256,256", "--codec", "zstd:3"],
}


def shape_of(source, small):
    dtype, shape = SHAPES[source]
    return dtype, (SMALL[source], *shape[1:]) if small else shape


def applies(variant, mode):
    """Inner chunks and boxes across shards need shards, and planes chunks of several."""
    if mode == "copy":
        return variant in COPIES
    if mode == "read_plane":
        return (VARIANTS[variant][2] or VARIANTS[variant][1])[0] > 1
    return mode not in ("read_inner", "read_box") or VARIANTS[variant][2] is not None


def metadata(variant, small):
    source, chunk, inner, codecs = VARIANTS[variant]
    dtype, shape = shape_of(source, small)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *codecs]
    if inner:
        codecs = [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": list(inner),
                    "codecs": codecs,
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                    "index_location": "end",
                },
            }
        ]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
        "attributes": {},
    }
