"""Asking each model one word, to see whether it answers and how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from memchat.errors import MemChatError
from memchat.providers import ChatModel, Embedder
from memchat.providers.api_keys import redact
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.providers.litellm_embedder import LiteLLMEmbedder
from memchat.providers.litellm_setup import litellm
from memchat.types import ChatMessage, OnProgress, Progress

QUESTION = "Answer with one word: hello"
LONGEST = 40
"""Characters of an answer that are shown."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came back from one model."""

    uses: tuple[str, ...]
    """What the model is used for: chat, extraction, embedding."""
    result: str
    """The model's name with its answer and how long that took, or the error and what to do."""
    failed: bool = False


def ask_models(
    chat: ChatModel,
    extract: ChatModel,
    embedder: Embedder | None,
    progress: OnProgress | None = None,
) -> list[Probe]:
    """Ask each model once; one that has two uses is asked for both together.

    The offline stand-in has no provider to ask. Each may take as long as MEMCHAT_TIMEOUT says. The
    time includes the loading of a provider's library, a second or two for the first request.
    ``progress`` counts the models that were asked.
    """
    questions: dict[tuple[str, ...], Callable[[], str]]
    if chat.name == extract.name:
        questions = {("chat", "extraction"): partial(_ask_chat, chat)}
    else:
        questions = {("chat",): partial(_ask_chat, chat)}
        questions["extraction",] = partial(_ask_chat, extract)
    if embedder is not None:
        questions["embedding",] = partial(_ask_embedder, embedder)
    began, probes = time.monotonic(), []
    for uses, ask in questions.items():
        probes.append(_probe(uses, ask))
        if progress is not None:
            seconds = time.monotonic() - began
            progress(Progress(len(probes), len(questions), seconds, unit="models"))
    return probes


def _probe(uses: tuple[str, ...], ask: Callable[[], str]) -> Probe:
    try:
        return Probe(uses, ask())
    except MemChatError as error:
        return Probe(uses, str(error), failed=True)


def _ask_chat(model: ChatModel) -> str:
    if model.stand_in:
        return f"{model.name}, the stand-in on this machine; there is no provider to ask"
    if isinstance(model, LiteLLMChat):
        litellm()  # its import takes seconds that are not the provider's
    began = time.perf_counter()
    answer = model.complete([ChatMessage("user", QUESTION)], purpose="probe")
    seconds = time.perf_counter() - began
    said = " ".join(redact(answer.text).split())
    if len(said) > LONGEST:
        said = f"{said[:LONGEST]}…"
    return f'{model.name} answered "{said}" in {seconds:.1f} s'


def _ask_embedder(embedder: Embedder) -> str:
    through_litellm = isinstance(embedder, LiteLLMEmbedder)
    if through_litellm:
        litellm()
    began = time.perf_counter()
    vector, _ = embedder.embed_query("hello")
    seconds = time.perf_counter() - began
    # Ollama counts as local too, but it is another program and perhaps on another machine.
    alone = embedder.service.local and not through_litellm
    where = ", on this machine; nothing was sent" if alone else ""
    name = embedder.service.name
    return f"{name} gave a vector of {len(vector)} numbers in {seconds:.1f} s{where}"
