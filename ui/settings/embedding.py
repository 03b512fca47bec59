"""The embedding service: which one finds memories by meaning, and changing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from memchat import BackfillResult
from memchat.config.providers import MINILM, PROVIDERS, WORDS_ONLY, embedding_name
from memchat.config.settings import VARIABLES
from memchat.errors import ConfigError, MemChatError
from memchat.types import Progress, ServiceInfo
from ui import components as ui
from ui.desk import Desk
from ui.settings import choices, tasks

if TYPE_CHECKING:
    from memchat import MigrationResult

SETTING = "embed_model"
TASK = "embedding service"
OFFERED = [MINILM, *(provider.embed for provider in PROVIDERS if provider.embed), WORDS_ONLY]
NAMES = {MINILM: "minilm, on this machine (English)", WORDS_ONLY: "none: by words only"}


def show() -> None:
    """Draw it."""
    mc, busy = ui.desk().mc, tasks.running(TASK)
    services = mc.services.list()
    st.subheader("Finding by meaning", anchor=False)
    st.markdown(_in_use(mc.settings.embed_model, services))
    fixed = choices.fixed_by(mc.settings, SETTING)
    coming = next((one for one in services if one.state == "coming"), None)
    if coming is not None and not busy:
        words = f"The change to {coming.name} was begun and is not finished."
        st.warning(f"{ui.literal(words)} {_lacking(coming)}")
        st.button("Go on with it", key="resume-embedding", on_click=_begin, args=(coming.name,))
    used = next((one for one in services if one.state == "in use"), None)
    if used is not None and used.lacking and coming is None:
        st.button("Make these vectors", key="make-vectors", on_click=_fill, disabled=busy)
    if fixed:
        st.caption(ui.sentence(fixed))
    else:
        _field(busy=busy)
    if problem := st.session_state.pop("embedding problem", None):
        st.error(ui.sentence(problem))
    task = tasks.ended(TASK)
    if task is not None and task.error is None:
        _tell(task.result)
    if fixed:
        return
    st.caption("A new service is sent all that is kept, and may charge for it.")


def _field(*, busy: bool) -> None:
    st.selectbox(
        "Change to",
        OFFERED,
        index=None,
        format_func=lambda name: NAMES.get(name, name),
        key="set-embed_model",
        accept_new_options=True,
        placeholder="Choose, or type provider/model",
        disabled=busy,
    )
    st.button(
        "Change the service",
        key="change-embedding",
        on_click=_change,
        disabled=busy or not st.session_state.get("set-embed_model"),
    )


def _in_use(named: str, services: Sequence[ServiceInfo]) -> str:
    used = next((one for one in services if one.state == "in use"), None)
    if named == WORDS_ONLY:
        return "Memories are found by their words only; no model is used."
    if used is None:
        return f"In use: **{ui.literal(named)}**, from the first memory on."
    count = ui.plural(used.vectors, "vector")
    return f"In use: **{ui.literal(used.name)}**, {count}. {_lacking(used)}"


def _lacking(service: ServiceInfo) -> str:
    if not service.lacking:
        return ""
    return f"{ui.plural(service.lacking, 'text')} without a vector of it yet."


def _change() -> None:
    try:
        name = embedding_name(choices.model_name(st.session_state["set-embed_model"]))
        lacking = choices.lacking_key(ui.desk().mc.settings, name)
        if lacking is not None:
            raise ConfigError(f"{lacking} is not set; enter it under Keys first")
    except MemChatError as error:
        st.session_state["embedding problem"] = str(error)
    else:
        _begin(name)


def _begin(name: str) -> None:
    tasks.begin(TASK, f"Changing to {name}", partial(_work, ui.desk(), name))


def _fill() -> None:
    work = partial(_backfill, ui.desk())
    tasks.begin(TASK, "Making vectors", work)


def _backfill(desk: Desk, *, progress: Callable[[Progress], None]) -> BackfillResult:
    return desk.mc.jobs.backfill(progress=progress)


def _work(desk: Desk, name: str, *, progress: Callable[[Progress], None]) -> MigrationResult | None:
    """Change the store, then the settings: until then a restart goes on with the old service."""
    done = None
    if name != WORDS_ONLY:
        done = desk.mc.services.migrate(name, progress=progress)
        if not done.switched:
            return done
    choices.write(desk, {VARIABLES[SETTING]: name})
    return done


def _tell(done: MigrationResult | BackfillResult | None) -> None:
    if isinstance(done, BackfillResult):
        _tell_backfill(done)
        return
    if done is None:
        st.success("Memories are found by their words only from now on.")
        return
    for what, reason in done.refused.items():
        st.warning(f"{ui.literal(what)} has no vector of it: {ui.sentence(reason)}")
    if not done.switched:
        st.error("The service was not changed, as these texts have no vector of the new one.")
        return
    cost = f", ${done.cost_usd:.4f}" if done.cost_usd else ""
    texts = f"{ui.plural(done.embedded, 'text')} embedded{cost}"
    st.success(f"{ui.literal(done.service)} is in use; {texts}.")


def _tell_backfill(done: BackfillResult) -> None:
    made = ui.plural(done.done, "text")
    if not done.left:
        st.success(f"{made} embedded.")
        return
    reason = done.stopped or next((job.error_message for job in done.failed), None)
    left = f"{made} embedded; {done.left:,} still have no vector, and are tried again later."
    st.warning(ui.sentence(f"{left} {reason}" if reason else left))
