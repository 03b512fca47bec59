"""The long words for a password with one letter wrong, left out, doubled or swapped with the next:
"pasword", "passwrod", "contrasena"."""

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
"""Words with no common word one letter away, and their sections in ``words.toml``. "Parola" is not
here, since "parole" is a word of its own."""


@lru_cache(maxsize=4096)
def languages_meant(word: str) -> tuple[str, ...]:
    """The sections of the word for a password that this one is meant to be."""
    if not 5 <= len(word) <= 12:
        return ()
    listed = _shortened()
    found = (listed[form].split() for form in _without_one(word) if form in listed)
    return tuple(next(found, ()))


@cache
def _shortened() -> dict[str, str]:
    """Each word, and each with one letter left out."""
    return {form: code for word, code in _WORDS.items() for form in _without_one(word)}


def _without_one(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]
