"""One peer writes the cases, or reads what was written for them.

    peer.py PEER write CASES OUT REPORT   each case into OUT/<id>, read back by the peer itself
    peer.py PEER read CASES FROM REPORT   each case from FROM/<id>, compared bit by bit
    peer.py versions

REPORT gets a line of JSON per case: its id, the verdict and, for a failure, the message. Verdicts: `ok`; `refuses`
(an error); `differs` (other values); `crashes` (the process died); `missing` (nothing to read).
"""

import importlib.metadata
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import numcodecs
import numpy as np

import dtypes
from dtypes import DTYPES

# --- The peers. Each has write(path, case, raw) and read(path, case) -> canonical bytes.


class ZarrPython:
    pipeline = None

    def __init__(self):
        import zarr
        import zarr.core.metadata.io
        import zarr.core.sync
        from zarr.storage import LocalStore, StorePath

        self.zarr = zarr
        self.Store, self.StorePath = LocalStore, StorePath
        self.save = lambda a: zarr.core.sync.sync(
            zarr.core.metadata.io.save_metadata(a.store_path, a.metadata)
        )
        settings = {"array.rectilinear_chunks": True}
        if self.pipeline:
            settings |= {"codec_pipeline.path": self.pipeline, "codec_pipeline.strict": True}
        zarr.config.set(settings)

    def write(self, path, case, raw):
        a = self.zarr.Array.from_dict(self.StorePath(self.Store(path)), case["metadata"])
        self.save(a)
        a = self.zarr.open_array(self.Store(path), mode="r+")
        d = DTYPES[case["levels"]["dtype"]]
        shape = tuple(case["shape"])
        if d.variable:
            values = dtypes.object_array(d, raw, shape)
            if d.kind == "string":
                values = values.astype(a.dtype)
        else:
            values = dtypes.to_order(dtypes.unpack(d, raw, shape), a.dtype)
        if 0 not in shape:
            a[...] = values

    def read(self, path, case):
        a = self.zarr.open_array(self.Store(path, read_only=True), mode="r")
        d = DTYPES[case["levels"]["dtype"]]
        got = a[...]
        if d.variable:
            # A 0-d read of objects yields the object.
            got = got if isinstance(got, np.ndarray) else boxed(got)
        else:
            # A 0-d read of text yields a scalar, as short as its content.
            got = np.asarray(got, a.dtype)
        return dtypes.from_numpy(d, got)


def boxed(value):
    out = np.empty((), object)
    out[()] = value
    return out


class Zarrs(ZarrPython):
    pipeline = "zarrs.ZarrsCodecPipeline"

    def __init__(self):
        import zarrs  # noqa: F401  (registers nothing, but must be there)

        super().__init__()


# The data types of TensorStore that stand for one byte of a longer element, along one more axis.
SINGLES = {"char": "S1", "byte": "V1"}


class Tensorstore:
    def __init__(self):
        import tensorstore

        self.ts = tensorstore
        self.context = tensorstore.Context({"cache_pool": {"total_bytes_limit": 0}})

    def _spec(self, path, case, field=None):
        spec = {
            "driver": "zarr" if case["metadata"]["zarr_format"] == 2 else "zarr3",
            "kvstore": {"driver": "file", "path": str(path) + "/"},
        }
        if field:
            spec["field"] = field
        return spec

    def _fields(self, case):
        d = DTYPES[case["levels"]["dtype"]]
        return d.np.names if d.kind == "struct" else None

    def write(self, path, case, raw):
        d = DTYPES[case["levels"]["dtype"]]
        values = dtypes.unpack(d, raw, tuple(case["shape"]))
        fields = self._fields(case)
        for n, field in enumerate(fields or [None]):
            spec = self._spec(path, case, field)
            metadata = dict(case["metadata"])
            if metadata["zarr_format"] == 3:
                metadata.pop("attributes", None)
            spec["metadata"] = metadata
            a = self.ts.open(spec, create=n == 0, open=n > 0, context=self.context).result()
            part = values[field] if field else values
            a.write(self._as(a, part)).result()

    def _as(self, a, values):
        if a.dtype.name in SINGLES:
            data = np.frombuffer(values.tobytes(), SINGLES[a.dtype.name])
            return data.reshape((*values.shape, values.dtype.itemsize))
        want = np.dtype(a.dtype.numpy_dtype)
        return values if values.dtype == want else np.ascontiguousarray(values).view(want)

    def _values(self, a):
        if a.dtype.name in SINGLES:
            # What `read` makes of these has elements of no bytes; writing into an array of ours does not.
            out = np.zeros(a.shape, SINGLES[a.dtype.name])
            self.ts.array(out).write(a).result()
            return out
        return np.asarray(a.read().result())

    def read(self, path, case):
        d = DTYPES[case["levels"]["dtype"]]
        fields = self._fields(case)
        shape = tuple(case["shape"])
        if fields:
            out = np.zeros(shape, d.np)
            for field in fields:
                a = self.ts.open(self._spec(path, case, field), open=True, context=self.context).result()
                out[field] = self._values(a)
            return out.tobytes()
        a = self.ts.open(self._spec(path, case), open=True, context=self.context).result()
        got = self._values(a)
        return got.tobytes() if a.dtype.name in SINGLES else dtypes.from_numpy(d, got)


