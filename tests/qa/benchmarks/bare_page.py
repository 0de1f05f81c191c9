"""What Streamlit itself takes for a title, a chart and a table: the reference of our pages."""

from __future__ import annotations

import pandas as pd
import streamlit as st

rows = pd.DataFrame({"x": [1, 2, 3], "y": [1, 4, 9]})
st.title("Bare")
st.vega_lite_chart(rows, {"mark": "line", "encoding": {"x": {"field": "x"}, "y": {"field": "y"}}})
st.dataframe(rows)
