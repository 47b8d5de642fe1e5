"""The command line: ``python -m jsvm`` and the script ``jsvm``."""

import sys

from jsvm.command import main

if __name__ == "__main__":
    sys.exit(main())
