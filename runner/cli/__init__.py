"""The command line: parse, call, print, exit code."""

from compilewatch.runner.cli.front import main

__all__ = ["main"]
