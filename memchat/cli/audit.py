"""``memchat audit``: what among the memories should not be there, or not like this."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, get_args

import typer

from memchat.cli import tables
from memchat.cli.options import App, Json, User, Yes, known_app, open_store
from memchat.types import Audit, Finding, to_json
from memchat.types.audit import FindingKind


def _one_word_kinds() -> list[str]:
    """The kinds of findings for completion, without those that a shell would have to quote."""
    return [kind for kind in get_args(FindingKind) if " " not in kind]


def _kind(text: str) -> str:
    """A kind of finding. Raises BadParameter for any other word."""
    kinds = get_args(FindingKind)
    if text not in kinds:
        raise typer.BadParameter(f"{text!r} is no kind; use one of {', '.join(kinds)}")
    return text


def audit(
    user: User,
    app: App = "default",
    fix: Annotated[
        bool, typer.Option("--fix", help="Show what mending would do, and do it with --yes.")
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            parser=_kind,
            autocompletion=_one_word_kinds,
            metavar="KIND",
            help="Only findings of this kind; may be repeated.",
        ),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Look through the memories for what should not be there.

    Secrets, contradictions, duplicates, stale and expiring facts, missing evidence, suspected junk,
    what was never recalled, and an index that differs from the rows.
    """
    with open_store() as mc:
        person = known_app(mc, user, app)
        seen = person.audit()
        found = [f for f in seen.findings if not kind or f.kind in kind]
        # What cannot be undone is done only where it is named.
        mendable = [f for f in found if f.fix is not None and (f.kind != "secret" or kind)]
        mended = person.mend(mendable).count if fix and yes and mendable else 0
        if as_json:
            findings = {"findings": [to_json(finding) for finding in found]}
            tables.print_json(to_json(seen) | findings | ({"mended": mended} if fix else {}))
        else:
            _report(seen, found, user, app)
        if not fix:
            return
        if not mendable:
            tables.notice("nothing here can be mended unasked")
        elif not yes:
            tables.notice("a dry run: nothing was changed; add --yes to do it")
        elif not as_json:
            print(f"mended {mended} of {len(mendable)}")


def _report(seen: Audit, found: list[Finding], user: str, app: str) -> None:
    whose = tables.plain(f"{user} in {app}")
    print(f"{seen.active} memories in use, {seen.inactive} kept aside ({whose})")
    if not found:
        print("nothing found")
    for kind, group in groupby(found, key=lambda finding: finding.kind):
        findings = list(group)
        print(f"\n{kind} ({len(findings)})")
        for finding in findings:
            print(tables.plain(f"  {finding.what}"))
            if finding.fix is not None:
                print(tables.plain(f"    mend: {finding.fix}"))
