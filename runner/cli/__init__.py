"""The command line: parse, call, print, exit code."""

from runner.cli.front import main

__all__ = ["main"]
