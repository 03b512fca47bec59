"""What was once so must not take the place of what is: "I lived in Prague as a student".

Asked only of slots that hold one value. Lists for the fifteen languages of ``markers``.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.keys import cardinality
from memchat.memory.gate.sentences import spoken_in
from memchat.memory.gate.text import content_words, fold, numbers, says

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings

_PAST = {
    "en": r"(?:was|were)(?! (?:just |recently |then |finally )?(?:born|promoted|hired|appointed|named|renamed|transferred|offered|made|diagnosed))|wasn't|weren't|lived|worked|resided|dated|earned|weighed|went|stayed|visited|flew|travell?ed|spent"
    r"|(?<!have )(?<!'ve )(?<!just )had(?! to\b)|left|resigned|divorced|separated|split up|broke up|sold|moved (?:out|away)|used to|grew up|been to|former(?:ly)?|previous(?:ly)?|once|back then|my (?:old|ex|last)",
    "de": r"war(?:en)?|hatten?|wohnten?|lebten?|arbeiteten?|hieß|verdiente|wog|gewohnt|gelebt|gearbeitet|gewesen|verlassen|ausgezogen|weggezogen|getrennt|geschieden|gekündigt|besucht|damals|ehemalig\w*",
    "fr": r"(?:j'|m')?(?:étais|était|étions|avais|avait|habitais|habitait|habitions|vivais|vivait|travaillais|travaillait|gagnais|pesais)|vécu|habité|travaillé|séjourné|quittée?|allée?s?|divorcée?s?|séparée?s?|autrefois|ancien\w*|jadis",
    "es": r"viví|vivía|vivíamos|era|éramos|fui(?! (?:ascendid|nombrad|contratad)\w)|fuimos|estaba|estuve|tenía|tuve|trabajé|trabajaba|residí|residía|dejé|ganaba|pesaba|(?:he|hemos) vivido(?! siempre| toda)|divorciad[oa]s?|separé|antes",
    "it": r"vivevo|abitavo|ero|eravamo|avevo|lavoravo|guadagnavo|pesavo|vissuto|abitato|lavorato|lasciato|stat[oa]|andat[oa]|divorziat[oa]|un tempo|una volta",
    "pt": r"morava|morei|vivia|vivi|era|éramos|fui(?! (?:promovid|contratad)\w)|estive|estava|tinha|tive|trabalhava|trabalhei|deixei|ganhava|pesava|divorciad[oa]|antigamente",
    "nl": r"woonden?|werkten?|leefden?|was|waren|had(?:den)?|heette|verdiende|ging|gewoond|gewerkt|geweest|verlaten|gescheiden|vroeger|destijds",
    "tr": r"eskiden|önceden|bir zamanlar|\w+yordu[mk]|\w*[iu]yd[iu][mk]|\w+d[ae]yd[iu][mk]|yaşadi[mk]|oturdu[mk]|çalişti[mk]|ayrildi[mk]|boşandi[mk]|gittim",
    "ru": r"жил[аи]?|работал[аи]?|был[аи]?|раньше|когда-то|прежде|бывш\w+|уш[её]л|ушла|уволил\w*|разв[её]л\w*|ездил[аи]?|весил[аи]?",
    "ja": r"昔|以前|かつて|んで(?:い)?(?:ました|た)|いて(?:い)?(?:ました|た)|でした|だった|行きました|行った|辞め|離婚|別れ",
    "zh": r"以前|从前|從前|曾|过去|小时候|当时|(?:住|工作|去|待|做|当|读)过|原来|辞了|辞职|离婚|离开|搬出|搬走",
    "ko": r"\w*(?:예전|과거|옛날|살았|일했|이었|였[어습]|다녔|갔[어습]|떠났|이혼)\w*",
    "ar": r"[وف]?(?:كنت|كان|كانت|كنا|عشت|سكنت|عملت|سابقا|سابقًا|سافرت|زرت|تركت|طلقت|انفصلت)",
    "hi": r"था|थी|थे|थीं|पहले|छोड़\S*",
    "th": r"(?<!ไม่)เคย|เมื่อก่อน|แต่ก่อน|สมัย|ลาออก|หย่า",
}
"""Past tenses of being, having, living and working, and words for what is over."""

_NOW = {
    "en": r"now|nowadays|these days|currently|since|still|(?:have|i've|we've) (?:\w+ )?(?:lived|worked|been|stayed|had|dated)(?!\w).{0,60} (?:for|from|all my life)(?!\w)"
    r"|(?:for|from) .{1,40} (?:have|i've|we've) (?:\w+ )?(?:lived|worked|been)|became|switched|changed|promoted|turned|joined|moved (?:from .{1,40} )?(?:back )?(?:to|into|here)",
    "de": r"jetzt|nun|inzwischen|mittlerweile|aktuell|seit\w*|geworden|umgezogen|gewechselt|befördert|geboren",
    "fr": r"maintenant|désormais|depuis|devenue?|promue?|déménagé|installée?|née?",
    "es": r"ahora|ya|desde|actualmente|mudé|mudado|ascend\w+|cambi\w+|nací",
    "it": r"ora|adesso|ormai|divent\w+|trasferit\w|promoss\w|nat[oa]",
    "pt": r"agora|desde|atualmente|mudei|promovid\w|virei|nasci",
    "nl": r"nu|sinds|inmiddels|tegenwoordig|geworden|verhuisd|bevorderd|geboren",
    "tr": r"artik|şimdi|beri|taşindi[mk]|oldum|doğdum",
    "ru": r"теперь|сейчас|стал[аи]?|переехал[аи]?|родил\w+",
    "ja": r"今は|今も|現在|なりました|になった|引っ越し|生まれ",
    "zh": r"现在|如今|目前|搬到|搬去|改成|换成|出生",
    "ko": r"\w*(?:지금|이제|현재|되었|됐|이사|태어)\w*",
    "ar": r"الآن|حاليا|حاليًا|أصبحت|انتقلت|منذ|ولدت",
    "hi": r"अब|आजकल|अभी",
    "th": r"ตอนนี้|ปัจจุบัน|ย้ายมา|เกิด",
}
"""Words that bring the past up to now, or tell how the present came about."""

_ROMANCE = ("fr", "es", "it", "pt")
_UNSPACED = ("ja", "zh", "th")
_PART = re.compile(
    r"[,;:、，。]|(?<!\w)(?:and|but|when|while|because|und|aber|als|weil|et|mais|quand|y|pero|cuando|e|ma(?= (?:ora|adesso|io|sono|vivo))|mas|quando|en(?= (?:ik|nu|we|mijn|ben|woon|werk))|maar|toen|и|но|когда)(?!\w)"
)
_NO_STATE = frozenset(("birthday",))
"""What was true once is true for ever there."""


def check_past(candidate: Candidate, found: Findings) -> None:
    """A statement about the past, with no word that brings it up to now, waits for a person."""
    slot = candidate.key
    if cardinality(slot) != "one" or slot in _NO_STATE or candidate.relation == "ends" or found.ref:
        return
    words = content_words(candidate.value) | numbers(candidate.value)
    for said, languages in spoken_in(found):
        parts = _PART.split(said)
        about = [p for p in parts if any(says(p, word) or word in numbers(p) for word in words)]
        if any(_is_past(part, candidate.value, languages) for part in about or parts):
            found.doubts.append("it tells what was once so, and not what is")
            return


def _is_past(part: str, value: str, languages: tuple[str, ...]) -> bool:
    for code in _read_in(languages):
        past = [m for m in _words(_PAST[code], code).finditer(part) if not _carries(value, m[0])]
        if past and not _words(_NOW[code], code).search(part):
            return True
    return False


def _read_in(languages: tuple[str, ...]) -> tuple[str, ...]:
    """The lists to read: a few words of one Romance language are easily taken for another."""
    if not languages:
        return tuple(_PAST)
    near = _ROMANCE if set(languages) & {*_ROMANCE, "nl"} or languages == ("en",) else ()
    return tuple(dict.fromkeys((*languages, *near)))


def _carries(value: str, marker: str) -> bool:
    """Whether a value itself tells what is over: "divorced" is how one is."""
    return fold(marker).text in fold(value).text


def _words(pattern: str, code: str) -> re.Pattern[str]:
    if code in _UNSPACED:
        return re.compile(pattern)
    return re.compile(rf"(?<![\w\u0900-\u094f])(?:{pattern})(?![\w\u0900-\u094f])")
