"""What was said before as something to find: dated, marked, in scope, and gone when forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import MemChat
from memchat.errors import ProviderError
from memchat.forget.wording import FILLER
from memchat.providers import local
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from memchat.tokens import estimate_tokens
from memchat.types import Scope
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.store import Opener


def talk(mc: MemChat, extract: ScriptedModel, *said: str, facts=(), user="ana", **where) -> int:
    """A whole conversation, read at its end; its id. ``facts`` is what its reader finds."""
    extract.replies.append(answer(*facts, title=where.pop("title", ""), summary=""))
    with mc.user(user, **where).chat() as chat:
        for words in said:
            assert chat.send(words).read()
    assert chat.failure is None
    return chat.session_id


def found(mc: MemChat, question: str, user="ana", **where) -> list[str]:
    """The moments for a question, as they are told."""
    hits = mc.user(user, **where).search(question).hits
    return [hit.text for hit in hits if hit.kind == "message"]


def vectors(mc: MemChat) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql("SELECT count(*) FROM embeddings").scalar_one()


def test_what_was_said_before_is_found_with_its_day_and_conversation(mc, extract_model) -> None:
    ana = mc.user("ana")
    said = "The plumber comes on Mondays to mend our boiler."
    session_id = talk(mc, extract_model, said, title="The plumber and the boiler")
    hit = next(h for h in ana.search("which plumber?").hits if h.kind == "message")
    assert hit.text == f"[conversation “The plumber and the boiler”] 2026-05-01 user: {said}"
    assert (hit.session_id, hit.session_title) == (session_id, "The plumber and the boiler")
    assert hit.said_at == ana.sessions.messages(session_id)[0].created_at


@pytest.mark.skipif(not local.available(), reason="the weights of MiniLM are not installed")
def test_it_is_found_by_meaning_without_a_word_in_common(open_store, extract_model, tmp_path):
    mc = open_store(embedder=local.MiniLMEmbedder(tmp_path))
    talk(mc, extract_model, "My puppy chewed through the sofa yesterday.")
    talk(mc, extract_model, "We repainted the kitchen in yellow.")
    (hit,) = mc.user("ana").search("Which furniture did our dog ruin?").confident
    assert "puppy" in hit.text and hit.bm25 is None and hit.channel == "meaning"
    assert mc.user("ana").search("Who won the election in Brazil?").confident == ()


def test_a_moment_is_nobody_else_s(mc, extract_model) -> None:
    talk(mc, extract_model, "The plumber mends the boiler.", app="home")
    assert found(mc, "plumber boiler", app="home")
    assert not found(mc, "plumber boiler", app="work") and not found(mc, "plumber", user="bo")


def test_what_was_said_off_the_record_is_not_found(mc, extract_model) -> None:
    ana = mc.user("ana")
    with ana.chat(incognito=True) as chat:
        assert chat.send("The plumber mends the boiler.").read()
    ana.set_memory(False, all_apps=True)
    with ana.chat() as chat:
        assert chat.send("The roofer mends the roof.").read()
    ana.set_memory(True, all_apps=True)
    talk(mc, extract_model, "The baker bakes rolls.")
    assert len(found(mc, "baker")) == 1
    assert not found(mc, "mends the boiler") and not found(mc, "mends the roof")
    with private.database(mc).read() as tx:
        texts = (
            tx.connection.exec_driver_sql("SELECT text FROM passages WHERE kind = 'turn'")
            .scalars()
            .all()
        )
    assert not any("roof" in text for text in texts if text)


def test_a_turn_is_found_by_a_fact_drawn_from_it(mc, extract_model) -> None:
    said = "I live in Lisbon, up the steep hill and close to the castle wood."
    talk(mc, extract_model, said, facts=[fact("I live in Lisbon", "city", "Lisbon")])
    (line,) = found(mc, "Which city?")
    assert "up the steep hill" in line


def test_a_turn_is_found_by_what_was_said_beside_it(mc, extract_model, chat_model) -> None:
    chat_model.replies.clear()
    chat_model.replies.extend(["Try the Zebra Inn.", "Enjoy!"])
    talk(mc, extract_model, "Where shall we eat tonight with grandmother?", "Yes, that one.")
    hits = mc.user("ana").search("the Zebra Inn").hits
    assert {hit.text.split("user: ")[1] for hit in hits} == {
        "Where shall we eat tonight with grandmother?",
        "Yes, that one.",
    }, "a reply is blended in, and found never"


def test_a_fact_that_changed_since_is_marked(mc, extract_model, clock) -> None:
    first = "I live in Lisbon near the old harbour, and I love every single street of it"
    talk(mc, extract_model, first, facts=[fact("I live in Lisbon", "city", "Lisbon")])
    clock.advance(days=1)
    mc.user("ana").memories.add("profile", "city", "Porto")
    (line,) = found(mc, "the old harbour street")
    assert line.endswith("of it (since changed: city)")


def test_a_fact_that_was_corrected_by_hand_marks_its_moment_and_finds_it(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    first = "I live in Lisboa near the old harbour, and I love every single street of it"
    talk(mc, extract_model, first, facts=[fact("I live in Lisboa", "city", "Lisboa")])
    clock.advance(days=1)
    (memory,) = ana.memories.list()
    ana.memories.update(memory.id, expires_at=clock.now.date())
    assert found(mc, "the old harbour street")[0].endswith("street of it")
    ana.memories.update(memory.id, value="Lisbon")
    (line,) = found(mc, "the old harbour street")
    assert line.endswith("of it (since changed: city)")
    assert any("old harbour" in line for line in found(mc, "Lisbon"))


def test_a_moment_that_only_proves_a_fact_gives_it_its_place(mc, extract_model) -> None:
    ana = mc.user("ana")
    said = "I live in Lisbon"
    talk(mc, extract_model, said, facts=[fact(said, "city", "Lisbon")])
    hits = ana.search("live Lisbon").hits
    assert [hit.kind for hit in hits] == ["memory"]
    reply = ana.chat().send("Do I live in Lisbon or elsewhere?")
    assert reply.read() and [hit.kind for hit in reply.shown.hits] == ["memory"]


def test_what_a_fact_s_line_tells_as_its_past_is_not_told_again(
    mc, extract_model, chat_model, clock
) -> None:
    for city, links in (("Faro", {}), ("Turin", {"to": "k1", "is": "updates"})):
        said = f"I live in {city} now"
        talk(mc, extract_model, said, facts=[fact(said, "city", city, **links)])
        clock.advance(days=1)
    with mc.user("ana").chat() as chat:
        reply = chat.send("Where do I live now, still in Faro?")
        assert reply.read()
        shown = [hit.text for hit in reply.shown.hits]
    assert len(shown) == 1 and "city: Turin" in shown[0] and "before: Faro" in shown[0]


@pytest.mark.parametrize(
    ("key", "name", "values"),
    [("timezone", "time zone", ("Lisbon", "Helsinki")), ("stand_up", "stand-up", ("9:30", "9:45"))],
)
def test_a_key_written_apart_or_together_is_the_same_word(
    mc, extract_model, clock, key, name, values
) -> None:
    for value, links in zip(values, ({}, {"to": "k1", "is": "updates"}), strict=True):
        said = f"Well, my {name} is {value} now"
        talk(mc, extract_model, said, facts=[fact(said, key, value, **links)])
        clock.advance(days=1)
    reply = mc.user("ana").chat().send(f"What is my {name}?")
    assert reply.read()
    (shown,) = [hit.text for hit in reply.shown.hits]
    assert f"{key}: {values[1]}" in shown and f"before: {values[0]}" in shown


def test_a_moment_lifts_the_best_of_its_facts_and_no_other(mc, extract_model) -> None:
    said = "I live in Lisbon and I work as a potter"
    facts = [
        fact("I live in Lisbon", "city", "Lisbon"),
        fact("I work as a potter", "job", "potter"),
    ]
    extract_model.replies.append(answer(*facts, summary="They work as a potter in Lisbon."))
    with mc.user("ana").chat() as chat:
        assert chat.send(said).read()
    recall, scope = private.parts(mc).recall, Scope("ana")
    question = recall.question("work as a potter in Lisbon?")
    alone = {hit.memory.key: hit.score for hit in recall.search(scope, question, 5).hits}
    lifted = {hit.memory.key: hit.score for hit in recall.find(scope, question, 5).hits}
    assert alone["job"] > alone["city"], "two words of it against one"
    assert lifted["job"] > alone["job"], "its moment is of the very conversation"
    assert lifted["city"] == alone["city"]


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ("Bo: the boiler leaks", "Bo: the boiler leaks"),
        ("Anna-Lena Weiß: the boiler leaks", "Anna-Lena Weiß: the boiler leaks"),
        ("the boiler leaks: call somebody", "ana: the boiler leaks: call somebody"),
        ("See https://boiler.example", "ana: See https://boiler.example"),
    ],
)
def test_a_turn_that_names_its_speaker_is_given_no_second_one(mc, extract_model, said, who) -> None:
    talk(mc, extract_model, said)
    with private.database(mc).read() as tx:
        texts = (
            tx.connection.exec_driver_sql("SELECT text FROM passages WHERE kind = 'turn'")
            .scalars()
            .all()
        )
    assert f"[1 May 2026] {who}" in texts


def test_a_question_does_not_find_itself(mc, extract_model) -> None:
    for _ in range(2):
        talk(mc, extract_model, "Where is my bike?")
    assert found(mc, "Where is my bike?") == []
    talk(mc, extract_model, "My bike is where the boat is")
    assert found(mc, "is my bike where the boat is?"), "the same words, and an answer"


def test_the_same_words_are_told_once(mc, extract_model, clock) -> None:
    for _ in range(3):
        talk(mc, extract_model, "The plumber mends the boiler.")
        clock.advance(days=1)
    assert len(found(mc, "plumber")) == 1


def test_the_conversation_that_goes_on_does_not_quote_itself(mc, extract_model) -> None:
    ana = mc.user("ana")
    session_id = talk(mc, extract_model, "The plumber mends the boiler.")
    again = ana.chat(resume=session_id).send("When comes the plumber?")
    assert again.read() and again.shown.hits == ()
    other = ana.chat().send("When comes the plumber?")
    assert other.read() and [hit.kind for hit in other.shown.hits] == ["message"]


def test_facts_come_first_and_moments_as_far_as_they_fit(open_store, extract_model) -> None:
    mc = open_store()
    for n in range(9):
        words = f"The plumber came again, visit number {n}: " + f"a leak in room {n}, " * 4
        talk(mc, extract_model, words)
    mc.user("ana").memories.add("preference", "plumber", "the cheap one")
    for budget in (1100, 230):
        store = open_store(budget_tokens=budget)
        reply = store.user("ana").chat().send("Which plumber came again?")
        assert reply.read()
        kinds = [hit.kind for hit in reply.shown.hits]
        assert kinds == ["memory", *["message"] * (len(kinds) - 1)]
        assert len(kinds) == (10 if budget == 1100 else 2)
        block = private.parts(store).model().requests[-1].messages[0].content
        assert estimate_tokens(block[block.index("# Memories") :]) <= budget
    once_more = open_store(budget_tokens=1100).user("ana").chat().send("Which plumber came again?")
    assert once_more.read() and [h.id for h in once_more.shown.hits][1:] == [
        h.id for h in open_store().user("ana").search("Which plumber came again?", limit=20).hits
        if h.kind == "message"
    ]  # fmt: skip


def test_what_is_much_weaker_than_the_best_is_left_out_though_there_is_room(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    for n in range(3):
        talk(mc, extract_model, f"We baked bread, loaf {n}.")
    talk(mc, extract_model, "The plumber mended the copper boiler valve of our flat.")
    talk(mc, extract_model, "Her trumpet bears the number 4711.")
    question = "Which copper boiler valve did the plumber mend in our flat, 4711?"
    best, weak = ana.search(question).hits
    assert "trumpet" in weak.text and weak.score < best.score / 2
    reply = ana.chat().send(question)
    assert reply.read() and [hit.id for hit in reply.shown.hits] == [best.id]


def test_secrets_are_masked_in_a_moment_and_not_embedded(mc, extract_model) -> None:
    talk(mc, extract_model, "The plumber wants my password: hunter2xyz!, for the portal")
    (line,) = found(mc, "plumber portal")
    assert "hunter2" not in line
    with private.database(mc).read() as tx:
        assert not tx.connection.exec_driver_sql(
            "SELECT count(*) FROM passages WHERE text LIKE '%hunter2%'"
        ).scalar()


# Forgetting

HARBOUR = "I live in Lisbon near the old harbour with two parrots"


def harboured(mc: MemChat, extract: ScriptedModel) -> tuple[int, int]:
    """A conversation that taught the city; its id and the fact's."""
    facts = [fact("I live in Lisbon", "city", "Lisbon")]
    session_id = talk(mc, extract, HARBOUR, "The parrots are called Ping and Pong.", facts=facts)
    return session_id, mc.user("ana").memories.list()[0].id


