"""Runs a module under cProfile: `under_cprofile.py OUT -m barnabas ...`; writes OUT when the module ends."""

import cProfile
import runpy
import sys


def main() -> None:
    out, _, module = sys.argv[1:4]
    sys.argv = [module, *sys.argv[4:]]
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        profiler.disable()
        profiler.dump_stats(out)


if __name__ == "__main__":
    main()
