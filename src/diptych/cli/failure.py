"""What a command says when it fails."""

from __future__ import annotations

from diptych.errors import DiptychError, ModelError


def sentence(error: DiptychError) -> str:
    """The text of an error, for stderr."""
    return f"The model cannot work:\n{error}" if isinstance(error, ModelError) else str(error)
