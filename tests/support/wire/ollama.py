"""A fake Ollama that has no model: it answers every request as the real one does then."""

from __future__ import annotations

import json
from typing import ClassVar

from tests.support.wire.server import Handler, WireServer


class OllamaHandler(Handler):
    def do_POST(self) -> None:  # without a look at the content type, as litellm sends none here
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_json({"error": f"model '{asked.get('model', asked.get('name'))}' not found"}, 404)


class OllamaServer(WireServer):
    """The fake Ollama; ``server.url`` is its address."""

    handler: ClassVar[type[Handler]] = OllamaHandler
