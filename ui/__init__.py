"""The app: a face over the façade, in the browser. ``launch`` starts it, ``app`` is its script.

``desk`` keeps what outlives one run of a page: open conversations, replies that are coming in, the
worker. Everything that touches Streamlit stands in ``app``, ``components`` and ``views``.
"""
