"""A verbatim quote can still lie: what the sentence around it says about it."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memchat.memory.gate import markers, tails
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.foreign import quoted_spans
from memchat.memory.gate.tails import CLAUSE, TAKING_BACK, Tail
from memchat.memory.gate.text import (
    Span,
    content_words,
    find_span,
    fold,
    names,
    next_sentence,
    numbers,
    says,
    sentence_around,
)

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, Turn

_AROUND = 400
_ENGLISH_I = re.compile(r"(?<!\w)I (?=[a-z])")

_UNLIKE = re.compile(r"dislike|avoid|hate|aversion")
_WITHOUT = re.compile(
    r"dislike|avoid|hate|aversion|allerg|intoleran|restrict|former|\bex\b|free\b|past|previous|quit|sober|vegan|vegetari"
)
_KIN = re.compile(
    r"mother|father|mum|mom|dad|parent|sister|brother|sibling|wife|husband|partner|spouse|girlfriend|boyfriend|son|daughter|child"
    r"|kid|uncle|aunt|cousin|niece|nephew|gran|friend|boss|manager|colleague|coworker|neighbou?r|mate|landlord|teacher|doctor|family|relative|in_law"
)
_HARMLESS_LEADS = """
update edit ps nb remember know please btw thanks hi hello hey also anyway still now well note tell
say fyi yes no actually currently because since though übrigens bitte auch merk seit aussi car donc
también porque además anche perché também ook omdat train wait forward ayrica çünkü кстати тоже
"""
_LEAD_INS = frozenset(_HARMLESS_LEADS.split())
"""Words before a quote that do not change it."""
_LABEL = re.compile(r"\W*(?:\w+ )?(\w+) ?: *")
_WRITING = re.compile(
    r"write|draft|compose|schreib|écri|escri|scriv|escrev|schrijf|напиши|写|اكتب"
    r"|\S* ?लिख|\w+ yaz|in |dans |en "
)
_VERB_LAST = ("ja", "ko", "zh", "tr", "hi")
"""Where what turns a clause stands at its end, or no spaces part words."""
_AND = re.compile(r"(?:^|\s)(?:and|und|et|y|e|en|и|و) *$")
_AND_WORDS = ("and", "und", "et", "y", "e", "en")
_LEAD_IN = re.compile(
    r"(?:^|(?<=[,;:])|(?<=[,;:] ))\W*(?:(?:hey|hi|hello|so|ok|okay|well|yes|yeah|thanks|actually|btw|also|since|because|hallo|na|ja|also|weil|salut|bonjour|alors|comme|puisque|hola|bueno|como|porque|ciao|allora|olá|oi|hoi|dus)\W+)+$"
    r"|^\W*(?:since|after|seit|nach|depuis|après|desde|sinds) (?:my|the|mein\w*|der|ma|mon|mi|mijn) \w+\W+$"
)
"""A greeting or a "since" that leads to a statement and leaves it as it is."""
_NOW_LEAD = re.compile(
    r"^\W*(?:now|jetzt (?:bin|habe|wohne|arbeite|lebe)|maintenant|ahora|adesso|agora|nu (?:ben|heb|woon|werk))(?!\w)\W*(?=\w)"
)
""" "Now I teach" opens a statement as "I teach" does."""
_APPOSED = re.compile(r"(?:an?|the|eine?r?|une?|una|uno|um|uma|een)(?!\w)")
_SOMEBODY = re.compile(
    r"\W*(?:the|an?|der|die|das|eine?|le|la|une?|el|una?|il|uno|o|um|uma|de|het|een) [^,]{2,60}, $"
)
""" "The tenant before me, a pilot, smoked": what stands between commas is the tenant's."""
_MIN_WORDS = 2
_MIN_WORDS_UNKNOWN = 5


@dataclass(frozen=True, slots=True)
class Place:
    """A quote in its sentence, all folded. ``gaps`` is what an elision left out."""

    before: str
    inside: str
    gaps: str
    after: str
    earlier: str
    """The whole message up to the end of the quote."""
    languages: tuple[str, ...]
    own: bool
    """Whether the quote opens a clause of its own about the speaker."""
    names: frozenset[str]
    """The names behind the quote in its sentence."""

    @property
    def sentence(self) -> str:
        return f"{self.before} {self.inside} {self.gaps} {self.after}"

    @property
    def governing(self) -> str:
        """The text before the quote that can change what its clause says."""
        return "" if self.own else self.before


