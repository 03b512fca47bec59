"""Finds what must not be remembered without being asked: secrets, and data that identify or reach a
person.

They are found by their form and check digits if they have any, and otherwise by the words near
them: "locker code is 7741" is a secret, "locker is number 12" is not.

Parts of long texts without their secrets.

Check digits of cards and bank accounts, and the forms of the numbers of documents.

Secrets that are recognised mainly by their form: strong passwords near words for logging in, and
random groups of letters and digits, such as recovery keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from memchat.language import lock_codes, named_secrets, vendor_keys
from memchat.language.named_secrets import Place
from memchat.language.text import UNSPACED, Folded, fold


def is_card(digits: str) -> bool:
    """Whether these digits have the length and the check digit of a card number (Luhn)."""
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def iban_end(found: str) -> int:
    """The length of the part of a match that is an IBAN by its check digits; 0 if there is none."""
    for end in range(len(found), 14, -1):
        compact = found[:end].replace(" ", "")
        if found[end - 1] == " " or not 15 <= len(compact) <= 34:
            continue
        if end < len(found) and found[end] != " ":
            continue
        turned = compact[4:] + compact[:4]
        if int("".join(str(int(c, 36)) for c in turned)) % 97 == 1:
            return end
    return 0


def is_national_id(found: str) -> bool:
    """Whether it is a CPF (Brazil), T.C. kimlik (Turkey) or Aadhaar number (India) by its check
    digits."""
    digits = [int(c) for c in found if c.isdigit()]
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


def is_dni(number: str, letter: str) -> bool:
    """Whether the letter, in lower case, is that of a Spanish identity card with this number."""
    return "trwagmyfpdxbnjzsqvhlcke"[int(number) % 23] == letter


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


Check = Callable[[re.Match[str]], bool]


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
    return is_dni(str("xyz".index(number[0])) + number[1:8], number[8])


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
_ANY = re.compile(
    r"(?<![\w.,:/-])(?=\w[\w .-]{0,20}\d)"  # spares most words the list
    rf"(?:{'|'.join(form for form, _ in _CHECKED)})(?![\w-])"
)


def documents(text: str) -> Iterator[tuple[int, int]]:
    """The places of the numbers of documents in a folded text: they have letters or dates in fixed
    places, and maybe check digits."""
    for place in _ANY.finditer(text):
        for form, holds in _DOCUMENTS:
            found = form.match(text, place.start())
            if found and (holds is None or holds(found)):
                yield found.span()
                break


_NEAR = 60
"""Characters before and after a token in which words tell what it is."""
_TOKEN = re.compile(r"(?<![!-~])[!-~]{8,80}(?![!-~])")
_EDGES = "\"'`()[]<>,;:."
_MIXED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d).*[A-Za-z\d][@#$%&*!^~]+[A-Za-z\d]")
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
    return bool(_MIXED.match(token)) and not _KNOWN_OTHERWISE.fullmatch(token)


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


# ruff: noqa: E501  (word lists are read along, not down)


PERSONAL = frozenset({"e-mail", "phone"})
"""Kinds that are remembered if the user asks for it. The others are refused even then."""


_WINDOW = 128_000
MARGIN = 4_000
"""Characters: a long text is searched in windows, each with this much before and after it, so that
it takes little memory. The longest secrets, key files, are shorter than the margin."""
_LONG = 32_000
"""Characters from which on the secrets of only a few texts are cached, as a cache holds its texts."""
_ASKED = 80
_ANSWER = 60
_BARE = 3
"""The most words of an answer to a message that was no question."""
_PAIR = 4
"""The most characters of two words that are too short to reveal a secret."""
_SIGNED = re.compile(r"(?=[^\s\"'()]{0,60}[!@#$%&*_+=^~?<>|\\])[^\s\"'()]{4,60}")
"""Letters with a sign among them or behind them, as only a password has them."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and place of one secret in a text. It does not hold the secret itself."""

    kind: str
    start: int
    end: int