def test_after_forgetting_the_turn_is_found_by_its_other_words_only(mc, extract_model) -> None:
    _, memory_id = harboured(mc, extract_model)
    mc.user("ana").memories.delete(memory_id)
    assert found(mc, "Lisbon city") == []
    (line,) = [text for text in found(mc, "the old harbour") if "harbour" in text]
    assert "Lisbon" not in line and FILLER in line
    with private.database(mc).read() as tx:
        texts = (
            tx.connection.exec_driver_sql("SELECT text FROM passages WHERE kind = 'turn'")
            .scalars()
            .all()
        )
    assert not any("Lisbon" in text for text in texts if text)


def test_words_kept_in_the_transcript_are_found_no_more(mc, extract_model) -> None:
    _, memory_id = harboured(mc, extract_model)
    mc.user("ana").memories.delete(memory_id, keep_transcript=True)
    assert found(mc, "Lisbon") == [] and found(mc, "old harbour") == []
    assert found(mc, "Pong"), "what else was said stays"


def test_while_a_deletion_is_held_its_moment_is_out_of_sight(mc, extract_model) -> None:
    ana = mc.user("ana")
    _, memory_id = harboured(mc, extract_model)
    ana.memories.delete(memory_id, hold=60)
    assert found(mc, "old harbour") == []
    ana.memories.restore(memory_id)
    assert found(mc, "old harbour")


