"""The rules that decide claims: each gives the test of one, or is it."""

from collections.abc import Iterable

from rtx_core.records import Record
from rtx_core.report.values import Gap, Value
from study.analysis import comparisons as compare
from study.analysis.benchmarks import story_cost
from study.analysis.classifiers import PAIR, gap
from study.analysis.outcomes import Outcome, bound, count, direction, printed
from study.analysis.stories import InitialLosses
from study.claims.sources import Sources, Test


def gaps(s: Sources, *names: str, measures: Iterable[str] = ("accuracy",)) -> list[Gap]:
    """Baseline − Recurrent on each of these tasks, in each measure."""
    return [s.task(name).minus(*PAIR, measure) for measure in measures for name in names]


def leads(model: str, *names: str, measures: Iterable[str] = ("accuracy",)) -> Test:
    """Which of the two is ahead on each of these tasks."""
    expect = {"baseline": "above", "recurrent": "below"}[model]
    return lambda s: direction(*gaps(s, *names, measures=measures), expect=expect)


def alike(*names: str) -> Test:
    """Within a point."""
    return lambda s: bound(*gaps(s, *names), within=1)


def prints(name: str, model: str, share: float, n: int, same_texts: bool = False) -> Test:
    """The accuracy in print, on a test of n texts."""
    return lambda s: printed(getattr(s.task(name), model), share, n=n, same_texts=same_texts)


def over_all_data(s: Sources) -> Outcome:
    """Of each model its accuracy after half of the data minus that after all."""
    half, full = s.task("sst2-50pct"), s.task("sst2")
    pairs = [(getattr(half, model), getattr(full, model)) for model in PAIR]
    return direction(*(gap(*pair, same_training=False) for pair in pairs))


def shrinking(s: Sources) -> Outcome:
    after_one, in_full = ("sst2-10pct-epochs1", "sst2-50pct-epochs1"), ("sst2-10pct", "sst2")
    return bound(*(compare.shrinks(*map(s.task, names)) for names in (after_one, in_full)), at_least=0)


def balanced(average: str) -> Test:
    """Precision beside recall on parts of the data."""
    return lambda s: bound(*compare.balances(average, *map(s.task, ("sst2-10pct", "sst2-50pct"))), within=1)


def harder(name: str, reference: str, *models: str) -> Test:
    return lambda s: direction(*(compare.harder(s.task(name), s.task(reference), model) for model in models))


def have_length(part: str, unit: str, least: int, most: int) -> Test:
    """Most texts of a part of SST-2."""
    return lambda s: count(compare.lengths(s.parts(f"sst2-seeded{part}-128"), unit, least, most), at_least=50)


def twenty_to_fifty(s: Sources) -> Outcome:
    long, longest = (s.parts(f"sst2-seeded{part}-128") for part in ("-long", ""))
    shares = compare.lengths(long, "words", 20, 50), compare.lengths(longest, "words", 20, 50, longest=0.1)
    return count(*shares, at_least=50)


def label_shares(s: Sources) -> Outcome:
    """As printed in all of SST-2, as in all of it in its subsets, and a third each."""
    table, pooled = s.printed["labels"]["sst2"], s.parts("sst2-seeded-128")["train"]
    full = {"train": [100 * label / pooled["n"] for label in pooled["labels"]]}
    thirds = dict.fromkeys(("train", "validation", "test"), 100 / 3)
    stated = {part: table[part]["percent"] for part in thirds}
    return count(
        compare.label_error((s.parts("sst2-published-128"), stated)),
        compare.label_error(*((s.parts(f"sst2-seeded-{size}pct-128"), full) for size in (10, 50))),
        compare.label_error((s.parts("multi-domain-seeded-128"), thirds)),
        at_most=0.05,
    )


def yelp_balance(s: Sources) -> Outcome:
    halves = dict.fromkeys(("train", "validation", "test"), 50)
    return count(compare.label_error((s.parts("yelp-seeded-128"), halves)), at_most=2)


def long_and_short(s: Sources) -> list[Record]:
    """Bags of words of the long and of the short training texts."""
    return [s.measurement("yardstick", f"sst2-{part}") for part in ("long", "short")]


def diversity_for_length(s: Sources) -> Outcome:
    long, short = long_and_short(s)
    long_parts, short_parts = (s.parts(f"sst2-seeded-{part}-128") for part in ("long", "short"))
    return count(compare.diversity_for_length(long, short, long_parts, short_parts), at_least=1)


def sizes(totals: tuple[float, float], fewer: int) -> Test:
    return lambda s: count(compare.size_error(s.task("sst2"), totals, fewer), at_most=1)


def faster(*names: str) -> Test:
    return lambda s: bound(*(compare.time_ratio(s.task(name)) for name in names), at_most=1)


def more_passes(s: Sources) -> Outcome:
    """Three layers run twice over once, and three times over twice."""
    once, twice, three = (s.task(f"sst2-10pct{passes}").recurrent for passes in ("-numpasses1", "", "-numpasses3"))
    return direction(gap(twice, once), gap(three, twice))


def losses(s: Sources, folder: str, *pairs: tuple[str, str]) -> list[Value]:
    return [compare.loss_gap(s.decoders(folder), *pair) for pair in pairs]


def lower(folder: str, *pairs: tuple[str, str]) -> Test:
    """The first model of each pair has the lower loss."""
    return lambda s: direction(*losses(s, folder, *pairs), expect="below")


def story_times(s: Sources) -> Outcome:
    costs = [story_cost(s.times["decoder"], model) for model in ("frailt", "three-part")]
    return count(*costs, at_least=3.5, at_most=4)


def characters_parameters(s: Sources) -> Outcome:
    totals = compare.parameters(s.decoders("shakespeare-nanogpt-reduced"), "gpt-1", "gpt-6", "kausik")
    return count(compare.millions_error(totals, (1.89, 10.74, 1.89)), at_most=0.01)


def stories_parameters(s: Sources) -> Outcome:
    """How many parameters are off, of four models."""
    components = s.printed["tinystories"]["components"]
    totals = compare.parameters(s.decoders("tinystories-report-reduced"), *components)
    return count(sum(abs(ours - row["total"]) for ours, row in zip(totals, components.values())), equals=0)


def initial_order(s: Sources) -> Outcome:
    losses = InitialLosses(s.measurement("initial", "tinystories"), s.printed["tinystories"])
    return count(losses.same_order, equals=10)
