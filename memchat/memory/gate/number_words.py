"""Words for numbers, weekdays and months, by which what is said in letters is compared."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

NUMBER_WORDS = {
    word: number
    for words in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "deux trois quatre cinq six sept huit neuf dix onze douze",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "dois três quatro cinco seis sete oito nove dez onze doze",
        "twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "iki üç dört beş alti yedi sekiz dokuz on",
        "два три четыре пять шесть семь восемь девять десять",
    )
    for number, word in enumerate(words.split(), 2)
    if word not in ("on", "sei", "once")
} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
}

DATE_WORDS = {
    word: f"{kind}:{number}"
    for kind, lists in (
        (
            "day",
            (
                "monday tuesday wednesday thursday friday saturday sunday",
                "montag dienstag mittwoch donnerstag freitag samstag sonntag",
                "lundi mardi mercredi jeudi vendredi samedi dimanche",
                "lunes martes miércoles jueves viernes sábado domingo",
                "lunedì martedì mercoledì giovedì venerdì sabato domenica",
                "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
                "pazartesi sali çarşamba perşembe cuma cumartesi pazar",
            ),
        ),
        (
            "month",
            (
                "january february march april may june july august september october november december",
                "januar februar märz april mai juni juli august september oktober november dezember",
                "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
                "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
                "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
                "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
                "januari februari maart april mei juni juli augustus september oktober november december",
                "ocak şubat mart nisan mayis haziran temmuz ağustos eylül ekim kasim aralik",
            ),
        ),
    )
    for words in lists
    for number, word in enumerate(words.split(), 1)
}
