"""`python -m runner.record -- train.py …`: run a program and record what compiling cost it."""

from runner.compilewatch_recorder import main

if __name__ == "__main__":
    main()
