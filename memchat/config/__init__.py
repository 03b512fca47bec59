"""Settings, their defaults and their sources.

They come from the environment, a file named with ``--env-file``, and ``settings.toml`` and
``keys.toml`` in the data folder, in this order. A model that is not named is chosen
from the keys that are set; what was chosen and why is kept, so that the CLI and the app can show
it. Nothing is read at import and nothing here touches the network.
"""

from memchat.config.settings import Settings, load

__all__ = ["Settings", "load"]
