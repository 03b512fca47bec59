"""Made-up voice memos, from a seed: short ones, and now and then a long one."""

from __future__ import annotations

import random

_SENTENCES = (
    "I talked to {who} about {what} this {when}, and we want to decide before {day}.",
    "The {thing} in {place} is broken again, so somebody has to call the {trade}.",
    "Note to self: {what} needs another {number} hours, mostly because of the {thing}.",
    "{who} said that {place} would be a good spot for {what}, if the weather holds.",
    "We spent about {number} euros on {what}, which is more than I thought in the {when}.",
    "I had an idea on the way to {place}: what if {what} came with a {thing}?",
    "Remember to send {who} the photos of the {thing} and the address in {place}.",
    "On {day} the {trade} comes at {number} past nine, and {who} will open the door.",
    "I am not happy with {what}; it feels slow, and {who} thinks so too.",
    "Good news: {who} found the old {thing}, it was in {place} all the time.",
    "The plan for {day} is {what} first, then lunch in {place}, then the rest.",
    "If {who} cannot come on {day}, we move {what} to the week after.",
)
_WORDS = {
    "who": "Marta|Jonas|Ines|Piet|Olga|Selim|Ruth|Tomas|Aino|Bruno|Wanda|Kofi",
    "what": "the spring fair|the garden wall|the reading group|my tax papers|the boat trip|"
    "the choir's new songs|the shop window|the history essay|the kitchen plan|the bike tour",
    "thing": "ladder|heater|printer|gate|lamp|suitcase|oven|drum|microscope|tent|sewing machine",
    "place": "Lisbon|the cellar|Graz|the old mill|Aunt Vera's house|Tampere|the office|Ghent",
    "trade": "plumber|electrician|gardener|landlord|carpenter|locksmith",
    "when": "morning|evening|week|weekend|month",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
}
_SHORT, _LONG = (3, 9), (25, 45)
_LONG_SHARE = 0.1


def memo(number: int, seed: int = 1) -> str:
    """The text of one memo: 60 to 150 words; one of ten has 400 to 700. No two are equal."""
    chance = random.Random(seed * 1_000_003 + number)
    few, many = _LONG if chance.random() < _LONG_SHARE else _SHORT
    sentences = [_sentence(chance) for _ in range(chance.randint(few, many))]
    return " ".join([f"This is memo number {number}.", *sentences])


def _sentence(chance: random.Random) -> str:
    chosen = {kind: chance.choice(words.split("|")) for kind, words in _WORDS.items()}
    text = chance.choice(_SENTENCES).format(**chosen, number=chance.randint(2, 90))
    return text[0].upper() + text[1:]
