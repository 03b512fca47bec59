"""A Streamlit page with nothing but a button: what no page can be quicker than."""

import streamlit as st

st.title("Empty")
st.session_state.setdefault("presses", 0)
if st.button("Press"):
    st.session_state["presses"] += 1
st.write(f"Pressed {st.session_state['presses']} times")
