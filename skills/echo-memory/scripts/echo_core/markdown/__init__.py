"""Markdown surgery, the one door to it: headings, sections, blocks, prose (spec 2.2).

All functions work on text as `echo_core.catalog.notebytes.decode` gives it; what an edit does not name keeps every
character.
"""
from __future__ import annotations

from echo_core.markdown.blocks import Block, blocks_by_id, edit_block, find_block
from echo_core.markdown.edit import (
    append_text,
    edit_section,
    has_line,
    insert_before_related,
    insert_heading,
    missing_lines,
)
from echo_core.markdown.headings import Heading, addresses, find_heading, full_path, headings, section_text
from echo_core.markdown.inline import prose_spans
from echo_core.markdown.lines import detect_eol
from echo_core.markdown.links import plain_text

__all__ = [
    "Block", "Heading", "addresses", "append_text", "blocks_by_id", "detect_eol", "edit_block", "edit_section",
    "find_block", "find_heading", "full_path", "has_line", "headings", "insert_before_related", "insert_heading",
    "missing_lines", "plain_text", "prose_spans", "section_text",
]
