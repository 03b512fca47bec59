"""The nouns every package shares: plain frozen records, whose behaviour needs no database or model.

Times are aware UTC ``datetime``; ``expires_at`` is a calendar ``date`` in the user's own time zone,
and the memory holds through that day.
"""

from memchat.types.conversation import *
from memchat.types.fact import *
from memchat.types.inbox import *
from memchat.types.note import *
from memchat.types.scope import *
from memchat.types.upkeep import *
