"""Words and colours: what others wrote as text, the theme."""
