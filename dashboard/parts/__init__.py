"""What a page is described with, and the tables and words that several pages share."""
