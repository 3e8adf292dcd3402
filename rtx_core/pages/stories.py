"""Tables and sentences of the TinyStories study: published values beside ours, and what is missing said to be missing."""

import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd

from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.language import settings as language_settings
from rtx_core.pages import display
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.performance import benchmark, machine, missing
from rtx_core.pages.published import published
from rtx_core.pages.runs import BOOK, Runs, made_again, measured
from rtx_core.pages.table import device_of
from rtx_core.pages.text import commit_of
from rtx_core.paths import REPOSITORY
from rtx_core.results import language as store
from rtx_core.results.record import Record, read_json

NAMES = {
    "control": "Control", "frailt": "FraiLT", "three-part": "Three Part", "relaxed": "Relaxed",
    "control-long": "Control, more tokens", "control-16": "Control, 16 layers", "control-8": "Control, 8 layers",
}  # fmt: skip
STUDY = ("control", "relaxed", "frailt", "three-part")  # the study's models in the order of its Tables 3 to 5
EXTRA = ("control-long", "control-16", "control-8")  # ours


def runs(settings: LanguageSettings) -> Runs:
    """The records of these settings.  What is missing is trained now, but while the book is built, on the embedded corpus alone."""
    source, records = resolve(settings.source), []
    if os.environ.get(BOOK) and source != "embedded":
        return in_results(settings, source)
    for model in settings.models:
        for seed in settings.seeds:
            record = found(settings, source, model, seed)
            if record is None or made_again(record):
                from rtx_core.run_language import run  # needs torch, which drawing a page does not

                record = run(settings, model, seed)
            records.append(record)
    return Runs(settings, records, None)


def found(settings: LanguageSettings, source: str, model: str, seed: int) -> Record | None:
    """The record of these settings, which must be theirs today."""
    record = store.find(source, settings.variant, model, seed)
    if record is not None and record["config"]["training"] != settings.training_config(model, seed):
        raise RtxError(
            f"{settings.variant}/{record.path.name} was made under other settings than the ones of that name today; "
            f"move it away to run the experiment again."
        )
    return record


def in_results(settings: LanguageSettings, source: str) -> Runs:
    """What `results/` holds of these settings, every seed of it, or of another budget that has more of the study's models; of
    equals the larger."""
    made = []
    for one in _budgets(settings):
        paths = {model: store.path_of(source, one.variant, model, 0).parent.glob(f"{model}-seed*.json") for model in one.models}
        seeds = {model: sorted(int(path.stem.rpartition("-seed")[2]) for path in some) for model, some in paths.items()}
        made.append(Runs(one, [found(one, source, model, seed) for model in one.models for seed in seeds[model]], None))
    made = [one for one in made if one.records]
    best = max(made, key=lambda one: (len(set(one.models) - set(EXTRA)), len(one.models), one.settings.effort), default=Runs(settings, [], None))
    return replace(best, others=tuple(one for one in made if one is not best))


def _budgets(settings: LanguageSettings) -> list[LanguageSettings]:
    """The settings under each budget; alone if they change something else."""
    plain = {"models": settings.models, "seeds": settings.seeds, "source": settings.source, "recipe": settings.recipe}
    every = [language_settings(settings.experiment, plain | {"budget": budget}) for budget in LANGUAGE[settings.experiment].budgets]
    return every if settings.training in [one.training for one in every] else [settings]


def decoders() -> dict[str, dict]:
    """What `python -m rtx_core.architectures` recorded of the story models."""
    return read_json(REPOSITORY / "results" / "decoders.json", needs=STUDY)


def bits_per_byte(record: Record) -> float:
    """loss · tokens / (ln 2 · bytes): comparable between vocabularies, as loss per token is not."""
    return record["test"]["loss"] * record["test"]["n"] / (math.log(2) * record["data"]["validation_bytes"])


def training_flops(record: Record) -> float:
    """3 · forward FLOPs a token · tokens: the backward pass costs two forward ones."""
    extra = record["extra"]
    return 3.0 * extra["flops_per_token"][extra["trained_passes"] - 1] * record["history"][-1]["tokens"]


