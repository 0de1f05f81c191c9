"""The service: measures by schedule, on request, and when a build changed."""
