"""Devices: locks, state, idleness."""
