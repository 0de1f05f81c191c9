"""The measured process: standard library and torch only, so that it runs under any interpreter with a torch
in it."""
