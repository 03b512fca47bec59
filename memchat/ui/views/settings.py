"""The page is being built."""

from memchat.ui import components as ui

ui.heading("Settings")
