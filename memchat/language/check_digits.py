"""Check digits of cards, bank accounts and identity numbers."""

from __future__ import annotations


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
