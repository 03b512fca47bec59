"""Secrets that are recognised mainly by their form: strong passwords near words for logging in, and
random groups of letters and digits, such as recovery keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memchat.language.named_secrets import Place

_NEAR = 60
"""Characters before and after a token in which words tell what it is."""
_TOKEN = re.compile(r"(?<![!-~])[!-~]{8,80}(?![!-~])")
_EDGES = "\"'`()[]<>,;:."
_STRONG = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d).*[A-Za-z\d][@#$%&*!^~]+[A-Za-z\d]")
_KNOWN_OTHERWISE = re.compile(
    r".*(?:://|=|[({\[<\\]).*|www\..*|.+@[^@]+\.[A-Za-z]+|.+@[\^~]?v?\d[\w.-]*"
    r"|.*\.[A-Za-z]{2,5}\d?(?:#.*)?"
)
"""Addresses, settings, code, versions of packages and file names."""
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
_WORD = re.compile(r"[A-Za-z0-9]+")
_GROUPS = 4
_ENDS = 60
"""The fewest groups of a key, and the most that are read as one."""
_TIMES = re.compile(r"\d+[x*]\d+")
_NUMBERED = re.compile(
    r"order|serial|ticket|booking|reservation|iban|parcel|tracking|part n|model|plate|postcode"
    r"|bestell|serien|buchung|sendung|pedido|reserva|commande|réservation|ordine|prenotazione"
    r"|заказ|билет|брон|sipariş|zamówieni|rezerwacj|订单|注文|주문",
    re.IGNORECASE,
)


def find(text: str) -> Iterator[Place]:
    """The places of such secrets in an unfolded text, since case matters."""
    for token in _TOKEN.finditer(text):
        start = token.end() - len(token[0].lstrip(_EDGES))
        stop = token.start() + len(token[0].rstrip(_EDGES))
        if stop - start >= 8 and is_strong(text[start:stop]) and _logs_in(text, start, stop):
            yield start, stop
    yield from _groups(text)


def is_strong(token: str) -> bool:
    """Whether a token has lower case, capitals, digits, and a sign that is not only at its end."""
    return bool(_STRONG.match(token)) and not _KNOWN_OTHERWISE.fullmatch(token)


def _logs_in(text: str, start: int, end: int) -> bool:
    """Whether words for logging in are near, or a user's name and a slash stand before it."""
    before = text[max(0, start - _NEAR) : start]
    around = before + text[end : end + _NEAR]
    return bool(_PAIR_BEFORE.search(before) or _LOG_IN.search(around))


def _groups(text: str) -> Iterator[Place]:
    """Runs of at least four groups of equal length and case, with letters and digits at random."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        if run and not _goes_on(text, run[-1], word):
            yield from _key(text, run)
            run = []
        if 4 <= len(word[0]) <= 6:
            run.append(word)
    yield from _key(text, run)


def _goes_on(text: str, last: re.Match[str], word: re.Match[str]) -> bool:
    between = text[last.end() : word.start()]
    return between in (" ", "-", "\n", " - ") and len(last[0]) == len(word[0])


def _key(text: str, run: list[re.Match[str]]) -> Iterator[Place]:
    run = run[:_ENDS]
    mixed = [word[0] for word in run if _is_mixed(word[0])]
    forms = len({*map(_template, mixed)})
    if len(run) < _GROUPS or forms < 2 or len(mixed) + (forms > 2) < _GROUPS:
        return
    if any(_TIMES.fullmatch(word) for word in mixed):
        return
    written = "".join(word[0] for word in run)
    start, end = run[0].start(), run[-1].end()
    if written in (written.lower(), written.upper()) and not _NUMBERED.search(
        text, max(0, start - _NEAR), start
    ):
        yield start, end


def _is_mixed(word: str) -> bool:
    return not word.isalpha() and not word.isdigit()


def _template(word: str) -> str:
    """The positions of letters and digits in a group, which differ between random groups."""
    return "".join("a" if letter.isalpha() else "1" for letter in word)
