"""Words and what they are about: enough to tell which memory a question may mean."""

from __future__ import annotations

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = _set(
    """a about above after again all also am an and any anything are as ask at be because been
    before being but by can could did do does doing done for from get give go going good got
    had has have help hello hey hi his her how i if in into is it its just know let like
    make many may me might more much must my need no not now of ok okay on one or our out
    please really recommend remember said say shall should show so some something suggest
    suggestion tell than thank thanks that the their them then there these they thing think
    this those to today too up us use very want was we well were what when where which who
    whom whose why will wish with would yes you your idea der die das den dem ein eine einen
    und oder ich du mir mich mein meine ist sind war was wie wer wann welche für mit von zu
    im in auf nicht auch noch bitte"""
)

TOPICS: dict[str, tuple[str, str]] = {
    # topic: (words of a question, words of a memory's key)
    "food": (
        """dinner lunch breakfast supper brunch cook cooking recipe eat eating meal food snack dish
        dessert cake bake baking menu restaurant hungry picnic ingredient supermarket
        grocery drink essen kochen rezept abendessen mittagessen frühstück""",
        """diet allergy allergie food dish drink cuisine intolerance snack meal coffee tea""",
    ),
    "place": (
        """live city town home reside based neighbourhood neighborhood local nearby near area flat
        wohne stadt""",
        """city home town country location address residence planned_move current_location""",
    ),
    "work": (
        """work job profession employer company career office living colleague
        arbeit beruf arbeite""",
        """job employer role profession company occupation workplace project""",
    ),
    "name": ("name called heiße heisse", "name nickname"),
    "age": ("old age birthday born alt geburtstag", "age birthday"),
    "family": (
        """family wife husband partner girlfriend boyfriend child children kid son daughter brother
        sister sibling parent familie""",
        "partner child sibling mother father family wife husband son daughter brother sister",
    ),
    "pet": ("pet dog cat animal vet haustier hund katze", "pet dog cat"),
    "dates": (
        """deadline due appointment meeting calendar schedule agenda week month date when plan
        upcoming reminder todo termin termine""",
        """deadline appointment meeting interview exam flight trip wedding conference holiday visit
        delivery contract lease visa presentation course task planned_move due""",
    ),
    "travel": (
        "trip travel flight pack packing holiday vacation visit luggage reise urlaub",
        "trip flight holiday vacation visa passport planned_move current_location",
    ),
    "leisure": (
        """weekend evening hobby hobbies fun bored free gift present film movie book music watch
        read activity wochenende""",
        "hobby like interest sport favourite favorite music film book preference",
    ),
    "learning": ("learn learning study course practise practice lerne", "learning language skill"),
    "health": ("allergic allergy intolerant health", "allergy intolerance medication health"),
    "language": ("language speak sprache", "language learning"),
}

FOOD = _set(
    """almond anchovy apple aubergine avocado banana basil bean beef beer beetroot berry bread
    broccoli butter cabbage cake carrot celery cheese cherry chicken chilli chocolate
    cinnamon coffee coriander cilantro crab cream cucumber curry dairy egg fennel fish
    garlic ginger gluten grape ham herring honey ice lamb leek lemon lentil lettuce liver
    mango mayonnaise meat melon milk mint mushroom mussel mustard noodle nut oat olive onion
    orange oyster parsley pasta pea peach peanut pear pepper pesto pickle pizza pork potato
    pudding pumpkin radish raisin rice risotto salad salami salmon salsa sausage seafood
    shellfish shrimp soup soy spinach steak strawberry sugar sushi tea tofu tomato tuna
    turkey vinegar walnut whisky wine yoghurt yogurt zucchini espresso latte cappuccino
    cider juice lemonade curries"""
)

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_RUN_TOGETHER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")


def stem(word: str) -> str:
    """A word without its commonest English endings, casefolded."""
    word = word.casefold().replace("’", "'").removesuffix("'s")
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending) + rest
    return word


def content_words(text: str) -> frozenset[str]:
    """The stems that carry meaning; scripts without spaces give overlapping pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.replace("_", " ")):
        for run in _RUN_TOGETHER.findall(word):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        if not _RUN_TOGETHER.search(word) and word.casefold() not in STOP:
            found.add(stem(word))
    return frozenset(found)


def question_topics(text: str) -> frozenset[str]:
    """What a question is about."""
    asked = {stem(word) for word in _WORD.findall(text)}
    topics = {
        topic for topic, (words, _) in TOPICS.items() if asked & {stem(w) for w in words.split()}
    }
    return frozenset(topics | ({"food"} if is_food(text) else set()))


def memory_topics(key: str, value: str) -> frozenset[str]:
    """What a memory is about, by its key, and by its value where that names a food."""
    parts = {stem(part) for part in key.split("_")} | {key}
    topics = {
        topic
        for topic, (_, keys) in TOPICS.items()
        if parts & ({stem(k) for k in keys.split()} | set(keys.split()))
    }
    return frozenset(topics | ({"food"} if is_food(value) else set()))


def is_food(text: str) -> bool:
    """Whether a word of the text is a food or a drink."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return bool((words | {stem(word) for word in words}) & FOOD) or any(
        word.removesuffix("s") in FOOD for word in words
    )