def spread(values: list[float], form: str = ".4f") -> str:
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values, ddof=1):{form}}" if len(values) > 1 else "")


# -- what the models are ----------------------------------------------------------------------------------------------


def hyperparameters(settings: LanguageSettings, *, label: str) -> Displayed:
    """Table 1."""
    quoted, c = published()["tinystories"]["hyperparameters"], decoders()["frailt"]["config"]
    rows = [
        ("Layers", quoted["layers"], c["num_layers"]), ("Hidden dimension", quoted["hidden"], c["hidden_size"]),
        ("Intermediate dimension", quoted["intermediate"], c["intermediate_size"]), ("Vocabulary", quoted["vocabulary"], c["vocab_size"]),
        ("Attention heads", quoted["heads"], c["num_heads"]), ("Key and value heads", quoted["heads"], c["num_heads"]),
        ("Recurrent depth", quoted["depth"], c["num_passes"]), ("Sequence length", quoted["sequence"], settings.training.block_size),
        ("Sequences a batch", quoted["batch"], settings.training.batch_size),
        ("Tokens a batch", quoted["tokens_a_batch"], settings.training.batch_size * settings.training.block_size),
        ("Batches", quoted["batches"], settings.training.steps), ("Tokens", quoted["tokens"], settings.training.tokens),
    ]  # fmt: skip
    rows.append(("Matrix products", None, {"bf16": "16 bits (bfloat16)", "fp32": "32 bits"}[settings.training.precision]))
    for name, value in (("Learning rate", settings.training.learning_rate), ("Warm-up steps", settings.training.warmup_steps), ("Weight decay", settings.training.weight_decay)):
        rows.append((name, None, f"{value:g}"))
    frame = pd.DataFrame([(name, display.show(a), display.show(b)) for name, a, b in rows], columns=["Hyper-parameter", "Published", "Ours"])
    caption = "Hyper-parameters, published (its Table 1 and text) and ours; what the study leaves open is the default of llama2.c."
    return display.table(frame, label=label, caption=caption)


def components(*, label: str) -> Displayed:
    """Tables 1 and 2: how the models differ, and their parameters, counted from the models, with the study's rows in brackets."""
    quoted, rows = published()["tinystories"]["components"], {}
    names = ["embedding", "attention", "feed-forward", "norms", "iteration encoding", "adapter", "low-rank corrections"]
    for name, model in decoders().items():
        printed = quoted.get(name, {})
        shape = {"Passes": model["config"]["num_passes"], "Layers in a pass": model["layers_a_pass"], "Rank of corrections": model["config"].get("lora_rank", 0)}
        cells = {part: display.show(n) + (f" ({printed[part]:,})" if part in printed else "") for part, n in shape.items()} | {"Layers applied": model["layers_applied"]}
        for part in [*names, "total"]:
            own = model["components"].get(part, 0) if part != "total" else model["total"]
            cells[part.capitalize()] = display.show(own) + (f" ({printed[part]:,})" if part in printed else "")
        flops = model["flops_per_token"]
        cells["MFLOPs a token, forward"] = f"{flops / 1e6:.1f}"
        cells["of Control's"] = f"{flops / decoders()['control']['flops_per_token']:.2f}"
        rows[NAMES[name]] = cells
    frame = pd.DataFrame(rows).map(display.show).reset_index(names="")
    return display.table(frame, label=label, caption="The models, and their parameters by component; published counts in brackets.")


# -- speed ------------------------------------------------------------------------------------------------------------

SPEED_TARGETS = {"cpu": 1.6, "cuda": 3.0}  # times faster than the plain way, asked for before anything was measured


