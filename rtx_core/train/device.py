"""Choosing the device, and what the record says of the machine."""

import ctypes
import platform
import resource
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import psutil
import torch

from rtx_core.errors import RtxError, unknown
from rtx_core.train.config import DEVICES


def choose(name: str) -> torch.device:
    """`auto` takes a GPU where there is one; asking for a GPU that is not there is an error."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in DEVICES:
        raise unknown("device", name, DEVICES)
    if name == "cuda" and not torch.cuda.is_available():
        raise RtxError("The device 'cuda' was asked for, but torch finds no CUDA GPU here; use device='cpu' or 'auto'.")
    return torch.device(name)


def has_bf16(device: torch.device) -> bool:
    """Whether the machine itself multiplies 16-bit numbers; emulated, their products are slower than those of 32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def memory(device: torch.device) -> int:
    """Bytes that the device has in all."""
    cuda = device.type == "cuda"
    return torch.cuda.get_device_properties(device).total_memory if cuda else psutil.virtual_memory().total


def keep_heap() -> None:
    """Let glibc keep freed memory instead of returning it to the kernel after every step.

    A step frees and takes again some 100 MB; fresh pages must be zeroed and mapped, on two cores a sixth of its time.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: take large blocks from the heap too
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: and never hand it back


def processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def environment(device: torch.device) -> dict:
    """The machine and the versions a number depends on; no host name, no path."""
    packages = {}
    for package in ("torch", "numpy", "tokenizers", "scikit-learn", "flash-attn"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = None
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "device_type": device.type,
        "threads": torch.get_num_threads(),
        "bf16": has_bf16(device),
        "python": platform.python_version(),
        "system": platform.system(),
        "packages": packages,
        "cuda": torch.version.cuda if device.type == "cuda" else None,
    }


def reset_peak_memory(device: torch.device) -> None:
    """Start a new maximum for `peak_memory_mib`, so that one run of several in a process reports its own."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        if platform.libc_ver()[0] == "glibc":
            ctypes.CDLL(None).malloc_trim(0)  # what earlier runs of this process left in the heap
        with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # Linux only; elsewhere the old maximum stays


def peak_memory_mib(device: torch.device) -> float:
    """The most memory held since the reset: allocated on the GPU, or resident in this process (on Linux; else ever)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
