"""Check digits of cards and bank accounts, and the forms of the numbers of documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


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
_FORMS: tuple[tuple[str, Check | None], ...] = (
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
_DOCUMENTS = [(re.compile(rf"(?:{form})(?![\w-])"), holds) for form, holds in _FORMS]
_ANY = re.compile(
    r"(?<![\w.,:/-])(?=\w[\w .-]{0,20}\d)"  # spares most words the list
    rf"(?:{'|'.join(form for form, _ in _FORMS)})(?![\w-])"
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
