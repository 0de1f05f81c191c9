"""The host of the measured process: its CPUs and its memory, and what they are."""
