"""Facts that a message states about its writer, found by patterns without a model.

Used for the command "remember that …" where the chat model has no tools, and by the offline
stand-in.
"""
