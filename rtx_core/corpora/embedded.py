"""The embedded corpus: synthetic reviews written by a small grammar, for a first run without a network.

Source: ours.  Every word list below was written for this project and no text is taken from elsewhere, so whoever
shows this data should call it synthetic.  A review is written to a number of stars (1, 2, 4 or 5; above 3 is
positive) by these productions, where p is the sentiment to be expressed and -p its opposite:

    saying(p)    ->  KEEP word(p)  |  TURN word(-p)               "very good"  |  "anything but dull"
    clause(p)    ->  SUBJECT saying(p) [TAIL]                     "the cast lacked charm from start to finish"
    contrast(p)  ->  clause(-p) but clause(p)  |  although clause(-p) , clause(p)  |  clause(p) , even if clause(-p)
    report(p)    ->  people said clause(p) and were right  |  people said clause(-p) and were wrong
    sentence(p)  ->  clause(p)  |  clause(p) , and clause(p)  |  contrast(p)  |  report(p)
    phrase(p)    ->  word(p)  |  pair(p)  |  noun phrase(p)  |  sentence(p)
    review(p)    ->  sentences and neutral filler, most of them p  |  any such mixture, and a verdict(p)

Counting words is therefore not enough: logistic regression on a bag of words, fitted to 4,000 rows, gets 82 to
87 %.  The ceiling is 1 - LABEL_NOISE, as that share of the rows, drawn at random, carries the opposite stars and label.
"""

import re
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Iterator

import pandas as pd

from rtx_core.errors import RtxError, unknown

LABEL_NOISE = 0.03  # share of rows with the wrong label: nobody can score above 97 % except by luck
DOMAINS = ("movie", "restaurant", "product")

TURNED = (0.19, 0.06)  # how often a (negative, positive) saying is put by turning the opposite word round
CONTRAST = {1: 0.08, 5: 0.08, 2: 0.20, 4: 0.20}  # how often a sentence holds a contrast: mild ones more often
REPORTED = 0.07  # how often it reports what others said
DOUBLED = 0.18  # how often it says two things of one sense
VERDICTS = 0.6  # how often a review has a verdict
SHORTEST, LONGEST = 28, 270  # words a review aims at; the last sentence may overshoot

Pair = tuple[list[str], list[str]]  # indexed by a bool: (negative, positive) words or (keeping, turning) operators


def _items(text: str) -> list[str]:
    """The entries of a word list, written with bars between them."""
    return [" ".join(item.split()) for item in text.split("|")]


# --- Operators: the first list keeps the sense of what follows, the second turns it round -------------------------

TURNS = _items("not | never | hardly | far from | anything but | by no means | not at all | nowhere near | scarcely"
               " | not particularly | not remotely | not even")
DEGREES = {  # for adjectives, by strength; "nothing short of" and its like look like negations and are none
    True: (_items("very | truly | utterly | absolutely | incredibly | thoroughly | nothing short of | so"
                  " | never less than | nothing if not | simply | consistently | without question"), TURNS),
    False: (_items("rather | fairly | quite | somewhat | mostly | a little | kind of | reasonably | often | sort of"
                   " | if nothing else | perhaps a bit | generally"), TURNS),
}
BEING = (_items("is , as ever , | was | turned out | remained"),
         _items("could have been | was anything other than | might have been | tried to be"))
HAVING = (_items("had plenty of | was full of | offered a lot of | was never short of | showed | was not without"
                 " | was packed with | gave us nothing but"),
          _items("lacked | had no | was free of | was without | had hardly any | avoided | showed no sign of"
                 " | never offered any"))
FEELING = (_items("i came to | you will | i did | one can only | it is easy to | i could not help but | i still"),
           _items("i did not | you will never | it is hard to | nobody could | i failed to | i could hardly"))
ACTING = (_items("i would gladly | i will definitely | i cannot wait to | i did not hesitate to | everyone should"),
          _items("i would not | i will never | i see no reason to | i had no wish to | nobody should"))

