"""Trials on many hosts: a queue on the team's PostgreSQL, and a worker beside each GPU."""
