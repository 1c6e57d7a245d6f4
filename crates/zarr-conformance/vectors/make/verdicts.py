"""What must be done with each vector of `unusual.py`, and where that is written.

`verdict(name, intended)` gives (verdict, expected, citation). Where no line says otherwise, what was meant must be read, and what means nothing must be
refused. `may` stands where no specification decides, or where one does and published data or every known reader do otherwise.
"""

import fnmatch

REJECT = object()
OPEN = object()

# (pattern, citation); the first that fits.
CITES = [
    ("attributes-*", "RFC 8259, sections 6 and 9: no NaN; a parser may limit range and precision; zarr-python#412, #3280"),
    ("blosc-header-*", "c-blosc, README_CHUNK_FORMAT.rst: a chunk describes itself, decoding needs nothing else"),
    ("blosc-memcpyed", "c-blosc, README_CHUNK_FORMAT.rst: flag 0x2"),
    ("blosc-*", "core 3.1, blosc codec, Configuration parameters; c-blosc, README_CHUNK_FORMAT.rst: cbytes, nbytes; numcodecs#228"),
    ("bool-*", "core 3.1, Core data types: false is 0x00 and true 0x01; nothing is said of other bytes"),
    ("both-formats", "no specification; every known reader looks for version 3 first"),
    ("chunks-missing-*", "core 3.1, Chunk keys, Fill value: an absent chunk holds the fill value"),
    ("chunks-outside", "core 3.1, Regular grids: chunks are those that overlap the array"),
    ("edge-chunks-odd-padding", "core 3.1, Regular grids: the contents beyond the array's edge are undefined"),
    ("edge-chunks-*", "core 3.1, Regular grids: chunks at the border are stored whole"),
    ("chunk*", "core 3.1, bytes codec: the encoded size is the number of elements times their size"),
    ("consolidated-null", "core 3.1, Array metadata: an array does not depend on the documents above it; zarrs#289"),
    ("crc32c-*", "core 3.1, crc32c codec: the checksum is of RFC 3720, little-endian, and is to be verified"),
    ("fill-datetime-*", "zarr-extensions, data-types/numpy.datetime64: Fill value"),
    ("fill-struct-*", "zarr-extensions, data-types/struct: Fill value"),
    ("fill-r16-*", "core 3.1, Permitted fill values: r<N>, an array of <N> integers in [0, 255], which can only mean bytes; tensorstore has base64"),
    ("fill-raw-bytes", "no specification: zarr-python's name for core's r*"),
    ("fill-integer-as-float", "core 3.1, Permitted fill values: no fraction or exponent; published data have it, zarr-python#3447"),
    ("fill-integer-exponent", "core 3.1, Permitted fill values: no fraction or exponent; published data have it, zarr-python#3447"),
    ("fill-null", "core 3.1, Permitted fill values: null is none of the permitted values"),
    ("fill-*", "core 3.1, Permitted fill values: permitted values by data type"),
    ("gzip-trailing-*", "RFC 1952, section 2.2: no additional information before, between, or after members"),
    ("gzip-members", "RFC 1952, section 2.2: a file is a series of members"),
    ("gzip-empty-member-last", "RFC 1952, section 2.2: a file is a series of members"),
    ("gzip-*", "RFC 1952, section 2.3: member format"),
    ("meta-chunk-shape-zero*", "core 3.1, Regular grids; zarr-specs#379, zarr-python#4334"),
    ("meta-codec-bare-string", "core 3.1, Short-hand names: equivalent to an object with just a name; contested in zarr-specs#352"),
    ("meta-key-encoding-bare", "core 3.1, Short-hand names: equivalent to an object with just a name; contested in zarr-specs#352"),
    ("meta-codec-may-ignore", "core 3.1, Extension definition: must_understand"),
    ("meta-unknown-*", "core 3.1, Array metadata: other keys must be understood unless they say `must_understand: false`; zarr-specs#371"),
    ("meta-endian-codec", "no specification: a draft's name of the bytes codec"),
    ("meta-transpose-letters", "no specification: a draft of the transpose codec"),
    ("meta-*transpose*", "core 3.1, transpose codec: order is a permutation of the axes"),
    ("meta-*endian*", "core 3.1, bytes codec: endian is required for elements of several bytes"),
    ("meta-*key*", "core 3.1, Chunk key encoding"),
    ("meta-separator-unknown", "core 3.1, Chunk key encoding: the separator is / or ."),
    ("meta-dimension-*", "core 3.1, Dimension names: as many as axes, or null"),
    ("meta-storage-*", "core 3.1, Storage transformers"),
    ("meta-codec*", "core 3.1, Codecs: exactly one array->bytes codec, in its place; all must be known"),
    ("meta-two-array-to-bytes", "core 3.1, Codecs: exactly one array->bytes codec"),
    ("meta-shape-float", "core 3.1, Shape: integers; RFC 8259, section 6 knows numbers only"),
    ("meta-truncated-json", "RFC 8259, section 2"),
    ("meta-*", "core 3.1, Array metadata: required members and their types"),
    ("names-*", "core 3.1, Node names"),
    ("nan-*", "core 3.1, bytes codec: elements are copied, bit for bit"),
    ("rectilinear-*", "zarr-extensions, chunk-grids/rectilinear"),
    ("shard-index-compressed", "core 3.1, sharding codec: the index has a fixed size"),
    ("shard-index-*", "core 3.1, sharding codec, Configuration parameters: index_codecs, index_location"),
    ("shard-checksum-missing", "core 3.1, sharding codec, Configuration parameters: index_codecs"),
    ("shard-no-index-codecs", "core 3.1, sharding codec, Configuration parameters: index_codecs is required"),
    ("shard-no-index-*", "core 3.1, sharding codec, Configuration parameters: index_location defaults to the end"),
    ("shard-entr*", "core 3.1, sharding codec, Binary shard format: offsets and lengths in the shard, 2^64-1 in both for an empty inner chunk"),
    ("shard-then-*", "core 3.1, Codecs: bytes->bytes codecs may follow an array->bytes codec"),
    ("shard-does-not-divide", "core 3.1, sharding codec: inner chunks divide the shard evenly"),
    ("shard-inner-*", "core 3.1, sharding codec: inner chunks divide the shard evenly, and are decoded by their codecs"),
    ("shard-*", "core 3.1, sharding codec, Binary shard format"),
    ("shrunk-then-grown", "core 3.1, Regular grids: a chunk is read as it is stored"),
    ("transpose-*", "core 3.1, transpose codec: axis i of the output is axis order[i] of the input"),
    ("type-float8-*", "no specification: tensorstore's name"),
    ("type-must-*", "core 3.1, must_understand: not supported for data types"),
    ("type-object-*", "core 3.1, Extension definition: a configuration is optional"),
    ("type-*", "core 3.1, Data types"),
    ("v2-blosc-autoshuffle", "numcodecs, Blosc: AUTOSHUFFLE"),
    ("v2-blosc-*", "numcodecs, Blosc: the chunk describes itself"),
    ("v2-bool-*", "version 2, Data type encoding; nothing is said of other bytes"),
    ("v2-f-order-*", "version 2, Storing arrays, order: filters see the chunk in its memory order, as numcodecs flattens it"),
    ("v2-fill-bytes-base64", "version 2, Fill value encoding: base64 for S, of no stated length; zarr-python cuts zeros off"),
    ("v2-fill-struct-base64", "version 2, Fill value encoding: base64 for structured types"),
    ("v2-fill-null", "version 2, Metadata, fill_value: null leaves the contents undefined"),
    ("v2-fill-*", "version 2, Fill value encoding; zarr-python's practice beyond"),
    ("v2-gzip-*", "RFC 1952, section 2.3.1: magic bytes"),
    ("v2-zlib-trailing", "RFC 1950, section 2.2: a stream ends behind its checksum; numcodecs stops there"),
    ("v2-zlib-*", "RFC 1950, section 2.2: header"),
    ("v2-zstd-*", "numcodecs 0.13, Zstd: checksum; zarr-python#2647, zarrs#445"),
    ("v2-one-byte-*", "version 2, Data type encoding: `|` where byte order does not apply; NumPy takes any"),
    ("v2-no-byte-order", "version 2, Data type encoding: `<` or `>` where it applies"),
    ("v2-python-name", "version 2, Data type encoding"),
    ("v2-unknown-key", "version 2, Metadata: other keys should be ignored"),
    ("v2-attributes-*", "version 2, Metadata: other keys should be ignored"),
    ("v2-chunk-*", "version 2, Chunks: a chunk holds all of its elements"),
    ("v2-zero-dimensions", "version 2, Chunks; the key of a 0-d array is `0`"),
    ("v2-consolidated", "version 2 and zarr-python, Consolidated metadata: the documents themselves stay valid"),
    ("v2-separator-*", "version 2, Metadata, dimension_separator: . or /"),
    ("v2-*", "version 2, Metadata: keys and their values"),
    ("v3-transpose-cast", "zarr-extensions, codecs/cast_value; core 3.1, transpose codec"),
    ("v3-cast-*", "zarr-extensions, codecs/cast_value"),
    ("v3-scale-*", "zarr-extensions, codecs/scale_offset; core 3.1, transpose codec"),
    ("v3-transpose-vlen", "zarr-extensions, codecs/vlen-utf8: elements in C order of the transposed chunk"),
    ("v3-transpose-delta", "numcodecs, Delta, behind core's transpose codec"),
    ("vlen-not-utf8", "zarr-extensions, codecs/vlen-utf8: UTF-8"),
    ("vlen-*", "zarr-extensions, codecs/vlen-utf8: a count, then each length and its bytes"),
    ("zero-*", "core 3.1, Shape, Chunk keys: lengths of zero and arrays of no axes are allowed"),
    ("zstd-two-frames*", "RFC 8878, section 3: content of several frames is concatenated; numcodecs#757"),
    ("zstd-empty-frame-first", "RFC 8878, section 3: content of several frames is concatenated; numcodecs#757"),
    ("zstd-skippable-*", "RFC 8878, section 3.1.2: skippable frames"),
    ("zstd-no-content-size", "RFC 8878, section 3.1.1.1.4: the content size is optional; zarr-python#2056"),
    ("zstd-checksum-*", "RFC 8878, section 3.1.1: the frame's header says whether there is a checksum"),
    ("zstd-configuration-absent", "zarr-extensions, codecs/zstd: Configuration parameters"),
    ("zstd-level-*", "zarr-extensions, codecs/zstd: Configuration parameters; decoding needs none of them"),
    ("zstd-trailing-*", "RFC 8878, section 3: one or more frames, and nothing else"),
    ("zstd-*", "RFC 8878, section 3.1.1"),
]

