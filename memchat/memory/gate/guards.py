"""The guards: what keeps two facts apart, and the signs that one really takes the other's place.

Two values may hold the same words and mean two things: another number, name, person, side or time
of day. What differs so is never merged, whoever says that it is the same.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from memchat.memory.gate import markers
from memchat.memory.gate.text import content_words, fold, names, normal_value, numbers, says

_OPPOSITES = """
left|right links|rechts gauche|droite izquierd|derech sinistr|destr esquerd|direit sol|sağ лев|прав 左|右 왼쪽|오른쪽
before|after vor|nach avant|après antes|después prima|dopo voor|na önce|sonra до|после 前|后 전|후
with|without mit|ohne avec|sans con|sin con|senza com|sem met|zonder с|без
from|to von|nach de|à desde|hasta из|в
plus|minus more|less mehr|weniger plus|moins más|menos più|meno больше|меньше
old|new alt|neu ancien|nouveau viejo|nuevo vecchio|nuovo velho|novo oud|nieuw eski|yeni стар|нов 旧|新
hot|cold heiß|kalt chaud|froid caliente|frío caldo|freddo quente|frio горяч|холодн 热|冷
light|dark hell|dunkel clair|foncé big|small groß|klein grand|petit grande|pequeño open|closed
buy|sell north|south east|west summer|winter first|last upper|lower inside|outside indoor|outdoor
morning|afternoon|evening|night morgens|mittags|abends|nachts matin|après-midi|soir|nuit mañana|tarde|noche
mattina|pomeriggio|sera|notte manhã|tarde|noite ochtend|middag|avond|nacht sabah|öğle|akşam|gece утр|день|вечер|ноч
朝|昼|夜 早上|下午|晚上 아침|점심|저녁
"""
_PEOPLE = """
mother|mum|mom father|dad sister brother son daughter wife husband uncle aunt niece nephew grandmother|grandma grandfather|grandpa
mutter vater schwester bruder sohn tochter frau mann onkel tante oma opa
mère père sœur frère fils fille femme mari oncle madre padre hermana hermano hijo hija esposa esposo tía tío
sorella fratello figlio figlia moglie marito mãe pai irmã irmão filho filha moeder vader zus broer zoon dochter
anne|annem baba|babam abla|ablam abi|abim oğlum kızım мать|мама отец|папа сестра брат сын дочь
妈妈|母亲 爸爸|父亲 姐姐 妹妹 哥哥 弟弟 儿子 女儿 お母さん|母 お父さん|父 姉 妹 兄 弟 息子 娘 엄마|어머니 아빠|아버지 누나|언니 형|오빠 동생
"""
_ORDINALS = """
first|erste|premier|première|primero|primera|primo|prima|birinci|первый second|zweite|deuxième|segundo|segunda|secondo|seconda|ikinci|второй
third|dritte|troisième|tercero|tercera|terzo|terza|üçüncü|третий fourth|vierte|quatrième|cuarto|cuarta|quarto|quarta|dördüncü|четвёртый
fifth|fünfte|cinquième|quinto|quinta|beşinci|пятый sixth|sechste|sixième|sexto|sexta|sesto|altinci|шестой seventh|siebte|septième|séptimo
eighth|achte|huitième|octavo ninth|neunte|neuvième|noveno tenth|zehnte|dixième|décimo
"""
_OVER = re.compile(
    r"(?<!\w)(?:over|finished|done|ended|ends|died|dead|passed away|cancel\w*|called off|sold|bought|left|moved|completed?|gone|lost|closed"
    r"|broke up|divorced|retired|expired|dropped|past|returned|gave (?:it )?(?:up|away)|past|former"
    r"|vorbei|fertig|beendet|gestorben|tot|verkauft|gekauft|abgesagt|gekündigt|verlassen|getrennt|ausgezogen|erledigt|abgeschlossen"
    r"|finie?s?|terminée?s?|morte?|mort|vendue?|achetée?|annulée?|quittée?|arrêtée?|résiliée?"
    r"|terminad\w|terminó|acab\w+|muri\w+|vendid\w|vendí|cancelad\w|dej\w+|finito|finita|terminat\w|mort[oa]|vendut\w|annullat\w|lasciat\w"
    r"|terminou|morreu|vendi|cancelei|deixei|voorbij|klaar|gestopt|overleden|verkocht|opgezegd|bitti|öldü|sattim|iptal\w*|biraktim|ayrildim"
    r"|закончил\w*|умер\w*|продал\w*|отменил\w*|бросил\w*|больше не)(?!\w)"
    r"|终于结束|结束了|死了|卖了|取消了|不再|終わ(?:った|りました)|亡くな|死ん|売った|やめ(?:た|ました)|끝났|죽었|팔았|취소|그만|انتهى|انتهت|مات|بعت|ألغيت|खत्म|मर गया|बेच दिया|จบแล้ว|ตายแล้ว|ขายแล้ว|เลิก"
)
_CHANGE = re.compile(
    r"(?<!\w)(?:now|nowadays|these days|instead|rather than|from now on|no longer|any ?more|after all|moved|changed?|switch\w*|replac\w+|became"
    r"|renamed|resched\w+|postponed|rebooked|upgraded|pivoted|grew|shrank|promoted|corrected?|actually"
    r"|jetzt|nun|inzwischen|statt|stattdessen|nicht mehr|doch|geändert|gewechselt|verschoben|umgezogen"
    r"|maintenant|désormais|plutôt|au lieu|ne .{1,30} plus|ahora|en vez|en lugar|ya no|cambi\w+|adesso|ora|invece|non più"
    r"|agora|em vez|já não|nu|voortaan|in plaats|niet meer|artik|şimdi|yerine|теперь|сейчас|вместо|больше не)(?!\w)"
    r"|现在|改成|改为|换成|不再|今は|もう|になりました|に変|代わりに|이제|대신|바뀌|الآن|بدلا|لم أعد|अब|की जगह|ตอนนี้|เปลี่ยน|แทน"
)
_COUNTED = re.compile(r"(\d[\d.,:]*)\s?([^\W\d_]+)")
_ADDED = re.compile(
    r"(?<!\w)(?:also|too|as well|another|besides|in addition|both|auch|außerdem|noch|zusätzlich|aussi|également|también|además|otr[oa]"
    r"|anche|inoltre|também|além|ook|bovendien|ayrica|bir de|ещё|еще|также|тоже)(?!\w)|也|还有|もう一|도 |또|أيضا|भी|ด้วย|อีก"
)


def _sides(table: str) -> list[list[re.Pattern[str]]]:
    """Each group of words that exclude each other, as patterns for the words' beginnings."""
    groups = [group.split("|") for line in table.splitlines() for group in line.split()]
    return [[_beginning(word) for word in group] for group in groups]


