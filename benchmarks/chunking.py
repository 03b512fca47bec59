"""Ways to cut a text into chunks, side by side: what they cut apart, how exact their offsets are,
what an edit changes, and how fast they are. See benchmarks/README.md.

Libraries that are not installed are left out and named:
    pip install semantic-text-splitter semchunk chonkie sentencex
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import time
from collections.abc import Callable
from itertools import pairwise

from memchat.notes.chunking import Profile, chunks

LIMIT = 60
LONG_LIMIT = 250
Spans = list[tuple[int, int]]
Cutter = Callable[[str, int], Spans]

SENTENCES = {
    "English": [
        "Dr. Smith met Mr. Jones at 5 p.m. on Friday.",
        "They spoke about v1.2, e.g. costs.",
    ],
    "German": ["Wir treffen uns z. B. am 3. Mai.", "Dr. Müller kommt bzw. ruft an.", "Ja?"],
    "Portuguese": ["O Sr. Silva chegou às 10h.", "A Dra. Ana disse que sim.", "E agora?"],
    "Chinese": ["我昨天去了北京。", "天气很好！", "你呢？", "他说：“没事。”", "然后走了。"],
    "Japanese": ["昨日は東京に行きました。", "「また行きたい。」と彼は言った。", "次はいつ？"],
    "Arabic": ["ذهبت إلى السوق أمس.", "هل كان الطقس جميلا؟", "نعم، كان جميلا جدا!"],
    "Hindi": ["मैं कल दिल्ली गया था।", "क्या तुम आओगे?", "हाँ, डॉ. शर्मा भी आएंगे।"],
}
THAI = "เมื่อวานฉันไปกรุงเทพฯ อากาศดีมาก เราไปกินข้าวกัน แล้วก็กลับบ้าน "
CLUSTERS = "👩‍👩‍👧‍👦🇵🇹e\u0301"


def units(text: str) -> int:
    """The measure of length for all: words, or a third of the characters where they are few."""
    return max(len(text.split()), len(text) // 3)


def memchat(text: str, limit: int) -> Spans:
    """What the product does."""
    return [(c.start, c.end) for c in chunks(text, Profile(limit, 0), units)]


def semantic_text_splitter(text: str, limit: int) -> Spans:
    """Its text splitter."""
    splitter = importlib.import_module("semantic_text_splitter").TextSplitter
    made = splitter.from_callback(units, limit)
    return [(at, at + len(part)) for at, part in made.chunk_indices(text)]


def semchunk(text: str, limit: int) -> Spans:
    """Its function with offsets."""
    chunker = importlib.import_module("semchunk").chunkerify(units, limit)
    return list(chunker(text, offsets=True)[1])


def chonkie(text: str, limit: int) -> Spans:
    """Its chunker by sentences."""
    chunker = importlib.import_module("chonkie").SentenceChunker(
        units, chunk_size=limit, chunk_overlap=0, min_sentences_per_chunk=1
    )
    return [(c.start_index, c.end_index) for c in chunker.chunk(text)]


def sentencex(text: str, limit: int) -> Spans:
    """Its sentences, filled up to the limit from the start."""
    library = importlib.import_module("sentencex")
    found: Spans = []
    start = end = 0
    for sentence in library.get_sentence_boundaries("en", text):
        if end > start and units(text[start : sentence["end_index"]]) > limit:
            found.append((start, end))
            start = sentence["start_index"]
        end = sentence["end_index"]
    return [*found, (start, end)]


CUTTERS: tuple[Cutter, ...] = (memchat, semantic_text_splitter, semchunk, chonkie, sentencex)


def whole_sentences(cut: Cutter, language: str) -> float:
    """The share of the cuts that are between two sentences."""
    said = SENTENCES[language]
    gap = "" if "。" in said[0] else " "
    text = gap.join(said * 40)
    ends, at = set(), 0
    for sentence in said * 40:
        at += len(sentence)
        ends.add(at)
        at += len(gap)
    cuts = [start + len(text[start:end].rstrip()) for start, end in cut(text, LIMIT)]
    return sum(place in ends for place in cuts) / len(cuts)


def over_limit(cut: Cutter) -> int:
    """Chunks over the limit, for texts without any mark, white space or line end."""
    texts = ("word " * 900, "x" * 3_000, "好" * 2_000, THAI * 40, CLUSTERS * 200)
    return sum(units(text[a:b].strip()) > LIMIT for text in texts for a, b in cut(text, LIMIT))


def broken_clusters(cut: Cutter) -> int:
    """Cuts inside a family, a flag or a letter with an accent."""
    text = CLUSTERS * 200
    whole = {at * len(CLUSTERS) + part for at in range(201) for part in (0, 7, 9)}
    return sum(end not in whole for _, end in cut(text, LIMIT))


def missing(cut: Cutter) -> int:
    """Characters that are in no chunk, in a text of everything."""
    said = [sentence for some in SENTENCES.values() for sentence in some]
    text = "# Über\r\n\r\n" + "\r\n".join(said) * 3 + "\u2028" + CLUSTERS * 30
    covered = {at for start, end in cut(text, LIMIT) for at in range(start, end)}
    return sum(at not in covered and not char.isspace() for at, char in enumerate(text))


def changed_by_edits(cut: Cutter) -> list[int]:
    """How many chunks of about ten are new after an edit of one sentence: for each of five texts,
    every third sentence is made longer, removed, replaced, and has another put before it."""
    counts = []
    for seed in range(5):
        said = prose(170, seed)
        others = prose(170, seed + 100)
        before = contents(cut, " ".join(said))
        for number in range(0, len(said), 3):
            here, after = said[number], said[number + 1 :]
            other = others[number]
            for edit in ([f"{here[:-1]} in fact."], [], [other], [other, here]):
                text = " ".join([*said[:number], *edit, *after])
                counts.append(len(contents(cut, text) - before))
    return counts


def contents(cut: Cutter, text: str) -> set[str]:
    """The chunks' texts."""
    return {text[start:end].strip() for start, end in cut(text, LONG_LIMIT * 2)}


