"""Finds secrets by their form.

They are keys of services, numbers of cards, accounts and documents, strong passwords, recovery
keys, and the words of a wallet. Each ``Rule`` says what is looked for, beside which spots of a
text, and what must hold of it, such as check digits. Spots are cheap to find and rare in prose, so
that most of a text is passed over.
"""

from __future__ import annotations

# ruff: noqa: E501  (patterns are read along, not down)
import base64
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

Place = tuple[int, int]
Check = Callable[[re.Match[str]], bool | int]
"""Whether what was found is a secret; or the end of the secret, 0 if there is none."""


class Rule(NamedTuple):
    """A kind of secrets by its form: the last group of the form, or all of it, is the secret."""

    kind: str
    near: str
    """The spots of ``SPOTS`` beside which it is looked for; "" for anywhere."""
    form: re.Pattern[str]
    holds: Check | None = None


SPOTS: dict[str, tuple[re.Pattern[str], int, int]] = {
    "token": (re.compile(r"(?<!\S)(?![^\W\d_]+[.,;:!?)]*(?!\S))\S{9,}"), 64, 1),
    "figure": (re.compile(r"\d[\d\W]*"), 100, 100),
    "sign": (re.compile(r"[a-z\d][@#$%&*!^~]", re.IGNORECASE), 80, 80),
    "at": (re.compile(r"@|[(\[]at[)\]]"), 80, 260),
    "dot": (re.compile(r" (?:dot|point|punto|ponto|punkt) "), 100, 20),
    "option": (re.compile(r"\s(?:-p|--password|-u|--user|-U)"), 160, 2_000),
    "setting": (re.compile("="), 60, 2_000),
    "pair": (re.compile(r"(?:admin|root|guest|administrator|wi-?fi|wlan) ?[/:=]"), 1, 160),
}
"""Places where something may be, and the characters before and after them that are read."""


def regions(spots: Iterable[Place], size: int, before: int, after: int) -> list[Place]:
    """The parts of a text around some places in order; parts that touch each other are one."""
    out: list[Place] = []
    begin, stop = 0, -1
    for start, end in spots:
        if start - before > stop:
            if stop >= 0:
                out.append((begin, min(stop, size)))
            begin = max(0, start - before)
        stop = end + after
    return [*out, (begin, min(stop, size))] if stop >= 0 else out


def find_forms(
    rules: Iterable[Rule], text: str, near: dict[str, list[Place]]
) -> Iterator[tuple[str, int, int]]:
    """The kind and place of each secret that has one of these forms. ``near`` are the regions that
    are known already; others are added."""
    for kind, spot, form, holds in rules:
        if spot not in near:
            pattern, before, after = SPOTS[spot]
            found = (match.span() for match in pattern.finditer(text))
            near[spot] = regions(found, len(text), before, after)
        for region in near[spot]:
            for match in form.finditer(text, *region):
                start, end = match.span(match.lastgroup or 0)
                held = holds is None or holds(match)
                if held:
                    yield kind, start, end if held is True else int(held)


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
PART = re.compile(r"\{(?:(?P<alphabet>[a-z0-9]+):(?P<exact>=?)(?P<count>\d+)|(?P<words>[^{}]+))\}")


def _data(name: str) -> str:
    return (files("memchat.language") / "secret_data" / name).read_text(encoding="utf-8")


@cache
def rows() -> list[list[str]]:
    """The table: service, form and source."""
    found: list[list[str]] = tomllib.loads(_data("formats.toml"))["forms"]
    return found


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


def _is_no_word(found: re.Match[str]) -> bool:
    """Whether it is more than words with hyphens, such as the name of a package, or a long word."""
    return not re.fullmatch(r"[a-z0-9]{1,5}(?:-[a-z]+)+|[A-Za-z][a-z]+", found[0])