# --- Connectives and neutral matter ------------------------------------------------------------------------------

BUT = _items(", but | , yet | , and yet | ; still , | ; nevertheless , | , but in the end")
ALTHOUGH = _items("although | even though | while | granted that")
EVEN_IF = _items(", even if | , although | , even though | , though admittedly")
PEOPLE = _items("my sister | everyone | a colleague | the internet | my neighbor | our guide | an old friend | the ad")
RIGHT = (_items("was wrong | had no point | was not right | did exaggerate"),  # (disagree, agree)
         _items("was right | had a point | was not wrong | did not exaggerate"))
VERDICT = _items("overall , | all in all , | in short , | my verdict : | on balance , | to sum up , | bottom line :")
TAILS = _items("from start to finish | most of the time | by the end | this time around | as it happens"
               " | for a weekday | on closer inspection | to my eyes | at any rate | if you ask me | after an hour"
               " | in every respect | throughout | for once | at this price | on a second look | in its own way")
TIMES = _items("last week | on a weekday | in early spring | two days ago | over the holidays | on a rainy evening"
               " | after work | on my birthday | around noon | in the fall | one morning | the other day")
COMPANY = _items("my brother | two friends | my parents | a coworker | the kids | my wife | my husband | a cousin"
                 " | some classmates | my roommate | the whole team | an uncle from out of town")

# --- Words of sentiment and of the three domains -----------------------------------------------------------------

BAD = """dull awful weak dreadful sloppy tedious bland lifeless clumsy disappointing mediocre forgettable shoddy lazy
    annoying dismal poor terrible hollow unpleasant pointless careless miserable horrible stale frustrating tiresome
    ugly overrated lousy dire feeble wretched grating drab shabby painful second-rate uninspired pathetic""".split()
GOOD = """lovely great wonderful superb charming delightful excellent fine brilliant splendid pleasant impressive
    terrific memorable solid graceful thoughtful marvelous remarkable polished satisfying beautiful outstanding
    elegant admirable lively exquisite first-rate refreshing stunning cheerful rewarding magnificent likeable
    inspired enjoyable good fabulous glorious winning""".split()
FAULTS = "flaws|problems|disappointments|mistakes|rough edges|irritations|shortcuts|nonsense|carelessness|excuses"
MERITS = "charm|character|warmth|care|style|imagination|personality|quality|pleasant surprises|good ideas"
FEELINGS = (_items("hate|dislike|regret|resent|despise|complain about"),
            _items("love|enjoy|admire|appreciate|adore|praise"))


@dataclass(frozen=True)
class Words:
    """What one domain talks about, and how.  Adjectives may differ in sense by domain: a raw film, a raw steak."""

    things: list[str]  # the whole: "film"
    parts: list[str]  # a small piece of it: "moment"
    aspects: list[str]  # what is judged: "cast"
    adjectives: Pair
    qualities: Pair
    actions: Pair
    fillers: list[str]  # neutral sentences with {time}, {company} and {aspect} to fill in


def _words(things, parts, aspects, bad, good, faults, merits, refuse, accept, fillers) -> Words:
    """A domain's words on top of the general ones."""
    return Words(things.split(), parts.split(), _items(aspects), (BAD + bad.split(), GOOD + good.split()),
                 (_items(FAULTS + "|" + faults), _items(MERITS + "|" + merits)),
                 (_items(refuse), _items(accept)), _items(fillers))


