"""Where the files of a fastembed model are."""

from __future__ import annotations

from pathlib import Path

from memchat.config import Settings
from memchat.errors import InputError

FASTEMBED = "fastembed"


def model_folder(settings: Settings, model: str) -> Path:
    """The folder of a fastembed model, whether it exists or not. Raises InputError for a wrong
    name."""
    name = bare_name(model)
    if not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise InputError(f"{model!r} names no model; write it as fastembed/BAAI/bge-small-en-v1.5")
    return (settings.models or settings.home / "models") / name


def bare_name(model: str) -> str:
    """The name without the leading ``fastembed/``."""
    return model.removeprefix(f"{FASTEMBED}/")
