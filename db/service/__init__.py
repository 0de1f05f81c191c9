"""What hosts, schedules and workers write."""
