"""Facts about this machine that matter to a broker: limits, kernel settings, the data folder, the clock.

In: the data folder. Out: one frozen value; an unknown fact is None. Changes nothing, except for a small file
in the data folder that is written, synced a few times and removed. Does not know: which values are good.
"""

import contextlib
import ctypes
import os
import resource
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from barnabas.spark.workers_python import lacks_package, workers_python

SYNCS = 16
SYNC_BYTES = b"\0" * 4096
ERROR_UNSYNCHRONISED = 5  # adjtimex returns it if no service keeps the clock synchronised
UNLIMITED = sys.maxsize
ACCELERATORS = ("uvloop", "crc32c", "cramjam")


@dataclass(frozen=True, slots=True)
class HostFacts:
    system: str
    open_files: int | None = None  # the limit of a broker that is started from this shell
    open_files_hard: int | None = None
    processes: int | None = None
    map_count: int | None = None
    swappiness: int | None = None
    swap_used_bytes: int | None = None
    dirty_background_ratio: int | None = None
    dirty_ratio: int | None = None
    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    tcp_receive_buffer_bytes: int | None = None
    tcp_send_buffer_bytes: int | None = None
    accept_queue: int | None = None
    huge_pages: str | None = None
    clock_source: str | None = None
    clock_synchronised: bool | None = None
    folder: str = ""
    file_system: str | None = None
    mount_point: str | None = None
    mount_options: tuple[str, ...] | None = None
    disk_free_share: float | None = None
    inodes_free_share: float | None = None
    folder_writable: bool | None = None
    sync_ms: float | None = None
    partitions: int | None = None
    missing_accelerators: tuple[str, ...] = ()
    spark_python: str | None = None  # of Spark's workers; None without pyspark
    spark_python_problem: str = ""


def gather(folder: str) -> HostFacts:
    place = existing(Path(folder))
    mount = mount_of(place)
    space = os.statvfs(place)
    spark_python = workers_python() if find_spec("pyspark") is not None else None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HostFacts(
        system=sys.platform,
        open_files=limit(soft),
        open_files_hard=limit(hard),
        processes=limit(resource.getrlimit(resource.RLIMIT_NPROC)[0]),
        map_count=kernel_number("vm/max_map_count"),
        swappiness=kernel_number("vm/swappiness"),
        swap_used_bytes=swap_used(),
        dirty_background_ratio=kernel_number("vm/dirty_background_ratio"),
        dirty_ratio=kernel_number("vm/dirty_ratio"),
        receive_buffer_bytes=kernel_number("net/core/rmem_max"),
        send_buffer_bytes=kernel_number("net/core/wmem_max"),
        tcp_receive_buffer_bytes=kernel_number("net/ipv4/tcp_rmem"),
        tcp_send_buffer_bytes=kernel_number("net/ipv4/tcp_wmem"),
        accept_queue=kernel_number("net/core/somaxconn"),
        huge_pages=chosen(read("/sys/kernel/mm/transparent_hugepage/enabled")),
        clock_source=read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_synchronised=clock_synchronised(),
        folder=folder,
        file_system=mount[1] if mount else None,
        mount_point=mount[0] if mount else None,
        mount_options=mount[2] if mount else None,
        disk_free_share=space.f_bavail / space.f_blocks if space.f_blocks else None,
        inodes_free_share=space.f_favail / space.f_files if space.f_files else None,
        folder_writable=os.access(place, os.W_OK),
        sync_ms=sync_ms(Path(folder)) if Path(folder).is_dir() else None,
        partitions=partitions_in(Path(folder)),
        missing_accelerators=tuple(name for name in ACCELERATORS if find_spec(name) is None),
        spark_python=spark_python,
        spark_python_problem="" if spark_python is None else lacks_package(spark_python),
    )


def existing(path: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def limit(value: int) -> int:
    return UNLIMITED if value == resource.RLIM_INFINITY else value


def read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def kernel_number(name: str) -> int | None:
    """A setting of the kernel; of several numbers the last one, which is the maximum."""
    text = read(f"/proc/sys/{name}")
    return int(text.split()[-1]) if text and text.split()[-1].isdigit() else None


def chosen(text: str | None) -> str | None:
    """The word in brackets: `madvise` in `always [madvise] never`."""
    return None if text is None else text.partition("[")[2].partition("]")[0] or None


def swap_used() -> int | None:
    fields = dict(line.split(":", 1) for line in (read("/proc/meminfo") or "").splitlines() if ":" in line)
    try:
        total, free = (int(fields[name].split()[0]) for name in ("SwapTotal", "SwapFree"))
    except (KeyError, ValueError, IndexError):
        return None
    return (total - free) * 1024


def clock_synchronised() -> bool | None:
    """Whether the kernel reports that a service keeps the clock synchronised."""
    if sys.platform != "linux":
        return None
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != ERROR_UNSYNCHRONISED


def mount_of(path: Path) -> tuple[str, str, tuple[str, ...]] | None:
    """The mount point of a path's file system, its type and its options."""
    best: tuple[str, str, tuple[str, ...]] | None = None
    for line in (read("/proc/self/mounts") or "").splitlines():
        _, point, kind, options, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if path.is_relative_to(point) and (best is None or len(point) >= len(best[0])):
            best = (point, kind, tuple(options.split(",")))
    return best


def sync_ms(folder: Path) -> float | None:
    """The median time of a few fsyncs of four kilobytes."""
    probe = folder / ".barnabas-doctor"
    taken = []
    try:
        with probe.open("wb", buffering=0) as file:
            for _ in range(SYNCS):
                started = time.perf_counter()
                file.write(SYNC_BYTES)
                os.fsync(file.fileno())
                taken.append((time.perf_counter() - started) * 1000)
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return sorted(taken)[len(taken) // 2]


def partitions_in(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    try:
        return sum(1 for each in folder.iterdir() if (each / "partition.metadata").exists())
    except OSError:
        return None
