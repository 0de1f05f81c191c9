"""Timing on a device with a queue of its own."""
