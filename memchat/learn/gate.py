"""The gate: checks by code that accept or refuse a proposed fact, or leave it to the person.

A quote must stand word for word in a message and be the person's own words, and the numbers and
names of the value must have been said. Secrets, orders to the assistant, repeats, and what the
person asked not to keep are looked for. What only a reader can tell is left to the second look.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from memchat.facts.keys import canonical, cardinality
from memchat.language import lexicon, secrets
from memchat.language.sentences import Span, find_span, find_spans, next_sentence, sentence_around
from memchat.language.text import content_words, fold, holds_word, names, normal_value, numbers
from memchat.learn import dates, own_words, values
from memchat.learn.candidate import Candidate, Case, KnownFact, Outcome, Proof, Quote, Turn, Verdict
from memchat.learn.own_words import hidden_instruction, is_instruction, overrides_rules
from memchat.learn.values import asked_after
from memchat.types import MEMORY_TYPES, NO_TYPES, OwnTypes

log = logging.getLogger(__name__)


def check_quotes(case: Case) -> None:
    """Find each quote. Words of the assistant, the instructions, shown memories or pasted text
    prove nothing; after a paste whose end is not marked the user decides."""
    found: list[Quote] = []
    for quote in case.candidate.quotes:
        turn, span = _locate(quote, case.turns)
        if turn is None or span is None:
            case.notes.append(_why_missing(quote, case))
            continue
        own = [
            s
            for s in find_spans(quote.text, turn.text)
            if not any(own_words.is_quoted(turn.text, *piece) for piece in s.pieces)
        ]
        if not own:
            case.notes.append("the words stand in pasted or quoted text")
            continue
        if own[0].start >= own_words.unmarked_paste_start(turn.text):
            case.reviews.append("it stands behind something pasted, whose end is not marked")
        case.proofs.append((turn, own[0]))
        found.append(Quote(msg=turn.id, text=quote.text))
    if not found:
        case.refusals += dict.fromkeys(case.notes)
        return
    case.change(quotes=tuple(found))


def _locate(quote: Quote, turns: Sequence[Turn]) -> tuple[Turn | None, Span | None]:
    users = [turn for turn in turns if turn.role == "user"]
    for turn in users:
        if turn.id == quote.msg and (span := find_span(quote.text, turn.text)):
            return turn, span
    others = [(turn, span) for turn in users if (span := find_span(quote.text, turn.text))]
    return others[0] if len(others) == 1 else (None, None)


def _why_missing(quote: Quote, case: Case) -> str:
    if any(t.role == "user" and find_span(quote.text, t.text) for t in case.turns):
        return "the words stand in several messages and none of them is the one named"
    if any(find_span(quote.text, turn.text) for turn in case.turns):
        return "the words are the assistant's, not yours"
    if find_span(quote.text, case.prompt_text):
        return "the words come from the instructions"
    if any(find_span(quote.text, memory) for memory in case.injected):
        return "the words only repeat a memory that was shown"
    return "the words are in no message of yours"


_FILLER_LIST = """
yes yeah yep no ok okay right exactly correct true indeed thanks thank great good nice cool
perfect sure else that that's this lovely well oh ah hm still again remember remembered memory know
known knew said told got nailed spot mine really ja nein genau stimmt richtig danke gut super
prima toll noch weißt gemerkt oui non exact exactement merci parfait bien toujours sí exacto
gracias correcto perfecto bueno sì esatto grazie giusto perfetto sim isso obrigado obrigada certo
klopt precies bedankt dank evet doğru teşekkürler teşekkür да верно точно спасибо правильно はい そう
ありがとう 正しい 是的 对 没错 谢谢 نعم صحيح شكرا हाँ सही धन्यवाद
"""
_FILLER = frozenset(_FILLER_LIST.split())
"""Words of agreement or thanks, which name nothing."""
_AGREES = re.compile(
    r"はい|うん|ええ|その通り|そう(?:です)?|です|ます|正しい|ありがとう(?:ございます)?|是的|没错|正确|谢谢|好的|嗯|对"
)
"""The same for scripts without spaces."""
_REQUEST = re.compile(
    r"^\W*(?:(?:please|now|ok|okay|and|so|then|bitte|und|por favor|s'il te plaît) )*(?:(?:can|could|would|will) you )?"
    r"(?:tell me|show me|remind me|list|repeat|recite|read me|recall|summari[sz]e|give me|explain|help me|let me know|let me hear|let's see|go on|say it|describe"
    r"|sag mir|zeig\w* mir|erinner\w* mich|nenn\w* mir|wiederhol\w*|zähl|dis-moi|montre-moi|rappelle-moi|répète|dime|muéstrame|recuérdame|repite|dimmi|mostrami|ricordami|ripeti"
    r"|diz-me|me diga|diga-me|mostra-me|vertel me|zeg me|laat me|söyle|bana|скажи|покажи|напомни|повтори|расскажи)(?!\w)"
    r"|教えて|告诉我|أخبرني|बताओ"
)
"""How a sentence begins that asks the assistant for something."""
_ABOUT_MEMORY = re.compile(
    r"(?<!\w)(?<!as )you (?:still )?(?:know|remember|recall|noted|saved|stored|have (?:noted|saved|stored))(?!\w)|(?<!\w)(?:know|remember|recall|noted|saved|stored) (?:about|of) me(?!\w)|your (?:memory|notes)"
    r"|(?:weißt|merkst|gemerkt|gespeichert)[^.!?]{0,20}(?:du|über mich)|du[^.!?]{0,20}(?:weißt|gemerkt|gespeichert)|tu (?:sais|te souviens|as retenu)|sais-tu|te souviens-tu|sabes (?:de|sobre) mí|recuerdas|sai di me|ricordi|sabes sobre mim|(?:weet|onthoud) je"
    r"|biliyorsun|hatırliyorsun|(?:ты|вы) (?:помнишь|знаешь|помните|знаете)|覚えて(?:い|る)|私について|(?:记得|知道)我|关于我|تعرف عني|تتذكر|मेरे बारे में",
    re.IGNORECASE,
)
"""Words about what the assistant knows, not about the person."""


_LEADS_ON = 2
"""Words allowed between "do you remember" and what is asked about: "if", "that it"."""
_OPENING = 12
"""Characters of a quote within which "do you remember" must begin: not "…, as you remember"."""
KNOWN_ALREADY = "it only repeats what is known already"


def check_repeats(case: Case) -> None:
    """Refuse what teaches nothing; turn one known fact in other words into a repeat of that fact,
    whatever its key.

    When the assistant lists what it remembers, the user's "yes, exactly" and the question before
    it teach nothing.
    """
    if case.candidate.relation == "ends":
        if case.ref is None and not _own_words(case.quoted_words(), bare=False):
            case.refusals.append("the words name nothing")
        return
    value, said = fold(case.candidate.value).text, case.quoted_sentences()
    says_nothing = case.ref is None and not (_own_words(said) or names(said))  # "I live in Nice."
    if all(_hangs_on_memory(turn.text, span) for turn, span in case.proofs):
        case.refusals.append("it asks what is remembered, and tells nothing")
    elif value.endswith("?") or _REQUEST.search(value):
        case.refusals.append("its value is a question or a request")
    elif says_nothing or _is_recited(case):
        case.refusals.append("the words only agree with what the assistant recited")
    elif case.candidate.relation in ("new", "beside"):
        _check_repeat(case)


def _hangs_on_memory(text: str, span: Span) -> bool:
    """Whether a quote is a question about memory, or part of one: "do you remember if I like …"."""
    sentence = sentence_around(text, span.start, span.end)
    for match in _ABOUT_MEMORY.finditer(text, sentence.start, sentence.end):
        opens = span.start <= match.start() <= span.start + _OPENING
        if opens or (match.start() < span.start < match.end()):
            return True
        between = re.findall(r"\w+|[,;:.!?]", text[match.end() : span.start])
        leads_on = len(between) <= _LEADS_ON and set(between).isdisjoint(",;:.!?")
        if match.end() <= span.start and leads_on:
            return True
    return False


def _check_repeat(case: Case) -> None:
    """Whether the value says one shown fact again, neither more nor less."""
    item = case.candidate
    words = _own_words(item.value) or set(re.findall(r"[^\W_]+", fold(item.value).text))
    shown = [*(fact.words for fact in case.known), *case.injected]
    held = any(_holds_all(text, item.value, words) for text in shown)
    says_any = any(_all_in([word], case.quoted_sentences()) for word in words)
    if (held and not says_any) or _only_echoes(case, shown):
        case.refusals.append(KNOWN_ALREADY)
        return
    fact = next((fact for fact in case.known if _is_same(fact, item.value, words)), None)
    own_slot = cardinality(item.key) is not None and item.key != "note"
    if fact is None or (own_slot and item.key != fact.key):
        return
    if item.key == fact.key and normal_value(item.value) != normal_value(fact.value):
        return  # other words for the same slot, which merging judges
    case.change(relation="same", to=fact.id, type=fact.memory_type)
    case.change(key=fact.key, value=fact.value, many=fact.many)


def _is_same(fact: KnownFact, value: str, words: Iterable[str]) -> bool:
    """Whether a value and a fact have the same words, apart from those of the key."""
    return (
        _holds_all(fact.words, value, words)
        and values.contains_words(value, fact.value, loosely=False)
        and values.difference(value, fact.value) is None
    )


def _holds_all(shown: str, said: str, words: Iterable[str]) -> bool:
    return _all_in(words, shown) and values.is_negated(shown) == values.is_negated(said)


def _only_echoes(case: Case, shown: Sequence[str]) -> bool:
    """Whether the user only agrees, and names no more than one shown fact has."""
    said = case.quoted_sentences()
    agrees = _FILLER & set(re.findall(r"\w+", fold(said).text)) or _AGREES.search(said)
    own = _own_words(said)
    if lexicon.find_markers("first_person", fold(said).text, case.languages):
        return False  # a statement of its own: "I have it in the right knee as well"
    return case.ref is None and bool(agrees) and any(_all_in(own, text) for text in shown)


def _own_words(text: str, *, bare: bool = True) -> set[str]:
    """The content words; where there are none, with ``bare`` the function words."""
    plain = _AGREES.sub(" ", fold(text).text)
    words = content_words(plain) | numbers(plain)
    if not words and bare:
        words = set(re.findall(r"[^\W\d_]+", plain))
    return words - _FILLER


def _is_recited(case: Case) -> bool:
    """Whether the user adds nothing to a message that lists what is remembered: it is cited, or
    stands before each quote and has all words of the value. A yes to a plan with a question beside
    it is more than that."""
    if case.ref is not None:
        lists: list[Turn | None] = [None if asked_after(*case.ref) else case.ref[0]]
    elif _all_in(_own_words(case.candidate.value), case.user_text):
        return False
    else:
        ends = [turn.message_id for turn, _ in case.proofs]
        before = [[t for t in case.turns if t.message_id < end][-1:] for end in ends]
        lists = [found[0] if found else None for found in before]
    known, own = [fact.value for fact in case.known], _own_words(case.quoted_sentences())
    return all(
        turn is not None
        and turn.role == "assistant"
        and any((words := _own_words(value)) and _all_in(words, turn.text) for value in known)
        and _all_in(own, " \n".join((turn.text, *known)))
        for turn in lists
    )


def _all_in(words: Iterable[str], text: str) -> bool:
    return all(holds_word(text, word) or word in numbers(text) for word in words)


NOT_KEPT = "you asked that it is not remembered"


def check_consent(case: Case) -> None:
    """Flags of the model, and the wish not to keep it."""
    flags = case.candidate.flags
    if any(map(_not_to_keep, _around(case))):
        case.refusals.append(NOT_KEPT)
        case.wordless = True
    if "not_meant" in flags:
        case.refusals.append("it was not meant: play, irony, or taken back")
    if "sensitive" in flags:
        case.reviews.append("it is sensitive: health, debts, faith, politics or sex")
    if "asked" in flags and not asked_to_keep(case):
        case.change(flags=tuple(flag for flag in flags if flag != "asked"))


def asked_to_keep(case: Case) -> bool:
    """Whether the user asked for it to be remembered."""
    return lexicon.REMEMBER.search(case.quoted_sentences()) is not None


def _around(case: Case) -> Iterator[tuple[str, bool]]:
    """The sentence of each quote and the one behind it, and whether it is the quote's own."""
    for turn, span in case.proofs:
        sentence = sentence_around(turn.text, span.start, span.end)
        yield sentence.text, True
        yield next_sentence(turn.text, sentence.end), False


