"""Types of memories that a program or a person declares beside the four usual ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from memchat import ConfigError, InputError, MemChat, OwnType, config
from memchat.prompts import Prompts
from memchat.testing import ScriptedModel
from memchat.types import OFFER_LIMIT
from tests.support.answers import answer, fact
from tests.support.mcp import ask, call
from tests.support.store import Opener

DISH = Annotated[str, Field(pattern="^[^0-9]+$")]
TYPES = {"recipe": OwnType("dishes they cook", ["dish", "side_dish"], check=DISH)}
SAYS = [{"role": "user", "content": "I cook ratatouille, and I run 10 km on Sundays."}]


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    return open_store(types=TYPES)


@pytest.fixture
def ana(mc: MemChat) -> Any:
    return mc.user("ana")


def proposed(**more: Any) -> dict[str, Any]:
    return fact("I cook ratatouille", "dish", "ratatouille", **{"memory_type": "recipe"} | more)


def test_a_conversation_teaches_one_which_is_listed_searched_and_filtered_by_its_type(
    ana: Any, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append(answer(proposed()))
    assert [c.memory.memory_type for c in ana.add(SAYS).changes if c.memory] == ["recipe"]
    ana.memories.add("fact", "dessert", "flan")
    assert [m.value for m in ana.memories.list(type="recipe")] == ["ratatouille"]
    assert [hit.memory.value for hit in ana.search("dish", type="recipe").hits] == ["ratatouille"]
    assert "ratatouille" in ana.context("What can I cook?").text


def test_the_reader_is_told_of_them_in_few_words_and_may_answer_with_no_other(
    ana: Any, extract_model: ScriptedModel, open_store: Opener, tmp_path: Path
) -> None:
    extract_model.schema_mode = True
    extract_model.replies += [answer()] * 2
    ana.add(SAYS)
    with open_store(home=tmp_path / "usual") as usual:
        usual.user("ana").add(SAYS)
    told, without = (call.messages[0].content for call in extract_model.requests)
    assert told.startswith(without)
    added = told.removeprefix(without)
    assert "- recipe: dishes they cook (keys: dish, side_dish)" in added
    longest = Prompts().render("types", types="x" * OFFER_LIMIT)
    assert len(added) <= len(longest) <= 600
    kinds = extract_model.requests[0].schema["properties"]["facts"]["items"]["properties"]["type"]
    assert kinds["enum"] == ["preference", "profile", "fact", "other", "recipe"]


def test_a_value_that_does_not_fit_is_not_kept_and_the_person_is_told_why(
    ana: Any, extract_model: ScriptedModel
) -> None:
    wrong = fact("I run 10 km on Sundays", "run", "10 km", memory_type="recipe")
    extract_model.replies.append(answer(wrong))
    ana.add(SAYS)
    assert ana.memories.list() == []
    (refusal,) = ana.inbox.refusals()
    assert "does not fit the type recipe" in refusal.reason and "10 km" not in refusal.reason
    with pytest.raises(InputError, match="does not fit the type recipe"):
        ana.memories.add("recipe", "dish", "7 eggs")
    memory = ana.memories.add("recipe", "dish", "ratatouille")
    with pytest.raises(InputError, match="does not fit the type recipe"):
        ana.memories.update(memory.id, value="7 eggs")
    assert ana.memories.get(memory.id).value == "ratatouille"


def test_what_is_held_already_may_stay_and_end_whatever_the_check_says(
    ana: Any, mc: MemChat, extract_model: ScriptedModel, open_store: Opener
) -> None:
    number = ana.memories.add("recipe", "dish", "ratatouille").id
    mc.close()
    with open_store(types={"recipe": OwnType("dishes", check=int)}) as stricter:
        theirs = stricter.user("ana")
        assert theirs.memories.update(number, sensitive=True).sensitive
        assert theirs.memories.update(number, key="side_dish").value == "ratatouille"
        with pytest.raises(InputError, match="does not fit the type recipe"):
            theirs.memories.update(number, value="flan")
        ends = fact("I no longer cook ratatouille", "side_dish", "", memory_type="recipe")
        extract_model.replies.append(answer(ends | {"is": "ends", "to": "k1"}))
        (change,) = theirs.add("I no longer cook ratatouille.").changes
        assert "Is side dish: ratatouille over?" in (change.reason or "")


def test_the_inbox_keeps_to_the_check_too(ana: Any, extract_model: ScriptedModel) -> None:
    extract_model.replies.append(answer(proposed()))
    ana.add(SAYS, through="page")
    (item,) = ana.inbox.list()
    with pytest.raises(InputError, match="does not fit the type recipe"):
        ana.inbox.accept(item.id, value="7 eggs")
    assert ana.inbox.accept(item.id).value == "ratatouille"


def broken(_: str) -> str:
    raise KeyError("7 eggs")


def said_no(_: str) -> str:
    raise ValueError("7 eggs are too many")


@pytest.mark.parametrize(
    ("check", "told"),
    [(broken, r"its check failed \(KeyError\)"), (said_no, "its check refuses it")],
)
def test_a_check_that_breaks_keeps_no_other_fact_from_being_read_and_tells_no_word(
    open_store: Opener, extract_model: ScriptedModel, check: Any, told: str
) -> None:
    mc = open_store(
        types={"recipe": OwnType("dishes", check=Annotated[str, AfterValidator(check)])}
    )
    run = fact("I run 10 km on Sundays", "run", "10 km")
    extract_model.replies.append(answer(proposed(), run))
    learned = mc.user("ana").add(SAYS)
    assert [c.memory.key for c in learned.changes if c.memory] == ["run"]
    (refusal,) = mc.user("ana").inbox.refusals()
    assert re.search(told, refusal.reason) and "eggs" not in refusal.reason


def test_what_is_no_check_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none that pydantic knows"):
        MemChat(tmp_path, types={"recipe": OwnType("dishes", check=3)})


def test_one_fact_has_one_slot_whatever_its_type(ana: Any) -> None:
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("recipe", "city", "Porto")
    assert [(m.memory_type, m.value) for m in ana.memories.list()] == [("recipe", "Porto")]


def test_a_type_that_is_no_longer_declared_keeps_its_memories(
    ana: Any, mc: MemChat, open_store: Opener
) -> None:
    number = ana.memories.add("recipe", "dish", "ratatouille").id
    mc.close()
    with open_store() as usual:
        theirs = usual.user("ana").memories
        assert [m.memory_type for m in theirs.list()] == ["recipe"]
        assert theirs.update(number, value="7 eggs").memory_type == "recipe"
        with pytest.raises(InputError, match="'recipe' is no type; use preference, profile, fact"):
            theirs.add("recipe", "dish", "flan")
        with pytest.raises(InputError, match="'recipe' is no type"):
            theirs.list(type="recipe")


def test_it_moves_to_another_store_whether_that_one_declares_it_or_not(
    ana: Any, open_store: Opener, tmp_path: Path
) -> None:
    ana.memories.add("recipe", "dish", "ratatouille")
    ana.export_file(tmp_path / "export")
    with open_store(home=tmp_path / "other") as other:
        other.user("ana").import_file(tmp_path / "export")
        assert [m.memory_type for m in other.user("ana").memories.list()] == ["recipe"]


def test_the_settings_file_declares_them_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[types.recipe]\ndescription = "dishes they cook"\nkeys = ["dish"]\n')
    file.chmod(0o600)
    with MemChat(settings=config.load({"MEMCHAT_HOME": str(tmp_path)}), types={}) as mc:
        assert mc.user("ana").memories.own_types == {
            "recipe": OwnType("dishes they cook", ["dish"])
        }
        assert mc.user("ana").memories.add("recipe", "dish", "flan").memory_type == "recipe"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("[types.Recipe]\ndescription = 'dishes'", "small letters"),
        ("[types.fact]\ndescription = 'dishes'", "none of preference"),
        ("[types.recipe]\nkeys = ['dish']", "description"),
        ("[types.recipe]\ndescription = ''", "on one line"),
        ("[types.recipe]\ndescription = 'a'\nkeys = 'dish'", "a list of keys"),
        ("[types.recipe]\ndescription = 'a'\nkey = 'dish'", "nothing else"),
        ("[types.recipe]\ndescription = 7", "on one line"),
        ("[types.recipe]\ndescription = 'a'\nkeys = [7]", "a list of keys"),
        ("[types]\nrecipe = 'dishes'", "nothing else"),
        (f"[types.recipe]\ndescription = '{'a' * 499}'", "at most 500"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_the_reason(
    tmp_path: Path, table: str, told: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(table)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=told) as error:
        config.load({"MEMCHAT_HOME": str(tmp_path)})
    assert str(file) in str(error.value)


def test_programs_are_told_of_them_and_may_store_them(mc: MemChat, ana: Any) -> None:
    tools = ask(mc, ana, lambda client: client.list_tools()).tools
    remember = next(tool for tool in tools if tool.name == "remember")
    kind = remember.input_schema["properties"]["type"]
    assert kind["enum"] == ["preference", "profile", "fact", "other", "recipe"]
    assert kind["description"].endswith("recipe: dishes they cook")
    call(mc, ana, "remember", type="recipe", key="dish", value="flan")
    assert [m.memory_type for m in ana.memories.list()] == ["recipe"]


def test_the_command_line_takes_and_filters_by_them(run: Any, home: Path) -> None:
    home.mkdir(exist_ok=True)
    settings = home / "settings.toml"
    settings.write_text('[types.recipe]\ndescription = "dishes they cook"\n')
    settings.chmod(0o600)
    assert run("memories", "add", "Recipe", "dish", "flan").code == 0
    assert "recipe" in run("memories", "list", "--type", "recipe").out
    told = " ".join(run("config").out.split())
    assert "types.recipe dishes they cook settings.toml" in told
    wrong = run("memories", "list", "--type", "cat")
    assert wrong.code != 0 and "'cat' is no type; use preference" in wrong.err
