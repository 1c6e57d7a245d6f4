"""zarr-python behind the command line of the conformance suite; with `--zarrs`, over the codec pipeline of zarrs-python."""

import pathlib
import sys

import numpy as np
import protocol


class ZarrPython:
    def __init__(self, pipeline=None):
        import zarr
        import zarr.core.metadata.io
        import zarr.core.sync
        from zarr.storage import LocalStore, StorePath

        self.zarr = zarr
        self.Store, self.StorePath = LocalStore, StorePath
        self.save = lambda a: zarr.core.sync.sync(zarr.core.metadata.io.save_metadata(a.store_path, a.metadata))
        settings = {"array.rectilinear_chunks": True}
        self.packages = ["zarr", "numcodecs", "numpy"]
        if pipeline:
            import zarrs  # noqa: F401

            settings |= {"codec_pipeline.path": pipeline, "codec_pipeline.strict": True}
            self.packages.insert(1, "zarrs")
        zarr.config.set(settings)

    def identity(self):
        return protocol.versions(*self.packages)

    def read(self, path, node, select):
        folder = pathlib.Path(path, node)
        version = 3 if (folder / "zarr.json").exists() else 2
        array = self.zarr.open_array(self.Store(path, read_only=True), path=node, mode="r", zarr_format=version)
        values = array[...] if select is None else array[select]
        if not isinstance(values, np.ndarray):
            # A read of one element yields the element, text as short as its content.
            boxed = np.empty((), array.dtype if array.dtype.kind != "T" else object)
            boxed[()] = values
            values = boxed
        return protocol.raw_bytes(values)

    def write(self, path, case):
        array = self.zarr.Array.from_dict(self.StorePath(self.Store(path)), case.metadata)
        self.save(array)
        array = self.zarr.open_array(self.Store(path), mode="r+")
        if not case.variable:
            values = case.fixed(array.dtype)
        elif self.is_text(case.metadata):
            values = np.vectorize(bytes.decode, otypes=[object])(case.items()).astype(array.dtype)
        else:
            values = case.items()
        if 0 not in case.shape:
            array[...] = values

    def is_text(self, metadata):
        """Whether variable elements are strings rather than bytes; in format 2 a filter says so."""
        filters = [codec["id"] for codec in metadata.get("filters") or []]
        return metadata.get("data_type") == "string" or "vlen-utf8" in filters


if __name__ == "__main__":
    with_zarrs = sys.argv[1:2] == ["--zarrs"]
    if with_zarrs:
        del sys.argv[1]
    protocol.main(ZarrPython("zarrs.ZarrsCodecPipeline" if with_zarrs else None))
