"""The performance history of `torch.compile`: what is measured, stored, judged and shown."""

__version__ = "0.1.0"
