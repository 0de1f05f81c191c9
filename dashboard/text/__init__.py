"""Words and colours: what others wrote as text, frames as rows, the theme."""
