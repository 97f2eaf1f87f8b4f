"""Programs that `tests/install_tools.sh` installs, and tests that need them.

Where the script can install them, a missing program means that it failed: in CI (`CI=true`), as root on
Debian, the test fails instead of being skipped unnoticed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

DEBIAN = Path("/etc/debian_version")


def are_required(environment: Mapping[str, str], user_id: int, *, is_debian: bool) -> bool:
    return environment.get("CI") == "true" and user_id == 0 and is_debian


def needs(*programs: str) -> None:
    """Skip the test, or fail it where the programs should have been installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    reason = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    if are_required(os.environ, os.geteuid(), is_debian=DEBIAN.exists()):
        pytest.fail(f"{reason}, although `make tools` can install it here")
    pytest.skip(reason)
