"""Alembic's entry: run on the connection that memchat.db.migrate hands over."""

from alembic import context

from memchat.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