def check_sentences(candidate: Candidate, found: Findings) -> None:
    """Read each quote with its sentence; what may turn its meaning becomes a doubt."""
    for turn, span in list(found.proofs):
        _checkplace_of(candidate, found, turn, span)
    _check_length(candidate, found)
    if not found.ref and candidate.relation != "ends":
        _check_denied_value(candidate, found)
        _check_answer(found)
        _check_cut(candidate, found)


def check_places(candidate: Candidate, found: Findings, turn: Turn, spans: Sequence[Span]) -> None:
    """The same for further places where the same words stand."""
    for span in spans:
        _checkplace_of(candidate, found, turn, span)


def spoken_in(found: Findings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The words of each quote, folded, with their languages."""
    for turn, span in found.proofs:
        place = place_of(found, turn, span)
        yield place.inside, place.languages


def stands_alone(found: Findings) -> bool:
    """Whether each quote opens a clause of its own about the speaker, whatever stands before it."""
    return all(place_of(found, turn, span).own for turn, span in found.proofs)


def languages_in(text: str, start: int, end: int) -> tuple[str, ...]:
    """The languages of the words around a span, likeliest first; empty where no list is known."""
    window = text[max(0, start - _AROUND) : end + _AROUND]
    found = markers.languages_of(fold(window).text)
    # "I adore jazz." holds no other function word, and folding takes the capital away.
    return found or (("en",) if _ENGLISH_I.search(window) else ())


def place_of(found: Findings, turn: Turn, span: Span) -> Place:
    around = sentence_around(turn.text, span.start, span.end)
    gaps = [
        turn.text[left[1] : right[0]]
        for left, right in zip(span.pieces, span.pieces[1:], strict=False)
    ]
    before = fold(turn.text[around.start : span.start]).text
    after = fold(turn.text[span.end : around.end]).text
    inside = " ".join(fold(turn.text[a:b]).text for a, b in span.pieces)
    languages = languages_in(turn.text, span.start, span.end) or found.languages
    lead = _LEAD_IN.sub("", before)
    opens = not lead.strip() or CLAUSE.search(lead[-6:].strip()[-5:]) is not None
    own = opens and markers.opens_with("first_person", _NOW_LEAD.sub("", inside), languages)
    if own and tails.asks_something_else(after, languages):
        after = ""
    earlier = fold(turn.text[: span.end]).text
    named = frozenset(names(f"x {turn.text[span.end : around.end]}"))
    return Place(before, inside, " ".join(gaps), after, earlier, languages, own, named)


def _checkplace_of(candidate: Candidate, found: Findings, turn: Turn, span: Span) -> None:
    place = place_of(found, turn, span)
    slot = f"{candidate.key.replace('_', ' ')} "
    value = fold(candidate.value).text
    if not found.ref and candidate.relation != "ends":
        _check_negation(place, value, slot, found)
    told = f"{place.before} {place.inside} {place.gaps} {_tail(place, value, tails.supposing)}"
    if not _carries("hypothetical", value, place) and markers.marked(
        "hypothetical", told, place.languages
    ):
        found.doubts.append("it may be an if, a wish or a guess")
    if _plays(turn, found):
        found.doubts.append("a game was begun before it")
    if markers.marked("fiction", place.earlier, place.languages):
        found.doubts.append("it may be part of a game or a text to be written")
    _check_somebody_else(place, slot, value, found)
    if _APPOSED.match(place.inside) and _SOMEBODY.match(place.before) and place.after[:1] == ",":
        found.doubts.append("it may be about somebody else")
    if _is_line_of_a_talk(place):
        found.doubts.append("a name and a colon stand before it, as in a conversation written down")
    if _is_question(place):
        found.doubts.append("it stands in a question")
    if any(a < span.start and span.end < b for a, b in quoted_spans(turn.text)):
        found.doubts.append("it stands in quotation marks")
    if any(
        a < span.end and span.start < b and _first_person_within(turn.text[a:b], place)
        for a, b in quoted_spans(turn.text)
    ):
        found.doubts.append("it holds the words of somebody else")
    _check_corrected(place, turn, span, value, found)
    _check_retracted(place, value, found)


def _check_retracted(place: Place, value: str, found: Findings) -> None:
    """ "I'm joking of course, but …" and "I lied": the sentence itself says that it is not so."""
    beside = [place.before, place.gaps, place.after]
    beside += [part for part in CLAUSE.split(place.inside) if not _holds_any(part, value)]
    said = (match for text in beside for match in markers.RETRACTED.finditer(text))
    if any(match[0] not in value for match in said):
        found.doubts.append("the same sentence speaks of a joke or a lie")


def _holds_any(text: str, value: str) -> bool:
    return any(says(text, word) for word in content_words(value) | numbers(value))


def _plays(turn: Turn, found: Findings) -> bool:
    """Whether an earlier message began a game; a poem that was asked for is over when it came."""
    for before in found.turns:
        if before.role == "user" and before.message_id < turn.message_id:
            said = markers.marked("fiction", fold(before.text).text, found.languages)
            first = min(said, key=lambda match: match.start(), default=None)
            if first is not None and _WRITING.match(first[0]) is None:
                return True
    return False


def _first_person_within(quoted: str, place: Place) -> bool:
    inner = fold(quoted).text
    return any(
        markers.opens_with("first_person", inner[found.start() :], place.languages)
        for found in re.finditer(r"\w+", inner)
    )


def _is_line_of_a_talk(place: Place) -> bool:
    """ "Ada: I live in Turin" is what Ada says."""
    text = place.before + place.inside
    label = _LABEL.match(text)
    return (
        label is not None
        and label[1] not in _LEAD_INS
        and not markers.opens_with("first_person", text, place.languages)
        and markers.opens_with("first_person", text[label.end() :], place.languages)
    )


def _carries(kind: str, value: str, place: Place) -> bool:
    return bool(markers.marked(kind, value, place.languages))


def _check_negation(place: Place, value: str, slot: str, found: Findings) -> None:
    if _carries("negation", value, place) or _WITHOUT.search(slot + value):
        return
    after = (
        ""
        if _other_subject(place) or _says_something_more(place)
        else _tail(place, value, tails.turning)
    )
    if markers.marked("negation", f"{place.governing} {place.gaps} {after}", place.languages):
        found.doubts.append("a negation stands outside the quote")
    if not markers.marked("negation", place.inside, place.languages):
        return
    clauses = CLAUSE.split(place.inside)
    words = content_words(value)
    about = [clause for clause in clauses if any(says(clause, word) for word in words)]
    if any(markers.marked("negation", clause, place.languages) for clause in about or clauses):
        found.doubts.append("the quote holds a negation and the value does not")


def _tail(place: Place, value: str, part: Callable[[Tail], str]) -> str:
    """A part of what follows a quote; all of it where the quote is no clause of its own."""
    if not place.own:
        return place.after
    return part(Tail(place.inside, place.after, value, place.names, place.languages))


def _other_subject(place: Place) -> bool:
    """Whether the quote is about a relative and the next clause turns to the speaker."""
    rest = re.match(r"\s*[,;]\s*(?:(?:and|but) )?", place.after)
    return (
        rest is not None
        and markers.opens_with("relative", place.inside, place.languages)
        and markers.opens_with("first_person", place.after[rest.end() :], place.languages)
    )


def _says_something_more(place: Place) -> bool:
    """Whether behind "I love hiking" a statement of its own follows: "and I do not like …"."""
    join = re.match(r"\s*,?\s*(and|und|et|y|e|en|but|aber|mais|pero|ma|maar)\s+", place.after)
    if join is None or not place.own:
        return False
    clause = place.after[join.end() :]
    # "but I do not any more" takes it back; "but I hate early meetings" speaks of something else.
    elsewhere = join[1] in _AND_WORDS or content_words(clause) - TAKING_BACK
    return bool(elsewhere) and markers.opens_with("first_person", clause, place.languages)


def _check_denied_value(candidate: Candidate, found: Findings) -> None:
    places = [place_of(found, turn, span) for turn, span in found.proofs]
    if any(markers.marked("negation", place.sentence, place.languages) for place in places):
        return
    value = fold(candidate.value).text
    if any(_carries("negation", value, place) for place in places) or _UNLIKE.search(candidate.key):
        found.doubts.append("the value holds a negation and the quotes do not")


def _check_somebody_else(place: Place, slot: str, value: str, found: Findings) -> None:
    named, claim = _KIN.search(slot), f"{slot}{value}"
    for match in markers.marked("reported", place.sentence, place.languages):
        people = content_words(match[0])
        if not named and not any(says(claim, person) for person in people):
            found.doubts.append("it may be what somebody else says")
            return
    opening = CLAUSE.split(place.governing)[-1] if place.governing else ""
    subjects = [
        f"{opening}{clause}" if number == 0 else clause
        for number, clause in enumerate(CLAUSE.split(place.inside))
    ]
    subjects += CLAUSE.split(place.governing)[:-1]
    for clause in subjects:
        clause = re.sub(r"^\W*(?:and|und|et|y|e|en|ve|и) ", "", clause)
        if not markers.opens_with("relative", clause, place.languages):
            continue
        matches = markers.marked("relative", clause, place.languages)
        if not named and not any(says(claim, w) for m in matches for w in content_words(m[0])):
            found.doubts.append("it may be about somebody else")
            return


def _is_question(place: Place) -> bool:
    text = f"{place.governing}{place.inside}{place.after}".rstrip(" \"')*_")
    if text.endswith("?") or "?" in place.after:
        return True
    unspaced = tuple(c for c in place.languages if not markers.LANGUAGES[c].spaced)
    if unspaced and markers.marked("question", text, unspaced):
        return True
    spaced = tuple(c for c in place.languages if markers.LANGUAGES[c].spaced)
    return bool(spaced) and markers.opens_with("question", text, spaced)


def _check_corrected(place: Place, turn: Turn, span: Span, value: str, found: Findings) -> None:
    """Whether what comes next takes it back, unless that is quoted too and holds the value."""
    parts = re.split(r"[.!?。！？،,;:-]+\s*", place.inside)
    words = content_words(value)
    last = max((n for n, p in enumerate(parts) if any(says(p, w) for w in words)), default=None)
    inside = parts[last + 1 :] if last is not None else []
    following = inside + [re.sub(r"^\W+", "", part) for part in CLAUSE.split(place.after)[1:]]
    after = next_sentence(turn.text, span.end)
    if after and not _is_quoted(after, found):
        following.append(fold(after).text)
    later = [t for t in found.turns if t.role == "user" and t.message_id > turn.message_id]
    if later and later[0] not in found.quoted():
        following.append(fold(later[0].text).text)
    if any(markers.opens_with("correction", text, place.languages) for text in following):
        found.doubts.append("what follows may take it back")


def _is_quoted(sentence: str, found: Findings) -> bool:
    return any(find_span(turn.text[s.start : s.end], sentence) for turn, s in found.proofs)


def _check_cut(candidate: Candidate, found: Findings) -> None:
    """A quote cut out of its clause may lose what turns it: "I doubt", "It is false that"."""
    claim = f"{candidate.key.replace('_', ' ')} {candidate.value}"
    for turn, span in found.proofs:
        place = place_of(found, turn, span)
        if not place.languages or place.languages[0] in _VERB_LAST:
            return
        lead = CLAUSE.split(place.governing)[-1]
        if _AND.search(lead):
            return
        lost = content_words(lead) - _LEAD_INS
        if not any(not says(claim, word) for word in lost):
            return
    found.doubts.append("the quote leaves out the start of its clause")


def _check_answer(found: Findings) -> None:
    """ "Yes, with parsley" answers a question; without it nobody knows what it means."""
    for turn, span in found.proofs:
        before = [t for t in found.turns if t.message_id < turn.message_id]
        place = place_of(found, turn, span)
        if (
            before
            and before[-1].role == "assistant"
            and "?" in fold(before[-1].text).text
            and markers.opens_with("acceptance", place.before + place.inside, place.languages)
            and not markers.marked("first_person", place.inside, place.languages)
        ):
            found.doubts.append("it answers a question that is not cited")


def _check_length(candidate: Candidate, found: Findings) -> None:
    """One word proves nothing by itself, and few words nothing in a language without lists."""
    places = [place_of(found, turn, span) for turn, span in found.proofs]
    longest = max(len(re.findall(r"[\w'\u0900-\u094f]+", place.inside)) for place in places)
    if not all(place.languages for place in places):
        words = found.said()
        if longest < _MIN_WORDS_UNKNOWN or not find_span(candidate.value, words):
            found.doubts.append("there is no list of negations for this language")
        return
    spaced = all(markers.LANGUAGES[place.languages[0]].spaced for place in places)
    whole = any(not re.search(r"\w", place.before + place.after) for place in places)
    if spaced and longest < _MIN_WORDS and not whole and not found.ref:
        found.doubts.append("the quote is a single word")
