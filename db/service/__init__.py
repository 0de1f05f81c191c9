"""What services and people write: hosts, schedules, requests, triage, notes, reports, messages."""
