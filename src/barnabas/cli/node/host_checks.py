"""Compares the facts of a machine with the needs of a broker, and says what to change and why.

In: HostFacts. Out: findings, in the order of the list at the end. Pure: reads no file and measures nothing.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from barnabas.cli.node.host_facts import UNLIMITED, HostFacts

OPEN_FILES_WANTED = 100_000
OPEN_FILES_MIN = 10_000
FILES_A_PARTITION = 10  # a few segments with their indexes, and connections of clients
MAP_COUNT_MIN = 262_144
SWAPPINESS_MAX = 1
DIRTY_BACKGROUND_MAX = 10
DIRTY_MIN, DIRTY_MAX = 20, 80
SOCKET_BUFFER_MIN = 2 * 1024 * 1024
ACCEPT_QUEUE_MIN = 1_024
PROCESSES_MIN = 4_096
FREE_SHARE_MIN = 0.15
FREE_SHARE_BAD = 0.05
SYNC_MS_MAX = 20.0
GOOD_FILE_SYSTEMS = ("xfs", "ext4")
NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")
VOLATILE_FILE_SYSTEMS = ("tmpfs", "ramfs")
GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter")


class Verdict(Enum):
    GOOD = "ok"
    ADVICE = "better"
    BAD = "change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    found: str
    wanted: str
    verdict: Verdict
    change: str = ""
    why: str = ""


def examine(facts: HostFacts) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(facts)]


def verdict_on(
    check: str, found: str, wanted: str, is_good: bool, change: str, why: str, *, bad: bool = False
) -> Finding:
    verdict = Verdict.GOOD if is_good else Verdict.BAD if bad else Verdict.ADVICE
    return Finding(check, found, wanted, verdict, "" if is_good else change, "" if is_good else why)


def unknown(check: str, wanted: str) -> Finding:
    return Finding(check, "unknown on this machine", wanted, Verdict.UNKNOWN)


def open_files(facts: HostFacts) -> Iterator[Finding]:
    wanted = max(OPEN_FILES_WANTED, FILES_A_PARTITION * (facts.partitions or 0))
    shown = f">= {wanted}"
    if facts.open_files is None:
        yield unknown("file descriptors", shown)
        return
    yield verdict_on(
        "file descriptors",
        "unlimited" if facts.open_files >= UNLIMITED else str(facts.open_files),
        shown,
        facts.open_files >= wanted,
        f"ulimit -n {wanted} (for good: `* - nofile {wanted}` in /etc/security/limits.conf, "
        f"or LimitNOFILE={wanted} in the systemd unit)",
        "every segment, index and connection needs one; a broker without free ones refuses clients",
        bad=facts.open_files < OPEN_FILES_MIN,
    )


def processes(facts: HostFacts) -> Iterator[Finding]:
    if facts.processes is not None:
        yield verdict_on(
            "processes and threads",
            "unlimited" if facts.processes >= UNLIMITED else str(facts.processes),
            f">= {PROCESSES_MIN}",
            facts.processes >= PROCESSES_MIN,
            f"ulimit -u {PROCESSES_MIN}",
            "the cleaner and slow disk calls run in processes and threads of their own",
        )


def memory_maps(facts: HostFacts) -> Iterator[Finding]:
    if facts.map_count is None:
        yield unknown("memory maps", f">= {MAP_COUNT_MIN}")
        return
    yield verdict_on(
        "memory maps",
        str(facts.map_count),
        f">= {MAP_COUNT_MIN}",
        facts.map_count >= MAP_COUNT_MIN,
        f"sysctl -w vm.max_map_count={MAP_COUNT_MIN}",
        "indexes of segments may be mapped (Apache Kafka maps all of them): with thousands of partitions the "
        "kernel's default is not enough",
    )


def swapping(facts: HostFacts) -> Iterator[Finding]:
    if facts.swappiness is None:
        yield unknown("swappiness", f"<= {SWAPPINESS_MAX}")
    else:
        yield verdict_on(
            "swappiness",
            str(facts.swappiness),
            f"<= {SWAPPINESS_MAX}",
            facts.swappiness <= SWAPPINESS_MAX,
            f"sysctl -w vm.swappiness={SWAPPINESS_MAX}",
            "a broker whose own memory is swapped out stalls",
        )
    if facts.swap_used_bytes is not None:
        yield verdict_on(
            "swap in use",
            size(facts.swap_used_bytes),
            "none",
            facts.swap_used_bytes < 64 * 1024 * 1024,
            "give the machine more memory, or fewer services",
            "the machine is short of memory already, which costs latency",
        )


def write_back(facts: HostFacts) -> Iterator[Finding]:
    background, dirty = facts.dirty_background_ratio, facts.dirty_ratio
    if background is not None:
        yield verdict_on(
            "write-back starts at",
            f"{background} %",
            f"<= {DIRTY_BACKGROUND_MAX} %",
            background <= DIRTY_BACKGROUND_MAX,
            "sysctl -w vm.dirty_background_ratio=5",
            "the kernel should write pages to the disk steadily, not in bursts",
        )
    if dirty is not None:
        yield verdict_on(
            "writers wait at",
            f"{dirty} %",
            f"{DIRTY_MIN} to {DIRTY_MAX} %",
            DIRTY_MIN <= dirty <= DIRTY_MAX,
            "sysctl -w vm.dirty_ratio=60",
            "below, producers wait for the disk too early; above, a crash of the machine loses more",
        )


def socket_buffers(facts: HostFacts) -> Iterator[Finding]:
    names = {
        "net.core.rmem_max": facts.receive_buffer_bytes,
        "net.core.wmem_max": facts.send_buffer_bytes,
        "net.ipv4.tcp_rmem (max)": facts.tcp_receive_buffer_bytes,
        "net.ipv4.tcp_wmem (max)": facts.tcp_send_buffer_bytes,
    }
    for name, found in names.items():
        if found is None:
            yield unknown(name, f">= {size(SOCKET_BUFFER_MIN)}")
            continue
        setting, _, is_max = name.partition(" ")
        value = f"'4096 65536 {SOCKET_BUFFER_MIN}'" if is_max else str(SOCKET_BUFFER_MIN)
        yield verdict_on(
            name,
            size(found),
            f">= {size(SOCKET_BUFFER_MIN)}",
            found >= SOCKET_BUFFER_MIN,
            f"sysctl -w {setting}={value}",
            "a connection moves at most one buffer per round trip, which slows distant followers and mirrors",
        )
    if facts.accept_queue is not None:
        yield verdict_on(
            "net.core.somaxconn",
            str(facts.accept_queue),
            f">= {ACCEPT_QUEUE_MIN}",
            facts.accept_queue >= ACCEPT_QUEUE_MIN,
            f"sysctl -w net.core.somaxconn={ACCEPT_QUEUE_MIN}",
            "after a restart all clients connect at once",
        )


def data_folder(facts: HostFacts) -> Iterator[Finding]:
    where = f"data in {facts.folder}"
    if facts.folder_writable is not None:
        yield verdict_on(
            where,
            "writable" if facts.folder_writable else "not writable",
            "writable",
            facts.folder_writable,
            f"chown the folder {facts.folder} to the broker's user",
            "a broker writes there",
            bad=True,
        )
    if facts.file_system is not None:
        yield file_system(facts)
    if facts.mount_options is not None:
        spares = {"noatime", "nodiratime", "relatime"} & set(facts.mount_options)
        yield verdict_on(
            "mount options",
            ",".join(facts.mount_options),
            "noatime",
            "noatime" in facts.mount_options or facts.file_system in VOLATILE_FILE_SYSTEMS,
            f"mount -o remount,noatime {facts.mount_point} (and in /etc/fstab)",
            "nothing needs the time of the last access, but the kernel writes it"
            + (" (with relatime once a day)" if "relatime" in spares else ""),
        )
    for name, share in (("space left", facts.disk_free_share), ("inodes left", facts.inodes_free_share)):
        if share is not None:
            yield verdict_on(
                name,
                f"{share:.0%}",
                f">= {FREE_SHARE_MIN:.0%}",
                share >= FREE_SHARE_MIN,
                "shorten retention.ms or retention.bytes of large topics, or add a disk to log.dirs",
                "a full disk takes its log dir offline; without any log dir the broker stops",
                bad=share < FREE_SHARE_BAD,
            )
    if facts.sync_ms is not None:
        yield verdict_on(
            "time of an fsync",
            f"{facts.sync_ms:.1f} ms",
            f"<= {SYNC_MS_MAX:.0f} ms",
            facts.sync_ms <= SYNC_MS_MAX,
            "put metadata.log.dir, or all data, on a faster disk (NVMe)",
            "the metadata log is synced before a change is acknowledged",
        )


def file_system(facts: HostFacts) -> Finding:
    kind = facts.file_system or ""
    if kind in NETWORK_FILE_SYSTEMS:
        change, why = "use a disk of this machine", "renames and deletes of open files break on network disks"
    elif kind in VOLATILE_FILE_SYSTEMS:
        change, why = "use a folder on a disk", "the next restart of the machine loses all data"
    else:
        change, why = (
            "format a disk for it with xfs",
            "brokers are known to run well on xfs and ext4",
        )
    return verdict_on(
        "file system",
        f"{kind} at {facts.mount_point}",
        " or ".join(GOOD_FILE_SYSTEMS),
        kind in GOOD_FILE_SYSTEMS,
        change,
        why,
        bad=kind in (*NETWORK_FILE_SYSTEMS, *VOLATILE_FILE_SYSTEMS),
    )


def clock(facts: HostFacts) -> Iterator[Finding]:
    if facts.clock_synchronised is None:
        yield unknown("clock", "synchronised")
    else:
        yield verdict_on(
            "clock",
            "synchronised" if facts.clock_synchronised else "not synchronised",
            "synchronised",
            facts.clock_synchronised,
            "run chrony or systemd-timesyncd (`timedatectl set-ntp true`)",
            "retention, timestamps and transaction timeouts depend on the clock",
        )
    if facts.clock_source is not None:
        yield verdict_on(
            "clock source",
            facts.clock_source,
            "tsc, or the hypervisor's",
            facts.clock_source in GOOD_CLOCKS,
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
            "a broker reads the clock often, and with another source each read is a system call",
        )


def huge_pages(facts: HostFacts) -> Iterator[Finding]:
    if facts.huge_pages is not None:
        yield verdict_on(
            "transparent huge pages",
            facts.huge_pages,
            "madvise or never",
            facts.huge_pages != "always",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            "the kernel stops a process to merge pages, which shows as latency",
        )


def accelerators(facts: HostFacts) -> Iterator[Finding]:
    missing = ", ".join(facts.missing_accelerators)
    yield verdict_on(
        "compiled packages",
        f"without {missing}" if missing else "all there",
        "all there",
        not missing,
        f"pip install {missing.replace(',', '')}",
        "the replacements in pure Python are many times slower",
    )


def spark_workers(facts: HostFacts) -> Iterator[Finding]:
    if facts.spark_python is None:
        return
    yield verdict_on(
        "Python of Spark's workers",
        facts.spark_python_problem or facts.spark_python,
        "one with this package",
        not facts.spark_python_problem,
        f"export PYSPARK_PYTHON={sys.executable}",
        "Spark reports that there is no data source barnabas",
    )


CHECKS: tuple[Callable[[HostFacts], Iterator[Finding]], ...] = (
    open_files,
    processes,
    memory_maps,
    swapping,
    write_back,
    huge_pages,
    socket_buffers,
    data_folder,
    clock,
    accelerators,
    spark_workers,
)


def size(count: int) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:g} {unit}" if count == int(count) else f"{count:.1f} {unit}"
        count = count // 1024 if count % 1024 == 0 else count / 1024  # type: ignore[assignment]
    return str(count)