def throughput(*, label: str, device: str = "cpu") -> Displayed:
    """Tokens a second of a whole training step, plain and ours on the same task in the same precision, and whether the aim is reached."""
    if (content := benchmark("decoder", device)) is None:
        return missing("decoder", device)
    rows, reached = [], {}
    for model, tasks in content["models"].items():
        for task, ways in tasks.items():
            plain, ours = (ways[who]["median_ms"] for who in ("plain", "ours"))
            rounds = np.divide(ways["plain"]["ms"], ways["ours"]["ms"])
            speed = {f"{who}, tokens a second": f"{1e3 * content['tokens_a_step'] / ways[who]['median_ms']:,.0f}" for who in ("plain", "ours")}
            rows.append({"Model": NAMES[model], "Task": task, **{k.capitalize(): v for k, v in speed.items()},
                         "Times the plain way": f"{plain / ours:.2f} ({rounds.min():.2f} to {rounds.max():.2f})"})  # fmt: skip
            reached.setdefault(task, []).append(rounds.min() >= SPEED_TARGETS[device])
    floors = []
    for model, ms in content["products_ms"].items():
        tasks = content["models"][model]
        task = next(task for task in tasks if task.startswith("blocks, 32"))
        floors.append(f"{NAMES[model]} {ms / tasks[task]['ours']['median_ms']:.0%} of ours on {task}, so at most {tasks[task]['plain']['median_ms'] / ms:.2f} times the plain way is possible there")
    floor = f" The matrix products alone take, at the best rate measured for their shapes: {'; '.join(floors)}." if floors else ""
    aim = "; ".join(f"{task}, {sum(found)} of {len(found)} models" for task, found in reached.items())
    note = (
        f"Tokens that the loss counts: padding is none. Stories: attention stays inside a story, and the plain way pads. Blocks: attention goes on across "
        f"stories, as llama2.c trains, so nothing pads. In brackets the lowest and highest of the rounds. The aim of {SPEED_TARGETS[device]:g} times the plain way is reached in every round on: {aim}.{floor} {machine(content)}."
    )
    rounds = next(iter(next(iter(content["models"].values())).values()))["ours"]["rounds"]
    caption = f"A training step on {content['tokens_a_step']:,} tokens: medians of {rounds} rounds, the contestants taking turns in one process."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=note)


# -- losses -----------------------------------------------------------------------------------------------------------

MIRROR = (  # its data README
    "The mirror holds 0.5 % of the 2.1 million training stories: the heads of the data set's first and second version, and stories from all over it. "
    "Of its validation stories, 6,457 are of the second version, which GPT-4 wrote, and 220 of the first, so the two parts differ in more than having been read."
)


@measured
def data(runs: Runs) -> Displayed:
    """What was read, and what of it."""
    found = runs.records[0]["data"]
    said = (
        f"{found['train_stories']:,} training stories of {found['n_train']:,} tokens and {found['validation_stories']:,} validation stories of "
        f"{found['n_validation']:,}, in {found['vocabulary']:,} pieces of a vocabulary that is trained on the training stories. There is no third part: the validation stories select "
        "the weights and are what is reported, as in the study."
    )
    return display.text(" ".join([said, *([MIRROR] if found["source"] == "mirror" else []), *(note for note in runs.notes if "Synthetic" in note)]))


