"""Two models side by side."""

from pathlib import Path

from rtx_core.benchmark.card import folder, page, read
from rtx_core.errors import RtxError
from rtx_core.paths import write_atomically


def compare(*files: str) -> Path:
    """A page that draws two cards together, of the JSON of each."""
    if len(files) != 2:
        raise RtxError(f"Got {len(files)} cards to compare; give the JSON files of two.")
    cards = [read(file) for file in files]
    if cards[0].budget != cards[1].budget:
        budgets = " and ".join(card.budget for card in cards)
        raise RtxError(f"The cards are of the budgets {budgets}; compare two of one budget.")
    path = folder() / f"{cards[0].name}-and-{cards[1].name}.html".replace("/", "-")
    write_atomically(path, page(*cards).encode())
    return path
