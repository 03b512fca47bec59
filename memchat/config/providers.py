"""What memchat knows of the providers of models: the variables of their keys and addresses, the
models that are used where none is named, and where words go."""

# ruff: noqa: E501  (the table of providers is read along)
from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_TABLE = """
gemini       | Google     | generativelanguage.googleapis.com | GEMINI_API_KEY GOOGLE_API_KEY            | GEMINI_API_BASE GOOGLE_GEMINI_BASE_URL
openai       | OpenAI     | api.openai.com                    | OPENAI_API_KEY                           | OPENAI_BASE_URL OPENAI_API_BASE
anthropic    | Anthropic  | api.anthropic.com                 | ANTHROPIC_API_KEY                        | ANTHROPIC_API_BASE ANTHROPIC_BASE_URL
mistral      | Mistral    | api.mistral.ai                    | MISTRAL_API_KEY                          | MISTRAL_API_BASE
groq         | Groq       | api.groq.com                      | GROQ_API_KEY                             | GROQ_API_BASE
openrouter   | OpenRouter | openrouter.ai                     | OPENROUTER_API_KEY                       | OPENROUTER_API_BASE
deepseek     | DeepSeek   | api.deepseek.com                  | DEEPSEEK_API_KEY                         | DEEPSEEK_API_BASE
cerebras     | Cerebras   | api.cerebras.ai                   | CEREBRAS_API_KEY                         | CEREBRAS_API_BASE
cohere       |            |                                   | COHERE_API_KEY                           |
fireworks_ai | Fireworks  | api.fireworks.ai                  | FIREWORKS_AI_API_KEY FIREWORKS_API_KEY   | FIREWORKS_API_BASE
perplexity   | Perplexity | api.perplexity.ai                 | PERPLEXITYAI_API_KEY PERPLEXITY_API_KEY  | PERPLEXITY_API_BASE
together_ai  | Together   | api.together.ai                   | TOGETHERAI_API_KEY TOGETHER_AI_TOKEN     | TOGETHER_AI_API_BASE
voyage       |            |                                   | VOYAGE_API_KEY                           |
xai          | xAI        | api.x.ai                          | XAI_API_KEY                              | XAI_API_BASE
hosted_vllm  |            |                                   | HOSTED_VLLM_API_KEY                      | HOSTED_VLLM_API_BASE
ollama       |            |                                   |                                          | OLLAMA_API_BASE
ollama_chat  |            |                                   |                                          | OLLAMA_API_BASE
"""
"""The providers: name, name for people, own host, variables of the key, variables of the address."""
_ROWS = [[part.strip() for part in line.split("|")] for line in _TABLE.strip().splitlines()]
KEYS = {row[0]: tuple(row[3].split()) for row in _ROWS if row[3]}
"""The variables for each provider's key; the first one that is set is used. A provider that is not
listed needs no key (Ollama) or reads its own."""
ADDRESSES = {row[0]: tuple(row[4].split()) for row in _ROWS if row[4]}
"""The variables that set another address for a provider."""
_HOSTS = {row[0]: (row[1], row[2]) for row in _ROWS if row[2]}
"""The name of a provider, and its own host."""
ANY_SERVER = "hosted_vllm"
"""The provider of models on a server of the person's own choice, of the form of OpenAI's; it may
need a key."""
_OPENAI_PATHS = {
    **dict.fromkeys(("openai", "anthropic", "mistral", "deepseek", "cerebras", "xai", "together_ai"), "/v1"),
    "gemini": "/v1beta/openai", "groq": "/openai/v1", "openrouter": "/api/v1",
    "fireworks_ai": "/inference/v1", "ollama": "/v1", "ollama_chat": "/v1", ANY_SERVER: "",
}  # fmt: skip
"""The path below which a provider speaks OpenAI's wire format."""
_WITHOUT_PATH = ("anthropic", "gemini", "ollama", "ollama_chat")
"""The providers whose address is set without that path."""
KEY_NAMES = frozenset(name for names in KEYS.values() for name in names)
ADDRESS_NAMES = frozenset(name for names in ADDRESSES.values() for name in names)
_BARE = {r"(gpt-|chatgpt-|o\d|text-embedding-)": "openai", r"claude-": "anthropic"}
_PRIVATE = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|API_BASE|BASE_URL)$", re.IGNORECASE
)


def shown(provider: str) -> str:
    """A provider's name as people know it."""
    names = {ANY_SERVER: "Another server", "ollama": "Ollama", "ollama_chat": "Ollama"}
    return names.get(provider) or _HOSTS.get(provider, (provider.capitalize(), ""))[0]


def provider_of(model: str) -> str:
    """The provider in a litellm model name; empty where the name has none."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((owner for start, owner in _BARE.items() if re.match(start, model)), "")


def synonyms(name: str) -> frozenset[str]:
    """The variables with the same meaning as this one, including itself."""
    groups = (*KEYS.values(), *ADDRESSES.values())
    return next((frozenset(names) for names in groups if name in names), frozenset((name,)))


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to a misspelt one, if any is."""
    found = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def spelling_hint(name: str, known: Iterable[str], otherwise: str, start: str = "") -> str:
    """What to say of an unknown name: the closest one that is known, if any is."""
    meant = closest(name, known)
    return f"did you mean {start}{meant}?" if meant else otherwise


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for another program, without keys, tokens and passwords."""
    return {
        name: value
        for name, value in environment.items()
        if name not in KEY_NAMES and not _PRIVATE.search(name)
    }


DEFAULT_WINDOW = 8192
"""Tokens of a chat model whose window is not known."""
OFFLINE_CHAT = "offline/chat"
OFFLINE_EXTRACT = "offline/extract"
MINILM = "minilm/all-MiniLM-L6-v2"
HASH = "hash/words"
WORDS_ONLY = "none"


@dataclass(frozen=True, slots=True)
class ProviderDefault:
    """The models used when a provider's key is set and no model is named."""

    chat: str
    extract: str
    embed: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables of the provider's key."""
        return KEYS[provider_of(self.chat)]


