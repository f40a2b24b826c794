"""Markdown surgery, the one door to it: headings, sections, blocks, prose (spec 2.2).

All functions work on text as `echo_core.notebytes.decode` gives it; what an edit does not name keeps every character.
"""
from __future__ import annotations

from echo_core.mdedit import append_text, edit_section, has_line, insert_heading
from echo_core.mdheads import Heading, find_heading, full_path, headings, section_text
from echo_core.mdinline import prose_spans
from echo_core.mdlines import detect_eol

__all__ = ["Heading", "append_text", "detect_eol", "edit_section", "find_heading", "full_path", "has_line", "headings",
           "insert_heading", "prose_spans", "section_text"]
