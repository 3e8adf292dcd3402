"""Tables and sentences of the TinyStories study: published values beside ours, and what is missing said to be missing."""

import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd

from rtx_core.corpora.sources import resolve
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.language import settings as language_settings
from rtx_core.pages import display
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.performance import benchmark, machine, missing
from rtx_core.pages.published import published
from rtx_core.pages.runs import BOOK, Runs, made_again, measured
from rtx_core.pages.table import device_of
from rtx_core.paths import REPOSITORY
from rtx_core.results import language as store
from rtx_core.results import measurement
from rtx_core.results.record import Record, read_json
from rtx_core.results.statistics import mean_interval

NAMES = {
    "control": "Control", "frailt": "FraiLT", "three-part": "Three Part", "relaxed": "Relaxed",
    "control-long": "Control, more tokens", "control-16": "Control, 16 layers", "control-8": "Control, 8 layers",
}  # fmt: skip
STUDY = ("control", "relaxed", "frailt", "three-part")  # the study's models in the order of its Tables 3 to 5
CRITERIA = ("grammar", "creativity", "consistency", "plot")


def runs(settings: LanguageSettings) -> Runs:
    """The records of these settings.  What is missing is trained now, but while the book is built, on the embedded corpus alone."""
    source, records = resolve(settings.source), []
    if os.environ.get(BOOK) and source != "embedded":
        return in_results(settings, source)
    for model in settings.models:
        for seed in settings.seeds:
            record = store.find(source, settings.variant, model, seed)
            if record is None or made_again(record):
                from rtx_core.run_language import run  # needs torch, which drawing a page does not

                record = run(settings, model, seed)
            records.append(record)
    return Runs(settings, records, None)


def in_results(settings: LanguageSettings, source: str) -> Runs:
    """What `results/` holds of these settings, every seed of it, or of another budget that has more of the models; of equals the larger."""
    shown, smaller = Runs(settings, [], None), []
    for one in sorted(_budgets(settings), key=lambda s: s.training.tokens, reverse=True):
        paths = {model: store.path_of(source, one.variant, model, 0).parent.glob(f"{model}-seed*.json") for model in one.models}
        seeds = {model: sorted(int(path.stem.rpartition("-seed")[2]) for path in some) for model, some in paths.items()}
        found = Runs(one, [store.find(source, one.variant, model, seed) for model in one.models for seed in seeds[model]], None)
        if len(found.models) > len(shown.models):
            shown, smaller = found, []
        elif found.records:
            smaller.append(found)
    return replace(shown, smaller=tuple(smaller))


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
    quoted, c, full = published()["tinystories"]["hyperparameters"], decoders()["frailt"]["config"], LANGUAGE[settings.experiment].recipes[settings.recipe]
    rows = [
        ("Layers", quoted["layers"], c["num_layers"]), ("Hidden dimension", quoted["hidden"], c["hidden_size"]),
        ("Intermediate dimension", quoted["intermediate"], c["intermediate_size"]), ("Vocabulary", quoted["vocabulary"], c["vocab_size"]),
        ("Attention heads", quoted["heads"], c["num_heads"]), ("Key and value heads", quoted["heads"], c["num_heads"]),
        ("Recurrent depth", quoted["depth"], c["num_passes"]), ("Sequence length", quoted["sequence"], settings.training.block_size),
        ("Sequences a batch", quoted["batch"], settings.training.batch_size),
        ("Tokens a batch", quoted["tokens_a_batch"], settings.training.batch_size * settings.training.block_size),
        ("Batches", quoted["batches"], settings.training.steps), ("Tokens", quoted["tokens"], settings.training.tokens),
    ]  # fmt: skip
    for name, value in (("Learning rate", full.learning_rate), ("Warm-up steps", settings.training.warmup_steps), ("Weight decay", full.weight_decay)):
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
        cells = {"Passes": model["config"]["num_passes"], "Layers in a pass": model["layers_a_pass"], "Layers applied": model["layers_applied"]}
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
    """Tokens a second of a whole training step by every way, and whether the aim is reached."""
    if (content := benchmark("decoder", device)) is None:
        return missing("decoder", device)
    rows, best = [], {}
    for model, ways in content["models"].items():
        plain = next(iter(ways.values()))["median_ms"]
        for way, t in ways.items():
            rows.append({"Model": NAMES[model], "Way": way, "Tokens a second": f"{t['tokens_per_second']:,.0f}",
                         "ms a step": f"{t['median_ms']:,.0f} ({t['p10_ms']:,.0f} to {t['p90_ms']:,.0f})",
                         "Times the plain way": f"{plain / t['median_ms']:.2f}"})  # fmt: skip
        best[NAMES[model]] = plain / min(t["median_ms"] for way, t in ways.items() if way.startswith("packed"))
    target = SPEED_TARGETS[device]
    aim = ", ".join(f"{name} {ratio:.2f} times, {'reached' if ratio >= target else 'not reached'}" for name, ratio in best.items())
    note = (
        f"Tokens that the loss counts, on one thread: padding is none. The aim was {target:g} times the plain way: {aim}. Full blocks have nothing to pad, "
        f"as attention goes on across stories, so they are another task. {machine(content)}."
    )
    caption = f"A training step on {content['tokens_a_step']:,} tokens: median with 10th and 90th percentile, the contestants taking turns in one process."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=note)


