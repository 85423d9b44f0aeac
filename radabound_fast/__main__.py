"""``python -m radabound_fast`` is ``radabound``."""

import sys

from radabound_fast.cli import main

if __name__ == "__main__":
    sys.exit(main())