def prose(count: int, seed: int = 1) -> list[str]:
    """Made sentences of 4 to 24 words."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(3_000)]
    return [f"{' '.join(chance.choices(words, k=chance.randint(4, 24)))}." .capitalize()
            for _ in range(count)]  # fmt: skip


def speed(cut: Cutter, text: str) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    cut(text, LONG_LIMIT)
    return time.process_time() - started


def main() -> None:
    """Print the table."""
    english = " ".join(prose(11_500))[:1_000_000]
    chinese = "我昨天去了北京，天气很好！他说：“没事。”" * 5_000
    for cut in CUTTERS:
        if cut is not memchat and importlib.util.find_spec(cut.__name__) is None:
            print(f"{cut.__name__}: not installed, left out\n")
            continue
        print(cut.__name__)
        try:
            report(cut, english, chinese)
        except Exception as error:  # noqa: BLE001 (a library's failure is a result)
            print(f"  failed: {type(error).__name__}: {error}")
        print()


def report(cut: Cutter, english: str, chinese: str) -> None:
    """Print one library's figures."""
    shares = (f"{name} {whole_sentences(cut, name):.0%}" for name in SENTENCES)
    print("  cuts between sentences:", ", ".join(shares))
    counts = changed_by_edits(cut)
    mean, many = sum(counts) / len(counts), sum(n > 2 for n in counts) / len(counts)
    print(f"  {len(counts)} edits: {mean:.2f} chunks new, more than two in {many:.1%}, ", end="")
    print(f"{max(counts)} at most")
    print(
        f"  over the limit {over_limit(cut)}, inside a character {broken_clusters(cut)}, ", end=""
    )
    print(f"characters missing {missing(cut)}")
    spans = cut(english, LONG_LIMIT)
    fill = sum(units(english[a:b]) for a, b in spans) / len(spans) / LONG_LIMIT
    shared = sum(max(0, a[1] - b[0]) for a, b in pairwise(spans))
    print(f"  {len(spans)} chunks of 1 MB, {fill:.0%} full, {shared} characters twice")
    print(f"  seconds: 1 MB of English {speed(cut, english):.2f}, ", end="", flush=True)
    print(f"{len(chinese) // 1_000} thousand characters of Chinese {speed(cut, chinese):.2f}")


if __name__ == "__main__":
    main()
