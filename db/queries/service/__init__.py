"""Hosts, schedules, workers, who may, and whether the database is whole."""
