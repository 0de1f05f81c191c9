"""Frames to Vega-Lite specifications. Knows nothing of Streamlit."""
