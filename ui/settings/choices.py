"""What the person set, and changing that in the settings file and in the running app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from memchat.config import Settings
from memchat.config.providers import ANY_SERVER, KEYS, provider_of
from memchat.config.settings import FILE, VARIABLES, set_settings
from memchat.errors import InputError
from ui import components as ui
from ui.desk import Desk

BY_DEFAULT = ""
"""The choice that names no model."""


def write(desk: Desk, changes: Mapping[str, str | None]) -> None:
    """Write these variables into settings.toml, and work with them from now on.

    Raises ConfigError where that cannot be done.
    """
    set_settings(desk.mc.settings.home, changes)
    ui.reopen()


def fixed_by(settings: Settings, setting: str) -> str | None:
    """Why this page cannot change a setting: it is set where settings.toml does not count."""
    origin = settings.origins.get(VARIABLES[setting], FILE)
    where = "the environment" if origin == "environment" else origin
    return None if origin == FILE else f"set in {where}; change it there"


def field(setting: str, kind: Any, label: str, **how: Any) -> None:
    """One setting as a field of this ``kind``, kept as soon as it is changed."""
    settings, key = ui.desk().mc.settings, f"set-{setting}"
    fixed = fixed_by(settings, setting)
    st.session_state[key] = getattr(settings, setting)
    kind(label, key=key, on_change=_keep, args=(setting,), disabled=fixed is not None, **how)
    if fixed:
        st.caption(ui.sentence(fixed))


def _keep(setting: str) -> None:
    value = st.session_state[f"set-{setting}"]
    text = ("on" if value else "off") if isinstance(value, bool) else str(value)
    changes = {VARIABLES[setting]: None if value is None else text}
    ui.attempt(lambda: write(ui.desk(), changes))


def named(settings: Settings, setting: str) -> str:
    """The model that the person named, or that none is named."""
    is_set = VARIABLES[setting] in settings.origins
    return getattr(settings, setting) if is_set else BY_DEFAULT


def model_name(text: str | None) -> str:
    """A model's name as it was typed. Raises InputError where it cannot be one."""
    name = (text or "").strip()
    if name and (not name.isprintable() or " " in name):
        raise InputError("a model's name is one word without spaces, such as openai/gpt-4.1-mini")
    if name not in ("", "none", "minilm") and not provider_of(name):
        raise InputError(
            f"the model {name} names no provider; write provider/model, such as openai/{name}"
        )
    return name


def lacking_key(settings: Settings, model: str) -> str | None:
    """The key that a model needs and that is not set."""
    names = KEYS.get(provider_of(model), ())
    needed = names and provider_of(model) != ANY_SERVER
    return names[0] if needed and settings.keys.first(names) is None else None
