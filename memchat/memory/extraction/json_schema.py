"""The JSON schemas of answers, for the strict modes of providers."""

from __future__ import annotations

from typing import Any


def object_schema(**fields: Any) -> dict[str, Any]:
    """The schema of an object, every field of which is required."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def list_schema(items: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of such items."""
    return {"type": "array", "items": items}
