"""File endings and their media types, as the plugin's library knows them."""

from __future__ import annotations

_TABLE = """
text/markdown md markdown
text/plain txt text conf def list log in ini
text/html html htm shtml
text/css css
text/csv csv
text/yaml yaml yml
text/calendar ics ifb
text/jsx jsx
text/tab-separated-values tsv
text/vcard vcard
application/json json map
application/javascript js mjs
application/xml xml xsl xsd rng
application/pdf pdf
application/zip zip
application/gzip gz
application/epub+zip epub
application/rtf rtf
application/x-sh sh
application/msword doc dot
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/x-7z-compressed 7z
application/vnd.rar rar
application/x-tar tar
application/vnd.ms-excel xls
application/vnd.ms-powerpoint ppt
application/vnd.oasis.opendocument.text odt
application/x-tex tex
application/toml toml
application/ld+json jsonld
application/geo+json geojson
application/json5 json5
application/manifest+json webmanifest
application/x-sql sql
application/wasm wasm
application/vnd.lotus-organizer org
text/mdx mdx
text/x-markdown mkd
text/vtt vtt
text/x-c c h cpp
image/vnd.adobe.photoshop psd
video/3gpp 3gp 3gpp
audio/x-aac aac
font/otf otf
image/png png
image/jpeg jpeg jpg jpe
image/gif gif
image/svg+xml svg svgz
image/webp webp
image/bmp bmp
image/avif avif
image/heic heic
image/tiff tif tiff
image/vnd.microsoft.icon ico
audio/mpeg mpga mp2 mp2a mp3 m2a m3a
audio/mp4 m4a mp4a
audio/ogg oga ogg spx opus
audio/wave wav
audio/x-flac flac
video/mp4 mp4 mp4v mpg4
video/ogg ogv
video/webm webm
video/quicktime qt mov
video/x-matroska mkv mk3d mks
video/mp2t ts
font/ttf ttf
font/woff woff
font/woff2 woff2
"""
TYPES = {ending: line.split()[0] for line in _TABLE.strip().splitlines() for ending in line.split()[1:]}


def lookup(path: str) -> str:
    """The media type of a path, or the literal word "false" that the plugin prints for an unknown ending."""
    name = ("x." + path).rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return TYPES.get(ending.lower(), "false") if dot and stem else "false"


def with_charset(media_type: str) -> str:
    """What setting a Content-Type adds: text and JSON get `; charset=utf-8` when they name none."""
    bare = media_type.split(";")[0]
    textual = bare.startswith(("text/", "application/json", "application/javascript"))
    return media_type if "charset" in media_type.lower() or not textual else f"{media_type}; charset=utf-8"