_SAID = re.compile(
    r"(?<!\w)(?:pass(?:word|code|phrase)|pass(?= ?[:=]| is )|passwd|pwd|pw|mdp|[a-z]{2,12}-?passwort|kennwort|passwort|(?:pin|tan|puk|cvv|cvc"
    r"|otp)(?:[- ]?(?:code|number|nummer))?"
    r"|(?:\w{1,20}[- ])?codes?|\w{1,20}code|mot de passe|contraseña|clave|código|codice|senha"
    r"|wachtwoord|şifre\w*|parola\w*|(?:account|routing) number|kontonummer|kod\w{0,2}|пароль|пин-?код|код"
    r"|combination|secret|api[ _-]?key|token|security (?:answer|code)|geheimzahl|सीक्रेट|पासवर्ड"
    r"|पिन|كلمة (?:السر|المرور)|الرمز)(?!\w)"
    r"(?P<between>[^.!?\n]{0,24}?)"
    r"(?:(?<=[\s:=])|(?<=\bis )|(?<=[\s:=]['\"]))(?P<secret>(?=[^\s'\",;]*\d)[^\s'\",;]{3,}(?: \d{3,}(?!\w))?"
    r"|(?<=[\s:=]['\"])[^\s'\"]{4,})"
)
_SAID_AFTER = re.compile(
    r"(?<![\w.,:/-])(?P<secret>(?=[^\s'\",;]{0,60}\d)[^\s'\",;.]{4,80}),?(?: that)? ?(?:as|is|'s|was) (?:my |the |a |our |your |every |each |all )?(?:\w+ ){0,2}?"
    r"(?:pass(?:word|code|phrase)s?|pin|code|private key|secret key|api key)(?!\w)"
)
"""A secret before its name: "I use bluebird77 as my password"."""
_PASS = re.compile(
    r"(?<!\w)pass(?:'s| is|:| =) (?P<secret>[^\s\"',;]{0,30}[a-z][@#&*_+=^~!](?=[a-z0-9])[^\s\"',;]{1,30})"
)
"""A bare "pass" may be a bus pass, so what follows it must have a sign among its letters."""
_USED_FOR = re.compile(
    r"(?<!\w)use (?P<secret>(?=[^\s'\",;]{0,60}\d)(?=[^\s'\",;]{0,60}[a-z])[^\s'\",;.]{5,80}) (?:for|on|as) (?:\w+ ){0,4}?"
    r"(?:pass(?:word|code|phrase)s?|pin|log-?in|account)s?(?!\w)"
)
_PHRASE = re.compile(
    r"(?:(?:recovery|seed|backup|mnemonic|secret) (?:phrase|words?)|passphrase|seedphrase|wiederherstellungs\w+|phrase de récupération|frase (?:semilla|de recuperación)|助记词|シードフレーズ)"
    r"[^\n\w]{0,3}(?:(?:is|are|ist|lautet|est|es|è|是) )?(?P<secret>[^\W\d_]{3,}(?:[ ,-]+[^\W\d_]{3,}){2,24})"
)
"""The words of a wallet or of a long password."""
_NAMED_KEY = re.compile(
    r"(?:(?:\w{1,30}[_-])?(?:secret|api|access|private|ssh)[ _-]?(?:access[ _-]?)?(?:key|token|secret)?|api-schlüssel|clé api|clave api|chiave api|token|bearer|密钥|client_secret)"
    r"(?:\s*[:=]\s*|\s+(?:is|ist|est|es|è|lautet|:)\s+|\s+)[\"']?(?P<secret>(?=[^\s\"']*\d)[a-z0-9+/=_.-]{14,})"
)
"""Long runs of letters and digits after a word for a key."""
_NOT_A_CODE = re.compile(
    r"(?:post\w*|postal|zip|promo\w*|coupon|voucher|referral|booking|product|course|class|room|team|colou?r|area|country|dial\w*|qr|bar|source|dress|vs|discount|colou?r|open|clean"
    r"|python|morse|line[s]? of|error|status|http)[- ]?codes?\b|"
    r"(?:code|código|codice|kod\w*) (?:postal|postale|pocztow\w*|promo\w*|zip|di avviamento)|posta kodu\w*|postleitzahl|kode pos(?!\w)|cod poș\w*|поштов\w+|ταχυδρομικ\w+|mã bưu|token of|code (?:review|de la route|de conduite|of conduct|base|editor|club|camp|since|for \d|in )|secret (?:santa|garden"
    r"|ingredient|recipe)|codes? (?:in|with|at)\b|"
    r"combination of (?!(?:the|my) (?:safe|lock|vault))|token (?:limit|count|budget)|(?:years?|days?|weeks?|hours?|since|lines?"
    r"|until|by|at|before)\s*$|(?:注文|部屋|予約|会員|受験|学籍)番号"
)
_GIVEN = re.compile(
    r"(?:[:=]|(?<!\w)(?:is|are|was|ist|lautet|war|est|es|era|é|è|pin|password|passw\w+))\W*$"
)
_COUNTED = re.compile(
    r"\d+[ -]?(?:char|letter|digit|word|line|bit|byte|year|day|people|zeichen|stellen|zeilen|caract|caratt|karakter"
    r"|tekens|символ|строк|год|satir|yil|अक्षर|文字|行|年|番で|자리|줄|位|个字)"
)
_VERSION_OR_YEAR = re.compile(
    r"\s\d{1,2}\.\d{1,3}(?:\.\d{1,4})?\.?$|(?<!\w)(?:in|since|from|until|of|im|seit|en|depuis|desde|de|del|dal|nel|em|sinds) (?:19|20)\d\d\.?$"
)
"""The release of a program or the year of an event, if it is not said to be the code."""
_REBATE = re.compile(
    r"[^.!?\n]{0,20}?(?:\d ?%|(?<!\w)(?:discount|rabatt|descuento|remise|réduction|sconto|desconto"
    r"|korting|скидк))"
)
"""Words of an advertised discount code."""
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64} ?(?:@|\(at\)|\[at\]) ?[\w-]+(?:\.[\w-]+)*(?:\.| ?\(dot\) ?"
    r"| ?\[dot\] ?)[a-z]{2,}"
)
_CARD = re.compile(r"(?<![\w.,-])\d(?:[ -]?\d){12,18}(?![\w-])")
_CARD_SAID = re.compile(
    r"(?:card|karte\w*|kartennummer|carte|tarjeta|carta|cartão|kart\w*|карт\w+|卡号|カード(?:番号)?)[^\d\n]{0,20}(?P<secret>\d(?:[ -]?\d){12,18}(?:,? (?:exp\w*|valid \w+|gültig bis) \d\d ?/ ?\d\d)?)(?!\d)"
)
"""A card number after a word for a card, where wrong check digits count as a slip."""
_IBAN = re.compile(r"(?<!\w)[a-z]{2}\d{2}(?: ?[a-z0-9]){11,30}(?!\w)")
_PHONE = re.compile(
    r"(?<![a-z0-9_.+/-])(?:\+|00)[1-9]\d{0,2}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}(?!\w)"
    r"|(?<![a-z0-9_.+/-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\w)"
    r"|(?<![a-z0-9_.+/-])0\d{1,4}[ /-]\d(?:[ -]?\d){4,9}(?![a-z0-9_])"
)
_LOGIN = re.compile(r"(?<=[\w])\.[a-z]{2,10}(?: ?[/|:] ?| - )(?P<secret>[^\s\"',;]{4,60})")
"""What follows an e-mail address and a slash."""
_PAIR_SAID = re.compile(
    r"(?<!\w)(?:admin|root|guest|administrator) ?[/:] ?(?P<secret>(?=\S{0,40}\d)\S{4,40})"
    r"|(?<!\w)(?:wi-?fi|wlan)(?::| =) ?\w{1,30} ?/ ?(?P<word>\S{4,40})"
)
"""What follows an administrator or a network and a slash."""
_STRONG = re.compile(
    r"(?<![^\s\"'(])(?=\S{0,40}\d)(?=[^\s\d]{0,40}[a-z]{3})[a-z0-9_.-]{2,30}[!$%^&*][a-z0-9!$%^&*_-]{1,30}(?<=[\w!])(?![\w/@=])"
    r"|(?<![^\s\"'(])[a-z]{3,20}[$^*%][a-z]{3,20}(?![\w/@=])"
)
"""What can hardly be anything but a strong password: letters, a digit, and a sign inside."""
_EMAIL_SAID = re.compile(
    r"(?<!\w)[a-z][\w+.-]{1,40} (?:at|arobase|arroba|chiocciola) [\w-]{2,40} (?:dot|point|punto|ponto|punkt) [a-z]{2,6}(?!\w)"
)
_PHONE_SAID = re.compile(
    r"(?:phone|mobile|cell|telefon\w*|handy\w*|téléphone|portable|teléfono|móvil|telefono"
    r"|cellulare|telefone|telefoon\w*|whatsapp|call me (?:at|on)|电话|手机|電話|携帯|телефон"
    r"|هاتف|फोन|फ़ोन)"
    r"[^\d\n]{0,24}(?P<secret>\+?\d(?:[ ./()-]?\d){5,14})(?![a-z0-9_])"
)
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_ID_SAID = re.compile(
    r"(?:passport|passeport|pasaporte|passaporto|paspoort|pasaport|paszport|sécurité sociale|seguridad social|sozialversicherungs\w+|nhs|medicare|pesel|снилс|инн|personnummer|voter id|sort code|bvn|routing number|account number|numero di conto|social security|ssn|national id|national insurance|insurance|health card|member(?:ship)? id|id card"
    r"|driver'?s licen[cs]e|tax id|steuer-?id\w*|personalausweis\w*|reisepass\w*|dni|nie|nif|cpf"
    r"|tckn|t\.?c\.? kimlik|"
    r"aadhaar|pan card|codice fiscale|bsn|身份证|護照|护照|パスポート|マイナンバー|паспорт)"
    r"(?:[- ]?(?:number|no\.?|nummer|号码?|番号))?"
    r"[^\d\n]{0,12}?(?P<secret>\d(?: ?\d{2,3}){4,7}(?![a-z0-9])|(?=[\w-]*\d{2})[a-z0-9][\w-]{4,})"
)
_DNI = re.compile(r"(?<!\w)(\d{8})[ -]?([a-z])(?!\w)")
_LONG_ID = re.compile(
    r"(?<![\w.,-])(?:\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11}|\d{4} ?\d{4} ?\d{4})(?![\w-])"
)


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text in order, none overlapping another."""
    return list(_found(text) if len(text) <= _LONG else _found_in_long(text))


def find_in_document(text: str) -> list[Secret]:
    """The same for a text of any length, which is not cached."""
    found: list[Secret] = []
    for start in range(0, len(text), _WINDOW):
        at = max(0, start - MARGIN)
        piece = text[at : start + _WINDOW + MARGIN]
        for one in _search(piece, fold.__wrapped__(piece)):
            found.append(Secret(one.kind, one.start + at, one.end + at))
    return _apart(found)


@lru_cache(maxsize=512)
def _found(text: str) -> tuple[Secret, ...]:
    """The same, cached: each proposal from a conversation asks about all of its messages."""
    return tuple(_search(text, fold(text)))


@lru_cache(maxsize=32)
def _found_in_long(text: str) -> tuple[Secret, ...]:
    return tuple(find_in_document(text))


def _search(text: str, folded: Folded) -> list[Secret]:
    found = [Secret("key", *span) for span in vendor_keys.find(text)]
    found += [Secret("password", *span) for span in find(text)]
    for kind, start, end in _in_folded(folded.text):
        found.append(Secret(kind, folded.offsets[start], folded.ends[end - 1]))
    return _apart(found)


def _apart(found: Sequence[Secret]) -> list[Secret]:
    """Secrets in order; those that overlap are one."""
    out: list[Secret] = []
    for secret in sorted(found, key=lambda s: (s.start, -s.end)):
        if not out or secret.start >= out[-1].end:
            out.append(secret)
        elif secret.end > out[-1].end:
            out[-1] = replace(out[-1], end=secret.end)
    return out


def find_in_fact(key: str, value: str) -> Iterator[tuple[str, Secret]]:
    """The secrets in the value of a fact and under its key, each with its words.

    Key and value are joined by "=" and not by a colon: "locker: 1120" in a note is a code, but the
    number of a locker in a fact need not be one.
    """
    for text in (value, f"{key.replace('_', ' ')} = {value}"):
        yield from ((text[s.start : s.end], s) for s in find_secrets(text))


def find_answered(question: str, text: str) -> list[Secret]:
    """The secrets in the answer to a question: after "And the PIN?" the text "4821" is one."""
    asked = question.rstrip()[-_ASKED:].rstrip("?？؟.… ") + ": "
    put = question.rstrip().endswith(("?", "？", "؟", ":", "：")) or len(text.split()) <= _BARE
    if len(text) > _ANSWER or not put:
        return []
    shift = len(asked)
    found = (s for s in find_secrets(asked + text) if s.start >= shift)
    answers = [replace(s, start=s.start - shift, end=s.end - shift) for s in found]
    # An address or phone number that is one by itself is no answer to the question.
    told = [s for s in find_secrets(text) if s.kind in PERSONAL]
    return [a for a in answers if not any(s.start < a.end and a.start < s.end for s in told)]


def find_in_conversation(texts: Sequence[str]) -> Iterator[tuple[int, Secret]]:
    """The secrets of a conversation, each with the index of its message."""
    before = ""
    for number, text in enumerate(texts):
        for secret in (*find_secrets(text), *find_answered(before, text)):
            yield number, secret
        before = text


def reveals(words: str, secret: str) -> bool:
    """Whether words hold a secret or a revealing part of it: its digits, a long word, two of its
    words in a row, or letters with a sign."""
    hidden, shown = " ".join(_pieces(secret)), " ".join(_pieces(words))
    if len(hidden) > 1 and (
        hidden in shown if UNSPACED.match(hidden) else f" {hidden} " in f" {shown} "
    ):
        return True
    pieces = _pieces(words)
    telling = [p for p in (*pieces, *_pieces(secret)) if len(p) > 1 + 4 * p.isalpha()]
    if any(piece in hidden and piece in shown for piece in telling):
        return True
    whole = fold(secret).text
    if any(token in whole for token in _SIGNED.findall(fold(words).text)):
        return True
    pairs = (f"{a} {b}" for a, b in pairwise(pieces))
    return any(len(pair) > _PAIR and pair in hidden for pair in pairs)


@lru_cache(maxsize=16384)
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"(?:[^\W_]|[{named_secrets.MARKS}])+", fold(text).text))


def mask(text: str, question: str = "") -> str:
    """The text with each secret replaced by its kind in brackets; ``question`` is what it answers,
    if anything."""
    out, at = [], 0
    for secret in _apart([*find_secrets(text), *find_answered(question, text)]):
        out.append(f"{text[at : secret.start]}[{secret.kind}]")
        at = secret.end
    return "".join(out) + text[at:]


def _in_folded(text: str) -> Iterator[tuple[str, int, int]]:
    for pattern in (_SAID, _SAID_AFTER, _USED_FOR, _PASS, _PHRASE):
        for match in pattern.finditer(text):
            if pattern is _SAID and named_secrets.is_part_of_name(text, match.start("between")):
                continue
            if not _is_harmless(text, match.start(), *match.span("secret")):
                yield "password", *_with_its_like(text, *match.span("secret"))
    for name, span in (*named_secrets.find(text), *named_secrets.find_answers(text)):
        if not _is_harmless(text, name, *span):
            yield "password", *_with_its_like(text, *span)
    for span in lock_codes.find(text):
        if not _is_harmless(text, *span[:1], *span):
            yield "password", *span
    for span in vendor_keys.find_wallet_words(text):
        yield "password", *span
    for span in documents(text):
        yield "id number", *span
    for kind, pattern, holds in _FORMS:
        for match in pattern.finditer(text):
            start, end = match.span(match.lastgroup or 0)
            if pattern is _IBAN:
                end = start + iban_end(match[0])
            if end > start and (holds is None or holds(match)):
                yield kind, start, end


def _is_harmless(text: str, name: int, start: int, end: int) -> bool:
    """Whether a code is no secret, by the words around its name and after it."""
    before = max(0, name - 12)
    if _NOT_A_CODE.search(text[before:start]) or _COUNTED.match(text, start):
        return True
    if _REBATE.match(text, end):
        return True
    return not _GIVEN.search(text[name:start]) and bool(_VERSION_OR_YEAR.search(text[before:end]))


def _with_its_like(text: str, start: int, end: int) -> tuple[int, int]:
    """The place of a code and of codes of the same form after it, such as a list of recovery
    codes."""
    words = text[start:end]
    if not re.search(r"\d", words) or not re.search(r"\W|[a-z]", words):
        return start, end
    form = re.sub(r"[^\W_]+", lambda run: rf"[^\W_]{{{len(run[0])}}}", re.escape(words))
    more = re.compile(rf"(?:(?:[ ,]| and ){{1,3}}{form}(?!\w)){{1,20}}").match(text, end)
    return start, more.end() if more else end


def _follows_address(match: re.Match[str]) -> bool:
    """Whether the word before is an e-mail address, so that this is its password."""
    return "@" in match.string[max(0, match.start() - 64) : match.start()].split()[-1:][0]


def _is_no_date(match: re.Match[str]) -> bool:
    return re.fullmatch(r"\d{4}[ .-]\d{2}[ .-]\d{2}", match[0]) is None


_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool] | None], ...] = (
    ("key", _NAMED_KEY, None),
    ("e-mail", _EMAIL, None),
    ("e-mail", _EMAIL_SAID, None),
    ("password", _LOGIN, _follows_address),
    ("password", _PAIR_SAID, None),
    ("password", _STRONG, None),
    ("card", _CARD, lambda match: is_card(re.sub(r"\D", "", match[0]))),
    ("card", _CARD_SAID, None),
    ("bank account", _IBAN, None),
    ("phone", _PHONE, _is_no_date),
    ("phone", _PHONE_SAID, None),
    ("id number", _SSN, None),
    ("id number", _ID_SAID, None),
    ("id number", _DNI, lambda match: is_dni(match[1], match[2])),
    ("id number", _LONG_ID, lambda match: is_national_id(match[0])),
)
"""Kinds of secrets by their form: the last group of a pattern, or all it matches, is the secret if
the check holds."""


def mask_part(text: str, start: int, end: int) -> str:
    """A part of a text with each secret replaced by its kind in brackets. The text around it is
    read as well: it may tell that something is a secret, or have the beginning of a long one."""
    before = max(start - MARGIN, 0)
    out, at = [], start
    for secret in find_secrets(text[before : end + MARGIN]):
        first, last = before + secret.start, before + secret.end
        if last > start and first < end:
            out.append(f"{text[at : max(first, at)]}[{secret.kind}]")
            at = min(last, end)
    return "".join(out) + text[at:end]
