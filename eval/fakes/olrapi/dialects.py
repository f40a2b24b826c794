"""What differs between the plugin's versions, in one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The habits of one plugin version."""

    version: str
    name: str
    minimum_app: str
    description: str
    author_url: str
    methods: str                      # of Access-Control-Allow-Methods
    guards_traversal: bool = True     # a path that leaves the vault is 400
    decodes_segments: bool = False    # %2F stays inside its segment
    creates_by_index: bool = False    # a file the index does not know is created, and only if nothing is there
    trashes: bool = False             # DELETE without ?permanent=true moves to the trash
    hangs_on_errors: bool = False     # an unexpected error in a handler leaves the request without an answer
    link_fields: tuple[str, ...] = ()
    idle_seconds: float = 60.0        # until an idle connection is closed
    conflicting_target: str = (
        "Target type/target specified in both URL path and request headers. Use one or the other."
    )
    invalid_target_type: str = "The 'Target-Type' header you provided was invalid."
    missing_destination: str = "Destination header is required for MOVE operations."

    @property
    def moves(self) -> bool:
        """Whether MOVE is known."""
        return "MOVE" in self.methods

    @property
    def copies(self) -> bool:
        """Whether COPY is known."""
        return "COPY" in self.methods


_MODERN_NAME = "Local REST API with MCP"
_MODERN_TEXT = "A secure REST API and Model Context Protocol (MCP) server for your vault."

V3 = Dialect(
    "3.6.1", "Local REST API", "0.12.0",
    "Get, change or otherwise interact with your notes in Obsidian via a REST API.", "https://coddingtonbear.net/",
    "GET,HEAD,PUT,PATCH,POST,DELETE", guards_traversal=False, hangs_on_errors=True, idle_seconds=5.0,
)
V4 = Dialect(
    "4.1.7", _MODERN_NAME, "1.4.0", _MODERN_TEXT, "https://adamcoddington.net/",
    "GET,HEAD,PUT,PATCH,POST,DELETE,MOVE", link_fields=("links", "backlinks"),
)
V5 = Dialect(
    "5.1.0", _MODERN_NAME, "1.13.1", _MODERN_TEXT, "https://adamcoddington.net/",
    "GET,HEAD,PUT,PATCH,POST,DELETE,MOVE,COPY", decodes_segments=True, creates_by_index=True, trashes=True,
    link_fields=("links", "backlinks", "unresolvedLinks"),
    conflicting_target=(
        "Conflicting target specifications: supply the target via URL path elements, via Target-Type/Target headers, "
        "or (for PATCH) as an 'application/vnd.olrapi.patch-instruction+json' instruction body — never more than one "
        "of these."
    ),
    invalid_target_type=(
        "The target type you specified was invalid. Valid target types are 'heading', 'block', and 'frontmatter'."
    ),
    missing_destination="Destination header is required for MOVE and COPY operations.",
)
DIALECTS = {dialect.version: dialect for dialect in (V3, V4, V5)}
