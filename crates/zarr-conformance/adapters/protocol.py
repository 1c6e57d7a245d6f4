"""The command line of PROTOCOL.md for an implementation in Python: `main(implementation)`.

An implementation has `identity()`, `read(path, node, select)` that gives raw bytes, and `write(path, case)` with a `Case`; `select` is `None` or a tuple of slices. What it raises is
a refusal.
"""

import importlib.metadata
import json
import os
import pathlib
import struct
import sys
import warnings

import numpy as np

PROTOCOL = 1


class Case:
    """What to write."""

    def __init__(self, path):
        document = json.loads(pathlib.Path(path).read_text())
        self.shape = tuple(document["shape"])
        self.metadata = document["metadata"]
        self.variable = document["element"] == "variable"
        self.raw = (pathlib.Path(path).parent / document["data"]).read_bytes()

    def fixed(self, dtype):
        """The elements as an array of `dtype`, which may be of the other byte order, bit for bit."""
        dtype = np.dtype(dtype)
        little = dtype.newbyteorder("<")
        values = np.frombuffer(self.raw, np.uint8).view(little) if self.raw else np.zeros(0, little)
        return in_order(values.reshape(self.shape), dtype)

    def items(self):
        """Variable elements, each as bytes, in an array of objects."""
        out, at = [], 0
        while at < len(self.raw):
            (size,) = struct.unpack_from("<I", self.raw, at)
            out.append(self.raw[at + 4 : at + 4 + size])
            at += 4 + size
        array = np.empty(len(out), object)
        array[:] = out
        return array.reshape(self.shape)


def in_order(array, target):
    """The array in the byte order of `target`, bit for bit: a cast by value would quiet signalling NaN."""
    if array.dtype.fields:
        out = np.empty(array.shape, target)
        for name in array.dtype.names:
            out[name] = in_order(array[name], target.fields[name][0].base)
        return out
    # Not by `!=`: numpy takes generic datetimes of both byte orders for equal.
    return array.byteswap().view(target) if array.dtype.str != target.str else array


def raw_bytes(array):
    """An array of whatever type and memory order as raw bytes."""
    if array.dtype.kind in "OT":
        return b"".join(struct.pack("<I", len(item)) + item for item in map(item_bytes, array.reshape(-1)))
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.fields:
        return in_order(array, packed(array.dtype)).tobytes()
    if array.dtype.name in ("int2", "int4"):
        return array.astype(np.int8).tobytes()
    return in_order(array, array.dtype.newbyteorder("<")).tobytes()


def packed(dtype):
    """The same fields, little-endian, without gaps."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((packed(base), shape))
    if dtype.fields:
        return np.dtype([(name, packed(dtype.fields[name][0])) for name in dtype.names])
    return dtype.newbyteorder("<")


def item_bytes(item):
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    return raw_bytes(np.asarray(item))


def versions(*packages):
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def explain(error):
    parts = []
    while error is not None and len(parts) < 3:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__
    return " <- ".join(parts)[:400]


def slices(ranges):
    return None if ranges is None else tuple(slice(start, end) for start, end in ranges)


def serve(implementation):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # Whatever an implementation prints must not come between the answers.
    os.dup2(2, 1)
    answers.write(json.dumps({"protocol": PROTOCOL, "identity": implementation.identity()}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "read":
                pathlib.Path(order["out"]).write_bytes(implementation.read(order["path"], order["node"], slices(order["select"])))
            else:
                implementation.write(order["path"], Case(order["case"]))
            answer = "ok"
        except Exception as error:
            answer = {"refused": explain(error)}
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            # A panic of a part in Rust: no refusal in words.
            print(explain(error), file=sys.stderr)
            os.abort()
        answers.write(json.dumps(answer) + "\n")


def read_once(implementation, path, options):
    node, select = "", None
    for key, value in zip(options[::2], options[1::2]):
        match key:
            case "--node":
                node = value
            case "--select":
                select = slices([map(int, part.split(":")) for part in value.split(",")]) if value else ()
            case "--format" if value == "raw":
                pass
            case _:
                raise SystemExit(f"no such option: {key} {value}")
    return implementation.read(path, node, select)


def main(implementation):
    warnings.simplefilter("ignore")
    try:
        match sys.argv[1:]:
            case ["versions"]:
                print(implementation.identity())
            case ["serve"]:
                serve(implementation)
            case ["read", path, *options]:
                sys.stdout.buffer.write(read_once(implementation, path, options))
            case ["write", case, path]:
                implementation.write(path, Case(case))
            case _:
                raise SystemExit("usage: versions | read PATH --format raw [--node NODE] [--select A:B,..] | write CASE PATH | serve")
    except Exception as error:
        raise SystemExit(explain(error)) from None
