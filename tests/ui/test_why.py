"""Why a reply is as it is, and what can be done about it."""

from __future__ import annotations

from memchat import MemChat
from tests.support.ui.tab import ANA, app, buttons, lines, parts, press, say, text


def test_why_shows_each_line_that_was_given_and_what_can_be_done(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("profile", "city", "Lisbon")
    at = app()
    say(at, "Which city is it?")
    press(at, buttons(at, "why-")[0])
    assert "city: Lisbon" in text(at)
    assert "found by" in text(at)
    press(at, "mute-0")
    assert "kept out of the rest of this chat" in text(at)
    press(at, "unmute-0")
    press(at, "amend-0")
    at.text_input(key=f"amended-{kept.id}").set_value("Porto").run()
    press(at, "save-0")
    assert ana.memories.get(kept.id).value == "Porto"


def test_a_fact_is_forgotten_from_the_receipt_and_brought_back(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    at = app()
    say(at, "Which city is it?")
    press(at, buttons(at, "why-")[0])
    press(at, "forget-0")
    assert ana.memories.list() == []
    at.run()
    press(at, buttons(at, "undo-")[-1])
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_a_passage_of_a_note_is_shown_as_such_and_offers_no_change(mc: MemChat) -> None:
    words = "Mind the <b>door</b>.\n\nThe tiler  wants 89\nfor the grey slate."
    padding = "The river rose in the night and fell in the morning. " * 40
    mc.user(**ANA).notes.add(f"{padding}\n\n{words}\n\n{padding}", title="Kitchen floor")
    at = app()
    say(at, "What does the tiler want for the grey slate?")
    assert "Your note “Kitchen floor”" in text(at)
    press(at, buttons(at, "why-")[0])
    assert "The tiler wants 89" in text(at) and "from your notes" in text(at)
    press(at, "open-0")
    (body,) = [h.proto.body for h in at.get("html") if 'dir="auto"' in h.proto.body]
    lit = body[body.index('class="memchat-passage-marked"') :]
    assert at.query_params["note"] and "The tiler  wants 89" in lit and "for the grey slate." in lit
    assert buttons(at, "mute-") == buttons(at, "forget-") == []


def test_the_line_under_a_reply_names_what_was_used_the_best_first(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red kayak")
    at = app()
    say(at, "Which city is my city?")
    assert [part["note"] for part in parts(at) if "note" in part] == ["Used: city"]
    press(at, buttons(at, "why-")[0])
    assert lines(at)[0] == "Also sent: 1"
    say(at, "Remember that I am vegan.")
    assert "Learnt: diet: vegan" in text(at)
    press(at, buttons(at, "unlearn-")[0])
    assert {m.value for m in ana.memories.list()} == {"a red kayak", "Lisbon"}
