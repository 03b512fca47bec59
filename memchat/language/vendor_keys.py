"""Keys that are recognised by their form alone: those of the services in ``formats.toml``, and long
random runs of letters and digits."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
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