def _beginning(word: str) -> re.Pattern[str]:
    folded = re.escape(fold(word).text)
    short = r"(?!\w)" if len(word) < 4 and word.isalpha() else r"\w{0,3}(?!\w)"
    spaced = not re.search("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", word)
    return re.compile(rf"(?<!\w){folded}{short}" if spaced else folded)


def _any_of(table: str) -> list[re.Pattern[str]]:
    """One pattern for each group of words with one meaning."""
    return [
        re.compile("|".join(_beginning(word).pattern for word in group.split("|")))
        for group in table.split()
    ]


_OPPOSITE_SIDES = _sides(_OPPOSITES)
_PERSONS = _any_of(_PEOPLE)
_RANKS = _any_of(_ORDINALS)


def differs(one: str, other: str) -> str | None:
    """What forbids to take two values for one: their numbers, dates, names, persons, sides or
    negation; None where they may mean the same in other words."""
    if numbers(one) != numbers(other) or _ranks(one) != _ranks(other):
        return "number"
    if _other_units(one, other):
        return "unit"
    if _foreign_names(one, other) or _foreign_names(other, one) or _other_order(one, other):
        return "name"
    if _people(one) != _people(other):
        return "person"
    a, b = fold(one).text, fold(other).text
    if any(_apart(sides, a, b) for sides in _OPPOSITE_SIDES):
        return "side or time"
    lacking = replaced(one, other)
    words, others = content_words(one), content_words(other)
    titles = one[:1].isupper() and other[:1].isupper() and words != others
    if len(words) == len(others) == 1 and (lacking or titles):
        return "name"
    if lacking and not (_has_case(one) and _has_case(other)):
        return "name"  # nothing tells names from words there: another word may be one
    return "negation" if negated(one) != negated(other) else None


def agree(one: str, other: str) -> bool:
    """Whether two values say the same in the same order, endings aside: enough to merge unasked."""
    return (
        differs(one, other) is None
        and _small_signs(one) == _small_signs(other)
        and text_names(one) == text_names(other)
        and covers(one, other)
        and covers(other, one)
        and _in_order(one, other)
    )


def _small_signs(value: str) -> set[str]:
    """Single letters and symbols: all that tells blood groups, sizes, C and C++ or two emoji apart.
    Not the article in "a cat"."""
    bare = re.sub(r"(?<!\w)a (?=\w{2})", "", fold(value).text)
    letters = re.findall(r"(?<!\w)[^\W\d_](?!\w)", bare)
    signs = [c for c in value if unicodedata.category(c)[0] == "S" or c in "#*%&"]
    return {*letters, *signs}


