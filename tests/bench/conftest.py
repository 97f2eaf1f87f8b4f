"""The benchmark lies beside the package: make it importable. (An `__init__.py` here would hide `bench`.)"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
