"""What torch.compile makes of a model, and what it says of it."""
