"""The cipher of one file: AES-256-GCM with a key of the file's own.

In: a data key, a salt, and the identity of the file. Out: frames, and their plain bytes again. The file key
is derived from all three, and each frame is authenticated with its place in the file. So a frame that was
changed, moved within the file or copied from another file is refused, and so is a file that was renamed.
Does not know: where data keys come from, the disk.
"""

import hmac
import re
import struct
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from barnabas.storage.encryption.frames import (
    DATA,
    END,
    FRAME_OVERHEAD,
    MAGIC,
    NONCE_BYTES,
    ROOM_BYTES_MIN,
    Frame,
    next_page,
    pack_head,
    room_at,
)
from barnabas.storage.files.names import parse_folder_name

VERSION = 1
SALT_BYTES = 16
TOPIC_CHARACTERS_MAX = 200  # marked folders have shorter names; see `names.marked_folder_name`

_header = struct.Struct(">8sII16s")
_place = struct.Struct(">Q")
pack_place = _place.pack
_counter = struct.Struct(">I")
_DATA_NAME = re.compile(
    r"(\d{20}(?:\.log|\.index|\.timeindex|\.txnindex|\.snapshot)|\d{20}-\d{10}\.checkpoint)(?:\.[a-z]+)?"
)
_HEADER_NONCE = bytes(NONCE_BYTES)

Buffer = bytes | bytearray | memoryview


class NotAuthentic(Exception):
    """Bytes that this key did not encrypt for this place."""


def identity_of(path: str) -> bytes | None:
    """The identity of a data file: partition, first offset and kind, the same under all names that the file
    has in its life (`.cleaned`, `-future` and others). None if it is not a data file."""
    folder_path, _, name = path.rpartition("/")
    matched = _DATA_NAME.fullmatch(name)
    if matched is None:
        return None
    folder = folder_path.rpartition("/")[2]
    parsed = parse_folder_name(folder)
    if parsed is not None:
        where = parsed.topic_partition
        folder = f"{where.topic[:TOPIC_CHARACTERS_MAX]}-{where.partition}"
    return f"{folder}/{matched[1]}".encode()


class FileCipher:
    """`header` is the header of the file; `key_number` tells which data key the file needs."""

    __slots__ = ("_count", "_encrypt", "_prefix", "decrypt", "header", "key_number")

    def __init__(
        self,
        data_key: bytes,
        key_number: int,
        identity: bytes,
        random_bytes: Callable[[int], bytes],
        header: bytes | None = None,
    ) -> None:
        """Open the cipher of an existing file by its header; `NotAuthentic` if it is not of this key and
        file."""
        salt = random_bytes(SALT_BYTES) if header is None else _header.unpack_from(header)[3]
        file_key = hmac.digest(data_key, b"barnabas file\0" + salt + identity, "sha256")
        cipher = AESGCM(file_key)
        self._encrypt, self.decrypt = cipher.encrypt, cipher.decrypt
        self._prefix = random_bytes(NONCE_BYTES - _counter.size)  # no two objects share nonces
        self._count = 0
        self.key_number = key_number
        head = _header.pack(MAGIC, VERSION, key_number, salt)
        self.header = head + cipher.encrypt(_HEADER_NONCE, b"", head)
        if header is not None and header != self.header:
            raise NotAuthentic

    def frame(self, kind: int, start: int, data: Buffer, at: int) -> tuple[bytes, bytes]:
        """Encrypt a frame that will be at this place of the file: head with nonce, and the rest."""
        head = pack_head(kind, start, len(data))
        self._count += 1
        nonce = self._prefix + _counter.pack(self._count)
        return head + nonce, self._encrypt(nonce, data, pack_place(at) + head)

    def open(self, frame: Frame, sealed: Buffer) -> bytes:
        """Decrypt the bytes of a frame after its head. `NotAuthentic` if anything was changed."""
        place = pack_place(frame.at) + pack_head(frame.kind, frame.start, frame.length)
        try:
            return self.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)
        except InvalidTag:
            raise NotAuthentic from None

    def frames(self, data: Buffer, start: int, at: int) -> tuple[list[bytes], list[Frame]]:
        """Encrypt any number of bytes, from a place in the file on: what to write there, and the frames in
        it."""
        view = memoryview(data)
        parts: list[bytes] = []
        frames: list[Frame] = []
        done, total = 0, len(view)
        while done < total:
            room = room_at(at)
            if room < ROOM_BYTES_MIN:
                parts.append(bytes(next_page(at) - at))
                at = next_page(at)
                continue
            length = min(room, total - done)
            parts += self.frame(DATA, start + done, view[done : done + length], at)
            frames.append(Frame(at, DATA, start + done, length))
            at += FRAME_OVERHEAD + length
            done += length
        return parts, frames

    def mark(self, kind: int, start: int, at: int) -> tuple[bytes, Frame]:
        """A frame without data (a cut or an end), with the padding that it needs in front."""
        padding = b""
        if room_at(at) < 0:
            padding, at = bytes(next_page(at) - at), next_page(at)
        head, tag = self.frame(kind, start, b"", at)
        return padding + head + tag, Frame(at, kind, start, 0)

    def whole_file(self, data: Buffer) -> bytes:
        """A complete file."""
        parts, frames = self.frames(data, 0, len(self.header))
        at = frames[-1].end_at if frames else len(self.header)
        mark, _ = self.mark(END, len(data), at)
        return b"".join((self.header, *parts, mark))


def key_number_of(header: bytes) -> int:
    number: int = _header.unpack_from(header)[2]
    return number