def test_a_deleted_conversation_leaves_neither_moment_nor_vector(mc, extract_model) -> None:
    session_id, _ = harboured(mc, extract_model)
    assert vectors(mc) > 0
    mc.user("ana").sessions.delete(session_id)
    assert found(mc, "old harbour parrots") == []
    with private.database(mc).write() as tx:  # the question just asked is nobody's words
        for table in ("passages", "passages_fts", "embeddings"):
            assert tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, (
                table
            )


def test_a_deleted_turn_leaves_its_neighbours_context(mc, extract_model, chat_model) -> None:
    ana = mc.user("ana")
    chat_model.replies.appendleft("At the Zebra Inn?")
    session_id = talk(mc, extract_model, "We met by chance.", "Yes, and it rained all day long.")
    reply = ana.sessions.messages(session_id)[1]
    assert len(found(mc, "Zebra Inn")) == 2 and reply.role == "assistant"
    ana.sessions.delete_message(reply.id)
    assert found(mc, "Zebra Inn") == []
    assert found(mc, "rained")


# The index


class Counting(HashEmbedder):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts):
        self.texts += texts
        return super().embed_documents(texts)


def test_facts_turns_and_summary_are_embedded_once_in_one_batch(
    open_store, extract_model, chat_model
) -> None:
    batches = []

    class Batches(HashEmbedder):
        def embed_documents(self, texts):
            batches.append(list(texts))
            return super().embed_documents(texts)

    mc = open_store(embedder=Batches())
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I live in Lisbon", "city", "Lisbon"), summary="I live in Lisbon.")
    )
    with ana.chat() as chat:
        assert chat.send("I live in Lisbon").read()
        batches.clear()
    (batch,) = batches
    assert len(batch) == 4, "a fact, a message, its reply, the summary"
    with ana.chat(resume=chat.session_id) as chat:
        chat_model.replies.appendleft("Does it?")
        assert chat.send("And it rains all winter long").read()
        extract_model.replies.append(answer())
        batches.clear()
    assert [len(batch) for batch in batches] == [2], "what was said since, and nothing again"


