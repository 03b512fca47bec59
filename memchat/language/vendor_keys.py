"""Keys that are recognised by their form alone: those of the services in ``formats.toml``, and long
random runs of letters and digits.

The recovery words of a wallet: a dozen or two of the 2,048 words of BIP-39 in a row.

The list itself is not included. ``wallet_words.txt`` holds a Bloom filter of it, made by
``tools/wallet_words.py``: it accepts every listed word, and one in fifty of all others.

Shopping lists hold many of these words too. They are told apart by ``everyday_things.txt``: of
random wallet words few are things of the kitchen, the house or the farm.
"""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

_ALPHABETS = {
    "hex": "[0-9a-fA-F]",
    "digit": "[0-9]",
    "upper": "[A-Z0-9]",
    "alnum": "[A-Za-z0-9]",
    "word": r"[A-Za-z0-9_-]",
    "path": r"[A-Za-z0-9_@/-]",
    "base64": r"[A-Za-z0-9+/=%_-]",
    "any": r"[^\s\"',]",
}
_LONGEST = 3_500
"""The most characters of a part that is followed by another. The last part ends where its alphabet
does."""
_LONG_ENOUGH = re.compile(r"\S{11}")
"""The shortest form of the table needs this many characters; most texts are ruled out by it."""
PART = re.compile(r"\{(?:(?P<alphabet>[a-z0-9]+):(?P<exact>=?)(?P<count>\d+)|(?P<words>[^{}]+))\}")
_ALWAYS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END[^\n]*|\Z)"
    r"|(?<!\w)\w{2,20}://[^\s/:@]{0,99}:[^\s/@]{1,99}@\S+"
    r"|(?<=[?&;])(?:api_?key|key|token|access_token|auth|secret|password|pwd|sig|x-amz-signature)=[^\s&]{8,}"
    r"|(?<![\w.?&])[a-z0-9_]{0,40}?(?:key|token|secret|password|passwd|pwd|pass|credential)s?"
    r"=(?=[^\s]{0,99}[^\s\d])[^\s&;]{5,}"
    r"|(?<!\w)(?:mysql|mysqldump|sshpass|docker login|curl|wget|psql|smbclient)(?=\s)[^\n]{0,120}"
    r"\s(?:-p|--password|-u|--user|-U)[= ]?(?!\s)[^\s]{4,}"
    r"|(?<!\w)(?:set-cookie|cookie|x-api-key|x-auth-token|proxy-authorization): ?[^\n]{6,}"
    r"|\$(?:2[abxy]|[156]|argon2id?|y)\$[\w./$=,+-]{20,}"
    r"|(?-i:(?<![\w-])(?=[A-Z0-9-]{0,30}[0-9])(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,11}(?![\w-]))"
    r"|(?-i:(?<!\w)(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,}(?!\w))"
    r"|(?<![\w-])[a-z]{4}(?:-[a-z]{4}){3}(?![\w-])"
    r"|(?<![\w-])\d{6}(?:-\d{6}){5,9}(?![\w-])",
    re.IGNORECASE,
)
"""Private key blocks; passwords and keys in addresses, settings, commands and headers; password
hashes; licence and disk keys, in groups of capitals and digits."""
_RUN = re.compile(r"(?<![\w.@/?&=#:%+-])[A-Za-z0-9+/=_-]{20,}(?![\w@/-]|\.\w)")
_CODED = re.compile(r"[A-Za-z0-9+=]{16,}")
_SWITCHES = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[A-Z][a-z])")
_PUBLIC = re.compile(r"[13][1-9A-HJ-NP-Za-km-z]{25,34}|0x[0-9a-fA-F]{40}|sha\d+-.*")
"""Addresses of wallets and digests of files, which are meant to be shown."""
_HEX_RUN = re.compile(r"(?<![\w./:-])(?:0x)?[0-9a-fA-F]{32,64}(?![\w-])")
_LONGEST_ADDRESS = 200
_SHORTEST_HEX = 32
_LONGEST_HEX = 64
"""Hexadecimal digits of a wallet's key, which needs no word near it."""
_KEY_WORD = re.compile(
    r"key|token|secret|auth|sid|credential|schlüssel|clé|clave|chiave|chave|sleutel|ключ|токен|anahtar"
    r"|مفتاح|कुंजी|キー|키|密钥|密鑰|klucz",
    re.IGNORECASE,
)
_DIGEST_WORD = re.compile(
    r"commit|hash|sha-?\d|md5|digest|checksum|prüfsumme|somme de contrôle|revision"
    r"|fingerprint|torrent|magnet|uuid|etag|ticket|tracking|parcel|(?<!\w)(?:rev|ref|sha|blob)(?!\w)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"(?:[\"'`=]|[\w\"']: ?|= )(?P<key>[A-Za-z0-9]{24,})(?![\w/-]|\.\w)")
"""A run in quotes, or after a sign that assigns a value to a name."""
_ADDRESS = re.compile(r"(?:://|www\.)\S*$")
_BESIDE = 60
"""Characters before and after a run of hexadecimal digits in which a word tells what it is."""


def find(text: str) -> Iterator[tuple[int, int]]:
    """The places of keys in an unfolded text."""
    forms = _forms().finditer(text) if _LONG_ENOUGH.search(text) else ()
    for matches in (forms, _ALWAYS.finditer(text)):
        for match in matches:
            if not _is_only_words(match):
                yield match.span()
    for match in _RUN.finditer(text):
        if _is_random(match[0]):
            yield match.span()
    for match in _HEX_RUN.finditer(text):
        around = _around(text, *match.span())
        known = len(match[0]) >= _LONGEST_HEX or _KEY_WORD.search(around)
        if known and not _DIGEST_WORD.search(around):
            yield match.span()
    for match in _ASSIGNED.finditer(text):
        if _is_shuffled(match["key"]) and not _is_shown(text, *match.span("key")):
            yield match.span("key")


def _around(text: str, start: int, end: int) -> str:
    return text[max(0, start - _BESIDE) : end + _BESIDE // 2]


def _is_shuffled(run: str) -> bool:
    """Whether letters and digits are mixed. Hexadecimal digits count from 32 on, since ids of
    records have 24."""
    if len(run) < _SHORTEST_HEX and re.fullmatch("[0-9a-f]+|[0-9A-F]+", run):
        return False
    return len(re.findall(r"\d+", run)) > 2 and len(re.findall(r"[A-Za-z]+", run)) > 2


def _is_shown(text: str, start: int, end: int) -> bool:
    """Whether a run is part of an address, or is said to be a digest or a number of something."""
    before = text[max(0, start - _LONGEST_ADDRESS) : start]
    return bool(_ADDRESS.search(before) or _DIGEST_WORD.search(_around(text, start, end)))


@cache
def rows() -> list[list[str]]:
    """The table: service, form and source."""
    path = files("memchat.language") / "secret_data" / "formats.toml"
    found: list[list[str]] = tomllib.loads(path.read_text(encoding="utf-8"))["forms"]
    return found


@cache
def _forms() -> re.Pattern[str]:
    # What begins every form stands once before them all: most places are ruled out by it.
    forms = "|".join(_pattern(form) for _service, form, _source in rows())
    return re.compile(rf"(?<![A-Za-z0-9])(?={_LONG_ENOUGH.pattern})(?:{forms})")


def _pattern(form: str) -> str:
    """A form of the table as a regular expression. Every part is bounded, and none matches an empty
    text."""
    out, at = [], 0
    for part in PART.finditer(form):
        out.append(re.escape(form[at : part.start()]))
        if part["words"]:
            out.append(f"(?:{'|'.join(map(re.escape, part['words'].split('|')))})")
        else:
            count = part["count"]
            most = "" if part.end() == len(form) else _LONGEST
            size = count if part["exact"] else f"{count},{most}"
            out.append(f"{_ALPHABETS[part['alphabet']]}{{{size}}}")
        at = part.end()
    out.append(re.escape(form[at:]))
    closed = "(?![A-Za-z0-9])" if "=" in form.rpartition(":")[2] else ""
    return f"{''.join(out)}{closed}"


def _is_only_words(match: re.Match[str]) -> bool:
    """Whether it is words with hyphens, such as the name of a package, or one long word."""
    return re.fullmatch(r"[a-z0-9]{1,5}(?:-[a-z]+)+|[A-Za-z][a-z]+", match[0]) is not None


def _is_random(run: str) -> bool:
    """Whether letters and digits alternate as they do in keys, and not in names and numbers."""
    if _PUBLIC.fullmatch(run) or re.fullmatch(r"[0-9A-F-]+|[0-9a-f-]+|[^a-zA-Z]+", run):
        return False
    for piece in _CODED.findall(run):
        kinds = sum(bool(re.search(kind, piece)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
        turns = len(_SWITCHES.findall(piece))
        if kinds == 3 and turns * 5 >= len(piece):
            return True
        if kinds == 2 and "0" <= min(piece) <= "9" and turns * 3 >= len(piece):
            return True
    return False


BITS = 16_384
_HASHES = 5
_FEWEST = 12
_LISTED = 0.85
_LISTED_UNPARTED = 0.65
"""The share of listed words in a run. It is below 1 because of typing mistakes and of other
wallets' lists. Lists of other things have commas, so words without commas need a smaller share."""
_EVERYDAY = 0.5
"""The share of everyday things from which a run is a list of them."""
_SPOKEN = 0.15
"""The share of common words from which a run is a sentence, if it holds an unlisted word. Few
sentences consist of listed words alone."""
_OF_SENTENCES = (
    "about after all and another any are because been before can could for from have her his how"
    " into its just like more much not off our out over than that the their them then there these"
    " they this too until was what when where which who why will with without would you your"
    " also but else had has here very some such only other"
)
_SENTENCE_WORDS = frozenset(_OF_SENTENCES.split())
_WORD = re.compile(r"[^\W\d_]+")
_GAP = re.compile(r"(?=[^\s,;]*[\s,;])[\s,.;:)#-]*(?:\d{1,2}[\s.):-]*)?")
_LENGTHS = range(3, 9)


def places(word: str) -> tuple[int, ...]:
    """The bits of the filter that stand for a word."""
    digest = hashlib.sha256(word.encode()).digest()
    return tuple(int.from_bytes(digest[2 * n : 2 * n + 2]) % BITS for n in range(_HASHES))


@lru_cache(maxsize=16_384)
def is_listed(word: str) -> bool:
    """Whether a word is listed, or one of the few others that the filter accepts."""
    bits = _filter()
    return all(bits[at // 8] >> at % 8 & 1 for at in places(word))


def find_wallet_words(text: str) -> Iterator[tuple[int, int]]:
    """The places of wallet words in a folded text."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        if run and not _GAP.fullmatch(text, run[-1].end(), word.start()):
            yield from _wallet(run)
            run = []
        if len(word[0]) in _LENGTHS and word[0].isascii():
            run.append(word)
        else:
            yield from _wallet(run)
            run = []
    yield from _wallet(run)


def _wallet(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The part of a run that begins and ends with a listed word, if it is the words of a wallet."""
    if len(run) < _FEWEST:
        return
    listed = [is_listed(word[0]) for word in run]
    start = 0
    while start <= len(run) - _FEWEST:
        end = start + _FEWEST
        between = run[start].string[run[start].end() : run[end - 1].start()]
        share = _LISTED if "," in between else _LISTED_UNPARTED
        if not listed[start] or sum(listed[start:end]) < share * _FEWEST:
            start += 1
            continue
        while end < len(run) and listed[end]:
            end += 1
        words = [word[0] for word in run[start:end]]
        spoken = not all(listed[start:end]) and _is_a_sentence(words)
        if not (spoken or _is_a_list_of_things(words)):
            yield run[start].start(), run[end - 1].end()
        start = end


def _is_a_list_of_things(words: list[str]) -> bool:
    named = sum(word in _things() or word.removesuffix("s") in _things() for word in words)
    return named >= _EVERYDAY * len(words)


def _is_a_sentence(words: list[str]) -> bool:
    return sum(word in _SENTENCE_WORDS for word in words) >= _SPOKEN * len(words)


@cache
def _things() -> frozenset[str]:
    path = files("memchat.language") / "secret_data" / "everyday_things.txt"
    return frozenset(path.read_text(encoding="ascii").split())


@cache
def _filter() -> bytes:
    path = files("memchat.language") / "secret_data" / "wallet_words.txt"
    return base64.b64decode(path.read_text(encoding="ascii"))