# -- losses -----------------------------------------------------------------------------------------------------------


@measured
def losses(runs: Runs, *, label: str) -> Displayed:
    """Table 3: validation loss, with bits per byte, the gap to training stories, cost and the published value."""
    quoted, rows = published()["tinystories"]["validation_loss"], []
    for model in runs.models:
        records = runs.of(model)
        last = [r["history"][-1] for r in records]
        rows.append({
            "Model": NAMES[model], "Seeds": len(records), "Parameters": records[0]["parameters"]["total"],
            "Tokens": last[0]["tokens"], "Training PFLOPs": f"{training_flops(records[0]) / 1e15:.2f}",
            "Validation loss": spread([r["test"]["loss"] for r in records]), "Bits per byte": spread([bits_per_byte(r) for r in records]),
            "Validation − training": spread([row["validation_loss"] - row["training_sample_loss"] for row in last]),
            "Published loss": f"{quoted[model]:.3f}" if model in quoted else None,
        })  # fmt: skip
    data = runs.records[0]["data"]
    note = (
        f"Loss in nats a token on all {data['validation_stories']:,} validation stories ({data['n_test']:,} tokens, {data['validation_bytes']:,} bytes); "
        f"± is the standard deviation over seeds. The training part has {data['n_train']:,} tokens, so the runs of {last[0]['tokens']:,} tokens or fewer "
        f"see it up to {max(r['history'][-1]['tokens'] for r in runs) / data['n_train']:.2f} times. The published losses belong to another vocabulary, "
        "another sample of the stories and 204.8 million tokens: they cannot be compared with ours, the order of the models can."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Validation loss.", note=" ".join([note, *runs.footnote, *runs.notes]))


@measured
def differences(runs: Runs) -> Displayed:
    """Control minus each other model, paired over the same batches of validation stories."""
    if "control" not in runs.models:
        return display.text("The control is not measured yet, so nothing can be compared with it.")
    base, sentences = runs.of("control")[0], []
    for model in runs.models[1:]:
        other = next((r for r in runs.of(model) if r["seed"] == base["seed"]), None)
        if other is None or other["test"]["batch_sizes"] != base["test"]["batch_sizes"]:
            continue
        gain = np.array(base["test"]["batch_losses"]) - np.array(other["test"]["batch_losses"])
        whole = np.array(base["test"]["batch_sizes"]) == base["test"]["batch_sizes"][0]  # the last batch may be smaller
        mean, low, high = mean_interval(gain[whole].tolist())
        sentences.append(f"{NAMES[model]} {mean:+.4f} (95 % interval {low:+.4f} to {high:+.4f})")
    return display.text(
        f"Control's loss minus that of each model, paired over {int(whole.sum()):,} batches of validation stories, seed {base['seed']}: "
        + "; ".join(sentences) + ". The intervals are of the stories; how much another seed would change is not in them."
        if sentences else "Only the control is measured yet."
    )  # fmt: skip


def initial(runs: Runs, *, label: str) -> Displayed:
    """Table 5: initial and final losses, ours over seeds beside the published ones."""
    quoted = published()["tinystories"]["initial"]
    found = measurement.find(resolve(runs.settings.source), "initial", runs.settings.experiment, "losses")
    rows = []
    for model in STUDY:
        ours, final = found["losses"].get(model) if found else None, [r["test"]["loss"] for r in runs.of(model)]
        rows.append({
            "Model": NAMES[model], "Published initial": f"{quoted[model]['initial']:.3f}", "Published final": f"{quoted[model]['final']:.3f}",
            "Our initial, lowest to highest": f"{min(ours):.3f} to {max(ours):.3f}" if ours else None,
            "Our initial, mean": spread(ours) if ours else None, "Seeds": len(ours) if ours else None,
            "Our final": spread(final) if final else None,
        })  # fmt: skip
    if found is None:
        note = "Not measured yet: `python -m rtx_core.evaluation.initial tinystories` measures the initial losses."
    else:
        pieces = found["data"]["vocabulary"]
        note = f"Initial losses on {found['n']:,} validation tokens. A uniform guess among {pieces:,} pieces has {math.log(pieces):.3f}."
    return display.table(pd.DataFrame(rows), label=label, caption="Loss before and after training.", note=" ".join([note, *runs.notes]))


def initialisation_claim(settings: LanguageSettings) -> Displayed:
    """Whether the published order of initial losses is more than chance."""
    quoted = published()["tinystories"]["initial"]
    found = measurement.find(resolve(settings.source), "initial", settings.experiment, "losses")
    if found is None or any(model not in found["losses"] for model in STUDY):
        return display.text("Whether the order of initial losses is more than chance is not measured yet.")
    by_seed = np.array([found["losses"][model] for model in STUDY])  # (models, seeds)
    printed = [quoted[model]["initial"] for model in STUDY]
    same = int((np.argsort(-by_seed, axis=0) == np.argsort(-np.array(printed))[:, None]).all(0).sum())
    within = (by_seed.max(1) - by_seed.min(1)).mean()
    return display.text(
        f"The published initial losses span {max(printed) - min(printed):.3f} between models. Between seeds of one model ours span "
        f"{within:.3f} on average. The published order of the four models occurs with {same} of {by_seed.shape[1]} seeds; "
        f"by chance it would with one in 24."
    )


# -- stories ----------------------------------------------------------------------------------------------------------


@measured
def yardsticks(runs: Runs, *, label: str) -> Displayed:
    """What can be measured of the written stories without a judge."""
    rows = []
    for model in runs.models:
        every = [r["extra"]["stories"] for r in runs.of(model)]
        row = {"Model": NAMES[model], "Bits per byte": spread([bits_per_byte(r) for r in runs.of(model)], ".3f")}
        for key, title in (("words", "Words"), ("distinct_1", "Distinct-1"), ("distinct_2", "Distinct-2"), ("distinct_3", "Distinct-3"),
                           ("repetition", "Repeated 4-grams"), ("prompt_words_used", "Prompt words used")):  # fmt: skip
            values = [m[key] for m in every if m[key] is not None]
            row[title] = (f"{np.mean(values):.1f}" if key == "words" else f"{np.mean(values):.3f}") if values else None
        rows.append(row)
    first = runs.records[0]
    note = (
        f"{first['extra']['stories']['stories']} stories a model and seed, from the same beginnings of validation stories and with the same random "
        f"numbers, temperature {first['extra']['sampling']['temperature']}, at most {first['extra']['sampling']['longest']} tokens."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Yardsticks that need no judge.", note=" ".join([note, *runs.notes]))


def judged(runs: Runs, *, label: str) -> Displayed:
    """Table 4: the judge's scores, ours below the published ones."""
    quoted, rows, rejected, asked, judges = published()["tinystories"]["judge"], [], 0, 0, set()
    for model in STUDY:
        printed = zip((*CRITERIA, "average"), quoted["scores"][model])
        rows.append({"Model": NAMES[model], "Judge": quoted["judge"], "Stories": None, **{name.capitalize(): f"{v:.2f}" for name, v in printed}})
    for model in runs.models:
        found = [m for r in runs.of(model) if (m := measurement.find(r["data"]["source"], "judge", r["experiment"], f"{model}-seed{r['seed']}"))
                 and m["run"] == r["key"]]  # fmt: skip
        scores = [score for m in found for score in m["scores"] if score]
        rejected, asked = rejected + sum(m["rejected"] for m in found), asked + sum(len(m["scores"]) for m in found)
        judges |= {m["judge"] for m in found}
        if scores:
            means = [np.mean([score[c] for score in scores]) for c in CRITERIA]
            rows.append({"Model": NAMES[model], "Judge": f"ours, {', '.join(sorted(judges))}", "Stories": len(scores),
                         **{c.capitalize(): f"{m:.2f}" for c, m in zip(CRITERIA, means)}, "Average": f"{np.mean(means):.2f}"})  # fmt: skip
    note = (f"Of {asked} stories, {rejected} had no valid answer and are not in the means." if asked else
            "Ours were not graded: that needs a key for a judge, and none was given; the stories below can be compared by eye.")  # fmt: skip
    frame = pd.DataFrame(rows).astype({"Stories": "Int64"})
    return display.table(frame, label=label, caption="Scores of the judge, from 1 to 10.", note=" ".join([note, *runs.notes]))


@measured
def samples(runs: Runs, *, label: str, n: int = 3) -> Displayed:
    """Stories of every model from the same beginnings, side by side."""
    records = [runs.of(model)[0] for model in runs.models if model in STUDY]
    if not records:
        return display.text("Not measured yet: no model of the study is recorded.")
    rows = [{"Beginning": group[0]["prompt"] + " …", **{NAMES[r["model"]]: sample["text"] for r, sample in zip(records, group)}}
            for group in list(zip(*(r["samples"] for r in records)))[:n]]  # fmt: skip
    caption = f"Stories from the same beginnings of held-out stories, with the same random numbers, seed {records[0]['seed']}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=" ".join(runs.notes))


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
        code = (r["code"]["commit"] or "unknown")[:9] + ("" if r["code"]["clean"] else " + changes")
        cells = ["/".join(r.path.parts[-3:]), r["protocol"], code, device_of(r), f"{r['seconds'] / 60:.1f} min", f"{r['peak_memory_mib']:,.0f} MiB"]
        lines.append("| " + " | ".join(map(escape, cells)) + " |")
    lines += ["", f"Not measured yet: {escape(', '.join(missing))}." if missing else "All runs of this page are recorded.", ""]
    return display.text("\n".join([*lines, said, "", "```bash", *commands, "```", "````"]))
