"""Insights: how the memory grows, what of it is used, what it costs, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial

import streamlit as st

from memchat import Mended
from memchat.errors import NotFound
from memchat.types import Finding, Insights, UsageTotal, Wanted
from ui import charts, decisions, forgetting, hold, sidebar
from ui import components as ui
from ui.hold import Hold
from ui.notes import topics

DAYS = 30
GROWTH_DAYS = 365
# Days from the first memory on, before a curve is worth drawing.
LEAST_DAYS = 3
# Days with a message, before columns are.
LEAST_SAID = 2
ENDING = 5


def page() -> None:
    """One run."""
    ui.heading("Insights", f"How the memory of the space “{ui.literal(ui.app_name())}” is doing.")
    ui.show_problem()
    figures = ui.person().memories.insights()
    if not figures.kept and not figures.said and not ui.person().notes.topics():
        ui.empty(
            "Nothing to see yet",
            "Once there are memories and chats, this page shows how the memory grows, what it is "
            "made of, which memories are used and which never, what ends soon, what the models "
            "cost, and what is worth a look.",
            "insights",
        )
        return
    _heads(figures)
    _growth(figures)
    _makeup(figures)
    _use(figures)
    _topics()
    _cost(ui.person().usage())
    _queue(figures)
    _audit()


def _heads(figures: Insights) -> None:
    in_use = figures.states.get("in use", 0)
    with st.container(key="heads"):
        _head("In use", in_use, "active")
        _head("Kept this week", _since(figures.kept, 7), "all")
        _head("Never used", figures.never_used, "never used")
        st.metric("Messages this week", f"{_since(figures.said, 7):,}")


def _head(label: str, count: int, status: str) -> None:
    """A number, and the way to the memories that it counts, the newest first."""
    with st.container(key=f"head-{status.replace(' ', '-')}"):
        st.metric(label, f"{count:,}")
        if count and st.button("Show them", key=f"show-{label}", type="tertiary"):
            st.session_state.update(status=status, sort="newest")
            sidebar.lead_to("views/memories.py")


def _today() -> date:
    mc = ui.desk().mc
    return mc.now.astimezone(mc.settings.zone).date()


def _since(days: dict[date, int], count: int) -> int:
    first = _today() - timedelta(days=count - 1)
    return sum(n for at, n in days.items() if at >= first)


def _growth(figures: Insights) -> None:
    st.subheader("Growth", anchor=False)
    today = _today()
    _kept(figures.kept, today)
    _said(figures.said, today)


def _kept(kept: dict[date, int], today: date) -> None:
    coming = "a curve shows here how they grow."
    total = sum(kept.values())
    if not total:
        st.caption(f"No memory is kept yet. Once there are some, {coming}")
        return
    shown_from = min(kept) + timedelta(days=LEAST_DAYS - 1)
    if today < shown_from:
        count = ui.plural(total, "memory", "memories")
        st.caption(f"{count} kept so far. From {shown_from:%-d %B} on, {coming}")
        return
    first = max(min(kept), today - timedelta(days=GROWTH_DAYS))
    days = _days(first, today)
    total = sum(n for at, n in kept.items() if at < first)
    totals = []
    for at in days:
        total += kept.get(at, 0)
        totals.append(total)
    charts.area(list(zip(days, totals, strict=True)), "memories")
    st.caption("Memories kept so far, those no longer in use included.")


def _said(said: dict[date, int], today: date) -> None:
    first = today - timedelta(days=DAYS - 1)
    recent = {at: n for at, n in said.items() if at >= first}
    coming = f"how many messages you wrote on each of the last {DAYS} days."
    if len(recent) < LEAST_SAID:
        count = ui.plural(sum(recent.values()), "message")
        st.caption(
            f"{count} of yours in the last {DAYS} days. Once you wrote on {LEAST_SAID} different "
            f"days, columns show here {coming}"
        )
        return
    charts.columns([(at, said.get(at, 0)) for at in _days(first, today)], "messages")
    st.caption(f"Your messages on each of the last {DAYS} days.")


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _makeup(figures: Insights) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("By type", anchor=False)
        charts.bars({ui.type_name(kind): n for kind, n in figures.types.items()})
        if not figures.types:
            st.caption("Memories about you, preferences and facts are counted here.")
    with right:
        st.subheader("Most frequent keys", anchor=False)
        charts.bars({key.replace("_", " "): n for key, n in figures.keys.items()})
        if not figures.keys:
            st.caption("What most memories are about is counted here.")
    aside = {state: n for state, n in figures.states.items() if state != "in use"}
    if aside:
        parts = ", ".join(f"{n:,} {state}" for state, n in aside.items())
        st.caption(f"No longer in use: {parts}. They stay in each memory's history.")


def _use(figures: Insights) -> None:
    left, middle, right = st.columns(3, gap="large")
    with middle:
        st.subheader("Least used", anchor=False)
        least = ui.person().memories.browse(Wanted(sort="least used"), limit=ENDING).memories
        st.markdown("\n".join(f"- {ui.named(memory)}" for memory in least))
        if not least:
            st.caption("Those that are used least are listed here.")
    with left:
        st.subheader("Most used", anchor=False)
        used = [
            f"- {ui.named(memory)} :gray[· {ui.plural(count, 'time')}]"
            for memory, count in figures.most_used[:ENDING]
        ]
        st.markdown("\n".join(used))
        if not figures.most_used:
            st.caption("No model was given a memory yet. Those that are used most are listed here.")
    with right:
        st.subheader("Ending soon", anchor=False)
        wanted = Wanted(status="expiring", sort="ending first")
        soon = ui.person().memories.browse(wanted, limit=ENDING)
        ending = [f"- {ui.named(m)} :gray[· until {m.expires_at:%-d %B}]" for m in soon.memories]
        st.markdown("\n".join(ending))
        if not soon.total:
            st.caption("Nothing ends within 30 days.")
    st.page_link("views/memories.py", label="See and sort them all under Memories")


def _topics() -> None:
    st.subheader("Topics", anchor=False)
    found = ui.person().notes.topics()[:ENDING]
    today = _today()
    this, before = (f"{at:%Y-%m}" for at in (today, today.replace(day=1) - timedelta(days=1)))
    for one in found:
        with st.container(key=f"row-topic-{one.id}"):
            topics.link(one)
            then, now = one.months.get(before, 0), one.months.get(this, 0)
            both = ui.plural(one.notes + one.sessions, "note or chat", "notes and chats")
            st.markdown(f":small[:gray[{both}, {now:,} this month, {then:,} last month]]")
    if not found:
        st.caption("What your notes and chats are about is listed here, once topics were found.")


def _cost(totals: Sequence[UsageTotal]) -> None:
    st.subheader("Cost", anchor=False)
    if not totals:
        st.caption("No model was called yet. The calls, tokens and cost of each are listed here.")
        return
    known = [t.cost_usd for t in totals if t.cost_usd is not None]
    st.caption(
        f"${sum(known):.4f} in all spaces together, by the price list on this machine"
        + ("." if len(known) == len(totals) else "; some models have no known price.")
    )
    st.table(
        {
            "Purpose": [t.purpose for t in totals],
            "Model": [ui.literal(t.model) for t in totals],
            "Calls": [f"{t.calls:,}" for t in totals],
            "Tokens in": [f"{t.prompt_tokens:,}" for t in totals],
            "Tokens out": [f"{t.completion_tokens:,}" for t in totals],
            "Cost": ["unknown" if t.cost_usd is None else f"${t.cost_usd:.4f}" for t in totals],
        },
        border="horizontal",
    )


def _queue(figures: Insights) -> None:
    st.subheader("Work in the background", anchor=False)
    counts = figures.queue
    st.markdown(
        f"{counts['done']:,} done, {counts['waiting']:,} waiting, {counts['failed']:,} failed."
    )
    desk = ui.desk()
    failed = [j for j in desk.mc.jobs.list(user=desk.user, limit=500) if j.error_message]
    for job in [j for j in failed if j.status != "completed"][:ENDING]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"⚠ {job.kind}: {ui.literal(job.error_message or '')}", width="stretch")
            st.button("Retry", key=f"job-{job.id}", on_click=_retry, args=(job.id,))


def _retry(job_id: int) -> None:
    desk = ui.desk()
    ui.attempt(lambda: desk.mc.jobs.retry(user=desk.user, job_id=job_id))
    desk.wake()


def _audit() -> None:
    st.subheader("Worth a look", anchor=False)
    state = st.session_state
    if st.button("Look through the memories", key="audit"):
        with st.spinner("Looking through the memories …"):
            _look()
    if state.get("mending") is not None:
        _preview(state["mending"])
    audit = state.get("audited")
    if audit is None:
        st.caption("Finds what is stale, ending, doubled, contradicting or never used.")
        return
    if not audit.findings:
        st.success("Nothing needs your attention.")
    kinds = list(dict.fromkeys(finding.kind for finding in audit.findings))
    for kind in kinds:
        found = [finding for finding in audit.findings if finding.kind == kind]
        with st.expander(f"{kind.capitalize()} ({len(found)})"):
            for n, finding in enumerate(found[:DAYS]):
                _finding(finding, f"{kind}-{n}")
            if len(found) > DAYS:
                st.caption(f"And {len(found) - DAYS:,} more.")


def _finding(finding: Finding, name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(ui.literal(finding.what), width="stretch")
        if finding.fix:
            st.button("Mend", key=f"mend-{name}", on_click=_ask, args=(finding,))


def _ask(finding: Finding | None = None) -> None:
    st.session_state["mending"] = finding


@st.dialog("Mend", on_dismiss=_ask)
def _preview(finding: Finding) -> None:
    """What would be done, before it is."""
    st.markdown(ui.sentence(f"This would {finding.fix}"))
    memories, several = ui.person().memories, len(finding.memory_ids) > 1
    for n, memory_id in enumerate(finding.memory_ids):
        with suppress(NotFound):  # it was forgotten since
            told = ui.literal(memories.get(memory_id).told)
            st.markdown(f"- {told} :gray[{'stays' if several and not n else 'goes'}]")
    with st.container(horizontal=True):
        if st.button("Mend", key="mend-yes", type="primary"):
            _ask()
            _mend(finding)
            st.rerun()
        if st.button("Cancel", key="mend-no", on_click=_ask):
            st.rerun()


def _mend(finding: Finding) -> None:
    if finding.kind == "secret":
        forgetting.forget(finding.memory_ids)
    else:
        person, done = ui.person(), list[Mended]()
        if ui.attempt(lambda: done.append(person.mend([finding]))) and finding.memory_ids:
            hold.keep("Mended. Can be undone for", decisions.UNDO_SECONDS, partial(_undo, done[0]))
    _look()


def _undo(done: Mended, held: Hold) -> None:
    ui.attempt(lambda: held.person.unmend(done))
    _look()


def _look() -> None:
    ui.attempt(lambda: st.session_state.update(audited=ui.person().audit()))


page()