def _not_to_keep(said: tuple[str, bool]) -> bool:
    """Whether words ask not to keep the quote. "Don't save me a seat" beside it asks for
    something else."""
    text, own = said
    return any(
        own or not lexicon.KEEP_ELSE.match(text, match.end())
        for match in lexicon.NOT_TO_KEEP.finditer(text)
    )


def check_instructions(case: Case) -> None:
    """What reads as an order, or hides what it is, waits for a person whatever a model says."""
    messages = [turn.text for turn in case.quoted_turns()]
    texts = (case.candidate.value, *case.sentences())
    wish = case.candidate.type == "preference"
    if any(map(overrides_rules, (*texts, *messages))) or any(
        is_instruction(text, wish=wish) for text in texts
    ):
        case.reviews.append("it reads as an instruction, not as a fact about you")
    if "```" in case.candidate.value:
        case.reviews.append("it holds marks of program code")
    disguises = map(hidden_instruction, (case.candidate.value, case.candidate.key, *messages))
    case.reviews += list(filter(None, disguises))[:1]


def check_secrets(case: Case) -> None:
    """Refuse secrets in value, key and quotes, also where the word that marks them stands outside
    the quote. Addresses and phone numbers are kept if the user asked for it and says yes. What is
    letters alone is left to the second look, where one follows."""
    _drop_what_reveals(case)
    found = _kinds(case)
    kinds = {kind for kind, plain in found if not (plain and case.look_follows)}
    if not kinds:
        case.suspect = bool(found)
        return
    listed = ", ".join(sorted(kinds))
    if kinds <= secrets.PERSONAL and case.proofs and asked_to_keep(case):
        case.reviews.append(f"it holds {listed}; keep it only if you want to")
        return
    case.refusals.append(f"it holds {listed}, which is never remembered")
    case.wordless = True


