"""Ctrl-C while a read or a write waits."""

from __future__ import annotations

import functools
import http.server
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from conftest import Bucket, write_array

import zarrgpu

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")


@contextmanager
def interrupted(release: Callable[[], None]) -> Iterator[None]:
    """Sends SIGINT, and calls `release` some seconds later, so that the test ends where that was of no use."""
    begun = time.monotonic()
    # Who was started in the background of a shell ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers = [threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)), threading.Timer(5, release)]
    for timer in timers:
        timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - begun < 4
    finally:
        for timer in timers:
            timer.cancel()
        release()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("how", [lambda array: array.read(":, 0"), lambda array: array[:, 0]], ids=["read", "index"])
def test_many_chunks(tmp_path: Path, how: Callable[[zarrgpu.Array], object]) -> None:
    """One chunk of 4 MiB, stored as each of ten thousand."""
    path = write_array(tmp_path / "a", np.ones((1, 1 << 22), "u1"), (1, 1 << 22), compress=True)
    chunk = path / "c" / "0" / "0"
    for number in range(1, 10000):
        (path / "c" / str(number)).symlink_to(chunk.parent)
    metadata = path / "zarr.json"
    metadata.write_text(metadata.read_text().replace("[1, 4194304]", "[10000, 4194304]", 1))
    array = zarrgpu.open(path, threads=1)
    assert array.shape == (10000, 1 << 22)
    with interrupted(lambda: None):
        how(array)
    assert array[3, 3] == 1


def test_a_server_that_does_not_answer(store: Path, values: np.ndarray) -> None:
    answer = threading.Event()
    answer.set()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            answer.wait(20)
            super().do_GET()

    handler = functools.partial(Handler, directory=store)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        array = zarrgpu.open(f"http://127.0.0.1:{server.server_port}/plain")
        answer.clear()
        with interrupted(answer.set):
            array.read()
        np.testing.assert_array_equal(array[3], values[3])
        each = array.read_each([4, 5])
        answer.clear()
        with interrupted(answer.set):
            next(each)
        # What was ended is the wait.
        np.testing.assert_array_equal([tensor.numpy() for tensor in each], values[4:6])
        server.shutdown()


def test_a_write_of_many_chunks(tmp_path: Path) -> None:
    zarrgpu.create_array(tmp_path / "a", shape=(10000, 1 << 22), dtype="u1", chunks=(1, 1 << 22))
    array = zarrgpu.open(tmp_path / "a", mode="r+", threads=1)
    row = np.ones(1 << 22, "u1")
    with interrupted(lambda: None):
        array[...] = row
    # Nobody reads the memory any more.
    row[:] = 0
    stored = [int(path.parent.name) for path in (tmp_path / "a" / "c").rglob("0") if path.is_file()]
    assert 0 < len(stored) < 5000 and (array[stored[-1]] == 1).all()
    array[0] = 3
    assert array[0, 5] == 3
    array.resize((1, 1 << 22))
    with interrupted(lambda: None):
        array.append(np.broadcast_to(row, (9999, 1 << 22)))
    assert array.shape == (1, 1 << 22) and len([path for path in (tmp_path / "a" / "c").rglob("0") if path.is_file()]) == 1


def test_a_server_that_does_not_store(tmp_path: Path) -> None:
    # Sent when it is asked to store the chunk that an append adds.
    signals: list[int] = []
    answer = threading.Event()
    answer.set()

    class Handler(Bucket):
        objects: dict[str, bytes] = {}

        def do_PUT(self) -> None:
            if "/c/" in self.path:
                if self.path.endswith("/c/4"):
                    for number in signals:
                        os.kill(os.getpid(), number)
                answer.wait(20)
            super().do_PUT()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": True, "skip_signature": True, "region": "x"}
        array = zarrgpu.create_array("s3://bucket/a", shape=8, dtype="i4", chunks=2, storage_options=options)
        answer.clear()
        with interrupted(answer.set):
            array[:4] = 1
        # What the server was asked for before may be stored at any time: these are other chunks.
        array[4:] = np.arange(4)
        np.testing.assert_array_equal(array[4:], np.arange(4))

        # What a handler does to the array meanwhile.
        refused = []

        def handler(*_: object) -> None:
            array.attrs["stopped"] = True
            with pytest.raises(zarrgpu.ParameterError, match="appended to") as raised:
                array.append([1])
            refused.append(raised.value)
            answer.set()

        before = signal.signal(signal.SIGALRM, handler)
        try:
            answer.clear()
            signals.append(signal.SIGALRM)
            assert array.append([7, 8]) == (10,)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert refused and array.attrs["stopped"] and array[7:].tolist() == [3, 7, 8]
        server.shutdown()


def test_metadata_at_a_server_that_hangs() -> None:
    answer = threading.Event()
    answer.set()

    class Handler(Bucket):
        objects: dict[str, bytes] = {}

        def do_GET(self) -> None:
            answer.wait(20)
            super().do_GET()

        def do_HEAD(self) -> None:
            answer.wait(20)
            super().do_HEAD()

        def do_PUT(self) -> None:
            answer.wait(20)
            super().do_PUT()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": True, "skip_signature": True, "region": "x"}
        root = zarrgpu.create_group("s3://bucket/a", storage_options=options)
        array = root.create_array("b", shape=8, dtype="i4", chunks=2)

        def change() -> None:
            array.attrs["x"] = 1

        hanging: list[Callable[[], object]] = [
            lambda: zarrgpu.open("s3://bucket/a", storage_options=options),
            lambda: zarrgpu.create_array("s3://bucket/b", shape=1, dtype="i1", storage_options=options),
            lambda: zarrgpu.create_group("s3://bucket/c", storage_options=options),
            lambda: root["b"],
            lambda: root.get("b"),
            lambda: "b" in root,
            lambda: root.keys(),
            lambda: root.items(),
            lambda: root.create_array("c", shape=1, dtype="i1"),
            lambda: root.require_group("d"),
            lambda: root.consolidate(),
            lambda: root.refresh(),
            lambda: array.resize((4,)),
            lambda: array.refresh(),
            change,
        ]
        for call in hanging:
            answer.clear()
            with interrupted(answer.set):
                call()
        assert zarrgpu.open("s3://bucket/a/b", storage_options=options).dtype == np.dtype("i4")

        # What a handler changes of what it interrupts.
        refused = []

        def handler(*_: object) -> None:
            with pytest.raises(zarrgpu.ParameterError, match="being changed") as raised:
                array.attrs["y"] = 2
            refused.append(raised.value)
            answer.set()

        before = signal.signal(signal.SIGALRM, handler)
        try:
            answer.clear()
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGALRM))
            timer.start()
            array.attrs["x"] = 3
        finally:
            signal.signal(signal.SIGALRM, before)
        assert refused and dict(array.attrs) == {"x": 3}
        server.shutdown()