_DEFAULTS = """
gemini/gemini-2.5-flash gemini/gemini-2.5-flash-lite gemini/gemini-embedding-001
openai/gpt-4.1-mini openai/gpt-4.1-nano openai/text-embedding-3-small
anthropic/claude-sonnet-4-5 anthropic/claude-haiku-4-5
mistral/mistral-medium-latest mistral/mistral-small-latest
groq/llama-3.3-70b-versatile groq/llama-3.1-8b-instant
openrouter/google/gemini-2.5-flash openrouter/google/gemini-2.5-flash-lite
deepseek/deepseek-chat deepseek/deepseek-chat
"""
PROVIDERS = [ProviderDefault(*line.split()) for line in _DEFAULTS.strip().splitlines()]
"""In this order; the first whose key is set gives the models that are not named."""


def embedding_name(name: str) -> str:
    """An embedding model's whole name; ``minilm`` and ``hash`` are short for theirs."""
    short = {"minilm": MINILM, MINILM.lower(): MINILM, "hash": HASH}
    return short.get(name.lower(), name)


def runs_locally(name: str) -> bool:
    """Whether an embedding model has to be loaded on this machine before it can answer."""
    return name == MINILM or name.startswith("fastembed/")


_OLLAMA = ("ollama", "ollama_chat")
_HERE = ("localhost", "127.0.0.1", "::1")


def address(addresses: Mapping[str, str], provider: str) -> tuple[str, str] | None:
    """The address that is set for a provider, and the variable that sets it."""
    start = re.sub(r"\W", "_", provider).upper()
    names = ADDRESSES.get(provider) or (f"{start}_API_BASE", f"{start}_BASE_URL")
    name = next((name for name in names if addresses.get(name)), None)
    return (addresses[name], name) if name is not None else None


def elsewhere(addresses: Mapping[str, str], provider: str) -> str:
    """The address that is set for a provider where it is not the provider's own, or empty."""
    found = address(addresses, provider)
    return "" if found is None or _is_own(provider, found[0]) else found[0].rstrip("/")


def openai_url(addresses: Mapping[str, str], provider: str) -> str | None:
    """Below which address a provider speaks OpenAI's wire format, or None where it does not."""
    path, found = _OPENAI_PATHS.get(provider), address(addresses, provider)
    if path is None or (found is None and provider == ANY_SERVER):
        return None
    if found is not None:
        return found[0].rstrip("/") + (path if provider in _WITHOUT_PATH else "")
    start = "http://localhost:11434" if provider in _OLLAMA else f"https://{_HOSTS[provider][1]}"
    return f"{start}{path}"


def redirect_warnings(addresses: Mapping[str, str], models: Iterable[str]) -> list[str]:
    """A sentence for each address that is not the provider's own and that these models use."""
    said = []
    for provider in dict.fromkeys(provider_of(model) for model in models):
        found = address(addresses, provider) if provider else None
        if found is not None and not _is_own(provider, found[0]):
            url, variable = without_password(found[0]), found[1]
            whose, _ = _HOSTS.get(provider, (provider, ""))
            whose = "Ollama on this machine" if provider in _OLLAMA else whose
            beside = "" if provider == ANY_SERVER else f", not to {whose}"
            said.append(f"Your words go to {url} ({variable}){beside}.")
    return list(dict.fromkeys(said))


def model_and_host(addresses: Mapping[str, str], model: str) -> str:
    """A model and where it is asked, as "openai/gpt-4.1-mini at api.openai.com"; nothing is asked
    for it."""
    if model in (OFFLINE_CHAT, OFFLINE_EXTRACT):
        return "the offline stand-in, on this machine"
    if model == WORDS_ONLY:
        return "none, search is by words only"
    if runs_locally(model) or model == HASH:
        return f"{'minilm' if model == MINILM else model}, on this machine"
    provider = provider_of(model)
    found = address(addresses, provider) if provider else None
    if found is not None and not (provider in _OLLAMA and _is_own(provider, found[0])):
        return f"{model} at {_host(found[0])}"
    if provider in _OLLAMA:
        return f"{model}, on this machine"
    _, host = _HOSTS.get(provider, ("", provider or "its provider"))
    return f"{model} at {host}"


def without_password(url: str) -> str:
    """An address without the password or key that it may contain."""
    return re.sub(r"[?#].*", "?…", re.sub(r"//[^/@\s]*@", "//…@", url))


def _host(url: str) -> str:
    """The host of an address, with its port; the whole address where it has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or without_password(url)
    except ValueError:
        return without_password(url)


def _is_own(provider: str, url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if provider in _OLLAMA:
        return host in _HERE
    _, own = _HOSTS.get(provider, ("", ""))
    return own != "" and parts.scheme == "https" and f".{host}".endswith(f".{own}")
