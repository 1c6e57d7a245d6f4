"""tensorstore behind the command line of the conformance suite."""

import json
import pathlib

import numpy as np
import protocol

# Data types that stand for one byte of a longer element, along one more axis.
SINGLES = {"char": "S1", "byte": "V1"}
# What numpy has as integers of a whole byte.
NARROW = ("int2", "int4")


class Tensorstore:
    def __init__(self):
        import tensorstore

        self.ts = tensorstore
        self.context = tensorstore.Context({"cache_pool": {"total_bytes_limit": 0}})

    def identity(self):
        return protocol.versions("tensorstore", "numpy", "ml_dtypes")

    def spec(self, path, version, field=None):
        spec = {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        return spec | ({"field": field} if field else {})

    def fields(self, document):
        """Names of the fields of a struct, else `None`."""
        kind = document.get("data_type", document.get("dtype"))
        if isinstance(kind, dict) and kind.get("name") in ("struct", "structured"):
            fields = kind["configuration"]["fields"]
            return [field["name"] if isinstance(field, dict) else field[0] for field in fields]
        return [field[0] for field in kind] if isinstance(kind, list) else None

    def values(self, array, select, rank):
        if select is not None:
            array = array[select]
        if array.rank:
            array = array[self.ts.d[:].translate_to[0]]
        if array.dtype.name in SINGLES:
            # What `read` makes of these has elements of no bytes; writing into an array of ours does not.
            out = np.zeros(array.shape, SINGLES[array.dtype.name])
            self.ts.array(out).write(array).result()
            # One element is all bytes of the last axis, whatever axes come before.
            return out.view(f"V{out.shape[-1]}").reshape(out.shape[:-1]) if out.ndim > rank and out.size else out
        return np.asarray(array.read().result())

    def read(self, path, node, select):
        folder = pathlib.Path(path, node)
        version = 3 if (folder / "zarr.json").exists() else 2
        document = self.document(folder / ("zarr.json" if version == 3 else ".zarray"))
        rank = len(document.get("shape", []))
        parts = []
        for field in self.fields(document) or [None]:
            array = self.ts.open(self.spec(folder, version, field), open=True, context=self.context).result()
            parts.append(self.values(array, select, rank))
        if len(parts) == 1:
            return protocol.raw_bytes(parts[0])
        # Element by element, with the axes of sub-arrays, which come last.
        count = int(np.prod(parts[0].shape[:rank]))
        flat = [protocol.raw_bytes(part) for part in parts]
        sizes = [len(part) // count if count else 0 for part in flat]
        return b"".join(part[i * n : (i + 1) * n] for i in range(count) for part, n in zip(flat, sizes))

    def document(self, path):
        try:
            return json.loads(path.read_text())
        except ValueError:
            # For tensorstore to refuse.
            return {}

    def write(self, path, case):
        metadata = dict(case.metadata)
        version = metadata["zarr_format"]
        if version == 3:
            metadata.pop("attributes", None)
        fields = self.fields(metadata)
        arrays = []
        for number, field in enumerate(fields or [None]):
            spec = self.spec(path, version, field) | {"metadata": metadata}
            arrays.append(self.ts.open(spec, create=number == 0, open=number > 0, context=self.context).result())
        sizes = [self.size(array, len(case.shape)) for array in arrays]
        whole = np.frombuffer(case.raw, np.uint8).reshape((-1, sum(sizes)) if case.raw else (0, sum(sizes)))
        at = 0
        for array, size in zip(arrays, sizes):
            part = np.ascontiguousarray(whole[:, at : at + size])
            at += size
            dtype = np.dtype(SINGLES.get(array.dtype.name) or array.dtype.numpy_dtype)
            values = part.view(np.int8).astype(dtype) if array.dtype.name in NARROW else part.view(dtype)
            array.write(values.reshape(array.shape)).result()

    def size(self, array, rank):
        """Bytes of an element of the array, sub-arrays and the bytes of text among it."""
        one = 1 if array.dtype.name in SINGLES else np.dtype(array.dtype.numpy_dtype).itemsize
        return one * int(np.prod(array.shape[rank:]))


if __name__ == "__main__":
    protocol.main(Tensorstore())
