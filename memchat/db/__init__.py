"""The store: one SQLite file, and one module for each kind of thing in it.

``Database`` opens the file and begins transactions for reading and for writing. Every function of
the other modules takes the transaction, a ``Tx``, first, so that several calls commit together or
not at all. Indexes and vectors are derived from the rows and can be made again from them.
"""

from memchat.db.records import Tx as Tx