WORDS = {
    "movie": _words(
        things="film movie picture drama comedy thriller sequel documentary western remake romance",
        parts="moment scene minute line frame shot",
        aspects="""plot|story|cast|script|dialogue|direction|ending|opening|score|soundtrack|camera work|lead actor
            |lead actress|villain|editing|pacing|humor|costume design|finale|love story|first act|middle part|premise
            |animation|supporting cast|narration|lighting|atmosphere|chase scene|title song""",
        bad="""predictable contrived slow wooden shallow overlong muddled corny sappy simple implausible derivative
            incoherent preachy unfunny plodding melodramatic sluggish formulaic thin""",
        good="""moving funny gripping tender clever raw unpredictable suspenseful haunting witty poetic touching sharp
            hilarious riveting heartfelt original absorbing subtle daring""",
        faults="cliches|plot holes|empty talk|cheap tricks|boredom|stock characters|padding",
        merits="wit|suspense|heart|emotion|insight|tension|sly jokes",
        refuse="walk out early|switch it off|ask for my ticket money back|skip it|sleep through it|warn other viewers",
        accept="watch it again|see the sequel|recommend it to a friend|stay for the credits|buy the disc|tell my class",
        fillers="""we saw it {time} with {company}|it runs for about two hours|i watched it at home {time}
            |the theater was half full|it is set in a harbor town|{company} picked it {time}|it is in black and white
            |the {aspect} takes up most of the second half|it was released {time}|subtitles are available"""),
    "restaurant": _words(
        things="place restaurant diner cafe bistro bakery bar pizzeria grill eatery meal",
        parts="dish plate bite course sip table",
        aspects="""food|service|staff|menu|soup|steak|pasta|salad|dessert|coffee|waiter|waitress|terrace|music
            |wine list|bread|brunch|burger|fish|dining room|kitchen|breakfast|curry|sauce|manager|seating|parking lot
            |lunch special|owner|house beer""",
        bad="""cold greasy rude slow overpriced soggy salty undercooked burnt dirty noisy raw tasteless watery cramped
            unfriendly inattentive dry crowded rubbery""",
        good="""tasty friendly fresh delicious cozy attentive crisp juicy generous clean tender welcoming flavorful
            savory prompt authentic spicy quick homemade mouthwatering""",
        faults="long waits|grease|dust|bad manners|hidden charges|wrong orders|flies",
        merits="flavor|hospitality|fresh herbs|variety|kind smiles|value|atmosphere",
        refuse="cross the street to avoid it|send the plate back|leave without dessert|warn my friends|call the owner",
        accept="come back|bring my family here|book another table|order the same again|leave a big tip|tell my friends",
        fillers="""we went there {time} with {company}|we sat near the window|it is two blocks from the station
            |i had ordered for {company}|we arrived {time}|they open at eleven|the {aspect} was mentioned on the sign
            |i was in town {time}|we asked for separate bills|{company} had the number four"""),
    "product": _words(
        things="product gadget device phone camera blender backpack lamp keyboard jacket kettle",
        parts="detail button feature part piece seam",
        aspects="""battery|screen|design|build|strap|zipper|cable|sound|manual|packaging|delivery|price|customer service
            |handle|charger|fabric|finish|software|setup|lid|motor|color|fit|material|display|grip|warranty|speaker
            |power switch|carrying case""",
        bad="""flimsy fragile unreliable cheap-looking heavy unpredictable defective noisy slow bulky scratchy leaky
            wobbly overpriced useless confusing brittle cumbersome uncomfortable faulty""",
        good="""sturdy reliable durable light simple handy quiet comfortable fast affordable practical compact precise
            versatile intuitive efficient sleek robust accurate convenient""",
        faults="defects|loose screws|glitches|scratches|delays|weak spots|error messages",
        merits="power|useful features|precision|comfort|value|clever details|stamina",
        refuse="send it back|ask for a refund|throw it away|warn other buyers|cancel the order|return it unopened",
        accept="buy it again|order a second one|give it to my parents|recommend it to colleagues|keep it for years",
        fillers="""i ordered it {time}|it came in a brown box|i bought it for {company}|it weighs about two pounds
            |{company} used it {time}|it comes in three sizes|i replaced my old one {time}|page two lists the {aspect}
            |it arrived {time}|i keep it on the kitchen shelf"""),
}


# --- The grammar: every builder writes lower-case tokens to a number of stars ------------------------------------

def against(stars: int) -> int:
    """A mild opinion on the other side."""
    return 2 if stars > 3 else 4


