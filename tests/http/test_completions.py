"""Chat completions over HTTP: OpenAI's own client, a provider of the test's own, and the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memchat.config import tokens
from memchat.http.gate import Options
from tests.support.answers import answer, fact
from tests.support.served import Served, serving, until
from tests.support.store import WAIT
from tests.support.wire.server import Call, Endless, Fail, Say

CITY = {"role": "user", "content": "I live in Porto."}
WHERE = {"role": "user", "content": "Where do I live?"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_is_known_goes_before_the_messages_and_what_is_said_is_kept(
    served: Served, stream: bool
) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.provider.script(Say("You live in Porto."))
    reply = served.ask({"role": "system", "content": "Be brief."}, WHERE, stream=stream)
    if stream:
        text = "".join(part.choices[0].delta.content or "" for part in reply if part.choices)
    else:
        text = reply.choices[0].message.content
    assert text == "You live in Porto."
    system, asked = served.sent()
    assert system["content"].startswith("Be brief.") and "city: Porto" in system["content"]
    assert asked == WHERE
    until(lambda: any(len(turns) == 2 for turns in served.conversations()))
    assert served.conversations() == [[("user", WHERE["content"]), ("assistant", text)]]


def test_all_else_of_a_request_and_of_an_answer_is_passed_on_as_it_is(served: Served) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    more = {"temperature": 0.3, "stop": ["END"], "seed": 7, "user": "u", "tools": [tool], "n": 1}
    served.provider.script(Say("Fine."))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}
    reply = served.ask(said, **more)
    sent = served.provider.requests[-1].body
    assert {name: sent[name] for name in more} == more
    assert sent["messages"][-1] == said and sent["model"] == "gpt-4.1-mini"
    assert reply.usage.total_tokens > 0 and reply.choices[0].finish_reason == "stop"


def test_the_rounds_of_a_tool_are_one_turn_of_one_conversation(served: Served) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    served.provider.script(Call((("look", "{}"),)), Say("It rains in Porto."))
    list(served.ask(WHERE, stream=True))
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    served.ask(WHERE, asked, {"role": "tool", "tool_call_id": "c", "content": "rain"})
    assert served.conversations() == [
        [("user", "Where do I live?"), ("assistant", "It rains in Porto.")]
    ]


def test_words_before_a_tool_is_asked_for_stand_between_the_message_and_the_reply(
    served: Served,
) -> None:
    history = [*talked(served, "Hello."), WHERE]
    tool = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
    tools: Any = [{"type": "function", "function": tool}]
    served.provider.script(Call((("weather", "{}"),), text="Let me look."), Say("It rains."))
    list(served.ask(*history, tools=tools, stream=True))
    until(lambda: served.conversations()[0][-1][1] == "Let me look.")
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    asked = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    history += [asked, {"role": "tool", "tool_call_id": "c", "content": "rain"}]
    served.ask(*history)
    served.ask(*history, {"role": "assistant", "content": "It rains."}, CITY)
    (kept,) = served.conversations()
    assert [words for _, words in kept[2:6]] == [
        WHERE["content"], "Let me look.", "It rains.", CITY["content"],
    ]  # fmt: skip


def test_a_conversation_is_known_again_by_its_turns_and_only_what_is_new_is_added(
    served: Served,
) -> None:
    served.provider.script(Say("Noted."), Say("In Porto."), Say("Noted."), Say("Yes."))
    history: list[dict[str, Any]] = []
    for words in ("I live in Porto.", "Where do I live?"):
        history.append({"role": "user", "content": words})
        reply = served.ask(*history)
        history.append({"role": "assistant", "content": reply.choices[0].message.content})
    served.ask(CITY)  # another one that begins with the same words
    served.ask({"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, WHERE)
    told = [(one["role"], one["content"]) for one in history]
    assert served.conversations() == [
        told,
        told[:2],
        [("user", "Where do I live?"), ("assistant", "Yes.")],  # of an unknown one, what is new
    ]


def talked(served: Served, *said: str, token: str = "trust") -> list[dict[str, Any]]:
    """A history of these messages, each with a reply of its own."""
    history: list[dict[str, Any]] = []
    for n, words in enumerate(said):
        history.append({"role": "user", "content": words})
        served.provider.script(Say(f"Reply {n} to {words}"))
        reply = served.ask(*history, token=token)
        history.append({"role": "assistant", "content": reply.choices[0].message.content})
    return history


def test_another_last_message_after_the_same_history_stands_in_the_place_of_the_older_one(
    served: Served,
) -> None:
    history = talked(served, "Hello.", "I live in Porto.")
    served.provider.script(Say("Noted."), Say("Noted again."))
    for words in ("I live in Faro.", "I live in Faro."):  # in other words, and asked once more
        served.ask(*history[:2], {"role": "user", "content": words})
    told = [("user", "Hello."), ("assistant", "Reply 0 to Hello.")]
    assert served.conversations() == [
        [*told, ("user", "I live in Faro."), ("assistant", "Noted again.")]
    ]
    (session,) = served.ana.sessions.list()
    assert [len(ids) for ids in served.ana.sessions.versions(session.id).values()] == [3]


def test_what_a_message_taught_goes_with_it_where_another_stands_in_its_place(
    served: Served,
) -> None:
    history = talked(served, "Hello.", "I live in Porto.")
    served.extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    served.read()
    assert [m.value for m in served.ana.memories.list()] == ["Porto"]
    served.provider.script(Say("Noted."))
    served.ask(*history[:2], {"role": "user", "content": "I live in Faro."})
    assert list(served.ana.memories.list()) == []
    served.extract_model.replies.append(answer(fact("I live in Faro", "city", "Faro")))
    served.read()
    assert [m.value for m in served.ana.memories.list()] == ["Faro"]


def test_a_history_that_was_shortened_or_summed_up_goes_on_and_takes_nothing_back(
    served: Served,
) -> None:
    history = talked(served, "My cat is Minka.", "I live in Porto.", "I like tea.")
    summary = {"role": "system", "content": "Earlier: a cat, and Porto."}
    served.provider.script(Say("One."), Say("Two."))
    window = [*history[2:], {"role": "user", "content": "And coffee."}]
    served.ask(*window)  # a window that slides
    window.append({"role": "assistant", "content": "One."})
    served.ask(summary, *window[-2:], {"role": "user", "content": "And milk."})
    told = [(one["role"], one["content"]) for one in [*history, *window[-2:]]]
    assert served.conversations() == [[*told, ("user", "And milk."), ("assistant", "Two.")]]


def test_a_shortened_history_with_another_last_message_takes_nothing_back(served: Served) -> None:
    history = talked(served, "My cat is Minka.", "I live in Porto.", "I like tea.")
    served.provider.script(Say("Noted."))
    served.ask(*history[2:4], {"role": "user", "content": "I like coffee."})
    first, second = served.conversations()
    assert [words for _, words in first] == [one["content"] for one in history]
    assert second == [("user", "I like coffee."), ("assistant", "Noted.")]


def test_in_doubt_it_is_a_new_conversation(served: Served) -> None:
    served.provider.script(Say("Hi."), Say("Hi."), Say("Fine."))
    for _ in range(2):
        served.ask({"role": "user", "content": "Hello."})
    begun = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
    served.ask(*begun, CITY)
    assert [len(one) for one in served.conversations()] == [2, 2, 2]


def test_another_program_goes_on_in_a_conversation_of_its_own(served: Served) -> None:
    history = talked(served, "Hello.", "I live in Porto.")
    served.provider.script(Say("Noted."))
    served.ask(*history, WHERE, token="ask")
    assert [len(one) for one in served.conversations()] == [4, 2]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_why_tells_what_a_reply_was_given_by_the_id_in_its_header(
    served: Served, stream: bool
) -> None:
    city = served.ana.memories.add("profile", "city", "Porto")
    served.provider.script(Say("You live in Porto."))
    raw = served.client().chat.completions.with_raw_response.create(
        model="memchat",
        messages=[WHERE],
        stream=stream,  # type: ignore[list-item]
    )
    list(raw.parse())
    until(lambda: [len(one) for one in served.conversations()] == [2])
    why = served.ana.sessions.why(int(raw.headers["x-memchat-message"]))
    assert why.question == WHERE["content"] and why.prompt is not None
    assert city.id in {line.hit.id for line in (*why.lines, *why.also)}
    assert "Porto" in why.prompt[0].content


def test_the_headers_name_a_conversation_an_app_and_leave_memory_out(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    for header in ({"X-Memchat-Session": "s"}, {"X-Memchat-Session": "s"}):
        served.ask(CITY, extra_headers=header)
    served.ask(CITY, extra_headers={"X-Memchat-App": "work"})
    served.ask(WHERE, extra_headers={"X-Memchat-Memory": "Off"})
    assert served.sent() == [WHERE]
    with pytest.raises(openai.BadRequestError, match="on or off"):
        served.ask(WHERE, extra_headers={"X-Memchat-Memory": "no"})
    assert len(served.conversations()) == 1
    assert len(served.mc.user("ana", "work").sessions.list()) == 1


def test_a_front_end_s_own_requests_are_answered_and_not_kept(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    task = {"role": "user", "content": "### Task:\nGenerate a title for the chat."}
    served.ask(task)
    assert served.sent() == [task] and served.conversations() == []


def test_of_a_message_with_documents_before_it_the_person_s_own_words_are_kept(
    served: Served,
) -> None:
    task = "### Task:\nUse the context.\n\n<context>\n<source>tea</source>\n</context>\n"
    said = '<attached_files>\n<file name="tea.txt"/>\n</attached_files>\n\nWhat is this about?'
    history = talked(served, "Hello.")
    served.provider.script(Say("About tea."), Say("In Porto."))
    served.ask(*history, {"role": "user", "content": f"{task}\n{said}"})
    history += [{"role": "user", "content": said}, {"role": "assistant", "content": "About tea."}]
    served.ask(*history, {"role": "user", "content": f"{task}\nWhere do I live?"})
    (kept,) = served.conversations()
    assert [words for _, words in kept[2:]] == [
        "What is this about?", "About tea.", "Where do I live?", "In Porto.",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["X-Memchat-Session", "X-Chat-Id"])
def test_in_a_conversation_with_a_name_another_last_message_stands_in_the_place_of_the_older_one(
    tmp_path: Path, name: str
) -> None:
    with serving(tmp_path / "store", Options(session_header="x-chat-id")) as served:
        head = {name: "one"}
        first = served.ask(CITY, extra_headers=head).choices[0].message.content
        history = [CITY, {"role": "assistant", "content": first}]
        served.provider.script(Say("In Porto."), Say("In Porto, I think."), Say("Both."))
        for words in ("Where do I live?", "Where do I live now?"):
            served.ask(*history, {"role": "user", "content": words}, extra_headers=head)
        served.ask(WHERE, extra_headers={name: "two"})
        shown, other = served.conversations()
        assert [words for _, words in shown[2:]] == ["Where do I live now?", "In Porto, I think."]
        assert other == [("user", "Where do I live?"), ("assistant", "Both.")]


def test_the_first_message_said_anew_is_a_version_where_the_front_end_names_the_conversation(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "store", Options(session_header="x-chat-id")) as served:
        for words in ("I live in Porto.", "I live in Faro.", "I live in Faro."):
            served.ask({"role": "user", "content": words}, extra_headers={"X-Chat-Id": "one"})
        (kept,) = served.conversations()
        assert [words for role, words in kept if role == "user"] == ["I live in Faro."]
        (session,) = served.ana.sessions.list()
        assert [len(ids) for ids in served.ana.sessions.versions(session.id).values()] == [3]
        twice = [*served.headers().items(), ("X-Chat-Id", "one"), ("X-Chat-Id", "two")]
        url = f"{served.url}/v1/chat/completions"
        assert httpx.post(url, headers=twice, json={"messages": [CITY]}).status_code == 400


def test_a_client_that_names_its_conversation_may_send_what_is_new_alone(served: Served) -> None:
    for words in ("I live in Porto.", "I like tea."):
        one = {"role": "user", "content": words}
        served.ask(one, extra_headers={"X-Memchat-Session": "s"})
    (kept,) = served.conversations()
    assert [words for role, words in kept if role == "user"] == ["I live in Porto.", "I like tea."]


def test_what_a_program_sent_is_learned_as_its_mode_allows(served: Served) -> None:
    for token in ("ask", "trust"):
        said = fact("I live in Porto", "city" if token == "ask" else "hobby", "Porto")
        served.extract_model.replies.append(answer(said))
        served.ask(CITY, token=token)
        served.read()
    assert [m.key for m in served.ana.memories.list()] == ["hobby"]
    (waits,) = served.ana.inbox.list()
    assert waits.key == "city" and "ask sent it as your words" in waits.reason


def test_a_client_that_goes_away_keeps_the_words_that_came(served: Served) -> None:
    served.provider.script(Endless())
    stream = served.ask(WHERE, stream=True)
    for _ in range(3):
        next(stream)
    stream.close()
    until(lambda: any(len(turns) == 2 for turns in served.conversations()))
    ((asked, said),) = served.conversations()
    assert asked == ("user", WHERE["content"]) and said[1]


def test_the_provider_s_own_errors_come_through_and_nothing_is_kept(served: Served) -> None:
    served.provider.script(Fail(429, "slow down"))
    with pytest.raises(openai.RateLimitError, match="slow down"):
        served.ask(WHERE)
    assert served.conversations() == []


def test_models_are_listed_and_an_unknown_one_is_refused_without_a_request(served: Served) -> None:
    with served.client() as client:
        assert [m.id for m in client.models.list()] == ["memchat", "openai/gpt-4.1-mini"]
        for name in ("nowhere/x", "http://127.0.0.1:1/x", "gemini/x"):
            with pytest.raises(openai.NotFoundError, match="there is no such model"):
                client.chat.completions.create(model=name, messages=[WHERE])  # type: ignore[list-item]
        client.chat.completions.create(model="gpt-4o", messages=[WHERE])  # type: ignore[list-item]
    assert [r.body["model"] for r in served.provider.requests] == ["gpt-4o"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_without_the_format_gives_its_text_and_what_is_dropped_is_named(
    tmp_path: Path, stream: bool
) -> None:
    with serving(tmp_path / "store", chat_model="offline/chat") as served:
        served.ana.memories.add("preference", "tea", "green tea")
        # What is known stands in the developer's message, as it is the first.
        said = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Which tea do I like?"},
        ]
        more: Any = {"stream_options": {"include_usage": True}} if stream else {}
        with served.client() as client:
            raw = client.chat.completions.with_raw_response.create(
                model="memchat", messages=said, temperature=0.1, stream=stream, **more
            )
            reply: Any = raw.parse()
            pieces = [*reply] if stream else []
            parts = [choice.delta.content or "" for piece in pieces for choice in piece.choices]
            text = "".join(parts) if stream else reply.choices[0].message.content
            usage = pieces[-1].usage if stream else reply.usage
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0
        assert "green tea" in text
        assert raw.headers["x-memchat-dropped"] == "temperature"
        made_up = {"messages": [{"role": "user"}], "stream": True, "stream_options": "all"}
        address, headers = f"{served.url}/v1/chat/completions", served.headers()
        assert httpx.post(address, json=made_up, headers=headers).status_code == 200
        assert served.conversations()[0][1] == ("assistant", text)


REFUSED: dict[str, tuple[dict[str, str], int]] = {
    "no token": ({}, 401),
    "a wrong token": ({"authorization": "Bearer other"}, 401),
    "no bearer": ({"authorization": "Basic TRUST"}, 401),
    "another host": ({"authorization": "Bearer TRUST", "host": "evil.example"}, 421),
    "another origin": ({"authorization": "Bearer TRUST", "origin": "http://evil.example"}, 403),
    "another person": ({"authorization": "Bearer TRUST", "x-memchat-user": "ben"}, 403),
}


@pytest.mark.parametrize(("headers", "status"), REFUSED.values(), ids=REFUSED)
def test_who_is_not_let_in_gets_nothing(
    served: Served, headers: dict[str, str], status: int
) -> None:
    body = {"model": "memchat", "messages": [WHERE]}
    told = served.secrets["trust"]
    headers = {name: value.replace("TRUST", told) for name, value in headers.items()}
    for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/x")):
        given = json.dumps(body) if method == "POST" else None
        said = httpx.request(method, served.url + path, headers=headers, content=given)
        assert said.status_code == status, (path, said.text)
        told_so = said.json()
        assert told_so["error"]["message"] if path.startswith("/v1/") else told_so["detail"]
    assert served.provider.requests == [] and served.conversations() == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"messages": "x"}', b'{"messages": [1]}', b'{"messages": [{"role": 1}]}',
     b"\xff" * 9],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused(served: Served, body: bytes) -> None:
    said = httpx.post(f"{served.url}/v1/chat/completions", content=body, headers=served.headers())
    assert said.status_code == 400 and said.json()["error"]["message"]
    assert served.provider.requests == []


def test_who_has_no_token_is_not_told_where_the_tokens_lie(served: Served) -> None:
    (served.mc.settings.home / tokens.FILE).chmod(0o644)
    said = httpx.get(f"{served.url}/v1/models", headers=served.headers())
    assert said.status_code == 503 and "toml" not in said.text


def test_a_name_of_a_conversation_that_cannot_be_is_refused_before_a_model_is_asked(
    served: Served,
) -> None:
    with pytest.raises(openai.BadRequestError, match="200 characters"):
        served.ask(CITY, extra_headers={"X-Memchat-Session": "a" * 300})
    assert served.provider.requests == []


def test_an_app_that_cannot_be_is_refused(served: Served) -> None:
    with pytest.raises(openai.BadRequestError, match="app name"):
        served.ask(CITY, extra_headers={"X-Memchat-App": "a" * 400})


def test_a_body_without_end_is_refused_at_the_limit(served: Served) -> None:
    def endless() -> Iterator[bytes]:
        yield from [b" " * 2**20] * 40

    with httpx.Client(headers=served.headers(), timeout=WAIT) as client:
        try:
            said = client.post(f"{served.url}/v1/chat/completions", content=endless())
            assert said.status_code == 413
        except httpx.WriteError:
            pass  # the connection was closed first
    assert served.provider.requests == []


def test_where_memory_is_off_a_message_that_asks_to_forget_is_answered(served: Served) -> None:
    city = served.ana.memories.add("profile", "city", "Porto")
    served.ana.set_memory(False)
    served.ask({"role": "user", "content": "Forget my city."})
    assert served.ana.memories.get(city.id).active and not served.ana.inbox.list()


def test_what_a_message_asks_to_forget_is_out_of_use_and_asked_about(served: Served) -> None:
    city = served.ana.memories.add("profile", "city", "Porto")
    tea = served.ana.memories.add("preference", "drinks", "green tea")
    raw = served.client().chat.completions.with_raw_response.create(
        model="memchat", messages=[{"role": "user", "content": "Forget my city."}]
    )
    (item,) = served.ana.inbox.list()
    assert raw.headers["x-memchat-inbox"] == str(item.id) and item.memory_id == city.id
    assert [one.id for one in served.ana.memories.list()] == [tea.id]
    served.ask({"role": "user", "content": "Do not forget that I like rain."})
    assert len(served.ana.inbox.list()) == 1


def test_what_asks_to_be_remembered_is_read_at_once(served: Served) -> None:
    served.ask({"role": "user", "content": "Remember that I live in Porto."})
    served.extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    served.mc.jobs.run()
    assert [one.value for one in served.ana.memories.list()] == ["Porto"]


def test_vectors_are_those_of_the_store_or_another_model_s(served: Served) -> None:
    with served.client() as client:
        made = client.embeddings.create(model="memchat", input=["a cat", "a boat"])
        plain = client.embeddings.create(model="", input="a cat", encoding_format="float")
        assert [len(one.embedding) for one in made.data] == [len(plain.data[0].embedding)] * 2
        assert made.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
        other = client.embeddings.create(model="text-embedding-3-small", input=["a cat"])
        assert other.data and served.provider.requests[-1].body["input"] == ["a cat"]
        for wrong in ([], [1, 2], ""):
            with pytest.raises((openai.BadRequestError, openai.UnprocessableEntityError)):
                client.embeddings.create(model="memchat", input=wrong or [])