def _drop_what_reveals(case: Case) -> None:
    """Drop cues, and a sentence, that hold a secret said anywhere in the conversation; they have no
    quote."""
    item = case.candidate
    hidden = {words for words, _secret in _own(case)}
    turns = [turn.text for turn in case.turns]
    hidden |= {turns[number][s.start : s.end] for number, s in secrets.find_in_conversation(turns)}
    folded = [words for words in map(normal_value, hidden) if words]
    revealing = {
        cue
        for cue in item.cues
        if any(fold(cue).text in words or words in fold(cue).text for words in folded)
    }
    if revealing:
        case.change(cues=tuple(cue for cue in item.cues if cue not in revealing))
    if any(secrets.reveals(item.sentence, words) for words in hidden):
        case.change(sentence="")


def _own(case: Case) -> Iterator[tuple[str, secrets.Secret]]:
    """The secrets of the key, the quotes and the value, with their text."""
    item = case.candidate
    for text in (item.key, *(quote.text for quote in item.quotes)):
        yield from ((text[s.start : s.end], s) for s in secrets.find_secrets(text))
    yield from secrets.find_in_fact(item.key, item.value)


def _kinds(case: Case) -> set[tuple[str, bool]]:
    """The kinds of the secrets that a candidate gives away, and whether they are letters alone."""
    item = case.candidate
    kinds = {(secret.kind, secret.plain) for _words, secret in _own(case)}
    compact = normal_value(item.value)
    looked_at = set()
    for number, secret in secrets.find_in_conversation([turn.text for turn in case.turns]):
        turn = case.turns[number]
        words = turn.text[secret.start : secret.end]
        in_quote = any(
            t.id == turn.id and a < secret.end and secret.start < b
            for t, span in case.proofs
            for a, b in span.pieces
        )
        if (in_quote, secret.kind, words) in looked_at:
            continue  # a list may say the same address a thousand times
        looked_at.add((in_quote, secret.kind, words))
        if in_quote or normal_value(words) in compact:
            kinds.add((secret.kind, secret.plain))
        if normal_value(words) not in compact and secrets.reveals(item.value, words):
            kinds.add((f"part of a {secret.kind}", secret.plain))
    return kinds


