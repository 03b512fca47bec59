"""``python -m memchat`` is the command line."""

from __future__ import annotations

import sys

from memchat.cli import main

sys.exit(main())
