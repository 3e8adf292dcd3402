"""The embedded stand-in for Shakespeare: scenes of verse-like speeches written by a small grammar.

Source: ours; every word list was written for this project, and no line is taken from a play.  It has what a character model
can learn of a play: names in capitals, a colon, lines of like length, sentences that agree in number, rhymes that close a speech.

    scene   ->  speech, speech, …  between two or three of the persons, who answer one another by name
    speech  ->  NAME: lines [couplet]
    line    ->  opening clause ending  |  question?  |  NAME of the other, clause.
"""

from random import Random

SPEAKERS = "ALDRIC BEATA CORVIN DELIA EDMORE FENNA GARETH HELSA".split()
OPENINGS = ["And yet", "But now", "For still", "Then let me say that", "I swear", "Alas,", "O,", "By night and day", "As some men tell,", "Good sir,"]
SUBJECTS = [("the king", "the kings"), ("my heart", "our hearts"), ("this crown", "these crowns"), ("thy sword", "your swords"),
            ("the sea", "the seas"), ("a faithful friend", "faithful friends"), ("that letter", "those letters"), ("the moon", "the stars")]  # fmt: skip
VERBS = [("sleeps", "sleep"), ("burns", "burn"), ("breaks", "break"), ("returns", "return"), ("lies", "lie"), ("forgives", "forgive"),
         ("waits", "wait"), ("deceives", "deceive")]  # fmt: skip
PLACES = ["in yonder hall", "beneath the oak", "upon the shore", "before the gate", "within these walls", "beyond the hills", "by candle light"]
ENDINGS = ["until the dawn", "as once it did", "without a sound", "for want of gold", "and none can tell", "though few believe", "at last"]
QUESTIONS = ["What news is this", "Who calls so late", "Where is my daughter", "Why dost thou weep", "Shall we depart", "Is it not strange"]
RHYMES = [("night", "light"), ("day", "away"), ("sea", "free"), ("gold", "cold"), ("tear", "near"), ("stone", "alone"), ("breath", "death")]
COUPLET = "So ends my speech as falls the {},\nAnd all my hope is in the {}."


def _clause(random: Random) -> str:
    number = random.random() < 0.4
    subject, verb = random.choice(SUBJECTS)[number], random.choice(VERBS)[number]
    return f"{subject} {verb} {random.choice(PLACES)}"


def _line(random: Random, other: str) -> str:
    kind = random.random()
    if kind < 0.15:
        return f"{random.choice(QUESTIONS)}, {other.capitalize()}?"
    if kind < 0.3:
        return f"{other.capitalize()}, {_clause(random)}."
    opening = random.choice(OPENINGS) if random.random() < 0.6 else ""
    line = f"{opening} {_clause(random)} {random.choice(ENDINGS)}{random.choice(',,;.!')}".strip()
    return line[0].upper() + line[1:]


def play(characters: int, seed: int = 0) -> str:
    """A play of that many characters, the same for the same seed."""
    random, speeches, size = Random(seed), [], 0
    while size < characters:
        present = random.sample(SPEAKERS, random.choice((2, 2, 3)))
        for _ in range(random.randint(4, 12)):
            speaker, other = random.sample(present, 2)
            lines = [_line(random, other) for _ in range(random.randint(1, 5))]
            if random.random() < 0.2:
                lines.append(COUPLET.format(*random.choice(RHYMES)))
            speeches.append(f"{speaker}:\n" + "\n".join(lines) + "\n\n")
            size += len(speeches[-1])
    return "".join(speeches)[:characters]