class Numcodecs:
    """Format 2 by its specification, in a few lines over numpy and numcodecs: no Zarr library between."""

    def _open(self, document):
        codecs = []
        for config in [*(document.get("filters") or []), document["compressor"]]:
            if config is not None:
                codecs.append(numcodecs.get_codec(dict(config)))
        dt = self._dtype(document["dtype"])
        return np.dtype(dt), codecs

    def _dtype(self, spelled):
        if isinstance(spelled, str):
            return spelled
        return [(f[0], self._dtype(f[1]), *map(tuple, f[2:])) for f in spelled]

    def _chunks(self, document):
        grid = [-(-n // c) for n, c in zip(document["shape"], document["chunks"])]
        for at in itertools.product(*map(range, grid)):
            key = document.get("dimension_separator", ".").join(map(str, at)) or "0"
            yield key, tuple(
                slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(at, document["chunks"], document["shape"])
            )

    def write(self, path, case, raw):
        d = DTYPES[case["levels"]["dtype"]]
        document = case["metadata"]
        if document["zarr_format"] != 2:
            raise NotImplementedError("numcodecs knows no other format than 2")
        if d.kind == "ml":
            raise NotImplementedError("numpy exports no buffers of this type")
        dt, codecs = self._open(document)
        shape = tuple(case["shape"])
        path.mkdir(parents=True)
        (path / ".zarray").write_text(json.dumps(document, allow_nan=False))
        if d.variable:
            values = dtypes.object_array(d, raw, shape)
        else:
            values = dtypes.to_order(dtypes.unpack(d, raw, shape), dt)
        for key, where in self._chunks(document):
            chunk = np.empty(document["chunks"], dt)
            fill = d.fill(case["levels"]["fill"])
            if d.kind == "varray":
                for i in np.ndindex(chunk.shape):
                    chunk[i] = np.zeros(0, "<i4")
            elif d.variable:
                chunk[...] = fill.decode() if d.kind == "string" else fill
            else:
                chunk[...] = dtypes.to_order(np.frombuffer(fill, d.np), dt).reshape((1,) * chunk.ndim)
            chunk[tuple(slice(0, w.stop - w.start) for w in where)] = values[where]
            if case["whole"] and (values[where] == chunk.dtype.type(np.frombuffer(fill, d.np)[0])).all():
                # What is nothing but fill is expected as it is, and this codec would lose some of it.
                continue
            data = np.asarray(chunk, order=document["order"])
            if data.dtype.kind == "O":
                # The codecs for objects take them in the order in which they are to be stored.
                data = data.reshape(-1, order=document["order"])
            for codec in codecs:
                data = codec.encode(data)
            if isinstance(data, np.ndarray):
                data = data.tobytes(order="A")
            file = path / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def read(self, path, case):
        d = DTYPES[case["levels"]["dtype"]]
        if d.kind == "ml":
            raise NotImplementedError("numpy exports no buffers of this type")
        document = json.loads((path / ".zarray").read_text())
        dt, codecs = self._open(document)
        out = np.zeros(document["shape"], dt)
        for key, where in self._chunks(document):
            try:
                data = (path / key).read_bytes()
            except FileNotFoundError:
                data = None
            if data is None:
                fill = d.fill(case["levels"]["fill"])
                if d.variable:
                    out[where] = fill.decode() if d.kind == "string" else fill
                else:
                    out[where] = dtypes.to_order(np.frombuffer(fill, d.np), dt).reshape((1,) * out.ndim)
                continue
            for codec in reversed(codecs):
                data = codec.decode(data)
            chunk = np.asarray(data)
            if dt.kind != "O":
                chunk = np.ascontiguousarray(chunk).reshape(-1).view(dt)
            chunk = chunk.reshape(document["chunks"], order=document["order"])
            out[where] = chunk[tuple(slice(0, w.stop - w.start) for w in where)]
        return dtypes.from_numpy(d, out)


PEERS = {"zarr-python": ZarrPython, "zarrs": Zarrs, "tensorstore": Tensorstore, "numcodecs": Numcodecs}

# --- Running the cases, one process for as many as it survives.


def attempt(peer, action, case, cases_dir, root):
    path = root / case["id"]
    expected = (cases_dir / f"{case['id']}.expected.raw").read_bytes()
    if action == "read" and not path.exists():
        return "missing", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if action == "write":
                peer.write(path, case, (cases_dir / f"{case['id']}.input.raw").read_bytes())
            got = peer.read(path, case)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "refuses", explain(error)
    if got != expected:
        first = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        return "differs", f"{len(got)} bytes against {len(expected)}, first difference at byte {first}"
    return "ok", None


def explain(error):
    parts = []
    while error is not None and len(parts) < 3:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__
    return " <- ".join(parts)[:400]


def work(name, action, cases_dir, root, start):
    """The cases from the one numbered `start`; says which one it is at before it begins it."""
    cases = json.loads((cases_dir / "cases.json").read_text())["cases"]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    # Whatever a peer prints must not come between the verdicts.
    os.dup2(2, 1)
    peer = PEERS[name]()
    for number, case in enumerate(cases):
        if number < start:
            continue
        out.write(json.dumps({"begin": number}) + "\n")
        verdict, message = attempt(peer, action, case, cases_dir, root)
        out.write(json.dumps({"id": case["id"], "verdict": verdict, **({"message": message} if message else {})}) + "\n")


def supervise(name, action, cases_dir, root, report):
    cases = json.loads((cases_dir / "cases.json").read_text())["cases"]
    start = 0
    with open(report, "w") as lines:
        while start < len(cases):
            command = [sys.executable, __file__, name, action, str(cases_dir), str(root), "--work", str(start)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            begun = None
            tail = []
            reader = threading.Thread(target=lambda: tail.extend(child.stderr.readlines()[-40:]))
            reader.start()
            for line in child.stdout:
                line = json.loads(line)
                if "begin" in line:
                    begun = line["begin"]
                else:
                    lines.write(json.dumps(line) + "\n")
                    begun = None
            code = child.wait()
            reader.join()
            if begun is not None:
                first = next((t.strip() for t in tail if t.strip()), "")
                lines.write(
                    json.dumps({"id": cases[begun]["id"], "verdict": "crashes", "message": f"exit {code}: {first}"[:300]})
                    + "\n"
                )
                start = begun + 1
            elif code != 0:
                raise SystemExit(f"{name}: exit {code} outside of any case\n{''.join(tail)}")
            else:
                break


def versions():
    names = ["zarr", "zarrs", "tensorstore", "numcodecs", "numpy", "ml_dtypes", "cast-value-rs", "pcodec", "zfpy"]
    return {"python": sys.version.split()[0]} | {n: importlib.metadata.version(n) for n in names}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["versions"]:
            print(json.dumps(versions()))
        case [name, action, cases_dir, root, "--work", start]:
            work(name, action, pathlib.Path(cases_dir), pathlib.Path(root), int(start))
        case [name, action, cases_dir, root, report]:
            supervise(name, action, pathlib.Path(cases_dir), pathlib.Path(root), report)
        case _:
            raise SystemExit(__doc__)