def check_relation(case: Case) -> None:
    """Check the fact that a candidate points at: a change applies to a fact that was shown."""
    target, item = case.target, case.candidate
    if target is None:
        case.change(to=None, relation="ends" if item.relation == "ends" else "new")
        return
    if canonical(target.key) == item.key and item.key != target.key:
        case.change(key=target.key)
    if item.relation == "new":
        case.change(to=None)
    elif item.relation == "same":
        _check_same(case, target)
    elif item.relation == "ends":
        _check_end(case, target)
    if case.candidate.relation == "updates":
        _check_update(case, target)


def _check_same(case: Case, target: KnownFact) -> None:
    """What differs in a number, name or negation is not the same: in a slot that holds one value
    it takes the other's place, elsewhere both hold."""
    item = case.candidate
    difference = values.difference(item.value, target.value)
    negated = lexicon.find_markers("negation", fold(case.quoted_sentences()).text, case.languages)
    if negated and not values.is_negated(f"{item.value} {target.value}"):
        difference = difference or "negation"
    one_slot = item.key == target.key and not target.many
    if one_slot and (difference or values.words_differ(item.value, target.value)):
        case.change(relation="updates")
    elif difference is None:
        case.change(key=target.key, many=target.many)
    else:
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, case.quoted_sentences()
    stands_apart = target.many or canonical(target.key) != canonical(item.key)
    difference = values.difference(item.value, target.value) if stands_apart else None
    changed = values.says_it_changed(said, target.value, case.languages)
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.reviews.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = values.is_negated(one) != values.is_negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    said = case.quoted_sentences()
    near = any(holds_word(said, word) for word in words)
    changed = values.says_it_changed(said, target.value, case.languages)
    one = cardinality(target.key) == "one"
    if values.names_another(said, target.value) and (near or changed or one):
        case.reviews.append("the words speak of another number or name than what they would end")
    elif near and values.is_negated(said) and not changed:
        case.reviews.append("the words deny something else than what they would end")
    case.change(key=target.key, many=target.many)


