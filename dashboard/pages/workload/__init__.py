"""The page Workload."""
