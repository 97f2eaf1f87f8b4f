"""Makes `bench`, which is not part of the package, importable. (An `__init__.py` here would hide it.)"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
