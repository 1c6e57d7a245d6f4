"""zarr-python writes the hierarchy of `tree.json`, or reads it.

    tree.py write ROOT REPORT    four times: ROOT/v2, ROOT/v2-consolidated, ROOT/v3, ROOT/v3-consolidated
    tree.py read ROOT REPORT     compares each with what it should be
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import zarr

TREE = json.loads((pathlib.Path(__file__).parent / "tree.json").read_text())
VARIANTS = [(f"v{version}{'-consolidated' * c}", version, c) for version in (2, 3) for c in (False, True)]


def values(node):
    return np.arange(1, 1 + int(np.prod(node["shape"])), dtype="<i4").reshape(node["shape"])


def write(path, version, consolidated):
    root = zarr.create_group(str(path), zarr_format=version, attributes=TREE["attributes"])
    for node in TREE["nodes"]:
        if "shape" not in node:
            root.create_group(node["path"], attributes=node["attributes"])
            continue
        names = {"dimension_names": node["dimension_names"]} if version == 3 else {}
        a = root.create_array(
            node["path"], shape=node["shape"], chunks=node["chunks"], dtype="int32", attributes=node["attributes"], **names
        )
        a[...] = values(node)
    if consolidated:
        zarr.consolidate_metadata(str(path))


def read(path, version, consolidated):
    root = zarr.open_group(str(path), mode="r", zarr_format=version, use_consolidated=consolidated)
    same(dict(root.attrs), TREE["attributes"], "the attributes of the root")
    found = dict(root.members(max_depth=None))
    same(sorted(found), sorted(n["path"] for n in TREE["nodes"]), "the names")
    for node in TREE["nodes"]:
        name, a = node["path"], found[node["path"]]
        same(dict(a.attrs), node["attributes"], f"the attributes of {name}")
        same("shape" in node, isinstance(a, zarr.Array), f"what {name} is")
        if "shape" in node:
            if not np.array_equal(a[...], values(node)):
                raise ValueError(f"the values of {name} differ")
            if version == 3:
                same(list(a.metadata.dimension_names or []), node["dimension_names"], f"the dimension names of {name}")


def same(found, expected, what):
    # As text: 1, 1.0 and true are equal to Python.
    if json.dumps(found, sort_keys=True) != json.dumps(expected, sort_keys=True):
        raise ValueError(f"{what}: {found!r} instead of {expected!r}")


def main(action, root, report):
    warnings.simplefilter("ignore")
    with open(report, "w") as lines:
        for name, version, consolidated in VARIANTS:
            try:
                {"write": write, "read": read}[action](pathlib.Path(root) / name, version, consolidated)
                line = {"id": name, "verdict": "ok"}
            except Exception as error:
                line = {"id": name, "verdict": "refuses", "message": f"{type(error).__name__}: {error}"[:400]}
            lines.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
