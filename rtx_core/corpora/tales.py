"""The embedded stand-in for TinyStories: tales of a few sentences written by a small grammar.

Source: ours; every word list was written for this project.  A tale has what a story model can learn of a story: a hero who
keeps name and pronoun, a thing that is lost and found or broken and mended, somebody who helps, and an end that fits.

    tale  ->  opening  wish  trouble  [talk]  help  end
"""

from random import Random

HEROES = [("Mina", "she", "her"), ("Tobin", "he", "his"), ("Pearl", "she", "her"), ("Oskar", "he", "his"), ("Wren", "she", "her"), ("Hugo", "he", "his")]
KINDS = ["small", "curious", "shy", "brave", "sleepy", "cheerful"]
BEINGS = ["girl|boy", "hen|rooster", "kitten|kitten", "rabbit|rabbit", "mouse|mouse"]  # she | he
HELPERS = ["an old turtle", "a kind baker", "a tall giraffe", "a little bird", "a friendly farmer", "a quiet owl"]
THINGS = ["red kite", "wooden boat", "shiny button", "paper lantern", "blue ball", "silver bell", "woolly hat"]
PLACES = ["by the river", "in the garden", "near the big hill", "at the market", "under the oak tree", "beside the pond"]
DAYS = ["One day", "One sunny morning", "On a windy afternoon", "After breakfast", "Late one evening"]
LOSSES = [("fell into the mud", "wash it"), ("got stuck in a branch", "climb up"), ("broke in two", "glue it"), ("rolled down a hole", "dig it out")]
FEELINGS = ["sad", "upset", "worried", "scared"]
ENDS = ["They smiled and played together until it was dark.", "They laughed and shared some warm bread.", "From then on they were best friends."]
LESSONS = ["learned that asking for help is good", "learned to take care of things", "knew that friends make hard things easy"]


def _tale(random: Random) -> str:
    name, he, his = random.choice(HEROES)
    being = random.choice(BEINGS).split("|")[he == "he"]
    thing, helper, place = random.choice(THINGS), random.choice(HELPERS), random.choice(PLACES)
    (loss, cure), feeling, short = random.choice(LOSSES), random.choice(FEELINGS), thing.split()[-1]
    friend = helper.split(" ", 1)[1]
    sentences = [
        f"Once upon a time there was a {random.choice(KINDS)} {being} named {name}.",
        f"{name} loved {his} {thing} more than anything.",
        f"{random.choice(DAYS)}, {name} went to play {place} with the {short}.",
        random.choice([f"But the {short} {loss}!", f"Then, with a bump, the {short} {loss}.", f"Suddenly the {short} {loss}."]),
        f"{name} was very {feeling}.",
        f"{he.capitalize()} saw {helper} {random.choice(PLACES)}.\n\n",
        f'"Can you help me, please?" asked {name}.' if random.random() < 0.7 else f"{name} asked the {friend} for help.",
        f'"Do not be {feeling}," said the {friend}. "We can {cure} together."' if random.random() < 0.7 else f"The {friend} showed {name} how to {cure}.",
        f"So they worked for {random.choice(['a while', 'an hour', 'the whole day'])}, and at last the {short} was as good as new.\n\n",
        f"{name} said thank you to the {friend}.",
        random.choice(ENDS),
        f"{name} {random.choice(LESSONS)}." if random.random() < 0.6 else "",
    ]
    return " ".join(s for s in sentences if s).replace("\n\n ", "\n\n")


def tales(n: int, seed: int = 0) -> list[str]:
    """n tales, the same for the same seed."""
    random = Random(seed)
    return [_tale(random) for _ in range(n)]
