"""Text written by small grammars, for a first run without a network: reviews, a play, tales.

No text is taken from elsewhere.  The same seed gives the same text on every machine: of `random`, only methods whose
stream is the same in all supported versions are used.

A template names what fills it: "{aspect}" is replaced by one of the grammar's aspects, filled in turn; in a review
"{+x}" by an x of the review's own sentiment, "{-x}" by one of the opposite.  So counting words is not enough: "not
dull" praises, and of "dull, but moving" the connective says which word counts.
"""

import re
from random import Random

import pandas as pd

LABEL_NOISE = 0.03  # share of reviews with the wrong label: nobody can score above 97 % except by luck
LONGEST = 12  # sentences of a review
SLOT = re.compile(r"\{([+-]?)(\w+)\}")

Grammar = dict[str, list[str]]


def grammar(text: str) -> Grammar:
    """One symbol a line, "name: alternative | alternative"; a line that begins with a bar continues it."""
    lines = re.sub(r"\n\s*\|", " |", text.strip()).splitlines()
    named = (line.partition(":") for line in lines)
    return {name.strip(): [item.strip() for item in items.split("|")] for name, _, items in named}


def fill(rng: Random, template: str, words: Grammar, positive: bool = True) -> str:
    """`template` with every slot replaced by a random alternative; `positive` is the sentiment of "{+…}"."""

    def replace(slot: re.Match) -> str:
        sign, name = slot.groups()
        sense = positive ^ (sign == "-")
        if name not in words:
            name += "_good" if sense else "_bad"
        return fill(rng, rng.choice(words[name]), words, sense)

    return SLOT.sub(replace, template)


REVIEWS = grammar("""
    word_bad: dull | awful | weak | sloppy | tedious | clumsy | poor | ugly | {own_bad} | {own_bad}
    word_good: lovely | great | superb | charming | fine | lively | good | memorable | {own_good} | {own_good}
    noun_bad: flaws | problems | rough edges | shortcuts | nonsense
    noun_good: charm | character | warmth | care | good ideas
    keep: very | truly | rather | quite | nothing short of | never less than
    turn: not | never | hardly | far from | anything but | by no means
    adjective: {+word} | {+word} | {+word} | {keep} {+word} | {keep} {+word} | {keep} {+word} | {turn} {-word}
    having: had plenty of {+noun} | was full of {+noun} | never lacked {+noun} | had no {-noun}
    did_bad: i hate | i regret | you will not love
    did_good: i love | i admire | you will not regret
    be: is | was | turned out | remained
    tail: from start to finish | most of the time | by the end | this time | for once
    clause: the {aspect} {be} {+adjective} | the {aspect} {be} {+adjective} {tail} | the {aspect} {+having}
        | {+did} the {aspect}
    plain: {+clause} | {+clause} , and {+clause} | {people} said that {+clause} , and was right
    mixed: {-clause} , but {+clause} | although {-clause} , {+clause} | {+clause} , even if {-clause}
        | {people} said that {-clause} , and was wrong
    sentence: {+plain} | {+plain} | {+plain} | {+plain} | {+mixed}
    phrase: {+word} , {+word} {aspect} | {+word} , {+word} {thing} {tail} | a {+word} {thing} that {+having}
        | not a {-word} moment with this {+word} {thing} | {+sentence} . | {+sentence}
    verdict: overall , {+clause} | all in all , {+clause} | my verdict : {+clause}
    people: my sister | my brother | everyone | a colleague | an old friend
    filler: last week {people} told me about it | i was there with {people} | {people} had chosen it
""")
DOMAINS = {
    "movie": grammar("""
        thing: film | movie | drama | comedy | thriller | sequel | documentary
        aspect: plot | cast | script | dialogue | direction | ending | soundtrack | humor
        own_bad: predictable | contrived | wooden | shallow | overlong | corny
        own_good: moving | funny | gripping | tender | raw | unpredictable
    """),
    "restaurant": grammar("""
        thing: place | restaurant | diner | cafe | bistro | bar | meal
        aspect: food | service | menu | soup | steak | pasta | salad | dessert
        own_bad: cold | greasy | rude | overpriced | soggy | raw
        own_good: tasty | friendly | fresh | delicious | cozy | tender
    """),
    "product": grammar("""
        thing: product | gadget | device | phone | camera | blender | keyboard
        aspect: battery | screen | design | zipper | manual | packaging | price | software
        own_bad: flimsy | fragile | unreliable | heavy | unpredictable | noisy
        own_good: sturdy | reliable | durable | light | handy | quiet
    """),
}


