"""`python -m barnabas`: the same as the `barnabas` command."""

import sys

from barnabas.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
