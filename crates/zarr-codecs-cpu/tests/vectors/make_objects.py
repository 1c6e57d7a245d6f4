"""Writes objects.json: what numcodecs makes of arrays of Python's objects.

    python3.12 -m venv /tmp/objects
    /tmp/objects/bin/pip install numpy==2.5.5 numcodecs==0.17.1 msgpack==1.1.2
    /tmp/objects/bin/python make_objects.py

`elements` are in hexadecimal: JSON text without white space for json2, MessagePack for msgpack2, UTF-8 for categorize of objects; `back` is what decoding gives, where that
is something else. For categorize of strings of one length, `elements` is one entry, little-endian UTF-32.
"""

import json
import os
from importlib.metadata import version

import msgpack
import numcodecs
import numcodecs.msgpacks
import numpy as np

cases = []


def objects(values, shape):
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array.reshape(shape)


def add(codec, data_type, array, elements, back=None):
    encoded = codec.encode(array)
    if array.dtype != object:
        # An array, whose byte order is that of `bytes`.
        encoded = encoded.astype(encoded.dtype.newbyteorder("<"))
    encoded = bytes(encoded)
    configuration = codec.get_config()
    name = "numcodecs." + configuration.pop("id")
    case = {"name": name, "configuration": configuration, "data_type": data_type, "shape": list(array.shape), "elements": [e.hex() for e in elements], "encoded": encoded.hex()}
    if back is not None:
        case["back"] = [e.hex() for e in back]
    cases.append(case)


values = [
    None, True, False, 0, -1, 42, 2**63, -(2**40), 1.5, -0.0, 1e300, 5e-324, "", "foo", "zwölf", "\U0001f600", 'a"b\\c/d\n\t\x00\x7f', "x" * 300,
    [], ["bar", 1, None], [[1, 2], [3]], {}, {"b": 1, "a": {"ü": [2.5]}, "10": "x"}, [1, 2, 3, "|O", [4]],
]
finite = len(values)
values += [float("nan"), float("inf"), -float("inf"), ["NaN", float("nan")]]
text = [json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() for value in values]
# Keys come back in the order in which they are stored.
ordered = [json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode() for value in values]
for configuration in [{}, {"ensure_ascii": False, "sort_keys": False}, {"indent": 2}, {"indent": 0}, {"indent": "\t", "separators": (",", " : ")}, {"separators": (", ", ": ")}]:
    back = text if configuration.get("sort_keys") is False else ordered
    for shape in [(4, 7)] if configuration else [(28,), (4, 7), (2, 2, 7)]:
        add(numcodecs.JSON(**configuration), "string", objects(values, shape), text, back)
for shape in [(0,), (3, 0), (0, 3)]:
    add(numcodecs.JSON(), "string", objects([], shape), [])
scalar = np.empty((), dtype=object)
scalar[()] = "one"
add(numcodecs.JSON(), "string", scalar, [b'"one"'])
add(numcodecs.JSON(allow_nan=False, encoding="ascii"), "string", objects(values[:finite], (finite,)), text[:finite], ordered[:finite])

packable = values + [b"", b"\xff\x00", b"y" * 300, msgpack.Timestamp(1, 2), msgpack.ExtType(5, b"12345"), list(range(20)), {str(i): i for i in range(17)}, 2**64 - 1]
for configuration in [{}, {"use_bin_type": False}, {"use_single_float": True}, {"raw": True}]:
    options = {"use_bin_type": configuration.get("use_bin_type", True), "use_single_float": configuration.get("use_single_float", False)}
    for shape in [(4, 9)] if configuration else [(36,), (4, 9), (2, 3, 6), (18, 2)]:
        add(numcodecs.msgpacks.MsgPack(**configuration), "bytes", objects(packable, shape), [msgpack.packb(value, **options) for value in packable])
for shape in [(0,), (3, 0), (0, 3)]:
    add(numcodecs.msgpacks.MsgPack(), "bytes", objects([], shape), [])
for count in [13, 14, 127, 128, 300]:
    add(numcodecs.msgpacks.MsgPack(), "bytes", objects(list(range(count)), (count,)), [msgpack.packb(value) for value in range(count)])

words = ["male", "female", "unexpected", "", "zwölf", "male", "fem", "female\0"]
for astype in ["u1", "i1", "<i2", ">u4", "<i8"]:
    codec = numcodecs.Categorize(["female", "male", "zwölf", "male"], dtype=object, astype=astype)
    array = objects(words, (8,))
    back = codec.decode(codec.encode(array))
    add(codec, "string", array, [word.encode() for word in words], [word.encode() for word in back])
    for length in [4, 6, 9]:
        codec = numcodecs.Categorize(["female", "male", "zwölf", "male"], dtype=f"<U{length}", astype=astype)
        array = np.array(words, f"<U{length}")
        back = codec.decode(codec.encode(array)).tobytes()
        data_type = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * length}}
        add(codec, data_type, array, [array.tobytes()], [back])

versions = {name: version(name) for name in ["numpy", "numcodecs", "msgpack"]}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "objects.json")
with open(path, "w") as file:
    file.write('{"versions": ' + json.dumps(versions) + ',\n"cases": [\n')
    file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
    file.write("\n]}\n")
print(len(cases), "cases,", os.path.getsize(path), "bytes")