_SAMPLE = 20_000
"""How many characters of the session are read to tell its languages."""

Check = Callable[[Case], None]


def check_own_type(case: Case) -> None:
    """Refuse a new value that its own type does not admit; a type that nobody declared is
    ``other``."""
    item = case.candidate
    own = case.own_types.get(item.type)
    if own is None and item.type not in MEMORY_TYPES:
        log.info("a type of %d characters is unknown and read as other", len(item.type))
        case.change(type="other")
    elif item.relation in ("ends", "same") or own is None:
        return
    elif why := own.misfit(item.value):
        case.refusals.append(f"its value does not fit the type {item.type}: {why}")


CHECKS: tuple[Check, ...] = (
    values.check_key,
    check_quotes,
    values.check_references,
    check_relation,
    values.check_value,
    check_consent,
    check_instructions,
    check_repeats,
    dates.check_expiry,
    dates.check_start,
    check_own_type,
)
"""In this order. After a refusal the others are skipped."""


def judge(
    candidate: Candidate,
    turns: Sequence[Turn],
    known: Sequence[KnownFact],
    *,
    prompt_text: str,
    injected: Collection[str],
    look_follows: bool = False,
    own_types: OwnTypes = NO_TYPES,
) -> Verdict:
    """Decide about one candidate. ``prompt_text`` and ``injected`` are the instructions and memory
    lines that models were given, which prove nothing. ``look_follows``: whether a model judges what
    this leaves open.
    """
    sample = "\n".join(t.text[:_SAMPLE] for t in turns if t.role == "user")[:_SAMPLE]
    languages = dates.languages_in(sample, 0, len(sample))
    case = Case(candidate, turns, known, prompt_text, injected, languages, look_follows, own_types)
    for check in CHECKS:
        if not case.refusals:
            check(case)
    check_secrets(case)
    return _verdict(case)


