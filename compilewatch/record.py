"""Records what `torch.compile` costs a job of your own: `python -m compilewatch.record -- train.py …`."""

from compilewatch.runner.compilewatch_recorder import batches, main, ready, request, start, step, stop

__all__ = ["batches", "main", "ready", "request", "start", "step", "stop"]

if __name__ == "__main__":
    main()
