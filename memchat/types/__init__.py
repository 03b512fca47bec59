"""The nouns every package shares: plain frozen records, whose behaviour needs no database or model.

Times are aware UTC ``datetime``; ``expires_at`` is a calendar ``date`` in the user's own time zone,
and the memory holds through that day.
"""

from memchat.types.conversations import *
from memchat.types.labels import *
from memchat.types.memories import *
from memchat.types.workflows import *
