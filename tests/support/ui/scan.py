"""Streamlit's look through the installed packages for parts of pages, once a process."""

from __future__ import annotations

import functools


def scan_once() -> None:
    """Have it keep what it finds: it looks anew for each page, which takes longer than the page."""
    from streamlit.components.v2 import manifest_scanner

    scan = functools.cache(manifest_scanner.scan_component_manifests)
    scan()
    manifest_scanner.scan_component_manifests = scan  # type: ignore[assignment]
