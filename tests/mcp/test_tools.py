"""The tools: their schemas, their results, and who may write what through them."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from tests.support.answers import answer, fact
from tests.support.mcp import ask, call, text
from tests.support.planted import planted

MEMORY_TOOLS = {
    "remember", "recall", "forget", "list_memories", "update_memory", "promote_memory",
    "get_context", "list_topics",
}  # fmt: skip
OTHERS = {"index_memo", "query_memory", "ask", "run_workflow", "get_capabilities"}
READS = {"recall", "list_memories", "get_context", "list_topics", *OTHERS} - {
    "index_memo",
    "run_workflow",
}
MEMO = {"memoId": "m1", "createdAt": "2026-05-01", "title": "Garden"}


@pytest.fixture
def ana(mc):
    return mc.user("ana")


def tools(mc, ana) -> dict:
    found = ask(mc, ana, lambda client: client.list_tools()).tools
    return {tool.name: tool for tool in found}


def read(mc, ana, place: str) -> str:
    return ask(mc, ana, lambda client: client.read_resource(place)).contents[0].text


def test_each_tool_says_when_to_call_it_and_what_it_does_to_the_store(mc, ana) -> None:
    found = tools(mc, ana)
    assert found.keys() == MEMORY_TOOLS | OTHERS
    for name, tool in found.items():
        assert len(tool.description) > 60 and "\n" not in tool.description, name
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.annotations.read_only_hint == (name in READS), name
        destructive = name in {"forget", "update_memory"}
        assert bool(tool.annotations.destructive_hint) == destructive, name
        assert tool.annotations.open_world_hint is (name == "run_workflow")


def test_both_searches_say_what_a_result_that_is_not_confident_is_worth(mc, ana) -> None:
    found = tools(mc, ana)
    for name in ("recall", "query_memory"):
        assert "not confident may have nothing to do with the question" in found[name].description
    called = call(mc, ana, "remember", type="fact", key="pet", value="a dog").structured_content
    (weak,) = call(mc, ana, "recall", query="zzz").structured_content["found"]
    assert (weak["id"], weak["confident"]) == (called["memory"]["id"], False)
    for number in range(6):
        ana.memories.add("fact", f"boat_{number}", "a red kayak")
    for limit in (5, 20):  # only a terminal shows fewer of them
        found = call(mc, ana, "recall", query="zzz", limit=limit).structured_content["found"]
        assert [one["confident"] for one in found] == [False] * min(limit, 7)


def test_the_tools_of_the_seed_have_its_names_and_schemas(mc, ana) -> None:
    found = tools(mc, ana)
    memo, query = found["index_memo"].input_schema, found["query_memory"].input_schema
    assert set(memo["required"]) == {"memoId", "transcript", "createdAt"}
    assert memo["properties"].keys() == {"memoId", "title", "transcript", "createdAt"}
    assert query["required"] == ["question"]
    assert {"topK", "dateFilter"} <= query["properties"].keys()
    assert query["properties"]["topK"]["default"] == 5


def test_a_result_is_the_same_as_text_and_as_structure_and_fits_its_schema(mc, ana) -> None:
    call(mc, ana, "remember", type="preference", key="drinks", value="green tea")
    schemas = {name: tool.output_schema for name, tool in tools(mc, ana).items()}
    for name, arguments in {
        "recall": {"query": "green tea"},
        "list_memories": {},
        "get_context": {"message": "hello"},
        "get_capabilities": {},
        "remember": {"type": "fact", "key": "pet", "value": "a dog"},
    }.items():
        result = call(mc, ana, name, **arguments)
        assert json.loads(text(result)) == result.structured_content
        assert "\n" not in text(result), "a model reads no indentation"
        Draft202012Validator(schemas[name]).validate(result.structured_content)


def test_what_was_remembered_is_recalled_whole_and_counted(mc, ana) -> None:
    value = "x" * 50 + " walks along the river"
    call(mc, ana, "remember", type="fact", key="habit", value=value)
    found = call(mc, ana, "recall", query="walks along the river").structured_content["found"]
    assert value in found[0]["text"] and found[0]["kind"] == "memory" and not found[0]["cut"]
    counts = ana.memories.use_counts(found[0]["id"])
    assert (counts.found, counts.given) == (1, 1)
    call(mc, ana, "list_memories")
    assert ana.memories.use_counts(found[0]["id"]) == counts


def test_a_result_is_never_longer_than_asked_and_says_where_it_was_cut(mc, ana) -> None:
    ana.add("The river walk " + "was long and lovely, " * 100, wait=False)
    found = call(mc, ana, "recall", query="river walk", max_chars=200).structured_content["found"]
    assert sum(len(one["text"]) for one in found) <= 200 and found[-1]["cut"]


def test_lists_come_in_pages(mc, ana) -> None:
    for number in range(5):
        ana.memories.add("fact", f"item_{number}", f"value {number}")
    first = call(mc, ana, "list_memories", limit=3).structured_content
    rest = call(mc, ana, "list_memories", limit=3, cursor=first["next_cursor"]).structured_content
    assert [len(first["memories"]), len(rest["memories"])] == [3, 2]
    assert "next_cursor" not in rest


def test_recall_filters_by_tags_before_its_limit_and_counts_only_with_a_query(mc, ana) -> None:
    memo = {"type": "fact", "key": "boat", "value": "a red kayak", "tags": ["Water Sports"]}
    done = call(mc, ana, "remember", **memo).structured_content
    assert done["memory"]["tags"] == ["water-sports"]
    boat = done["memory"]["id"]
    for number in range(3):
        ana.memories.add("fact", f"kayak_{number}", f"a red kayak {number}")
    mc.jobs.run()

    def found(tool: str, name: str, **arguments) -> list[tuple]:
        result = call(mc, ana, tool, tags=["water sports"], **arguments).structured_content
        return [(one["id"], one["tags"]) for one in result[name]]

    assert found("recall", "found", limit=1) == [(boat, ["water-sports"])]
    assert found("list_memories", "memories", limit=1) == [(boat, ["water-sports"])]
    assert ana.memories.use_counts(boat).given == 0
    assert found("recall", "found", query="red kayak 2", limit=1) == [(boat, ["water-sports"])]
    assert ana.memories.use_counts(boat).given == 1


def test_recall_without_a_query_gives_the_newest_memories_first(mc, ana, clock) -> None:
    for name in ("apple", "birch", "cedar"):
        clock.advance(seconds=60)
        ana.memories.add("fact", name, "a plant")
    result = call(mc, ana, "recall", limit=2).structured_content
    told = [(one["text"], one["score"]) for one in result["found"]]
    assert told == [("Cedar: a plant", None), ("Birch: a plant", None)]
    schema = tools(mc, ana)["recall"].output_schema
    Draft202012Validator(schema).validate(result)
    for number in range(60):
        ana.memories.add("fact", f"plant_{number}", "a plant")
    assert len(call(mc, ana, "recall").structured_content["found"]) == 50
    searched = call(mc, ana, "recall", query="plant").structured_content["found"]
    assert len(searched) == 10


def test_update_gives_more_tags_and_leaves_the_value(mc, ana) -> None:
    city = ana.memories.add("profile", "city", "Lisbon", tags=["home"])
    done = call(mc, ana, "update_memory", memory_id=city.id, tags=["Sun"]).structured_content
    assert (done["status"], done["memory"]["value"]) == ("stored", "Lisbon")
    assert done["memory"]["tags"] == ["home", "sun"]
    waits = call(mc, ana, "update_memory", as_mode="ask", memory_id=city.id, tags=["sea"])
    assert waits.structured_content["status"] == "waiting"
    assert ana.memories.get(city.id).tags == ("home", "sun")
    nothing = call(mc, ana, "update_memory", memory_id=city.id)
    assert nothing.is_error and "give a value or tags" in text(nothing)
    bad = call(mc, ana, "recall", tags=["x" * 41])
    assert bad.is_error and "at most 40" in text(bad)


def test_in_the_mode_ask_the_result_says_that_the_person_decides(mc, ana) -> None:
    result = call(mc, ana, "remember", as_mode="ask", type="fact", key="pet", value="a dog")
    assert result.structured_content["status"] == "waiting" and "inbox" in text(result)
    assert list(ana.memories.list()) == [] and len(ana.inbox.list()) == 1


def test_the_persons_own_words_are_quoted_as_recall_gives_them(mc, ana, extract_model) -> None:
    extract_model.replies.append(answer())
    ana.add("I live in Porto.", wait=False)
    (hit,) = call(mc, ana, "recall", query="live in Porto").structured_content["found"]
    quote = {"session_id": hit["session_id"], "text": "I live in Porto"}
    fact = {"type": "profile", "key": "home_city", "value": "Porto", "quote": quote}
    done = call(mc, ana, "remember", as_mode="ask", **fact).structured_content
    assert (done["status"], done["memory"]["created_by"]) == ("stored", "auto")


def test_forget_and_update_through_the_tools(mc, ana) -> None:
    learned = call(mc, ana, "remember", type="fact", key="employer", value="Acme")
    number = learned.structured_content["memory"]["id"]
    changed = call(mc, ana, "update_memory", memory_id=number, value="Bolt").structured_content
    assert changed["status"] == "stored"
    assert changed["replaced"] == "Acme" and "Acme" in changed["message"]
    found = call(mc, ana, "recall", query="Acme").structured_content["found"]
    assert number not in {one["id"] for one in found if one["kind"] == "memory"}
    forgotten = call(mc, ana, "forget", memory_id=changed["memory"]["id"]).structured_content
    assert forgotten["status"] == "hidden"
    assert call(mc, ana, "recall", query="Bolt").structured_content["found"] == []


def test_the_result_of_remember_shows_similar_memories_and_how_one_is_replaced(mc, ana) -> None:
    old = {"type": "fact", "key": "gym_day", "value": "Wednesday at the gym"}
    new = {"type": "fact", "key": "sport_day", "value": "Thursday at the gym"}
    first = call(mc, ana, "remember", **old).structured_content
    number = first["memory"]["id"]
    assert not {"similar", "hint", "replaced"} & first.keys()
    beside = call(mc, ana, "remember", **new).structured_content
    assert [one["id"] for one in beside["similar"]] == [number] and "replaces" in beside["hint"]
    done = call(mc, ana, "remember", **new, replaces=number).structured_content
    assert done["replaced"] == old["value"] and old["value"] in done["message"]
    assert [memory.value for memory in ana.memories.list()] == [new["value"]]


def test_a_fact_that_replaces_another_asks_for_the_part_that_still_holds(mc, ana) -> None:
    old = {"type": "fact", "key": "choir", "value": "alto in the choir of St Anne"}
    number = call(mc, ana, "remember", **old).structured_content["memory"]["id"]
    new = {"type": "fact", "key": "voice", "value": "tenor", "replaces": number}
    done = call(mc, ana, "remember", **new).structured_content
    assert "part" in done["hint"] and "update_memory" in done["hint"]
    whole = {"memory_id": done["memory"]["id"], "value": "tenor in the choir of St Anne"}
    assert "hint" not in call(mc, ana, "update_memory", **whole).structured_content
    assert [memory.value for memory in ana.memories.list()] == [whole["value"]]


def test_an_update_says_what_it_replaced_and_that_a_last_day_is_gone(mc, ana) -> None:
    days = {"starts_at": "2099-01-01", "expires_at": "2099-03-01"}
    trip = call(mc, ana, "remember", type="fact", key="stay", value="in Porto", **days)
    number = trip.structured_content["memory"]["id"]
    done = call(mc, ana, "update_memory", memory_id=number, value="in Braga").structured_content
    assert done["replaced"] == "in Porto" and "2099-03-01" in done["message"]
    assert done["memory"]["starts_at"] == "2099-01-01" and "expires_at" not in done["memory"]


def test_a_memo_is_indexed_and_found_in_the_seeds_form(mc, ana, chat_model) -> None:
    said = "We agreed on four hundred euros for the garden. " * 3
    assert text(call(mc, ana, "index_memo", transcript=said, **MEMO)) == "Indexed 1 chunks"
    found = json.loads(text(call(mc, ana, "query_memory", question="garden euros")))
    assert found[0].keys() >= {"memoId", "title", "content", "date", "score"}
    assert (found[0]["memoId"], found[0]["title"]) == ("m1", "Garden")
    assert found[0]["chunkId"] == "m1-0"
    assert found[0]["content"] == said.strip()
    later = call(mc, ana, "query_memory", question="garden euros", dateFilter="2026-05-02")
    assert json.loads(text(later)) == []
    chat_model.replies.appendleft("Four hundred euros [1].")
    answer = call(mc, ana, "ask", question="What is the budget for the garden?").structured_content
    assert answer["answer"] == "Four hundred euros [1]."
    assert [(one["number"], one["memoId"]) for one in answer["sources"]] == [(1, "m1")]


def test_while_memory_is_off_no_tool_of_memory_is_offered(mc, ana) -> None:
    ana.set_memory(False)
    assert tools(mc, ana).keys() == OTHERS
    for name, arguments in {
        "recall": {"query": "x"},
        "remember": {"type": "fact", "key": "a", "value": "b"},
        "list_memories": {},
    }.items():
        result = call(mc, ana, name, **arguments)
        assert result.is_error and "memory is off" in text(result)
    able = call(mc, ana, "get_capabilities").structured_content
    assert not able["memory_on"] and not MEMORY_TOOLS & set(able["tools"])


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("remember", {"type": "opinion", "key": "a", "value": "b"}, "type"),
        ("remember", {"type": "fact", "key": "password", "value": "hunter2abc!"}, "password"),
        ("remember", {"type": "fact", "key": "a"}, "value"),
        (
            "remember",
            {"type": "fact", "key": "a", "value": "b", "expires_at": "soon"},
            "expires_at",
        ),
        (
            "remember",
            {"type": "fact", "key": "a", "value": "b", "expires_at": "2001-01-01"},
            "give today, 2",
        ),
        ("recall", {"query": ""}, "query"),
        ("recall", {"query": "a", "limit": 0}, "limit"),
        ("forget", {"memory_id": 99}, "no memory 99"),
        ("update_memory", {"memory_id": 10**30, "value": "b"}, "memory"),
        ("list_memories", {"cursor": "nonsense"}, "cursor"),
        ("index_memo", {"memoId": "m", "transcript": "a", "createdAt": "soon"}, "ISO date"),
        ("query_memory", {"question": "a", "dateFilter": "soon"}, "ISO date"),
        ("query_memory", {"question": "a", "topK": 0}, "topK"),
        ("ask", {"question": " "}, "question"),
        ("get_context", {"message": "a", "max_tokens": 0}, "max_tokens"),
    ],
)
def test_a_bad_call_is_an_error_in_one_plain_line_and_the_server_lives_on(
    mc, ana, tool, arguments, says
) -> None:
    async def both(client):
        failed = await client.call_tool(tool, arguments)
        return failed, await client.call_tool("get_capabilities", {})

    failed, after = ask(mc, ana, both)
    assert failed.is_error and says in text(failed) and "Traceback" not in text(failed)
    assert "\n" not in text(failed) and "pydantic" not in text(failed)
    assert not after.is_error
    assert list(ana.memories.list()) == [] and list(ana.notes.list()) == []


def test_resources_and_the_prompt_give_a_memory_a_note_and_the_profile(mc, ana) -> None:
    memory = ana.memories.add("profile", "city", "Porto")
    note = ana.notes.add("The garden costs four hundred euros.", title="Garden")

    async def read(client):
        names = {str(one.uri) for one in (await client.list_resources()).resources}
        templates = (await client.list_resource_templates()).resource_templates
        found = [
            (await client.read_resource(f"memchat://{place}")).contents[0].text
            for place in ("profile", f"memories/{memory.id}", f"notes/{note.id}")
        ]
        prompt = await client.get_prompt("profile")
        return names, {one.uri_template for one in templates}, found, prompt.messages[0]

    names, templates, (profile, one, whole), prompt = ask(mc, ana, read)
    assert names == {"memchat://profile"}
    assert templates == {
        "memchat://memories/{memory_id}",
        "memchat://notes/{note_id}",
        "memchat://notes/{note_id}/parts/{part}",
    }
    assert "city: Porto" in profile and "city: Porto" in prompt.content.text
    assert json.loads(one)["value"] == "Porto"
    assert json.loads(whole)["text"] == "The garden costs four hundred euros."


def test_a_resource_of_someone_else_is_not_there(mc, ana) -> None:
    foreign = mc.user("bob").memories.add("profile", "city", "Oslo")
    for place in (f"memories/{foreign.id}", "memories/x", "notes/1", "memories/" + "9" * 40):

        async def read(client, place=place):
            with pytest.raises(MCPError, match=r"no memory|no note|an id is a number") as failed:
                await client.read_resource(f"memchat://{place}")
            assert "memchat " not in str(failed.value), "a model has no terminal"

        ask(mc, ana, read)


def test_arguments_that_do_not_fit_are_not_repeated(mc, ana) -> None:
    for arguments in ({"memory_id": "hunter2abc"}, {"memory_id": 1.5}, {}):
        failed = call(mc, ana, "forget", **arguments)
        said = text(failed)
        assert failed.is_error and said.startswith("forget cannot be called so; memory_id: ")
        assert "hunter2abc" not in said and "\n" not in said


def test_what_does_not_fit_is_said_in_plain_words(mc, ana) -> None:
    wrong = {
        "key: is missing": ("remember", {"type": "fact", "value": "a dog"}),
        "memory_id: has to be a whole number": ("forget", {"memory_id": "x"}),
        "limit: has to be 50 or less": ("recall", {"query": "dog", "limit": 51}),
        "query: is empty or too short": ("recall", {"query": ""}),
        "tags: has to be a list": ("list_memories", {"tags": 7}),
        "'animal' is no type; use preference": ("list_memories", {"type": "animal"}),
        "expires_at: has to be a day as YYYY-MM-DD": (
            "remember",
            {"type": "fact", "key": "pet", "value": "a dog", "expires_at": "soon"},
        ),
    }
    for said, (tool, arguments) in wrong.items():
        failed = text(call(mc, ana, tool, **arguments))
        assert said in failed, failed
        for word in ("Input should", "Field", "pydantic", "validation", "literal", "str]", "int_"):
            assert word not in failed, failed


def test_a_passage_that_is_cut_says_so_and_is_whole_in_its_resource(mc, ana) -> None:
    said = "The garden budget is four hundred euros, and a tree. " * 30
    call(mc, ana, "index_memo", transcript=said, **MEMO)
    cut = json.loads(text(call(mc, ana, "query_memory", question="garden", max_chars=200)))
    assert sum(len(one["content"]) for one in cut) <= 200 and cut[-1]["cut"]
    (place,) = {one["resource"] for one in cut}
    whole = ask(mc, ana, lambda client: client.read_resource(place)).contents[0].text
    assert json.loads(whole)["text"].strip() == said.strip()
    brief = call(mc, ana, "index_memo", **{**MEMO, "memoId": "m2"}, transcript="A roof leaks.")
    assert not brief.is_error
    assert not json.loads(text(call(mc, ana, "query_memory", question="roof")))[0]["cut"]


def test_what_looks_like_a_secret_in_a_note_goes_to_no_program(mc, ana) -> None:
    note = ana.notes.add(
        "The bank. My password is hunter2-Tr0ub4dor, and the card is 4111 1111 1111 1111.",
        title="PIN is 4829",
    )
    found = text(call(mc, ana, "query_memory", question="bank password"))
    place = f"memchat://notes/{note.id}"
    whole = ask(mc, ana, lambda client: client.read_resource(place)).contents[0].text
    for said in (found, whole):
        assert "[password]" in said and "The bank." in said
        assert not any(secret in said for secret in ("hunter2", "4111", "4829"))


def test_what_looks_like_a_secret_in_a_title_is_masked_in_the_sources_of_an_answer(
    mc, ana, chat_model
) -> None:
    ana.notes.add("The bank closes at nine.", title="PIN is 4829")
    chat_model.replies.appendleft("At nine [1].")
    result = call(mc, ana, "ask", question="When does the bank close?").structured_content
    assert [one["title"] for one in result["sources"]] == ["PIN is [password]"]


def test_a_memory_says_from_which_conversation_and_which_app_it_comes(
    mc, ana, extract_model
) -> None:
    said = "I live in Porto"
    extract_model.replies.append(answer(fact(said, "city", "Porto")))
    session_id = ana.add(said).session_id
    entered = ana.memories.add("fact", "pet", "a dog")
    work = mc.user("ana", app="work")
    shared = work.memories.add("fact", "desk", "by the window in Porto")
    work.memories.update(shared.id, all_apps=True)
    listed = call(mc, ana, "list_memories").structured_content["memories"]
    origins = {one["key"]: (one.get("session_id"), one.get("promoted_from")) for one in listed}
    assert origins == {"city": (session_id, None), "pet": (None, None), "desk": (None, "work")}
    found = call(mc, ana, "recall", query="Porto").structured_content["found"]
    of_memories = {one["id"]: one for one in found if one["kind"] == "memory"}
    assert of_memories[shared.id]["promoted_from"] == "work"
    assert {one.get("session_id") for one in of_memories.values()} == {session_id, None}
    place = f"memchat://memories/{entered.id}"
    assert "session_id" not in json.loads(read(mc, ana, place))
    newest = call(mc, ana, "recall").structured_content["found"]
    assert {one.get("promoted_from") for one in newest} == {"work", None}


def test_the_chunks_of_a_memo_have_its_id_and_their_place(mc, ana) -> None:
    said = " ".join(f"In week {number} the garden cost {number} euros." for number in range(400))
    made = call(mc, ana, "index_memo", transcript=said, **MEMO).structured_content
    assert made["chunks"] > 3
    assert made["chunkIds"] == [f"m1-{place}" for place in range(made["chunks"])]
    asked = call(mc, ana, "query_memory", question="garden euros", topK=50, max_chars=100_000)
    found = {one["chunkId"]: one["content"] for one in json.loads(text(asked))}
    assert found.keys() == set(made["chunkIds"])
    assert found["m1-0"].startswith("In week 0 ") and said.endswith(found[made["chunkIds"][-1]])


def test_a_long_note_is_read_in_parts_and_no_secret_is_cut_in_two(mc, ana) -> None:
    secret = "My password is hunter2-Tr0ub4dor"
    filler = "The garden is green. "
    said = (filler * 5_000)[: 100_000 - len(secret) + 5] + f"{secret} {filler * 10}"
    note = ana.notes.add(said, profile="document", wait=False)
    place, texts = f"memchat://notes/{note.id}", []
    while place is not None:
        part = json.loads(read(mc, ana, place))
        assert len(part["text"]) <= 100_100
        texts.append(part["text"])
        place = part["next"]
    assert len(texts) == part["parts"] == 2
    assert "hunter2" not in texts[0] + texts[1] and "[password]" in texts[0] + texts[1]
    left = note.text.replace(secret, "")
    assert (texts[0] + texts[1]).replace("My password is [password][password]", "") == left

    async def beyond(client):
        with pytest.raises(MCPError, match="parts 1 to 2"):
            await client.read_resource(f"memchat://notes/{note.id}/parts/3")

    ask(mc, ana, beyond)


def test_while_memory_is_off_no_resource_and_no_prompt_gives_a_memory(mc, ana) -> None:
    memory = ana.memories.add("profile", "city", "Porto")
    ana.set_memory(False)

    async def read(client):
        with pytest.raises(MCPError, match="memory is off"):
            await client.read_resource(f"memchat://memories/{memory.id}")
        profile = (await client.read_resource("memchat://profile")).contents[0].text
        return profile + (await client.get_prompt("profile")).messages[0].content.text

    said = ask(mc, ana, read)
    assert "Porto" not in said and "memory is off" in said


def test_topics_are_listed_and_narrow_a_search(mc, ana) -> None:
    assert call(mc, ana, "list_topics").structured_content["topics"] == []
    ana.notes.add_many(planted(1))
    first, *_ = ana.notes.find_topics()
    found = call(mc, ana, "list_topics").structured_content["topics"]
    assert [one["notes"] for one in found] == [20, 20, 20]
    assert found[0]["id"] == first.id and found[0]["words"] == list(first.words)
    hits = call(mc, ana, "query_memory", question="boat dough violin", topic=first.id, topK=50)
    titles = {one["title"] for one in hits.structured_content["result"]}
    assert titles == {note.title for note in ana.notes.list(topic=first.id)}
