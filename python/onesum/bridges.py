"""Builds bridges to frameworks ahead of their first import: `python -m onesum.bridges torch`."""

from __future__ import annotations

import argparse

from onesum import _bridges


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m onesum.bridges",
        description="Builds bridges for the frameworks that this Python has, unless they are built, and says where.",
    )
    parser.add_argument("bridge", nargs="+", choices=_bridges.NAMES)
    for name in parser.parse_args().bridge:
        try:
            print(_bridges.library(name))
        except ImportError as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
