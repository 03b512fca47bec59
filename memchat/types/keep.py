"""A value that says "leave this field as it is"."""

from __future__ import annotations

from typing import Final


class Keep:
    """The type of ``KEEP``, which means "leave it as it is" where None means something else."""


KEEP: Final = Keep()
