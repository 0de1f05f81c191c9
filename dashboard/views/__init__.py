"""The pages: each reads its link, asks for data, asks for charts, and draws."""
