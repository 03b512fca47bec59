"""How well and how fast topics are found.

    python -m benchmarks.topics [DIR]

Ten thousand made-up notes of sixty subjects: seconds, memory, purity. With ``DIR``, which holds
``xquad_en.json`` and is no part of the project, XQuAD's paragraphs as notes with MiniLM: their
purity against the articles, beside that of scikit-learn's k-means for the same number of groups,
where that is installed; and the topics that keep their ids as a tenth of the notes is added.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.imports import peak
from memchat import Embedder, MemChat, NewNote
from memchat.config import Settings
from memchat.providers.embedders import HashEmbedder
from memchat.providers.local import MiniLMEmbedder

NOTES, SUBJECTS, WORDS, SEEDS = 10_000, 60, 30, 5


def made_up() -> Iterable[NewNote]:
    """Notes of fifteen words, ten of them of their subject."""
    draw = random.Random(7)
    for n in range(NOTES):
        own = [f"s{n % SUBJECTS}w{word}" for word in draw.sample(range(WORDS), 10)]
        said = [*own, *(f"w{draw.randrange(2_000)}" for _ in range(5))]
        yield NewNote(" ".join(said), title=f"{n % SUBJECTS}")


def purity(groups: Iterable[Iterable[str]], total: int) -> float:
    """The share of all notes that are in a group with most notes of their subject."""
    return sum(max(Counter(one).values()) for one in groups) / total


def found_in(mc: MemChat) -> dict[int, list[str]]:
    """The subjects of the notes of each topic."""
    notes = mc.user("ana").notes
    every = ((one.id, notes.list(topic=one.id, limit=NOTES)) for one in notes.find_topics())
    return {i: [note.title or "" for note in its] for i, its in every}


def speed(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(made_up())
    began = time.perf_counter()
    notes.find_topics()
    taken, most = time.perf_counter() - began, peak()
    began = time.perf_counter()
    count = len(notes.topics())
    shown = time.perf_counter() - began
    right = purity(found_in(mc).values(), NOTES)
    print(f"{NOTES:,} notes: {count} topics in {taken:.1f} s, {most:.0f} MB at most")
    print(f"  of {SUBJECTS} subjects, purity {right:.3f}; listed in {shown:.2f} s")


def articles(mc: MemChat, folder: Path) -> None:
    raw = json.loads((folder / "xquad_en.json").read_text("utf-8"))["data"]
    pairs = [(f"{n}", p["context"]) for n, a in enumerate(raw) for p in a["paragraphs"]]
    random.Random(7).shuffle(pairs)
    notes, first = mc.user("ana").notes, len(pairs) * 10 // 11
    states = []
    for some in (pairs[:first], pairs[first:]):
        notes.add_many([NewNote(text, title=name) for name, text in some])
        states.append(found_in(mc))
    for before, after in pairwise(states):
        kept = len(before.keys() & after.keys()) / len(before)
    print(f"XQuAD: {len(states[-1])} topics of {len(raw)} articles, {kept:.0%} of the ids kept")
    print(f"  purity {purity(states[-1].values(), len(pairs)):.3f}")
    beside(pairs, len(states[-1]))


def beside(pairs: Sequence[tuple[str, str]], count: int) -> None:
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        print("  scikit-learn is not installed")
        return
    vectors, _ = MiniLMEmbedder(None).embed_documents([text for _, text in pairs])
    for seed in range(SEEDS):
        groups: dict[int, list[str]] = {}
        found = KMeans(count, n_init=10, random_state=seed).fit_predict(vectors)
        for group, (name, _) in zip(found, pairs, strict=True):
            groups.setdefault(int(group), []).append(name)
        print(f"  k-means of scikit-learn {purity(groups.values(), len(pairs)):.3f}")


def main() -> int:
    """Measure and print."""
    runs: list[tuple[Embedder, list[Path]]] = [(HashEmbedder("other-384"), [])]
    runs += [(MiniLMEmbedder(None), [Path(name)]) for name in sys.argv[1:2]]
    for embedder, given in runs:
        with (
            tempfile.TemporaryDirectory() as folder,
            MemChat(settings=Settings(home=Path(folder)), embedder=embedder) as mc,
        ):
            articles(mc, *given) if given else speed(mc)
    return 0


if __name__ == "__main__":
    sys.exit(main())
