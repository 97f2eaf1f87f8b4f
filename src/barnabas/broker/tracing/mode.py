"""The treatment of the frame that is being handled. In: nothing. Out: `Mode`."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    OFF = "off"
    SPANS = "spans"  # the request gets a span
    READERS = "readers"  # a fetch is compared with watched batches
