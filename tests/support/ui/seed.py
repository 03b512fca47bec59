"""A store as it looks after some weeks: conversations, memories, things that wait, for the app's
tests and screenshots. All of it is made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import FakeClock, ScriptedModel
from tests.support.answers import answer, fact
from tests.support.second_look import judge

USER = "ana"
FACTS = (
    ("profile", "name", "Ana Ferreira"),
    ("profile", "occupation", "landscape architect"),
    ("profile", "languages", "Portuguese, English, a little Japanese"),
    ("preference", "answer style", "short, with one example"),
    ("preference", "coffee", "flat white with oat milk"),
    ("preference", "travel", "by train where it takes less than a day"),
    ("fact", "bicycle", "a green steel touring bike, bought in Ghent"),
    ("fact", "garden", "a roof terrace with two lemon trees"),
    ("fact", "sister", "Rita, who lives in Braga with her two sons"),
    ("other", "book club", "meets on the first Tuesday of the month"),
)
TOLD = {
    "answer style": "You like answers short, with one example.",
    "coffee": "You drink a flat white with oat milk.",
    "travel": "You travel by train where it takes less than a day.",
    "bicycle": "You ride a green steel touring bike, bought in Ghent.",
    "garden": "You have a roof terrace with two lemon trees.",
    "sister": "Your sister is Rita, who lives in Braga with her two sons.",
    "book club": "Your book club meets on the first Tuesday of the month.",
}
PEANUTS = "You are allergic to peanuts."
TALKS = (
    (
        "Moving house",
        [
            (
                "I moved to Lisbon last week, and the boxes are still everywhere.",
                "Congratulations on the move! Unpack the kitchen first: a working kettle makes the "
                "rest bearable. Shall I draft a list, room by room?",
            ),
            (
                "Yes please. I am allergic to peanuts, so leave space for my own snacks shelf.",
                "Here is a first pass:\n\n1. **Kitchen** – kettle, pans, your snacks shelf\n"
                "2. **Bedroom** – bed linen, lamps\n3. **Study** – desk, router, plants\n\n"
                "I will keep peanuts off every shopping list.",
            ),
        ],
        answer(
            fact("I moved to Lisbon", "city", "Lisbon", sentence="You live in Lisbon."),
            fact("I am allergic to peanuts", "allergy", "peanuts", msg="u2", sentence=PEANUTS),
            title="Moving house",
            summary="Ana moved to Lisbon and unpacks room by room.",
        ),
    ),
    (
        "A quiet weekend in Porto",
        [
            (
                "What should I do with a quiet weekend in Porto?",
                "Walk the river early, before the bridges fill. Then the Serralves gardens: as a "
                "landscape architect you may want a whole afternoon there.",
            ),
            (
                "I started learning the cello in March. Is there a concert?",
                "Casa da Música has chamber music most Saturdays at six. Shall I put it in a plan?",
            ),
        ],
        answer(
            fact(
                "I started learning the cello",
                "hobby",
                "learning the cello",
                msg="u2",
                sentence="You are learning the cello.",
            ),
            title="A quiet weekend in Porto",
        ),
    ),
    (
        "Dinner for six",
        [
            (
                "Plan a vegetarian dinner for six, without peanuts.",
                "A calm menu that can wait in the oven:\n\n- roasted squash with sage\n"
                "- lemon and fennel salad, from your own trees\n- almond cake\n\n"
                "Nothing in it has peanuts.",
            )
        ],
        answer(title="Dinner for six"),
    ),
)
NOTES = (
    (
        "Herb bed for the school",
        "memo",
        "The head of the school wants the herb bed ready before the autumn break. I said that the "
        "marketing budget would have to carry the signs, about four hundred euros, and she will "
        "ask. Thyme, sage and winter savory first: they take the wind on that side.",
    ),
    (
        None,
        "memo",
        "Call John back about the gravel. He has the lighter one again from the quarry near Évora, "
        "and it drains better than what we used in spring.",
    ),
    (
        "Roof terrace, planting plan",
        "document",
        "# Roof terrace\n\nTwo lemon trees stand in the south corner, each in a tub of 90 litres. "
        "Along the parapet: rosemary and lavender, which need no water after the first year.\n\n"
        "## Watering\n\nA drip line from the rain barrel, twice a day in July and August, once "
        "in June. The pump is tested each April.\n\n## Weight\n\nThe engineer allows 300 kg "
        "for each square metre within a metre of the wall, and 150 kg beyond it.",
    ),
    (
        "Walk in Serralves",
        "memo",
        "The long beds are planted in waves now, grasses between the salvias. Worth a drawing. "
        "The gardener told me that they cut all of it back in February and not before.",
    ),
)


def seed(home: Path, *, user: str = USER, days: int = 24) -> None:
    """Fill a store."""
    clock = FakeClock(datetime.now(UTC) - timedelta(days=days))
    chat, reader = ScriptedModel(name="scripted/chat"), ScriptedModel(name="scripted/reader")
    # Words alone: whoever opens the store gives it the vectors of the service of their choice.
    settings = Settings(home=home, timezone="Europe/Lisbon", embed_model="none")
    with MemChat(settings=settings, chat_model=chat, extract_model=reader, clock=clock) as mc:
        person = mc.user(user)
        for n, (kind, key, value) in enumerate(FACTS):
            kept = person.memories.add(kind, key, value, sentence=TOLD.get(key))
            if key == "answer style":
                person.memories.pin(kept.id)
            clock.advance(days=0.9 if n % 3 else 2)
        for title, kind, words in NOTES:
            person.notes.add(words, title=title, type=kind, profile=kind)
            clock.advance(days=0.2)
        soon = (datetime.now(UTC) + timedelta(days=9)).date()
        told = "Jonas stays in the guest room."
        person.memories.add("fact", "visitor", told[:-1], expires_at=soon, sentence=told)
        for _, turns, read in TALKS:
            chat.replies.extend(reply for _, reply in turns)
            reader.replies.append(read)
            with person.chat() as talk:
                for said, _ in turns:
                    talk.send(said).read()
                    clock.advance(seconds=80)
            clock.advance(days=1.4)
        somebody_else = {"answer": "not", "why": "somebody_else"}
        reader.second_look = judge(city=somebody_else, plan="unclear")
        reader.replies.append(
            answer(
                fact("Rita wants to move to Faro", "city", "Faro"),
                fact(
                    "Maybe I will sell the bike",
                    "plan",
                    "selling the bike",
                    msg="u2",
                    sentence="You are thinking of selling the bike.",
                ),
                title="Catching up",
            )
        )
        chat.replies.extend(["Faro is lovely in spring.", "It has served you well."])
        with person.chat() as talk:
            talk.send("Rita wants to move to Faro, she says.").read()
            talk.send("Maybe I will sell the bike.").read()
        mc.jobs.run(user=user)
