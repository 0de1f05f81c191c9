"""What pages are drawn from, made once per data version for all who look, and for reports; no streamlit."""
