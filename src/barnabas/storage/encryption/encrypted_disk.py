"""A disk that encrypts the data files of log dirs and hands everything else to the disk below.

In: the calls of `runtime.disk.Disk`, with positions and sizes of plain bytes. Out: the same results as on a
plain disk. Data files are segments, indexes, transaction indexes, producer snapshots and metadata snapshots.
A new file is encrypted if its log dir has a current data key; a file that exists stays as it is, so plain and
encrypted files may lie side by side. `DamagedFile` if encrypted bytes are not authentic.
Does not know: providers of keys, logs.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from barnabas.runtime.disk import READ_ONLY, READ_WRITE, Disk
from barnabas.storage.encryption.encrypted_file import EncryptedFile
from barnabas.storage.encryption.file_cipher import FileCipher, identity_of
from barnabas.storage.encryption.frames import MAGIC, last_frame
from barnabas.storage.encryption.key_ring import KeyRing
from barnabas.storage.files.errors import StorageError

PASSED_ON = (
    "can_open", "exists", "fsync", "is_directory", "is_writable", "listdir", "locked_folders", "makedirs",
    "mkdir", "modified_ms", "real_path", "replace", "rmdir", "set_modified_ms", "space", "subdirectories",
    "sync_directory", "sync_file", "unlink", "write", "descriptor_caches", "lock",
)  # fmt: skip


class EncryptedDisk(Disk):
    """`rings` holds the keys of each log dir, by its path."""

    is_encrypting = True

    def __init__(
        self,
        below: Disk,
        rings: Mapping[str, KeyRing],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.below = below
        self.rings = dict(rings)
        self._random_bytes = random_bytes
        self._files: dict[int, EncryptedFile] = {}  # by descriptor
        self._plain: dict[int, str] = {}  # open data files that are not encrypted: their paths
        self._unknown: dict[int, str] = {}  # open data files that nobody has used yet
        for name in PASSED_ON:
            setattr(self, name, getattr(below, name))

    # Descriptors

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = self.below.open(path, flags, mode)
        if identity_of(path) is not None:
            self._unknown[descriptor] = path  # reading its first bytes now could wait for the device
        return descriptor

    def _file_of(self, descriptor: int) -> EncryptedFile | None:
        """The file of a descriptor if it is encrypted, or will be."""
        file = self._files.get(descriptor)
        if file is None:
            path = self._unknown.get(descriptor)
            if path is not None:
                self._add(descriptor, path)
                self._unknown.pop(descriptor, None)
            file = self._files.get(descriptor)  # also if another thread has just added it
        return file

    def _add(self, descriptor: int, path: str) -> None:
        """Find out whether an open data file is encrypted, or will be."""
        ring = self._ring_of(path)
        head = self.below.pread(descriptor, len(MAGIC), 0)
        if head.startswith(MAGIC):
            if ring is None:
                raise StorageError(f"{path} is encrypted, and its log dir has no keys")
        elif (head and not MAGIC.startswith(head)) or ring is None or ring.current is None:
            self._plain[descriptor] = path
            return
        identity = identity_of(path)
        assert identity is not None
        self._files[descriptor] = EncryptedFile(
            self.below, descriptor, path, identity, ring, self._random_bytes
        )

    def close(self, descriptor: int) -> None:
        # Forget it first: another thread may get the same number as soon as it is closed.
        self._files.pop(descriptor, None)
        self._plain.pop(descriptor, None)
        self._unknown.pop(descriptor, None)
        self.below.close(descriptor)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        file = self._file_of(descriptor)
        return self.below.pread(descriptor, length, position) if file is None else file.read(length, position)

    def pwritev(self, descriptor: int, buffers: Iterable[Any], position: int) -> int:  # type: ignore[override]
        file = self._file_of(descriptor)
        parts = buffers if isinstance(buffers, list) else list(buffers)
        return (
            self.below.pwritev(descriptor, parts, position) if file is None else file.write(parts, position)
        )

    def ftruncate(self, descriptor: int, length: int) -> None:
        file = self._file_of(descriptor)
        if file is not None:
            file.truncate(length)  # nothing is preallocated: a longer file would need encrypted zeros
            return
        self.below.ftruncate(descriptor, length)
        path = self._plain.get(descriptor)
        if path is not None and length == 0:  # files that are written now may be encrypted
            del self._plain[descriptor]
            self._add(descriptor, path)

    def size_of(self, descriptor: int) -> int:
        file = self._file_of(descriptor)
        return self.below.size_of(descriptor) if file is None else file.size

    def is_cached(self, descriptor: int, position: int) -> bool:
        if descriptor in self._unknown and not self.below.is_cached(descriptor, 0):
            return False
        file = self._file_of(descriptor)
        return self.below.is_cached(descriptor, position if file is None else file.place_of(position))

    def is_plain(self, descriptor: int) -> bool:
        return self._file_of(descriptor) is None

    # Whole files

    def size(self, path: str) -> int:
        found = self.below.size(path)
        return self._plain_size(path, found) if found and identity_of(path) is not None else found

    def sizes(self, directory: str) -> dict[str, int]:
        return {
            name: self._plain_size(path, size)
            if size and identity_of(path := f"{directory}/{name}") is not None
            else size
            for name, size in self.below.sizes(directory).items()
        }

    def _plain_size(self, path: str, file_bytes: int) -> int:
        """The number of plain bytes of a data file. Needs no key."""
        below = self.below
        descriptor = below.open(path, READ_ONLY)
        try:
            head = below.pread(descriptor, len(MAGIC), 0)
            if not MAGIC.startswith(head):
                return file_bytes
            found = last_frame(below, descriptor)
            return 0 if found is None else found.end
        finally:
            below.close(descriptor)

    def read(self, path: str) -> bytes:
        if identity_of(path) is None:
            return self.below.read(path)
        descriptor = self.open(path, READ_ONLY)
        try:
            size, parts, done = self.size_of(descriptor), [], 0
            while done < size:
                part = self.pread(descriptor, size - done, done)
                if not part:
                    break
                parts.append(part)
                done += len(part)
            return b"".join(parts)
        finally:
            self.close(descriptor)

    def create(self, path: str, data: bytes = b"", *, sync: bool = False) -> None:
        ring, identity = self._ring_of(path), identity_of(path)
        if data and identity is not None and ring is not None and ring.current is not None:
            number = ring.current
            data = FileCipher(ring.key(number, path), number, identity, self._random_bytes).whole_file(data)
        self.below.create(path, data, sync=sync)

    # Encryption

    @property
    def base(self) -> Disk:
        return self.below

    def exported_keys(self, directory: str) -> dict[str, object] | None:
        ring = self.rings.get(directory.rpartition("/")[0])
        return None if ring is None else ring.export()

    def mark_complete(self, path: str) -> None:
        """Write the end mark of an encrypted file."""
        with_file(self, path, READ_WRITE, EncryptedFile.complete)

    def is_complete(self, path: str) -> bool:
        found = with_file(self, path, READ_ONLY, lambda file: file.is_complete)
        return found is None or found

    def is_outdated(self, path: str) -> bool:
        """Whether a new file would be encrypted, and this one is not, or the reverse; or with another key."""
        ring = self._ring_of(path)
        number = with_file(self, path, READ_ONLY, lambda file: file.key_number)
        return bool((ring.current if ring is not None else None) != number)

    def _ring_of(self, path: str) -> KeyRing | None:
        return self.rings.get(path.rpartition("/")[0].rpartition("/")[0])


def with_file(disk: EncryptedDisk, path: str, flags: int, use: Callable[[EncryptedFile], Any]) -> Any:
    """Open a file and use it if it is encrypted; None if not."""
    descriptor = disk.open(path, flags)
    try:
        file = disk._file_of(descriptor)
        return None if file is None else use(file)
    finally:
        disk.close(descriptor)