@measured
def losses(runs: Runs, *, label: str) -> Displayed:
    """Table 3: validation loss, with bits per byte, the gap to training stories, cost and the published value."""
    quoted, rows = published()["tinystories"]["validation_loss"], []
    texts = runs.records[0]["data"]
    for model in runs.models:
        records = runs.of(model)
        last = [r["history"][-1] for r in records]
        gap = np.mean([row["validation_loss"] - row["training_sample_loss"] for row in last])
        error = np.mean([math.hypot(row["validation_error"], row["training_sample_error"]) for row in last])
        rows.append({
            "Model": NAMES[model], "Seeds": len(records), "Tokens": last[0]["tokens"], "Epochs": f"{last[0]['tokens'] / texts['n_train']:.2f}",
            "TFLOPs": f"{training_flops(records[0]) / 1e12:.1f}",
            "Loss": spread([r["test"]["loss"] for r in records]), "Bits/byte": spread([bits_per_byte(r) for r in records]),
            "Gap": f"{gap:+.3f} ± {error:.3f}", "Published": f"{quoted[model]:.3f}" if model in quoted else None,
        })  # fmt: skip
    sample = runs.records[0]["extra"]["passes_tokens"]
    compared = "they cannot be compared with ours, and at this budget the order of the models cannot either" if runs.settings.reduced else (
        "they cannot be compared with ours, the order of the models can")  # fmt: skip
    note = (
        f"Loss in nats a token on all {texts['validation_stories']:,} validation stories ({texts['n_test']:,} tokens, {texts['validation_bytes']:,} bytes), with the "
        "weights that did best on a sample of them during training; ± is the standard deviation over seeds. Gap: validation minus training loss, on fixed samples of "
        f"{sample:,} tokens of both parts at the end of training, mean of the seeds, ± the standard error that the samples leave; every seed reads the same "
        f"ones.{_new(runs)} {_cut(runs)} TFLOPs: of the products with weights, attention's scores left out. {relaxed_flops()} The published losses belong to another vocabulary, another sample of the stories and 204.8 million tokens: {compared}."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Validation loss.", note=" ".join([note, *runs.footnote, *runs.notes]))


def _new(runs: Runs) -> str:
    """What the sample of the training part is where a run reads less than the part."""
    read = runs.settings.training.tokens / runs.records[0]["data"]["n_train"]
    return f" A run of {runs.settings.training.tokens:,} tokens reads {read:.2f} of the training part, so most of its sample is new to the model too." if read < 0.5 else ""


def _cut(runs: Runs) -> str:
    """What the borders of evaluation batches do."""
    batches = len(runs.records[0]["test"]["batch_sizes"])
    return (
        f"Validation is read in {batches:,} batches of as many tokens as a training step, and a story that the end of one cuts goes on without what came before: "
        f"a little above the loss of whole stories, for all models alike, and less so in larger batches."
    )


def relaxed_flops() -> str:
    """Which count of Relaxed's computation is taken."""
    counted, looped = (decoders()[name]["flops_per_token"] for name in ("relaxed", "frailt"))
    return (
        f"Relaxed is charged for sending every token through its corrections, as the study does it, {counted / looped - 1:.0%} more than FraiLT; "
        "here they are added to the matrices once a batch."
    )


# -- provenance -------------------------------------------------------------------------------------------------------


def provenance(runs: Runs) -> Displayed:
    experiment = runs.settings.experiment
    said = "The first line trains what is missing, and goes on after a kill; the second measures the initial losses, the third needs a judge's key."
    commands = [f"python -m rtx_core.run_language {experiment} --run", f"python -m rtx_core.evaluation.initial {experiment}", f"python -m rtx_core.evaluation.judge {experiment}"]
    return recorded([runs], runs.notes, said, commands)


def recorded(every: list[Runs], notes: list[str], said: str, commands: list[str]) -> Displayed:
    """Which records a page shows, what made them, and the lines that make the missing ones."""
    missing = [f"{one.settings.variant} " * (len(every) > 1) + f"{model} seed {seed}" for one in every for model in one.settings.models for seed in one.settings.seeds
               if not any(r["seed"] == seed for r in one.of(model))]  # fmt: skip
    lines = ["````{admonition} Provenance", ":class: note", ""]
    lines += [f"**Note.** {escape(note)}\n" for note in notes]
    if records := [record for one in every for record in one]:
        lines += ["| Record | Protocol | Commit | Machine | Training | Peak memory |", "|---|---|---|---|--:|--:|"]
    for r in records:
        cells = ["/".join(r.path.parts[-3:]), r["protocol"], commit_of(r["code"]), device_of(r), f"{r['seconds'] / 60:.1f} min", f"{r['peak_memory_mib']:,.0f} MiB"]
        lines.append("| " + " | ".join(map(escape, cells)) + " |")
    lines += ["", f"Not measured yet: {escape(', '.join(missing))}." if missing else "All runs of this page are recorded.", ""]
    return display.text("\n".join([*lines, said, "", "```bash", *commands, "```", "````"]))
