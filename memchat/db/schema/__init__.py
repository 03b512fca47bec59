"""The tables as SQLAlchemy Core sees them. The baseline migration creates them.

A scope is one row of ``apps``: one app of a user, or, with an empty name, what the user has in
every app. Every scoped table has its ``app_id``, so deleting an app is a cascade, and a query that
names the app needs no user. Times are UTC text of fixed width, which sorts by time.
"""

from memchat.db.schema.columns import *
from memchat.db.schema.conversations import *
from memchat.db.schema.memories import *
from memchat.db.schema.work import *

HEAD = "0100"
"""The revision this code reads and writes. A test compares it with the newest migration. Numbers
below 0100 are of stores from before there was one baseline."""
