"""``memchat users``: who is in the store, and taking one out."""

from __future__ import annotations


def test_people_are_listed_and_one_is_deleted_with_all_that_is_kept_of_them(run) -> None:
    assert "nothing is kept of anybody yet" in run("users", "list").err
    run("memories", "add", "profile", "city", "Porto", "--all-apps", "--user", "ana")
    run("memories", "add", "profile", "city", "Faro", "--user", "bob")
    assert [line.split()[:3] for line in run("users", "list").out.splitlines()[1:]] == [
        ["ana", "1", "1"],
        ["bob", "1", "1"],
    ]
    asked = run("users", "delete", "ana")
    assert asked.code == 2 and "add --yes" in asked.err
    assert run("users", "delete", "ana", "--yes").out == "1\n"
    gone = run("users", "delete", "ana", "--yes")
    assert gone.code == 1 and "nothing is kept of ana" in gone.err
    assert "ana" not in run("users", "list").out
