"""A value that says "leave this field as it is"."""

from __future__ import annotations

from typing import Final


class Keep:
    """Stands for "leave it as it is" where None means something."""


KEEP: Final = Keep()
