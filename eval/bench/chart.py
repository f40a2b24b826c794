"""A bar chart as SVG: one row a call, one bar a vault size, on a logarithmic scale of ratios."""
from __future__ import annotations

import math
from html import escape

_COLOURS = ("#4878a8", "#d98032", "#5a9a5a", "#a04848")
_LEFT, _WIDTH, _BAR, _GAP = 190, 520, 11, 9


def bars(title: str, series: dict[str, dict[str, float]]) -> str:
    """The chart. series: name of the series -> name of the row -> value above zero."""
    rows = list(dict.fromkeys(row for values in series.values() for row in values))
    most = max(value for values in series.values() for value in values.values())
    decades = max(1, math.ceil(math.log10(most)))
    height = len(series) * _BAR + _GAP
    parts = [f'<text x="10" y="22" font-size="15">{escape(title)}</text>']
    bottom = 60 + len(rows) * height
    for decade in range(decades + 1):
        x = _LEFT + _WIDTH * decade / decades
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="52" y2="{bottom}" stroke="#ddd"/>'
                     f'<text x="{x:.0f}" y="{bottom + 14}" text-anchor="middle">{10 ** decade}×</text>')
    for number, row in enumerate(rows):
        top = 56 + number * height
        parts.append(f'<text x="{_LEFT - 8}" y="{top + height / 2:.0f}" text-anchor="end">{escape(row)}</text>')
        for place, (name, values) in enumerate(series.items()):
            if row in values:
                parts.append(_bar(top + place * _BAR, values[row], decades, _COLOURS[place % len(_COLOURS)]))
    for place, name in enumerate(series):
        x = _LEFT + place * 150
        parts.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{_COLOURS[place % len(_COLOURS)]}"/>'
                     f'<text x="{x + 15}" y="41">{escape(name)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{bottom + 25}" '
            f'font-family="sans-serif" font-size="11">' + "".join(parts) + "</svg>\n")


def _bar(top: int, value: float, decades: int, colour: str) -> str:
    length = max(1.0, _WIDTH * math.log10(max(1.0, value)) / decades)
    return (f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR - 1}" fill="{colour}"/>'
            f'<text x="{_LEFT + length + 4:.1f}" y="{top + _BAR - 2}">{value:g}</text>')
