"""Numbers as people count: of every 100, times as often, k of n."""

from __future__ import annotations

from ombud.report.format import number_text


def out_of(share: float) -> str:
    """Return a share as a count of every 100, 1,000 and so on, whichever has a whole digit.

    Examples
    --------
    >>> out_of(0.47), out_of(0.004), out_of(0.00001), out_of(0.0), out_of(1.0)
    ('47 of every 100', '4 of every 1,000', 'fewer than 1 of every 10,000', 'none', 'all')
    >>> out_of(0.0234), out_of(0.9987)
    ('2.3 of every 100', '99.9 of every 100')
    """
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    for base in (100, 1000, 10_000):
        if share * base >= 0.95:
            return f"{in_hundred(share, base)} of every {base:,}"
    return "fewer than 1 of every 10,000"


def between(ends: tuple[float, float] | None, share: float) -> str:
    """Return the ends of an interval in brackets, of as many as `out_of` writes the share.

    Examples
    --------
    >>> between((0.1, 0.142), 0.12), between((0.001, 0.0072), 0.004), between(None, 0.5)
    (' (10 to 14)', ' (1 to 7.2)', '')
    """
    if ends is None or not 0 < share < 1:
        return ""
    base = next((b for b in (100, 1000, 10_000) if share * b >= 0.95), 10_000)
    low, high = (in_hundred(end, base) for end in ends)
    return f" ({low} to {high})"


def in_hundred(share: float, base: int = 100) -> str:
    """Return a share in parts of 100, with a decimal below 10 and above 90.

    Examples
    --------
    >>> in_hundred(0.12), in_hundred(0.034), in_hundred(0.05), in_hundred(0.996)
    ('12', '3.4', '5', '99.6')
    """
    size = abs(share) * base
    places = 1 if size < 10 or (base == 100 and 90 < size < 100) else 0
    return number_text(size, places).removesuffix(".0")


def base_of(difference: float, base: int = 100) -> int:
    """Return of how many `more_or_less` counts a difference, for what stands beside it.

    Examples
    --------
    >>> base_of(0.07), base_of(-0.004), base_of(1e-9)
    (100, 1000, 10000)
    """
    sizes = (base, base * 10, base * 100)
    return next((size for size in sizes if abs(difference) * size >= 1), sizes[-1])


def more_or_less(difference: float, base: int = 100) -> str:
    """Return a difference of shares: how many more, or fewer, of every 100.

    Examples
    --------
    >>> more_or_less(0.07), more_or_less(-0.004), more_or_less(0.0)
    ('7 more of every 100', '4 fewer of every 1,000', 'as many')
    """
    if difference == 0:
        return "as many"
    size = base_of(difference, base)
    word = "more" if difference > 0 else "fewer"
    return f"{in_hundred(difference, size)} {word} of every {size:,}"


def counted(events: float, of: float, share: float | None = None) -> str:
    """Return a count of events: in full when it is small, else of every 100.

    Examples
    --------
    >>> counted(47, 97), counted(4700, 9700), counted(0, 12), counted(12, 12)
    ('47 of 97', '48 of every 100', 'none of 12', 'all 12')
    """
    if of > 1000 or events != int(events):
        return out_of(events / of if share is None else share)
    if events == 0:
        return f"none of {of:,.0f}"
    if events == of:
        return f"all {of:,.0f}"
    return f"{events:,.0f} of {of:,.0f}"


def times(ratio: float) -> str:
    """Return a ratio in words.

    Examples
    --------
    >>> times(2.04), times(7.8), times(1.34), times(0.5), times(23.4)
    ('twice', '7.8 times', '1.3 times', '0.5 times', '23 times')
    """
    text = number_text(ratio, 0 if ratio >= 10 else 1 if ratio >= 1.15 else 2).removesuffix(".0")
    return "twice" if text == "2" else f"{text.rstrip('0') if '.' in text else text} times"


def percent(value: float) -> str:
    """Return a relative change in percent: how much more, or less.

    Examples
    --------
    >>> percent(0.354), percent(-0.08), percent(12.5), percent(0.004)
    ('35% more', '8% less', '14 times', '0.4% more')
    """
    if value >= 2:
        return times(1 + value)
    size = 100 * abs(value)
    shown = number_text(size, 1 if size < 1 else 0)
    return f"{shown}% {'more' if value >= 0 else 'less'}"