def saying(rng: Random, operators: Pair, words: Pair, stars: int) -> str:
    """A word under an operator that keeps or turns its sense, so that together they mean what the stars mean."""
    positive = stars > 3
    turn = rng.random() < TURNED[positive]
    return f"{rng.choice(operators[turn])} {rng.choice(words[positive ^ turn])}"


def opinion(rng: Random, words: Words, stars: int) -> str:
    """An adjective, plain or with a degree: intensified for 1 and 5 stars, hedged for 2 and 4."""
    if rng.random() < 0.35:
        return rng.choice(words.adjectives[stars > 3])
    return saying(rng, DEGREES[stars in (1, 5)], words.adjectives, stars)


def clause(rng: Random, words: Words, stars: int) -> str:
    """One thing said about one aspect, or what one would do about the whole."""
    roll, subject = rng.random(), f"the {rng.choice(words.aspects)}"
    if roll < 0.45:
        text = f"{subject} {rng.choice(('is', 'was'))} {opinion(rng, words, stars)}"
    elif roll < 0.60:
        text = f"{subject} {saying(rng, HAVING, words.qualities, stars)}"
    elif roll < 0.75:
        text = f"{subject} {saying(rng, BEING, words.adjectives, stars)}"
    elif roll < 0.88:
        text = f"{saying(rng, FEELING, FEELINGS, stars)} {subject}"
    else:
        text = saying(rng, ACTING, words.actions, stars)
    return f"{text} {rng.choice(TAILS)}" if rng.random() < 0.35 else text


def contrast(rng: Random, words: Words, stars: int) -> str:
    """Two clauses at odds; the connective, not the order, says which of them counts."""
    main, other = clause(rng, words, stars), clause(rng, words, against(stars))
    return rng.choice((f"{other} {rng.choice(BUT)} {main}",
                       f"{rng.choice(ALTHOUGH)} {other} , {main}",
                       f"{main} {rng.choice(EVEN_IF)} {other}"))


def report(rng: Random, words: Words, stars: int) -> str:
    """What somebody else said, and whether the reviewer agrees."""
    agree = rng.random() < 0.5
    said = clause(rng, words, stars if agree else against(stars))
    return f"{rng.choice(PEOPLE)} said that {said} , and {rng.choice(RIGHT[agree])}"


def sentence(rng: Random, words: Words, stars: int) -> str:
    """A clause, two that agree, two at odds, or a report."""
    roll = rng.random()
    if roll < CONTRAST[stars]:
        return contrast(rng, words, stars)
    if roll < CONTRAST[stars] + REPORTED:
        return report(rng, words, stars)
    text = clause(rng, words, stars)
    return f"{text} , and {clause(rng, words, stars)}" if rng.random() < DOUBLED else text


def noun_phrase(rng: Random, words: Words, stars: int) -> str:
    """A fragment about the whole: "a tender , witty film", "not a dull moment in this comedy"."""
    positive, thing = stars > 3, rng.choice(words.things)
    roll, first, second = rng.random(), rng.choice(words.adjectives[positive]), rng.choice(words.adjectives[positive])
    if roll < 0.35:
        return f"{_a(first)} {thing}"
    if roll < 0.60:
        return f"{_a(first)} , {second} {thing} {rng.choice(TAILS)}"
    if roll < 0.80:
        return f"{_a(thing)} that {saying(rng, HAVING, words.qualities, stars)}"
    opposite = rng.choice(words.adjectives[not positive])
    return f"not {_a(opposite)} {rng.choice(words.parts)} in this {thing}"


def phrase(rng: Random, words: Words, stars: int) -> str:
    """Something between a word and a long sentence, punctuated by spaces like a treebank."""
    roll = rng.random()
    if roll < 0.02:
        return rng.choice(words.adjectives[stars > 3])
    if roll < 0.10:
        return f"{rng.choice(words.adjectives[stars > 3])} {rng.choice(words.aspects)}"
    if roll < 0.28:
        return noun_phrase(rng, words, stars)
    said = _contracted(rng, sentence(rng, words, stars))
    return f"{said} ." if rng.random() < 0.5 else said


