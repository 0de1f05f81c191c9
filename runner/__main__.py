"""`python -m compilewatch.runner`: the command line, where the console script is not on the path."""

from compilewatch.runner.cli import main

if __name__ == "__main__":
    main()
