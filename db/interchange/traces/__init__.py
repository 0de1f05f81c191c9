"""Processes of jobs that people run: what torch and the recorder wrote of them."""
