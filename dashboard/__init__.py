"""How it is shown: the Streamlit app, its links, charts and pages."""
