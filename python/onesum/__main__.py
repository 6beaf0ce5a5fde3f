"""The command line tool: `onesum …` and `python -m onesum …`."""

import os
import pathlib
import sys


def main() -> None:
    """Becomes the packaged tool."""
    tool = pathlib.Path(__file__).parent / "bin" / "onesum"
    os.execv(tool, ["onesum", *sys.argv[1:]])


if __name__ == "__main__":
    main()
