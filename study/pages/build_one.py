"""If you build one: what decoders with room for 30 million weights store and compute, and what our loops showed."""

from rtx_core.models.configs import LoopedConfig
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import unpaired
from study import paper
from study.analysis import cache
from study.analysis.formulas import size_of
from study.analysis.hops import unpaired_odds
from study.analysis.roster import applications, multiply_adds
from study.folders import OWN, Folders
from study.second_pass import questions

WIDTH, NARROW, VOCABULARY, FEWER = 512, 416, 32_000, 8_000
SHAPES = {  # layers, passes, width, vocabulary
    "few": (4, 1, WIDTH, VOCABULARY),
    "loop": (4, 2, WIDTH, VOCABULARY),
    "narrow": (8, 1, NARROW, VOCABULARY),
    "deep": (8, 1, WIDTH, VOCABULARY),
    "cut": (8, 1, WIDTH, FEWER),
}


def decoder(layers: int, passes: int, width: int, vocabulary: int) -> LoopedConfig:
    """With heads of size 32 and a feed-forward network of 8/3 of the width, rounded up to a multiple of 8."""
    return LoopedConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_layers=layers,
        num_passes=passes,
        num_heads=width // 32,
        intermediate_size=8 * -(-width // 3),
    )


def work(c: LoopedConfig) -> int:
    """Multiply-adds per token, those of the output layer included."""
    injection = 2 * c.hidden_size**2 * c.num_passes * (c.injection == "linear")
    return multiply_adds(c) * applications(c) + injection + c.vocab_size * c.hidden_size


def quoted() -> list[Record]:
    """The runs on pointers, facts and text that are trained in the greatest widths."""
    return [run for name in ("khop", "facts", "iso-depth-wide") for run in paper.records(experiment=name)]


def as_choose() -> list[Record]:
    """The runs on pointers that `rtx choose` would make: a loop and three stacks, three rates, three seeds, and the
    narrow stack for the loop's computation."""
    runs = Folders(paper.records)
    tried = runs.all_rates("khop", OWN, 0.001, 0.004).records
    tried = [run for run in tried if run["model"] in ("2x1", "2x2", "4x1", "4x1-w44")]
    tried += runs.tuned("khop-steps6400", OWN, 0.004).runs("4x1-w44")
    return [run for run in tried if run["seed"] in (0, 1, 2)]


def better_loops() -> list[bool]:
    """Of each comparison at equal training computation, whether a loop is significantly better than its stack."""
    runs = Folders(paper.records)
    tasks = questions(runs)
    pairs = [(runs.again("1x2"), runs.split("hops", True)), (runs.wider_runs("1x2"), runs.split("hops_wide", True))]
    odds = [unpaired_odds(*pair).odds[2] < 1 for pair in (*pairs, runs.at_equal_work())]
    scores = {key: (list(tasks[key].scores["1x2"].values()), tasks[key].scores_of("split")) for key in ("text", "bits")}
    (_, _, text, *_), (_, bits, *_) = (unpaired(*pair) for pair in scores.values())
    return [*odds, text < 0, bits > 0]


def quantities() -> Quantities:
    """Of the decoders themselves, of the trial on pointers, and of loops beside their narrow stacks."""
    shapes = {name: decoder(*shape) for name, shape in SHAPES.items()}
    shapes["injected"] = shapes["loop"].replace(injection="linear")
    numbers = {
        "largest": lambda: number(max(run["parameters"]["total"] for run in quoted()) / 1e6, ".1f"),
        "vocabulary": lambda: f"{VOCABULARY:,}",
        "fewer_tokens": lambda: f"{FEWER:,}",
        "narrow_width": lambda: str(NARROW),
        "comparisons": lambda: words(len(better_loops())),
        "choose_runs": lambda: str(len(as_choose())),
        "choose_hours": lambda: number(sum(run["seconds"] for run in as_choose()) / 3600, ".1f"),
        "megabytes": lambda: number(2 * size_of(shapes["few"])["total"] / 8e6, ".0f"),
    }
    for name, c in shapes.items():
        numbers |= {
            f"total_{name}": lambda c=c: number(size_of(c)["total"] / 1e6, ".0f"),
            f"layers_{name}": lambda c=c: number(size_of(c)["layers"] / 1e6, ".1f"),
            f"work_{name}": lambda c=c: number(work(c) / 1e6, ".0f"),
            f"cache_{name}": lambda c=c: number(cache.size(c.num_layers, c.num_passes, c.hidden_size, 2) / 1024, ".0f"),
        }
    loop, narrow = shapes["loop"], shapes["narrow"]
    numbers |= {
        "more_in_layers": lambda: number(100 * (size_of(narrow)["layers"] / size_of(loop)["layers"] - 1), ".0f"),
        "more_steps": lambda: number(work(loop) / work(narrow), ".1f"),
    }
    return Quantities(numbers, {"comparisons": lambda: [not any(better_loops())]})