# Where no line of a specification decides: if read, then as this. `OPEN`: as anything.
MAY = {
    "attributes-*": None,
    "blosc-no-typesize": None,
    "blosc-shuffle-number": None,
    "blosc-trailing-bytes": "blosc-memcpyed",
    "bool-other-bytes": OPEN,
    "both-formats": None,
    "fill-float-overflow": bytes.fromhex("0000807f0000807f"),
    "fill-hex-upper-case": None,
    "fill-integer-as-float": None,
    "fill-integer-exponent": None,
    "fill-r16-*": None,
    "fill-raw-bytes": None,
    "fill-struct-base64": None,
    "gzip-trailing-zeros": "gzip-members",
    "meta-chunk-shape-zero-empty-axis": None,
    "meta-codec-may-ignore": None,
    "meta-endian-codec": None,
    "meta-shape-float": "meta-attributes-absent",
    "meta-transpose-letters": None,
    "shard-entries-overlap": None,
    "shard-partly-overlapping": None,
    "shard-entry-in-index": bytes.fromhex(
        "0100000002000000030000000400000005000000060000000700000008000000090000000a00000000000000000000000d0000000e0000001000000000000000"
    ),
    "type-float8-e4m3fn": None,
    "v2-blosc-typesize": None,
    "v2-blosc-no-blocksize": None,
    "v2-bool-other-bytes": OPEN,
    "v2-compressor-absent": None,
    "v2-fill-absent": OPEN,
    "v2-fill-bool-*": None,
    "v2-fill-bytes-base64": None,
    "v2-fill-bytes-empty": None,
    "v2-fill-bytes-zero": None,
    "v2-fill-complex": None,
    "v2-fill-datetime-nat": None,
    "v2-fill-integer-as-float": None,
    "v2-fill-nan-bare": None,
    "v2-fill-null": OPEN,
    "v2-fill-struct-list": None,
    "v2-fill-struct-zero": None,
    "v2-fill-text-accent": None,
    "v2-fill-text-zero": None,
    "v2-filters-*": None,
    "v2-one-byte-big-i1": None,
    "v2-one-byte-little-*": None,
    "v2-order-absent": None,
    "v2-separator-null": None,
    "v2-zlib-trailing": "gzip-members",
    "vlen-trailing-bytes": "vlen-plain",
    "zstd-checksum-key-absent": None,
    "zstd-configuration-absent": None,
    "zstd-level-out-of-range": None,
}

# What was meant something, and is forbidden all the same.
FORBIDDEN = ["edge-chunks-trimmed*", "fill-bool-as-number", "fill-struct-zero", "type-must-understand-false"]


def find(table, name):
    return next((entry for entry in table if fnmatch.fnmatchcase(name, entry[0] if isinstance(entry, tuple) else entry)), None)


def verdict(name, vectors):
    intended = vectors[name]["intended"]
    cite = find(CITES, name)[1]
    pattern = find(MAY, name)
    if pattern is not None:
        known = MAY[pattern]
        if known is OPEN:
            return "may", None, cite
        if isinstance(known, str):
            known = vectors[known]["intended"]
        expected = intended if known is None else known
        assert expected is not None, name
        return "may", expected, cite
    if intended is None or find(FORBIDDEN, name):
        return "must_reject", None, cite
    return "must_accept", intended, cite