def filler(rng: Random, words: Words) -> str:
    """A sentence without an opinion."""
    return rng.choice(words.fillers).format(time=rng.choice(TIMES), company=rng.choice(COMPANY),
                                            aspect=rng.choice(words.aspects))


def review(rng: Random, words: Words, stars: int) -> str:
    """Several sentences in prose: the verdict decides where there is one, else the majority does."""
    length = SHORTEST + int((LONGEST - SHORTEST) * rng.random() ** 2)
    decided = rng.random() < VERDICTS
    opposed = rng.random() * (0.6 if decided else 0.4)  # the largest share of sentences for the other side
    body, total, others, spoken = [], 0, 0, 0
    while total < length:
        if spoken and rng.random() < 0.3:
            text = filler(rng, words)
        else:
            spoken += 1
            aside = others + 1 < opposed * spoken
            others += aside
            text = sentence(rng, words, against(stars) if aside else stars)
        body.append(text)
        total += len(text.split())
    rng.shuffle(body)
    if decided:
        body.insert(rng.choice((0, len(body))), f"{rng.choice(VERDICT)} {clause(rng, words, stars)}")
    return prose(rng, [_contracted(rng, text) for text in body])


# --- Spelling ----------------------------------------------------------------------------------------------------

def prose(rng: Random, sentences: list[str]) -> str:
    """Tokens as people type them online: capitals, closed punctuation, now and then a tag, a URL or a "!!!"."""
    text = ""
    for tokens in sentences:
        closed = re.sub(r" (?=[,;:]|n't)", "", re.sub(r"\bi\b", "I", tokens))
        stop = "." if rng.random() < 0.85 else rng.choice(("!", "!!", "!!!", "..."))
        gap = " " if rng.random() < 0.95 else "<br /><br />"
        text += (gap if text else "") + closed[0].upper() + closed[1:] + stop
    return text if rng.random() < 0.95 else f"{text} More at https://www.example.org/reviews/{rng.randrange(10_000)}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' and noun[:3] != 'use' else 'a'} {noun}"


def _contracted(rng: Random, text: str) -> str:
    """Sometimes "is n't" for "is not"."""
    return re.sub(r"\b(is|was|did|would) not\b", r"\1 n't", text) if rng.random() < 0.4 else text


# --- The corpus --------------------------------------------------------------------------------------------------

STYLES = {"mixed": (phrase, review), "phrase": (phrase,), "review": (review,)}


def reviews(domain: str, n: int, seed: int = 0, style: str = "mixed") -> pd.DataFrame:
    """The first `n` rows of the endless table that `domain`, `style` and `seed` stand for: text, label, stars."""
    if domain not in DOMAINS:
        raise unknown("domain", domain, DOMAINS)
    if style not in STYLES:
        raise unknown("style", style, STYLES)
    if n < 0:
        raise RtxError(f"Cannot write {n} reviews: ask for 0 or more.")
    rows = list(islice(_generate(domain, seed, style), n))
    stars = pd.Series([given for _, _, given in rows], dtype="int64")
    return pd.DataFrame({"text": pd.Series([text for text, _, _ in rows], dtype="str"),
                         "label": (stars > 3).astype("int64"), "stars": stars})


def _generate(domain: str, seed: int, style: str) -> Iterator[tuple[str, int, int]]:
    """Endless rows of (text, the stars it was written to, the stars it is given), four at a time and balanced.

    Of `random`, only methods whose stream is the same in Python 3.11 to 3.13 are used, here and above: `random`,
    `choice`, `randrange`, `shuffle`, and seeding by a string.
    """
    rng, words = Random(f"{domain} {style} {seed}"), WORDS[domain]
    while True:
        block = [1, 2, 4, 5]
        rng.shuffle(block)
        for stars in block:
            text = rng.choice(STYLES[style])(rng, words, stars)
            yield text, stars, 6 - stars if rng.random() < LABEL_NOISE else stars
