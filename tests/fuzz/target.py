"""Runs one target under atheris: ``python target.py NAME [libFuzzer's options and folders]``."""

import importlib
import sys

import atheris


def main():
    with atheris.instrument_imports(include=["radabound_fast"]):
        target = importlib.import_module(f"{sys.argv[1]}_fuzz")
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
