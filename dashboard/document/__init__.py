"""A page as one HTML document without scripts: its model, its sections, its drawings."""
