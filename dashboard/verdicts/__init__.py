"""Verdicts between two builds as parts: tables, evidence, the inbox of regressions."""
