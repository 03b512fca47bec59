"""Cases of which the quick run takes a few."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def slow_but(quick: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """All the cases for ``parametrize``; those that are not among the quick ones are slow."""
    return [one if one in quick else pytest.param(one, marks=pytest.mark.slow) for one in cases]