_CODED = re.compile(r"[A-Za-z0-9+=]{16,}")
_SWITCHES = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[A-Z][a-z])")
_PUBLIC = re.compile(
    r"[13][1-9A-HJ-NP-Za-km-z]{25,34}|0x[0-9a-fA-F]{40}|sha\d+-.*"
    r"|[0-9A-F-]+|[0-9a-f-]+|[^a-zA-Z]+"
)
"""Addresses of wallets and digests of files, which are meant to be shown, and plain numbers."""
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
_ADDRESS = re.compile(r"(?:://|www\.)\S*$")


def _around(found: re.Match[str]) -> str:
    start, end = found.span(found.lastgroup or 0)
    return found.string[max(0, start - 60) : end + 30]


def _is_random(found: re.Match[str]) -> bool:
    """Whether letters and digits alternate as they do in keys, and not in names and numbers."""
    if _PUBLIC.fullmatch(found[0]):
        return False
    for piece in _CODED.findall(found[0]):
        kinds = sum(bool(re.search(kind, piece)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
        turns = len(_SWITCHES.findall(piece))
        if kinds == 3 and turns * 5 >= len(piece):
            return True
        if kinds == 2 and "0" <= min(piece) <= "9" and turns * 3 >= len(piece):
            return True
    return False


def _is_hex_key(found: re.Match[str]) -> bool:
    known = len(found[0]) >= _LONGEST_HEX or _KEY_WORD.search(_around(found))
    return bool(known) and not _DIGEST_WORD.search(_around(found))


def _is_assigned_key(found: re.Match[str]) -> bool:
    """Whether letters and digits are mixed, and it is no part of an address nor said to be a
    digest. Hexadecimal digits count from 32 on, since ids of records have 24."""
    run, start = found["key"], found.start("key")
    if len(run) < _SHORTEST_HEX and re.fullmatch("[0-9a-f]+|[0-9A-F]+", run):
        return False
    if len(re.findall(r"\d+", run)) < 3 or len(re.findall(r"[A-Za-z]+", run)) < 3:
        return False
    before = found.string[max(0, start - _LONGEST_ADDRESS) : start]
    return not (_ADDRESS.search(before) or _DIGEST_WORD.search(_around(found)))


_LOG_IN = re.compile(
    r"log(?:ged|ging|s)?[ -]?in|log(?:ged|ging)?[ -]?on|sign(?:ed|ing|s)?[ -]?in|user ?name"
    r"|credential|password|passwort|anmeld|einlogg|zugang|kennwort"
    r"|contraseña|acced|inici\w+ sesión|usuario"
    r"|connect\w* (?:à|au|avec)|identifiant|mot de passe|accedo|accesso|utente|senha|entrar com"
    r"|usuário|inlogg|wachtwoord|gebruiker|вход|войти|захожу|вхожу|логин|парол|giriş|şifre|parola"
    r"|الدخول|المرور|लॉगिन|पासवर्ड|ログイン|パスワード|로그인|비밀번호|ล็อกอิน|รหัส|登录|登陆|登入|密码|密碼"
    r"|zalog|loguj|hasł|přihl|hesl|logga|lösenord|passord|kirjaud|salasana|увійти|σύνδεση|κωδικ"
    r"|đăng nhập|mật khẩu|masuk|sandi|conectez|jelsz|להתחבר|סיסמ|رمز عبور|guest|admin",
    re.IGNORECASE,
)
_PAIR_BEFORE = re.compile(r"[\w.@+-]{3,40} ?[/|:] $|[\w.@+-]{3,40} / ?$")
_KNOWN_OTHERWISE = re.compile(
    r".*(?:://|=|[({\[<\\]).*|www\..*|.+@[^@]+\.[A-Za-z]+|.+@[\^~]?v?\d[\w.-]*"
    r"|.*\.[A-Za-z]{2,5}\d?(?:#.*)?"
)
"""Addresses, settings, code, versions of packages and file names."""


def _logs_in(found: re.Match[str]) -> bool:
    """Whether a token has lower case, capitals and digits, and words for logging in are near, or a
    user's name and a slash stand before it."""
    token, (start, end) = found["token"], found.span("token")
    if not all(re.search(kind, token) for kind in ("[a-z]", "[A-Z]", "[0-9]")):
        return False
    before = found.string[max(0, start - 60) : start]
    logs_in = _PAIR_BEFORE.search(before) or _LOG_IN.search(before + found.string[end : end + 60])
    return len(token) > 7 and bool(logs_in) and not _KNOWN_OTHERWISE.fullmatch(token)


_NUMBERED = re.compile(
    r"order|serial|ticket|booking|reservation|iban|parcel|tracking|part n|model|plate|postcode"
    r"|bestell|serien|buchung|sendung|pedido|reserva|commande|réservation|ordine|prenotazione"
    r"|заказ|билет|брон|sipariş|zamówieni|rezerwacj|订单|注文|주문",
    re.IGNORECASE,
)


def _is_recovery_key(found: re.Match[str]) -> bool:
    """Whether most of these groups have letters and digits, at random, in one case."""
    mixed = [word for word in re.findall(r"\w+", found[0]) if not word.isalpha() | word.isdigit()]
    forms = len({re.sub(r"\D", "a", re.sub(r"\d", "1", word)) for word in mixed})
    if (
        forms < 2
        or len(mixed) + (forms > 2) < 4
        or found[0] not in (found[0].lower(), found[0].upper())
    ):
        return False
    if any(re.fullmatch(r"\d+[x*]\d+", word) for word in mixed):
        return False
    return not _NUMBERED.search(found.string, max(0, found.start() - 60), found.start())


def is_card(digits: str) -> bool:
    """Whether these digits have the length and the check digit of a card number (Luhn)."""
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _is_card(found: re.Match[str]) -> bool:
    return is_card(re.sub(r"\D", "", found[0]))


def _iban_end(found: re.Match[str]) -> int:
    """The end of the part of a match that is an IBAN by its check digits; 0 if there is none."""
    text = found[0]
    for end in range(len(text), 14, -1):
        compact = text[:end].replace(" ", "")
        if text[end - 1] == " " or text[end : end + 1] not in ("", " ") or len(compact) < 15:
            continue
        turned = compact[4:34] + compact[:4]
        if len(compact) < 35 and int("".join(str(int(c, 36)) for c in turned)) % 97 == 1:
            return found.start() + end
    return 0


def _is_long_id(found: re.Match[str]) -> bool:
    """Whether it is a CPF (Brazil), T.C. kimlik (Turkey) or Aadhaar number (India) by its check
    digits."""
    digits = [int(c) for c in found[0] if c.isdigit()]
    if len(set(digits)) < 3:
        return False
    if len(digits) == 12:
        return digits[0] > 1 and _verhoeff(digits)
    first = sum(n * w for n, w in zip(digits[:9], range(10, 1, -1), strict=True)) * 10 % 11 % 10
    second = sum(n * w for n, w in zip(digits[:10], range(11, 1, -1), strict=True)) * 10 % 11 % 10
    if digits[9:] == [first, second]:
        return True
    tenth = (7 * sum(digits[0:9:2]) - sum(digits[1:8:2])) % 10
    return digits[0] > 0 and digits[9] == tenth and digits[10] == sum(digits[:10]) % 10


def _is_dni(found: re.Match[str]) -> bool:
    """Whether the letter is that of a Spanish identity card with this number."""
    return "trwagmyfpdxbnjzsqvhlcke"[int(found[1]) % 23] == found[2]


def _verhoeff(digits: list[int]) -> bool:
    def times(a: int, b: int) -> int:
        if a < 5 and b < 5:
            return (a + b) % 5
        if a < 5:
            return 5 + (a + b - 5) % 5
        return 5 + (a - 5 - b) % 5 if b < 5 else (a - b) % 5

    turn = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    check = 0
    for place, digit in enumerate(reversed(digits)):
        for _ in range(place % 8):
            digit = turn[digit]
        check = times(check, digit)
    return check == 0


def _weighed(weights: str, modulus: int = 11, rest: int = 0) -> Check:
    """A check of the digits by their weighted sum; an ``x`` counts ten."""

    def check(found: re.Match[str]) -> bool:
        digits = [10 if c == "x" else int(c) for c in re.findall(r"[\dx]", found[0])]
        return sum(d * int(w, 36) for d, w in zip(digits, weights, strict=True)) % modulus == rest

    return check


def _is_swedish(found: re.Match[str]) -> bool:
    doubled = [int(c) * (2 - n % 2) for n, c in enumerate(re.sub(r"\D", "", found[0])[-10:])]
    return sum(n // 10 + n % 10 for n in doubled) % 10 == 0


def _is_finnish(found: re.Match[str]) -> bool:
    number = found[0]
    return "0123456789abcdefhjklmnprstuvwxy"[int(number[:6] + number[7:10]) % 31] == number[10]


def _is_nie(found: re.Match[str]) -> bool:
    number = re.sub(r"\W", "", found[0])
    as_dni = re.match(r"(\d+)([a-z])", str("xyz".index(number[0])) + number[1:])
    return as_dni is not None and _is_dni(as_dni)


def _is_french(found: re.Match[str]) -> bool:
    number = re.sub(r"\s", "", found[0]).replace("2a", "19").replace("2b", "18")
    return (int(number[:13]) + int(number[13:])) % 97 == 0


_MONTH = "(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_CHECKED: tuple[tuple[str, Check | None], ...] = (
    # Driving licence and National Insurance number (United Kingdom). The last letter of the second
    # is no word of its own, as in "it cost me 250000 a year".
    (rf"(?=[a-z9]{{5}}[ -]?\d{{6}})[a-z]{{1,5}}9{{0,4}}[ -]?\d(?:[05][1-9]|[16][0-2]){_DAY}\d"
     r"[ -]?[a-z][a-z9][ -]?\d[ -]?[a-z]{2}(?:[ -]?\d\d)?", None),
    (r"(?!bg|gb|kn|nk|nt|tn|zz)(?:qq|[a-ceghj-pr-tw-z][a-ceghj-nprstw-z])[ -]?"
     r"\d\d(?:[ -]?\d\d){2}(?:[a-d]|[ -](?:[b-d]|a(?! \w)))", None),
    (r"[xyz][ -]?\d{7}[ -]?[a-z]", _is_nie),  # Spain, of foreigners
    (rf"[1278] ?\d\d ?(?:{_MONTH}|[2-4]\d) ?(?:\d\d|2[ab]) ?\d{{3}} ?\d{{3}} ?\d\d",
     _is_french),
    (r"[a-z]{3} ?[a-z]{3} ?\d\d[a-ehlmprst]\d\d ?[a-z]\d{3}[a-z]", None),  # Italy
    (rf"(?:19|20)?\d\d{_MONTH}(?:{_DAY}|[6-9]\d)[-+]\d{{4}}", _is_swedish),
    (rf"{_DAY}{_MONTH}\d\d[-+a]\d{{3}}[\da-y]", _is_finnish),
    (rf"\d\d(?:{_MONTH}|2[1-9]|3[0-2]){_DAY}\d{{5}}", _weighed("13791379131", 10)),  # Poland
    (rf"{_DAY}{_MONTH}\d\d ?\d{{5}}", _weighed("54327654321")),  # Norway
    (rf"[1-8]\d\d{_MONTH}{_DAY}\d{{6}}", _weighed("279146358279a")),  # Romania
    (r"756\.\d{4}\.\d{4}\.\d\d", None),  # Switzerland
    (rf"\d\d\.{_MONTH}\.{_DAY}-\d{{3}}\.\d\d", None),  # Belgium
    (rf"[1-9]\d{{5}}(?:19|20)\d\d{_MONTH}{_DAY}\d{{3}}[\dx]",
     _weighed("79a584216379a58421", rest=1)),  # China
    (rf"\d\d{_MONTH}{_DAY}-[1-8]\d{{6}}", None),  # South Korea
    (r"\d-\d{4}-\d{5}-\d\d-\d", None),  # Thailand
    (r"[a-z]{3}[abcfghljpt][a-z]\d{4}[a-z]", None),  # India, of taxpayers
    (rf"[a-z]{{4}}\d\d{_MONTH}{_DAY}[hmx][a-z]{{5}}[a-z\d]\d", None),  # Mexico
    (r"[ap]\d{9}[a-z]", None),  # Kenya, of taxpayers
)  # fmt: skip
_DOCUMENTS = [(re.compile(rf"(?:{form})(?![\w-])"), holds) for form, holds in _CHECKED]
_ANY_DOCUMENT = re.compile(
    r"(?<![\w.,:/-])(?=\w[\w .-]{0,20}\d)"  # spares most words the list
    rf"(?:{'|'.join(form for form, _ in _CHECKED)})(?![\w-])"
)


def _document_end(found: re.Match[str]) -> int:
    """The end of the number of a document with letters or dates in fixed places, and maybe check
    digits."""
    for form, holds in _DOCUMENTS:
        number = form.match(found.string, found.start())
        if number and (holds is None or holds(number)):
            return number.end()
    return 0


def _follows_address(found: re.Match[str]) -> bool:
    """Whether the word before is an e-mail address, so that this is its password."""
    return "@" in found.string[max(0, found.start() - 64) : found.start()].split()[-1:][0]


def _is_no_date(found: re.Match[str]) -> bool:
    return re.fullmatch(r"\d{4}[ .-]\d{2}[ .-]\d{2}", found[0]) is None


def _rules(*rules: tuple[str, str, str, Check | None]) -> tuple[Rule, ...]:
    return tuple(Rule(kind, near, re.compile(form), holds) for kind, near, form, holds in rules)


_GROUPS = "|".join(
    rf"[A-Za-z0-9]{{{n}}}(?:(?: - |[ \n-])[A-Za-z0-9]{{{n}}}){{3,59}}" for n in (4, 5, 6)
)
_SERVICE_KEYS = "|".join(_pattern(form) for _service, form, _source in rows())
IN_TEXT = _rules(
    # What begins every form stands once before them all: most places are ruled out by it.
    ("key", "", rf"(?<![A-Za-z0-9])(?=\S{{11}})(?:{_SERVICE_KEYS})", _is_no_word),
    ("key", "", r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END[^\n]*|\Z)",
     None),
    ("key", "", r"\$(?:2[abxy]|[156]|argon2id?|y)\$[\w./$=,+-]{20,}", None),
    ("key", "token", r"(?<!\w)\w{2,20}://[^\s/:@]{0,99}:[^\s/@]{1,99}@\S+", None),
    ("key", "setting", r"(?i)(?<=[?&;])(?:api_?key|key|token|access_token|auth|secret|password|pwd"
     r"|sig|x-amz-signature|code(?==[^\s&]{20}))=[^\s&]{8,}", None),
    ("key", "setting", r"(?i)(?<![\w.?&])[a-z0-9_]{0,40}?(?:key|token|secret|password|passwd|pwd|pass"
     r"|credential)s?=(?=[^\s]{0,99}[^\s\d])[^\s&;]{5,}", None),
    ("key", "option", r"(?i)(?<!\w)(?:mysql|mysqldump|sshpass|docker login|curl|wget|psql|smbclient)"
     r"(?=\s)[^\n]{0,120}\s(?:-p|--password|-u|--user|-U)[= ]?(?!\s)[^\s]{4,}", None),
    ("key", "", r"(?i)(?<!\w)(?:set-cookie|cookie|x-api-key|x-auth-token|proxy-authorization)"
     r": ?[^\n]{6,}", None),
    ("key", "token", r"(?<![\w-])(?=[A-Z0-9-]{0,30}[0-9])(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9]{4,6}"
     r"(?:-[A-Z0-9]{4,6}){3,11}(?![\w-])", None),
    ("key", "token", r"(?<!\w)(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,}(?!\w)", None),
    ("key", "token", r"(?<![\w-])(?:[a-z]{4}(?:-[a-z]{4}){3}|[A-Z]{4}(?:-[A-Z]{4}){3}"
     r"|\d{6}(?:-\d{6}){5,9})(?![\w-])", _is_no_word),
    ("key", "token", r"(?<![\w.@/?&=#:%+-])[A-Za-z0-9+/=_-]{20,}(?![\w@/-]|\.\w)", _is_random),
    ("key", "token", r"(?<![\w./:-])(?:0x)?[0-9a-fA-F]{32,64}(?![\w-])", _is_hex_key),
    ("key", "token", r"(?:[\"'`=]|[\w\"']: ?|= )(?P<key>[A-Za-z0-9]{24,})(?![\w/-]|\.\w)",
     _is_assigned_key),
    ("password", "sign", r"(?<![!-~])[\"'`()\[\]<>,;:.]*(?P<token>[!-~]{0,70}?[A-Za-z\d][@#$%&*!^~]+"
     r"[A-Za-z\d][!-~]{0,60}?)[\"'`()\[\]<>,;:.]*(?![!-~])", _logs_in),
    ("password", "figure", rf"(?<![A-Za-z0-9])(?:{_GROUPS})(?![A-Za-z0-9])", _is_recovery_key),
)  # fmt: skip
"""Forms in which capitals count."""
IN_FOLDED = _rules(
    ("key", "token", r"(?:(?:secret|api|access|private|ssh)[ _-]?(?:access[ _-]?)?(?:key|token|secret)?|api-schlüssel|clé api|clave api|chiave api|token|bearer|密钥|client_secret)"
    r"(?:\s*[:=]\s*|\s+(?:is|ist|est|es|è|lautet|:)\s+|\s+)[\"']?(?P<secret>(?=[^\s\"']*\d)[a-z0-9+/=_.-]{14,})", None),
    ("e-mail", "at", r"(?<![\w.+%-])[\w.+%-]{1,64} ?(?:@|\(at\)|\[at\]) ?[\w-]+(?:\.[\w-]+)*(?:\.| ?\(dot\) ?"
    r"| ?\[dot\] ?)[a-z]{2,}", None),
    ("e-mail", "dot", r"(?<!\w)[a-z][\w+.-]{1,40} (?:at|arobase|arroba|chiocciola) [\w-]{2,40} (?:dot|point|punto|ponto|punkt) [a-z]{2,6}(?!\w)", None),
    ("password", "at", r"(?<=[\w])\.[a-z]{2,10}(?: ?[/|:] ?| - )(?P<secret>[^\s\"',;]{4,60})", _follows_address),
    ("password", "pair", r"(?<!\w)(?:admin|root|guest|administrator) ?[/:] ?(?P<secret>(?=\S{0,40}\d)\S{4,40})"
    r"|(?<!\w)(?:wi-?fi|wlan)(?::| =) ?\w{1,30} ?/ ?(?P<word>\S{4,40})", None),
    ("password", "sign", r"(?<![^\s\"'(])(?=\S{0,40}\d)(?=[^\s\d]{0,40}[a-z]{3})[a-z0-9_.-]{2,30}[!$%^&*][a-z0-9!$%^&*_-]{1,30}(?<=[\w!])(?![\w/@=])"
    r"|(?<![^\s\"'(])[a-z]{3,20}[$^*%][a-z]{3,20}(?![\w/@=])", None),
    ("card", "figure", r"(?<![\w.,-])\d(?:[ -]?\d){12,18}(?![\w-])", _is_card),
    ("card", "figure", r"(?:card|karte\w*|kartennummer|carte|tarjeta|carta|cartão|kart\w*|карт\w+|卡号|カード(?:番号)?)[^\d\n]{0,20}(?P<secret>\d(?:[ -]?\d){12,18}(?:,? (?:exp\w*|valid \w+|gültig bis) \d\d ?/ ?\d\d)?)(?!\d)", None),
    ("bank account", "figure", r"(?<!\w)[a-z]{2}\d{2}(?: ?[a-z0-9]){11,30}(?!\w)", _iban_end),
    ("phone", "figure", r"(?<![a-z0-9_.+/-])(?:\+|00)[1-9]\d{0,2}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}(?!\w)"
    r"|(?<![a-z0-9_.+/-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\w)"
    r"|(?<![a-z0-9_.+/-])0\d{1,4}[ /-]\d(?:[ -]?\d){4,9}(?![a-z0-9_])", _is_no_date),
    ("phone", "figure", r"(?:phone|mobile|cell|telefon\w*|handy\w*|téléphone|portable|teléfono|móvil|telefono"
    r"|cellulare|telefone|telefoon\w*|whatsapp|call me (?:at|on)|电话|手机|電話|携帯|телефон"
    r"|هاتف|फोन|फ़ोन)"
    r"[^\d\n]{0,24}(?P<secret>\+?\d(?:[ ./()-]?\d){5,14})(?![a-z0-9_])", None),
    ("id number", "figure", r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])", None),
    ("id number", "figure", r"(?:passport|passeport|pasaporte|passaporto|paspoort|pasaport|paszport|sécurité sociale|seguridad social|sozialversicherungs\w+|nhs|medicare|pesel|снилс|инн|personnummer|voter id|sort code|bvn|routing number|account number|numero di conto|social security|ssn|national id|national insurance|insurance|health card|member(?:ship)? id|id card"
    r"|driver'?s licen[cs]e|tax id|steuer-?id\w*|personalausweis\w*|reisepass\w*|dni|nie|nif|cpf"
    r"|tckn|t\.?c\.? kimlik|"
    r"aadhaar|pan card|codice fiscale|bsn|身份证|護照|护照|パスポート|マイナンバー|паспорт)"
    r"(?:[- ]?(?:number|no\.?|nummer|号码?|番号))?"
    r"[^\d\n]{0,12}?(?P<secret>\d(?: ?\d{2,3}){4,7}(?![a-z0-9])|(?=[\w-]*\d{2})[a-z0-9][\w-]{4,})", None),
    ("id number", "figure", r"(?<!\w)(\d{8})[ -]?([a-z])(?!\w)", _is_dni),
    ("id number", "figure", r"(?<![\w.,-])(?:\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11}|\d{4} ?\d{4} ?\d{4})(?![\w-])", _is_long_id),
    ("id number", "figure", _ANY_DOCUMENT.pattern, _document_end),
)  # fmt: skip
"""Forms in a folded text."""


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
_RUN = re.compile(
    r"(?:(?<![^\W\d_])[a-z]{3,8}(?![^\W\d_])(?=[^\s,;]{0,9}[\s,;])[\s,.;:)#-]*(?:\d{1,2}[\s.):-]*)?)+"
    r"(?:(?<![^\W\d_])[a-z]{3,8}(?![^\W\d_]))?"
)
"""Words as long as those of a wallet, maybe numbered."""


def places(word: str) -> tuple[int, ...]:
    """The bits of the filter that stand for a word."""
    digest = hashlib.sha256(word.encode()).digest()
    return tuple(int.from_bytes(digest[2 * n : 2 * n + 2]) % BITS for n in range(_HASHES))


@lru_cache(maxsize=16_384)
def is_listed(word: str) -> bool:
    """Whether a word is listed, or one of the few others that the filter accepts."""
    bits = _filter()
    return all(bits[at // 8] >> at % 8 & 1 for at in places(word))


def find_wallet_words(text: str) -> Iterator[Place]:
    """The places of wallet words in a folded text."""
    for found in _RUN.finditer(text):
        if found.end() - found.start() > 4 * _FEWEST:
            yield from _wallet(list(_WORD.finditer(text, *found.span())))


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
