"""What workloads there are and what each is, without torch: built-in ones, libraries', and users' own."""
