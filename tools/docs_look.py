"""A hook of the documentation site: serves the tokens of all pages as assets/tokens.css."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

TOKENS = Path(__file__).parents[1] / "src" / "diptych" / "look" / "tokens.css"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style sheet to the files of the site."""
    files.append(File.generated(config, "assets/tokens.css", abs_src_path=str(TOKENS)))
    return files