def test_another_process_s_words_are_found_at_once_and_so_is_their_end(
    open_store: Opener, extract_model
) -> None:
    reader, writer = open_store(), open_store()
    assert found(reader, "plumber") == []
    session_id = talk(writer, extract_model, "The plumber mends the boiler.")
    assert reader.user("ana").search("plumber").hits[0].cosine
    writer.user("ana").sessions.delete(session_id)
    assert found(reader, "plumber") == []
    meaning, _ = private.meaning(reader)
    with private.database(reader).read() as tx:
        assert meaning.index.ids(tx, 1, "turn") == set()


def test_the_index_is_made_anew_from_the_rows_without_the_service(
    open_store: Opener, extract_model
) -> None:
    talk(open_store(), extract_model, "The plumber mends the boiler.", "He comes on Mondays.")
    before = open_store().user("ana").search("plumber Mondays").hits
    service = Counting()
    after = open_store(embedder=service).user("ana").search("plumber Mondays").hits
    assert after == before and all(hit.cosine for hit in after) and len(after) == 2
    assert all("plumber Mondays" in text for text in service.texts), "the question alone"


def test_large_shards_of_messages_are_kept_in_a_file_that_forgetting_drops(
    open_store: Opener, extract_model, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("memchat.search.vector_index.SAVE_FROM", 1)
    first = open_store()
    session_id = talk(first, extract_model, "The plumber mends the boiler.")
    before = first.user("ana").search("plumber").hits
    first.close()
    folder = tmp_path / "store" / "mem.index"
    assert len(list(folder.iterdir())) == 1
    again = open_store()
    ana = again.user("ana")
    assert ana.search("plumber").hits == before
    ana.sessions.delete(session_id)
    assert list(folder.iterdir()) == []


def test_a_failing_service_leaves_words_now_and_vectors_later(
    open_store: Opener, extract_model, clock
) -> None:
    class Down(HashEmbedder):
        def embed_documents(self, texts):
            raise ProviderError("the embedder is down")

    down = open_store(embedder=Down())
    talk(down, extract_model, "The plumber mends the boiler.")
    recall = private.parts(down).recall
    (hit,) = recall.find(Scope("ana"), recall.question("plumber boiler"), 5).hits
    assert (hit.channel, hit.cosine) == ("words", None)
    clock.advance(seconds=120)
    assert open_store().user("ana").search("plumber").hits[0].channel == "both"


def test_nothing_of_a_long_message_is_left_out(open_store: Opener, extract_model) -> None:
    """It is embedded and indexed whole: what stands in its middle is found when it was read."""
    asked: list[str] = []

    class Listening(HashEmbedder):
        def embed_documents(self, texts):
            asked.extend(texts)
            return super().embed_documents(texts)

    mc = open_store(embedder=Listening())
    padding = " ".join(f"walk{n}" for n in range(400))
    talk(mc, extract_model, f"{padding} the xylophone is in the cellar {padding}")
    assert found(mc, "Where is the xylophone?")
    (text,) = [text for text in asked if "xylophone" in text and "walk" in text]
    assert text.count("walk399") == 2


@pytest.mark.skipif(not local.available(), reason="the weights of MiniLM are not installed")
def test_each_window_of_a_long_message_has_its_part_in_its_vector(tmp_path: Path) -> None:
    model = local.MiniLMEmbedder(tmp_path)
    padding = "We walked and talked about the weather for a while. " * 60
    plain, _ = model.embed_documents([padding + padding])
    (other, cellar), _ = model.embed_documents(
        [padding + "The xylophone is in the cellar. " * 20 + padding, "xylophone in the cellar"]
    )
    assert other @ cellar > plain[0] @ cellar + 0.05


@pytest.mark.parametrize(
    ("asked", "word"),
    [("When was I in Lisbon?", "Lisbon"), ("My new job: is it at Sonae or at Galp?", "Sonae")],
)
def test_what_a_sentence_says_beside_its_fact_is_still_told(mc, extract_model, asked, word) -> None:
    ana = mc.user("ana")
    said = "I moved from Lisbon to Porto last month because of my new job at Sonae"
    extract_model.replies.append(answer(fact(said, "city", "Porto"), title="t"))
    with ana.chat() as chat:
        assert chat.send(f"{said}.").read()
    assert any(word in hit.text for hit in ana.search(asked).hits)
    reply = ana.chat().send(asked)
    assert reply.read()
    assert any(word in hit.text for hit in reply.shown.hits)


def test_a_message_that_lost_all_its_words_is_found_no_more(mc, extract_model) -> None:
    ana, city = mc.user("ana"), fact("Zanzibar", "city", "Zanzibar")
    session_id = talk(mc, extract_model, "Zanzibar!", "Wonderful Zanzibar", facts=[city])
    ana.memories.delete(ana.memories.list()[0].id)
    assert ana.sessions.messages(session_id)[0].content == "········!"
    for question in ("1 May 2026", "fine"):
        (line,) = [line for line in found(mc, question) if "·" in line]
        assert line.endswith("user: Wonderful ········"), question
