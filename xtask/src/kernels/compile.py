"""Drives the libraries of the CUDA compiler: NVRTC for code, nvFatbin for the file that holds it.

    compile.py cubin|ptx ARCH SOURCE OUTPUT OPTION...   run in the folder of the source; the compiler's log goes to stdout
    compile.py bundle IDENTIFIER OUTPUT ARCH=FILE...    cubins as sm_NN=FILE, PTX as compute_NN=FILE

Both are found below the folder that CUDA_COMPILER names.
"""

import ctypes
import os
import sys
from pathlib import Path

HOME = Path(os.environ["CUDA_COMPILER"])

# What the standard headers of a host compiler say, for a compiler that has none.
STDINT = b"""#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
"""
HEADERS = {b"stdint.h": STDINT, b"cstdint": STDINT, b"stddef.h": b"#pragma once\n", b"cstddef": b"#pragma once\n"}


def check(library, name, code):
    if code != 0:
        text = getattr(library, name + "GetErrorString")
        text.restype = ctypes.c_char_p
        sys.exit(f"{name}: {text(code).decode()}")


def strings(items):
    return (ctypes.c_char_p * len(items))(*items)


def take(library, program, what):
    """The bytes that a pair of nvrtcGet<what>Size and nvrtcGet<what> gives."""
    size = ctypes.c_size_t()
    check(library, "nvrtc", getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    out = ctypes.create_string_buffer(size.value)
    check(library, "nvrtc", getattr(library, f"nvrtcGet{what}")(program, out))
    return out.raw


def compile(kind, arch, source, output, options):
    library = ctypes.CDLL(str(HOME / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    options = [f"--gpu-architecture={arch}", "-I.", f"-I{HOME}/nvidia/cuda_runtime/include", *options]
    program = ctypes.c_void_p()
    created = library.nvrtcCreateProgram(
        ctypes.byref(program),
        Path(source).read_bytes(),
        source.encode(),
        len(HEADERS),
        strings(list(HEADERS.values())),
        strings(list(HEADERS)),
    )
    check(library, "nvrtc", created)
    code = library.nvrtcCompileProgram(program, len(options), strings([option.encode() for option in options]))
    sys.stdout.write(take(library, program, "ProgramLog").rstrip(b"\0").decode())
    if code != 0:
        sys.exit(1)
    # PTX is text that ends in a zero byte, which the loader wants too.
    Path(output).write_bytes(take(library, program, {"cubin": "CUBIN", "ptx": "PTX"}[kind]))


def bundle(identifier, output, images):
    library = ctypes.CDLL(str(HOME / "nvidia/nvfatbin/lib/libnvfatbin.so.12"))
    options = [b"-64", b"-cuda", b"-host=linux", b"-compress=true", b"-compress-all"]
    handle = ctypes.c_void_p()
    check(library, "nvFatbin", library.nvFatbinCreate(ctypes.byref(handle), strings(options), ctypes.c_size_t(len(options))))
    for image in images:
        arch, path = image.split("=", 1)
        kind, number = arch.split("_")
        code = Path(path).read_bytes()
        arguments = [handle, code, ctypes.c_size_t(len(code)), number.encode(), identifier.encode()]
        if kind == "sm":
            added = library.nvFatbinAddCubin(*arguments)
        else:
            added = library.nvFatbinAddPTX(*arguments, b"-O3")
        check(library, "nvFatbin", added)
    size = ctypes.c_size_t()
    check(library, "nvFatbin", library.nvFatbinSize(handle, ctypes.byref(size)))
    out = ctypes.create_string_buffer(size.value)
    check(library, "nvFatbin", library.nvFatbinGet(handle, out))
    Path(output).write_bytes(out.raw)


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "bundle":
        bundle(rest[0], rest[1], rest[2:])
    else:
        compile(verb, rest[0], rest[1], rest[2], rest[3:])
