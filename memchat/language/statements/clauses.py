"""Splitting a message into the first-person clauses that may state a fact.

Left out: pasted text between ⟦ and ⟧, code, longer quotations, questions, hypotheses, opinions of
others, tasks such as "translate", jokes, and everything with a secret.
"""

from __future__ import annotations

import re

from memchat.language.secrets import find_secrets

SENTENCE_LIMIT = 600
"""Characters of the longest sentence that is read; longer ones are not plain statements."""

_QUOTED = re.compile(
    r"""⟦.*?(?:⟧|\Z)            # marked by memchat as pasted
      | ```.*?(?:```|\Z)         # a fenced block
      | `[^`\n]*`
      | ^[ \t]*>[^\n]*           # a quoted line
      | [“"„«](?:[^”"“»\s]+\s+){2,}[^”"“»]*[”"“»]   # a quotation of three words or more
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
GREETING = (
    r"(?:hi|hello|hey|hallo|good\s+(?:morning|evening|afternoon)|guten\s+(?:tag|morgen|abend))"
)
_SENTENCE = re.compile(
    rf"(?:{GREETING}\s*[.!]\s+)?[^\n]+?(?:[.!?…。！？]+(?=\s|$|[\"”’')])|(?=\n)|\Z)", re.IGNORECASE
)
_SUBJECT = r"(?:i|i['’](?:m|ve)|my|our|we|ich|mein\w*)\b"
_JOIN = re.compile(
    rf"""(?:(?<!\bhi)(?<!\bhey)(?<!hello)(?<!hallo)\s*[,;:–—]\s*
          (?:(?:and|but|so|also|though|while|that|und|aber)\s+)*
        |\s+(?:and|but|so|though|while|und|aber)\s+(?:that\s+)?
        |\s+-\s+)
        (?=(?:also\s+|now\s+|please\s+)?{_SUBJECT})""",
    re.IGNORECASE | re.VERBOSE,
)
_UNREAL = re.compile(
    r"""\b(?:if|would|could|might|maybe|perhaps|imagine|suppose|pretend|hypothetical\w*|i\ wish
        |let['’]?s\ say|unless|wenn|falls|würde|könnte|vielleicht)\b|\bi['’]d\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SAID_BY_OTHERS = re.compile(
    r"\b(?:says?|said|thinks?|claims?|told|asks?|asked|believes?|wants me|according|sagt|meint)\b",
    re.IGNORECASE,
)
_SAID_BY_ME = re.compile(r"\b(?:as i (?:said|told)|i (?:said|think|told you))\b", re.IGNORECASE)
_TASK = re.compile(
    r"""^\W*(?:please\s+|can\ you\s+|could\ you\s+|now\s+)*(?:translate|write|draft|rewrite|rephrase
        |proofread|summari[sz]e|correct|complete|continue|quote|read|analy[sz]e|role-?play|act\ as
        |you\ are|here\ is|here['’]s|schreib\w*|übersetz\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_JOKE = re.compile(r"\b(?:kidding|joking|just a joke|/s)(?:\W|$)", re.IGNORECASE)
_FILLER = re.compile(
    r"""^(?:(?:and|but|so|also|well|oh|ok(?:ay)?|yes|yeah|yep|no|hi|hello|hey|hallo|btw|by\ the\ way
        |actually|anyway|please|thanks|thank\ you|great|right|sure|fine|sorry|fyi|for\ the\ record
        |just\ so\ you\ know|as\ i\ (?:said|told\ you)|as\ you\ know|in\ fact|now|today|currently
        |(?:please\s+)?(?:remember|note|keep\ in\ mind|(?:do(?:n['’]t|\ not)|never)\ forget)
         (?:\ that)?
        |i\ said|i\ think|i\ told\ you(?:\ that)?|und|aber|also|übrigens)\b[\s,:!.–-]*)+""",
    re.IGNORECASE | re.VERBOSE,
)


def clauses(text: str) -> list[str]:
    """The clauses of a message that may state a fact, verbatim and in order."""
    if _JOKE.search(text):
        return []
    open_text = _QUOTED.sub(lambda match: "\n" * len(match[0]), text)
    found: list[str] = []
    for match in _SENTENCE.finditer(open_text):
        sentence = match[0].strip()
        if len(sentence) > SENTENCE_LIMIT:
            continue
        if _TASK.search(sentence):
            if sentence.rstrip().endswith(":"):
                break  # what follows is the text to work on
            continue
        if states(sentence):
            found.extend(_split(sentence))
    return [clause for clause in found if not find_secrets(clause)]


def states(sentence: str) -> bool:
    """Whether a sentence speaks for the writer and of the present."""
    if _UNREAL.search(sentence):
        return False
    return not _SAID_BY_OTHERS.search(sentence) or bool(_SAID_BY_ME.search(sentence))


def without_filler(clause: str) -> str:
    """The clause from its subject on: no greeting, "by the way" or "remember that"."""
    return _FILLER.sub("", clause, count=1)


def _split(sentence: str) -> list[str]:
    question = sentence.rstrip("\"”’')").endswith(("?", "？"))
    pieces = [piece.strip(' \t"“”.!…;,:') for piece in _JOIN.split(sentence)]
    if question:  # "I am vegetarian, any dinner ideas?" states before it asks
        front, comma, _ = pieces[-1].rpartition(",")
        pieces = [*pieces[:-1], *([front.strip()] if comma else [])]
    return [piece for piece in pieces if piece]
