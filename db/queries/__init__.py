"""Every read, by subject: filters in, records or tidy DataFrames out, never tables or sessions."""
