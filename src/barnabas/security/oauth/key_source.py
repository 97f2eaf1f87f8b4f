"""The keys of an identity provider, read in a thread of their own and replaced as a whole.

The event loop only looks at the keys that are there. A token with an unknown key id is refused and makes the
thread read again, at most once a minute for the same id: providers rotate their keys, and attackers send
ids that do not exist.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from barnabas.security.oauth.http import ProviderError
from barnabas.security.oauth.key_set import NO_KEYS, VerificationKey, parse_key_set
from barnabas.security.oauth.settings import KeySettings, shown
from barnabas.security.sasl.oauthbearer import TokenRefused

MISSING_IDS_MAX = 16
KEY_ID_LENGTH_MAX = 1000
MISSING_ID_PAUSE_S = 60.0
READ_PAUSE_S_MIN = (
    1.0  # between two reads: whoever sends a new unknown id each time cannot flood the provider
)

log = logging.getLogger(__name__)


_sources: dict[tuple[int, KeySettings], KeySource] = {}
SOURCES_MAX = 64  # of one process: settings beyond that many get sources that are not shared


def shared_source(settings: KeySettings, fetch: Callable[[], bytes]) -> KeySource:
    """The running source with these settings: listeners with the same provider share it, and so does a
    listener that is set up again."""
    key = (os.getpid(), settings)  # threads do not survive a fork
    source = _sources.get(key)
    if source is None:
        source = KeySource(settings, fetch)
        source.start()
        if len(_sources) < SOURCES_MAX:
            _sources[key] = source
    return source


class KeySource:
    """`fetch` returns the text of the key set, or raises ProviderError; it is called in the thread."""

    def __init__(
        self, settings: KeySettings, fetch: Callable[[], bytes], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._place = shown(settings.url)
        self._fetch = fetch
        self._clock = clock
        self._keys = NO_KEYS
        self._problem = "it was not read yet"
        self._asked_again: OrderedDict[str, float] = OrderedDict()  # key id -> when the thread was told
        self._wake = threading.Event()
        self._read_once = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="barnabas-jwks", daemon=True)
        self._thread.start()

    @property
    def was_read(self) -> bool:
        """Whether the first attempt to read the keys has ended."""
        return self._read_once.is_set()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until the first attempt to read the keys has ended. Not for event loops unless `was_read`."""
        self._read_once.wait(seconds)

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def find(self, key_id: str | None, algorithm: str) -> VerificationKey:
        """The key for a token. TokenRefused if there is none."""
        if key_id is not None and len(key_id) > KEY_ID_LENGTH_MAX:
            raise TokenRefused(f"its kid has more than {KEY_ID_LENGTH_MAX} characters")
        keys = self._keys
        key = keys.find(key_id, algorithm)
        if key is not None:
            return key
        if keys is NO_KEYS:
            raise TokenRefused(f"the key set of {self._place} is not there: {self._problem}")
        if key_id is None:
            raise TokenRefused("it has no kid, and not exactly one key of the key set fits its algorithm")
        self._ask_again(key_id)
        raise TokenRefused(f"the key set of {self._place} has no key {key_id[:100]!r}")

    def _ask_again(self, key_id: str) -> None:
        """Called on the event loop only."""
        now = self._clock()
        if now - self._asked_again.get(key_id, float("-inf")) < MISSING_ID_PAUSE_S:
            return
        self._asked_again[key_id] = now
        self._asked_again.move_to_end(key_id)
        if len(self._asked_again) > MISSING_IDS_MAX:
            self._asked_again.popitem(last=False)
        self._wake.set()

    def _run(self) -> None:
        pause_s = self._settings.backoff_s
        while not self._closed:
            if self.read():
                pause_s = self._settings.backoff_s
                time.sleep(READ_PAUSE_S_MIN)
                self._wake.wait(self._settings.refresh_s)
                self._wake.clear()
            else:  # asked again or not, the pause protects the provider
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, self._settings.backoff_max_s)

    def read(self) -> bool:
        """Read the keys once. Old keys stay if it fails."""
        try:
            keys = parse_key_set(self._fetch())
        except (ProviderError, ValueError) as error:
            level = logging.DEBUG if str(error) == self._problem else logging.WARNING  # once for each reason
            self._problem = str(error)
            log.log(level, "cannot read the key set of %s, will try again: %s", self._place, error)
            return False
        except Exception:  # the thread must live on
            self._problem = "unexpected error, see the log"
            log.exception("cannot read the key set of %s", self._place)
            return False
        finally:
            self._read_once.set()
        if keys.left_out and keys.left_out != self._keys.left_out:
            log.warning("keys of %s are not used: %s", self._place, "; ".join(keys.left_out[:10]))
        self._keys = keys
        self._problem = ""
        return True