def replaced(one: str, other: str) -> bool:
    """Whether each of two values holds a word that the other lacks."""
    return not covers(one, other) and not covers(other, one)


def covers(wide: str, narrow: str, *, loosely: bool = True) -> bool:
    """Whether one value holds every word that carries meaning in another, by its stem at least."""
    return normal_value(wide) == normal_value(narrow) or all(
        says(wide, word, loosely=loosely) for word in content_words(narrow)
    )


def negated(value: str) -> bool:
    """Whether a value denies something."""
    return bool(markers.marked("negation", fold(value).text, ()))


def text_names(value: str) -> set[str]:
    """Every name of a value, one that opens it too."""
    return names(value, from_start=True)


def over(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words say that what a value tells is over: a word of ending, or a denial of what the
    value does not deny itself. Not where they add something, or speak of another number or name."""
    folded = fold(said).text
    if added(said) or _speaks_of_another(said, value):
        return False
    return _OVER.search(folded) is not None or _denied(said, value, languages)


def changed(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words say that something takes the place of a value."""
    folded = fold(said).text
    signs = _CHANGE, _OVER
    return any(sign.search(folded) for sign in signs) or _denied(said, value, languages)


def _denied(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words deny every word of a value that does not deny them itself."""
    denies = markers.marked("negation", fold(said).text, languages) and not negated(value)
    return bool(denies) and all(says(said, word) for word in content_words(value))


def added(said: str) -> bool:
    """Whether words say that something comes beside what there is."""
    return _ADDED.search(fold(said).text) is not None


def _has_case(value: str) -> bool:
    return value.upper() != value.lower()


def _speaks_of_another(said: str, value: str) -> bool:
    """Whether words name another number, or only other names, than a value does."""
    if numbers(value) - numbers(said) and numbers(said) - numbers(value):
        return True
    unsaid = [name for name in text_names(value) if not says(said, name, loosely=False)]
    return bool(unsaid) and any(not says(value, name, loosely=False) for name in names(said))


def _foreign_names(one: str, other: str) -> bool:
    return any(not _named(other, name) for name in names(one) & text_names(one))


def _named(value: str, name: str) -> bool:
    """Whether a value holds a very name: Priyanka is not Priya with an ending."""
    wanted, folded = fold(name).text, fold(value).text
    if not wanted.isascii() and not _has_case(name):
        return wanted in folded
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded) is not None


def _people(value: str) -> frozenset[int]:
    folded = fold(value).text
    return frozenset(i for i, person in enumerate(_PERSONS) if person.search(folded))


def _ranks(value: str) -> frozenset[int]:
    folded = fold(value).text
    return frozenset(i for i, rank in enumerate(_RANKS) if rank.search(folded))


def _apart(sides: list[re.Pattern[str]], one: str, other: str) -> bool:
    in_one = {i for i, side in enumerate(sides) if side.search(one)}
    in_other = {i for i, side in enumerate(sides) if side.search(other)}
    return bool(in_one and in_other and in_one != in_other)


def _other_order(one: str, other: str) -> bool:
    """Whether names stand in another order, unless they are only listed: "Ana and Otto"."""
    first, second = _name_order(one), _name_order(other)
    return first != second and not (_listed(one, first) and _listed(other, second))


def _other_units(one: str, other: str) -> bool:
    """Whether one number counts two things: hours and euros, but not cm and centimetres."""
    units, others = dict(_COUNTED.findall(fold(one).text)), dict(_COUNTED.findall(fold(other).text))
    return any(
        not (says(a, b) or says(b, a) or _is_short_for(a, b) or _is_short_for(b, a))
        for a, b in ((units[n], others[n]) for n in units.keys() & others.keys())
    )


def _is_short_for(short: str, long: str) -> bool:
    """Whether the letters of an abbreviation stand in a word, in their order."""
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def _name_order(value: str) -> list[str]:
    found = text_names(value)
    return [word for word in re.findall(r"[\w'’.&-]+", value) if word in found]


def _listed(value: str, order: list[str]) -> bool:
    places = [value.find(name) for name in order]
    between = [
        value[a + len(name) : b] for (a, b), name in zip(pairwise(places), order, strict=False)
    ]
    return all(
        re.fullmatch(r"\s*(?:,|&|\+|/|and|und|et|y|e|en|ve|и|と|和)?\s*", gap) for gap in between
    )


def _in_order(one: str, other: str) -> bool:
    words, others = _ordered(one), _ordered(other)
    return len(words) == len(others) and all(
        says(a, b) or says(b, a) for a, b in zip(words, others, strict=True)
    )


def _ordered(value: str) -> list[str]:
    """The words that carry meaning, as they stand."""
    folded = fold(value).text
    return sorted(content_words(value), key=lambda word: (folded.find(word), word))
