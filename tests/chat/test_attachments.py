"""Files that go with a message: the model is sent them, nothing is learned from them, and they go
where the message goes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from memchat import MemChat
from memchat.chat import Chat
from memchat.chat.prompt import alternating
from memchat.errors import InputError
from memchat.testing import ScriptedModel
from memchat.types import Attachment, Message
from tests.support.answers import answer, fact
from tests.support.chat_providers import KEY
from tests.support.leftovers import files_with, rows_with
from tests.support.wire.case import chat_of
from tests.support.wire.openai import OpenAIServer

NOW = datetime(2026, 11, 27, tzinfo=UTC)
REPORT = Chat.attachment("report.txt", b"I live in Lisbon. The heron count was nineteen.")


def photo(size: tuple[int, int] = (40, 20)) -> bytes:
    """A JPEG that tells where it was taken, with a comment, and lies on its side."""
    picture, taken = Image.new("RGB", size, "green"), Image.Exif()
    taken[0x010F], taken[0x0112] = "Secretcam", 6
    written = BytesIO()
    picture.save(written, "JPEG", exif=taken, comment=b"at home")
    return written.getvalue()


def sent(chat_model: ScriptedModel) -> str:
    """The last message of the last request."""
    return chat_model.requests[-1].messages[-1].content


def test_a_document_goes_to_the_model_with_its_message_and_with_later_ones(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    with mc.user("ana").chat() as chat:
        chat.send("How many?", attachments=[REPORT]).read()
        assert sent(chat_model) == f"How many?\n\n[Attached: report.txt]\n{REPORT.text}"
        reply = chat.send("And why?").read()
        assert reply and REPORT.text in chat_model.requests[-1].messages[1].content
        turns = mc.user("ana").sessions.messages(chat.session_id or 0)
    assert turns[0].content == "How many?" and turns[0].attachments == (REPORT,)
    why = mc.user("ana").sessions.why(turns[1].id)
    assert why.prompt is not None and REPORT.text in why.prompt[-1].content


def test_what_is_attached_needs_no_words_beside_it(mc: MemChat, chat_model: ScriptedModel) -> None:
    with mc.user("ana").chat() as chat:
        chat.send(" ", attachments=[REPORT, REPORT]).read()
        assert sent(chat_model).startswith("report.txt, report.txt\n\n[Attached: report.txt]")
        with pytest.raises(InputError, match="empty"):
            chat.send(" ")


def test_nothing_is_learned_from_what_is_attached_and_no_search_finds_it(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("What do you say to this?", attachments=[REPORT]).read()
        chat.end()
    assert not ana.memories.list()
    asked = "".join(m.content for r in extract_model.requests for m in r.messages)
    assert "heron" not in asked and "What do you say to this?" in asked
    assert not ana.search("heron count nineteen").hits


def test_a_deleted_chat_takes_the_bytes_of_its_attachments_along(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    chat_model.sees = True
    with mc.user("ana").chat() as chat:
        chat.send("Look", attachments=[REPORT, Chat.attachment("a.jpg", photo())]).read()
    data = mc.user("ana").sessions.messages(chat.session_id or 0)[0].attachments[1].data
    assert files_with(mc, "heron") and files_with(mc, data[200:240])
    mc.user("ana").sessions.delete(chat.session_id or 0)
    assert not files_with(mc, "heron") and not files_with(mc, data[200:240])


def test_forgetting_a_fact_blanks_it_in_attachments_and_in_their_names(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    extract_model.replies += [answer(), answer(fact("I live in Lisbon", "city", "Lisbon"))]
    ana = mc.user("ana")
    named = Chat.attachment("Lisbon report.txt", REPORT.text.encode())
    with ana.chat() as other:
        other.send("A report", attachments=[named]).read()
        other.redo("The report").read()  # the first version is not shown
    with ana.chat() as chat:
        chat.send("I live in Lisbon").read()
        chat.end()
    (memory,) = ana.memories.list()
    ana.memories.delete(memory.id)
    (kept,) = ana.sessions.messages(other.session_id or 0)[0].attachments
    assert kept.text == "I live in ······. The heron count was nineteen."
    assert not files_with(mc, "lisbon") and not rows_with(mc, "lisbon")


def test_an_incognito_chat_sends_attachments_and_keeps_them_in_memory_alone(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    with mc.user("ana").chat(incognito=True) as chat:
        chat.send("How many?", attachments=[REPORT]).read()
        assert "heron" in sent(chat_model)
        assert not files_with(mc, "heron")
        chat.redo().read()
        assert "heron" in sent(chat_model)
    assert not chat.turns and not files_with(mc, "heron")


def test_a_message_in_other_words_and_a_copied_chat_keep_the_attachments(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("How many?", attachments=[REPORT]).read()
        chat.redo("How many herons?").read()
        assert REPORT.text in sent(chat_model) and "How many herons?" in sent(chat_model)
    reply = ana.sessions.messages(chat.session_id or 0)[1]
    copied = ana.sessions.copy(chat.session_id or 0, before=reply.id)
    assert ana.sessions.messages(copied.id)[0].attachments == (REPORT,)


def test_an_export_brings_attachments_to_another_store_and_a_bad_one_is_refused(
    mc: MemChat, chat_model: ScriptedModel, tmp_path: Path
) -> None:
    chat_model.sees = True
    picture = Chat.attachment("a.jpg", photo())
    with mc.user("ana").chat() as chat:
        chat.send("Look", attachments=[REPORT, picture]).read()
    file = tmp_path / "all.jsonl"
    mc.user("ana").export_file(file)
    mc.user("ben").import_file(file)
    (session,) = mc.user("ben").sessions.list()
    assert mc.user("ben").sessions.messages(session.id)[0].attachments == (REPORT, picture)
    file.write_text(file.read_text().replace('"text/plain"', "3"))
    (refused,) = mc.user("cem").import_file(file).refused
    assert refused.reason == "its attachments hold what is no text"


def test_the_text_of_an_attachment_counts_against_the_model_s_window(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    long = Attachment("long.txt", "text/plain", "heron " * 16_000)
    with mc.user("ana").chat() as chat:
        with pytest.raises(InputError, match="send it in parts, or with less attached"):
            chat.send("Read this", attachments=[long]).read()
        assert not chat_model.requests


def test_a_picture_is_sent_to_a_model_that_sees_without_what_the_camera_told(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    chat_model.sees = True
    picture = Chat.attachment("a.jpg", photo((4000, 2000)))
    written = base64.b64decode(picture.data)
    assert b"Secretcam" not in written and b"at home" not in written and b"Exif" not in written
    assert Image.open(BytesIO(written)).size == (784, 1568), "upright, and no larger than is sent"
    with mc.user("ana").chat() as chat:
        chat.send("What is this?", attachments=[picture]).read()
        (image,) = chat_model.requests[-1].messages[-1].images
        assert image == f"data:image/jpeg;base64,{picture.data}"
        chat_model.sees = False
        chat.send("And now?").read()  # one that cannot see is told of it by name
        assert not chat_model.requests[-1].messages[1].images
        assert "[Attached: a.jpg]" in chat_model.requests[-1].messages[1].content


def test_a_model_that_is_not_known_to_see_is_sent_no_picture_and_the_error_says_what_to_do(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    with mc.user("ana").chat() as chat:
        with pytest.raises(InputError, match="not known to see pictures; have another model"):
            chat.send("Look", attachments=[Chat.attachment("a.jpg", photo())]).read()
        assert not chat_model.requests
        chat_model.sees = True
        assert chat.redo().read() == "Fine."  # the message is stored, with its picture
        assert chat_model.requests[-1].messages[-1].images


def test_a_provider_is_sent_pictures_in_openai_s_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    picture = Attachment("a.png", "image/png", data="aGVyb24=")
    turn = Message(1, 1, "user", "Look", NOW, attachments=(picture,))
    with OpenAIServer(key=KEY) as server:
        model = chat_of(server)
        assert model.sees and not chat_of(server, model="openai/of-nobody").sees
        list(model.stream(alternating([turn])))
        (request,) = server.requests
    assert request.body["messages"][-1]["content"] == [
        {"type": "text", "text": "Look\n\n[Attached: a.png]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVyb24="}},
    ]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.png", b"no picture", "no picture that can be read"),
        ("a.jpg", photo()[:300], "no picture that can be read"),
        ("a.txt", b"heron " * 20_000, "at most 100,000 go with a message; keep it as a note"),
        ("a.mp3", b"ID3", "it is a recording"),
        ("a.bin", bytes(range(256)), "save it as"),
        ("a.txt", b" ", "it holds no words"),
    ],
)
def test_a_file_that_cannot_go_along_is_refused_with_the_reason(
    name: str, data: bytes, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        Chat.attachment(name, data)


def test_a_message_has_ten_attachments_at_most(mc: MemChat) -> None:
    with mc.user("ana").chat() as chat:
        with pytest.raises(InputError, match="at most 10 attachments"):
            chat.send("Look", attachments=[REPORT] * 11)
        assert chat.session_id is None
