"""What a page says between two marks, put there by the script that has made it."""

import re
from pathlib import Path


def fill(page: Path, name: str, text: str) -> None:
    """Put `text` between ``<!-- NAME: made by ... -->`` and ``<!-- end of NAME -->``."""
    filled = replaced(page.read_text(encoding="utf-8"), name, text)
    page.write_text(filled, encoding="utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """The page with `text` there; LookupError if it has no such marks, or more than one pair."""
    marks = re.compile(rf"(?<=\n)(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->\n)", re.S)
    filled, n_pairs = marks.subn(lambda pair: f"{pair[1]}\n{text}\n\n{pair[2]}", page)
    if n_pairs != 1:
        raise LookupError(f"a page must have one pair of marks for {name}, got {n_pairs}")
    return filled
