"""Where the checkout and the test data are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
DATA = ROOT / "tests" / "data"
