"""How the app looks, and how its server is set: one place, passed by ``launch``.

Warm paper and ink, one green, and serifs for headings; both faces come with Streamlit, so that
nothing is fetched. Every pair of text and ground has a contrast of 4.5 to 1 or more.
"""

from __future__ import annotations

LIGHT = {
    "primaryColor": "#1f6b57",
    "backgroundColor": "#fcfbf8",
    "secondaryBackgroundColor": "#f2f0ea",
    "textColor": "#23272b",
    "linkColor": "#1a5f4d",
    "borderColor": "#dcd8ce",
    "grayColor": "#5d6468",
    "grayTextColor": "#565d61",
    "grayBackgroundColor": "#eceae3",
    "greenColor": "#1f6b57",
    "greenTextColor": "#1a5f4d",
    "greenBackgroundColor": "#e0eee8",
    "redColor": "#a8322a",
    "redTextColor": "#9c2d26",
    "redBackgroundColor": "#f8e6e3",
    "orangeColor": "#8a5a10",
    "orangeTextColor": "#7d500c",
    "orangeBackgroundColor": "#f7ecd7",
    "chartCategoricalColors": ["#1f6b57", "#b4652b", "#4a6fa5", "#8a5f9e", "#7a7a52", "#a8322a"],
    "sidebar.backgroundColor": "#f5f3ee",
    "sidebar.secondaryBackgroundColor": "#eae7df",
    "sidebar.borderColor": "#dcd8ce",
}
DARK = {
    "primaryColor": "#27806a",
    "backgroundColor": "#17191b",
    "secondaryBackgroundColor": "#212427",
    "textColor": "#e9e6df",
    "linkColor": "#86d3ba",
    "borderColor": "#373b3f",
    "grayColor": "#a3a8ab",
    "grayTextColor": "#b1b6b9",
    "grayBackgroundColor": "#2a2d31",
    "greenColor": "#6fc7ab",
    "greenTextColor": "#86d3ba",
    "greenBackgroundColor": "#1e332c",
    "redColor": "#f08d83",
    "redTextColor": "#f4a199",
    "redBackgroundColor": "#3d2422",
    "orangeColor": "#e3b26a",
    "orangeTextColor": "#ebc085",
    "orangeBackgroundColor": "#392d1c",
    "chartCategoricalColors": ["#6fc7ab", "#e3a673", "#8fb0e0", "#c6a0d8", "#bdbd8c", "#f08d83"],
    "sidebar.backgroundColor": "#1c1f21",
    "sidebar.secondaryBackgroundColor": "#282c2f",
    "sidebar.borderColor": "#33373b",
}
BOTH = {
    "font": "sans-serif",
    "headingFont": "serif",
    "baseFontSize": 16,
    "headingFontSizes": ["1.75rem", "1.35rem", "1.15rem", "1rem", "0.95rem", "0.9rem"],
    "headingFontWeights": [600, 600, 600, 600, 600, 600],
    "baseRadius": "10px",
    "buttonRadius": "8px",
    "showWidgetBorder": True,
    "showSidebarBorder": True,
    "metricValueFontSize": "1.6rem",
}
HOSTS = ["127.0.0.1", "localhost"]
SERVER = {
    # A browser is opened by `launch`, in an environment without keys.
    "server.headless": True,
    "server.address": "127.0.0.1",
    "server.baseUrlPath": "",
    "server.enableCORS": True,
    "server.corsAllowedOrigins": [],
    "server.enableXsrfProtection": True,
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.allowedHosts": HOSTS,
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.showEmailPrompt": False,
    "browser.gatherUsageStats": False,
    "browser.serverAddress": "127.0.0.1",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "global.developmentMode": False,
    "logger.enableRich": False,
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
    "secrets.files": [],
    # A whole collection after each run takes 0.2 s, in which nothing else in the process gets on.
    # Python's own collector is enough.
    "runner.postScriptGC": False,
}


def options(port: int) -> dict[str, object]:
    """Every option of Streamlit's that the app is started with."""
    themes = {
        f"theme.{mode}.{name}": value
        for mode, colours in (("light", LIGHT), ("dark", DARK))
        for name, value in colours.items()
    }
    shared = {f"theme.{name}": value for name, value in BOTH.items()}
    return {**SERVER, "server.port": port, **shared, **themes}