def reviews(domain: str, n: int, seed: int = 0, style: str = "review") -> pd.DataFrame:
    """The first `n` rows, text and label (1 positive), of the endless table of a domain, a style and a seed."""
    rng, words = Random(f"{domain} {style} {seed}"), REVIEWS | DOMAINS[domain]
    texts, labels = [], []
    for row in range(n):
        if row % 2 == 0:
            pair = [False, True]  # every two rows hold one of each
            rng.shuffle(pair)
        positive = pair[row % 2]
        texts.append(_prose(rng, words, positive) if style == "review" else fill(rng, "{+phrase}", words, positive))
        labels.append(int(positive ^ (rng.random() < LABEL_NOISE)))
    return pd.DataFrame({"text": pd.Series(texts, dtype="str"), "label": pd.Series(labels, dtype="int64")})


def _prose(rng: Random, words: Grammar, positive: bool) -> str:
    """Sentences as people type them; a verdict decides where there is one, else the majority does."""
    decided = rng.random() < 0.5
    sentences = []
    for k in range(2 + int((LONGEST - 2) * rng.random() ** 2)):
        aside = k % 4 == 3 or (decided and k % 4 == 2 and rng.random() < 0.3)
        sentences.append("{-sentence}" if aside else "{+sentence}")
        sentences += ["{filler}"] if rng.random() < 0.3 else []
    rng.shuffle(sentences)
    sentences += ["{+verdict}"] if decided else []
    typed = []
    for template in sentences:
        text = re.sub(r"\bi\b", "I", fill(rng, template, words, positive))
        text = re.sub(r" (?=[,:])", "", text)
        typed.append(text[0].upper() + text[1:] + rng.choice(("...", "!!!", "!", ".", ".", ".", ".")))
    return rng.choice((" ", " ", " ", "<br /><br />")).join(typed)


PLAY = grammar("""
    opening: And yet | But now | For still | Alas, | By night and day
    one: the king | my heart | this crown | the sea | that letter
    does: sleeps | burns | breaks | returns | forgives | waits
    place: in yonder hall | beneath the oak | upon the shore | before the gate
    clause: {one} {does} {place}
    ending: until the dawn | as once it did | without a sound | at last
    question: What news is this | Who calls so late | Where is my daughter | Shall we depart
    line: {question}, {other}? | {other}, {clause}. | {opening} {clause} {ending}, | {clause} {ending}.
""")
SPEAKERS = ("ALDRIC", "BEATA", "CORVIN", "DELIA", "EDMORE", "FENNA", "GARETH", "HELSA")


def play(characters: int, seed: int = 0) -> str:
    """That many characters of a play: names in capitals, verse-like lines, persons who name one another."""
    rng, speeches, size = Random(seed), [], 0
    while size < characters:
        present = rng.sample(SPEAKERS, 2)
        for turn in range(4 + rng.randrange(8)):
            words = PLAY | {"other": [present[1 - turn % 2].capitalize()]}
            spoken = [fill(rng, "{line}", words) for _ in range(1 + rng.randrange(4))]
            lines = "\n".join(line[0].upper() + line[1:] for line in spoken)
            speeches.append(f"{present[turn % 2]}:\n{lines}\n\n")
            size += len(speeches[-1])
    return "".join(speeches)[:characters]


TALES = grammar("""
    kind: small | curious | shy | brave | sleepy | cheerful
    toy: red kite | wooden boat | shiny button | paper lantern | blue ball | silver bell | woolly hat
    friend: old turtle | kind baker | tall giraffe | little bird | friendly farmer | quiet owl
    place: by the river | in the garden | near the big hill | at the market | under the oak tree
    day: One day | One sunny morning | On a windy afternoon | After breakfast
    felt: sad | upset | worried | scared
    hero: Mina/She/her/girl | Tobin/He/his/rabbit | Pearl/She/her/hen | Oskar/He/his/boy | Wren/She/her/mouse
    trouble: fell into the mud/wash it | got stuck in a branch/climb up | broke in two/glue it
    answer: "Do not be {felt}," said the {friend}. "We can {cure} together."
        | The {friend} showed {name} how to {cure}.
    end: They played until it was dark. | They shared some bread. | From then on they were friends.
    begin: Once upon a time there was a {kind} {being} named {name}. {name} loved {his} {toy} very much.
    lose: {day}, {name} went to play {place} with the {toy}. But the {toy} {loss}! {name} was very {felt}.
    mend: {He} saw the {friend} {place}. {answer} At last the {toy} was as good as new.
    tale: {begin} {lose}//{mend}//{name} said thank you to the {friend}. {end}
""")


def tales(n: int, seed: int = 0) -> list[str]:
    """n tales of a hero who keeps name and pronoun, a thing broken and mended, and somebody who helps."""
    rng, made = Random(seed), []
    for _ in range(n):
        told = {name: rng.choice(TALES[name]) for name in ("toy", "friend", "felt")}
        told |= zip(("name", "He", "his", "being"), rng.choice(TALES["hero"]).split("/"), strict=True)
        told |= zip(("loss", "cure"), rng.choice(TALES["trouble"]).split("/"), strict=True)
        fixed = {name: [value] for name, value in told.items()}
        made.append(fill(rng, "{tale}", TALES | fixed).replace("/", "\n"))
    return made