def dedupe_session(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts without slips of the tongue: of two for one key that holds one value the later
    message wins. Where the later one waits for the user, so does the earlier."""
    kept: list[Verdict] = []
    latest: dict[str, Verdict] = {}
    for verdict in sorted(verdicts, key=_latest_quote, reverse=True):
        item = verdict.candidate
        if verdict.outcome == "refuse" or item.relation == "ends" or item.many or verdict.starts:
            kept.append(verdict)
            continue
        if verdict.asks and any(_is_rival(verdict, other) for other in verdicts):
            kept.append(replace(verdict, outcome="review", reasons=(verdict.asks,)))
            continue
        later = latest.setdefault(item.key, verdict)
        if later is verdict:
            kept.append(verdict)
        elif later.outcome != "review":
            continue
        elif normal_value(later.candidate.value) == normal_value(item.value):
            # The same was said again, less certainly: the certain one stays.
            kept = [one for one in kept if one is not later]
            kept.append(verdict)
            latest[item.key] = verdict
        else:
            reason = "something else may have been said later in the conversation"
            kept.append(replace(verdict, outcome="review", reasons=(*verdict.reasons, reason)))
    order = {id(verdict.candidate): place for place, verdict in enumerate(verdicts)}
    return sorted(kept, key=lambda verdict: order[id(verdict.candidate)])


def _is_rival(one: Verdict, other: Verdict) -> bool:
    """Whether two proposals are two values for one slot."""
    same_slot = one.candidate.key == other.candidate.key
    return same_slot and other.outcome == "accept" and other.candidate is not one.candidate


def _latest_quote(verdict: Verdict) -> tuple[int, int]:
    users = [(p.message_id, p.start) for p in verdict.spans if p.role == "user"]
    return max(users, default=(-1, -1))


def _verdict(case: Case) -> Verdict:
    cited = [*case.proofs, *([case.ref] if case.ref else [])]
    spans = tuple(
        Proof(turn.message_id, turn.id, turn.role, a, b, turn.text[a:b])
        for turn, span in cited
        for a, b in span.pieces
    )
    remarks = [] if case.wordless else [*case.reviews, *case.notes]
    outcome: Outcome = "refuse" if case.refusals else "review" if case.reviews else "accept"
    reasons = tuple(dict.fromkeys((*case.refusals, *remarks)))
    verdict = Verdict(outcome, reasons, spans, case.candidate, case.until, case.starts)
    verdict = replace(verdict, asks=case.asks, suspect=case.suspect)
    return verdict.without_words() if case.wordless else verdict
