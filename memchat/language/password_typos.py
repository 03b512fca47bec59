"""Words for a password with a typing mistake: one letter wrong, missing or doubled, or two letters
swapped, as in "pasword", "passwrod" and "contrasena"."""

from __future__ import annotations

from functools import cache, lru_cache

_WORDS = {
    "password": "en de",
    "passcode": "en",
    "passphrase": "en",
    "passwort": "de",
    "kennwort": "de",
    "contraseña": "es",
    "wachtwoord": "nl",
    "пароль": "ru",
    "lösenord": "other",
    "salasana": "other",
    "adgangskode": "other",
}
"""Words from which no common word differs by one letter, with their sections in ``words.toml``.
"Parola" is missing, since "parole" is another word."""


@lru_cache(maxsize=4096)
def languages_meant(word: str) -> tuple[str, ...]:
    """The sections of the word for a password that this word is a misspelling of."""
    if not 5 <= len(word) <= 12:
        return ()
    listed = _shortened()
    found = (listed[form].split() for form in _without_one(word) if form in listed)
    return tuple(next(found, ()))


@cache
def _shortened() -> dict[str, str]:
    """Each word, and its forms with one letter left out."""
    return {form: code for word, code in _WORDS.items() for form in _without_one(word)}


def _without_one(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]
