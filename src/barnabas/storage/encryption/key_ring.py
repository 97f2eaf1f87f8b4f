"""The data keys of one log dir.

In: keys by number. Out: the key that a file's header asks for, and the current one, which new files get.
Without a current key new files are plain: encryption was switched off.
Does not know: how keys are stored.
"""

from collections.abc import Mapping

from barnabas.storage.files.errors import StorageError

DATA_KEY_BYTES = 32


class KeyRing:
    """Its representation shows no key."""

    __slots__ = ("_keys", "current", "log_dir")

    def __init__(self, log_dir: str, keys: Mapping[int, bytes], current: int | None) -> None:
        self.log_dir = log_dir
        self._keys = dict(keys)
        self.current = current

    def __repr__(self) -> str:
        return f"KeyRing({self.log_dir}, keys {sorted(self._keys)}, current {self.current})"

    @property
    def numbers(self) -> list[int]:
        return sorted(self._keys)

    def key(self, number: int, path: str) -> bytes:
        """The key that a file needs. `StorageError` without it: the file is valid data, which recovery must
        not cut."""
        found = self._keys.get(number)
        if found is None:
            raise StorageError(
                f"{path} is encrypted with data key {number}, which {self.log_dir} does not have "
                f"(it has {self.numbers or 'none'}): restore the key file of that log dir"
            )
        return found

    def export(self) -> dict[str, object]:
        """The keys as bytes for the cleaner's process, through its pipe."""
        keys = {str(number): key.hex() for number, key in self._keys.items()}
        return {"log_dir": self.log_dir, "keys": keys, "current": self.current}

    @classmethod
    def restore(cls, exported: Mapping[str, object]) -> "KeyRing":
        keys, current = exported["keys"], exported["current"]
        assert isinstance(keys, dict) and (current is None or isinstance(current, int))
        return cls(str(exported["log_dir"]), {int(n): bytes.fromhex(k) for n, k in keys.items()}, current)
