"""Tables and sentences of the Shakespeare study: published values beside ours, and what is missing said to be missing."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
import pandas as pd

from rtx_core.errors import unknown
from rtx_core.language import LANGUAGE
from rtx_core.language import settings as language_settings
from rtx_core.pages import display, stories
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Studies
from rtx_core.pages.verdicts import by_sign
from rtx_core.parameters import _typed_items as typed_items
from rtx_core.paths import REPOSITORY
from rtx_core.results.record import read_json
from rtx_core.results.statistics import Paired, paired

NAMES = {
    "gpt-1": "Standard, 1 layer", "gpt-2": "Standard, 2 layers", "gpt-6": "Standard, 6 layers",
    "kausik-positions": "Recurrent, positions", "kausik": "Recurrent",
}  # fmt: skip
RECURRENT, STANDARD = ("kausik", "kausik-positions"), ("gpt-6", "gpt-2", "gpt-1")  # what the claim sets against each other


def runs(given: Mapping[str, object], recipes: list[str]) -> Studies:
    """The runs of each recipe under a notebook's parameters; see `stories.runs` for what is trained now."""
    typed_items("recipes", recipes, str)
    for recipe in recipes:
        if recipe not in (known := LANGUAGE["shakespeare"].recipes):
            raise unknown("recipe", recipe, known)
    every = {recipe: language_settings("shakespeare", {**given, "recipe": recipe}, also={"recipes": list}) for recipe in recipes}
    return Studies({recipe: stories.runs(settings) for recipe, settings in every.items()}, "recipe")


def models_counted() -> dict[str, dict]:
    """What `python -m rtx_core.architectures` recorded of the character models."""
    return read_json(REPOSITORY / "results" / "characters.json", needs=NAMES)


def noted(studies: Studies, *said: str) -> str:
    return " ".join([*said, *studies.notes])


def not_measured(studies: Studies) -> Displayed | None:
    return None if studies.records else display.text("Not measured yet: `results/` holds no record of these settings.")


# -- what the models are ------------------------------------------------------------------------------------------------


def models(*, label: str) -> Displayed:
    """Parameters and computation of a token, counted from the models."""
    known, quoted = models_counted(), published()["shakespeare"]["losses"]["report"]
    equal, rows = known["gpt-2"]["flops"]["blocks"], []
    for name, model in known.items():
        flops = model["flops"]
        rows.append({
            "Model": NAMES[name], "Parameters": model["total"], "Published": quoted.get(name, {}).get("parameters"),
            "Blocks a token": model["blocks_per_token"], **{f"MFLOPs, {part}": f"{value / 1e6:.3f}" for part, value in flops.items()},
            "MFLOPs": f"{model['flops_per_token'] / 1e6:.2f}", "Blocks, relative to 2 layers": f"{flops['blocks'] / equal:.2f}",
        })  # fmt: skip
    length = known["gpt-1"]["config"]["block_size"]
    caption = f"The models, their parameters, and the matrix products of a forward pass for one character, on average in a text of {length}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption)


def recipes(studies: Studies, *, label: str) -> Displayed:
    """Every setting of training, at full size and as it is here."""
    fixed, columns = LANGUAGE["shakespeare"].recipes, {}
    for name, one in studies.items():
        columns[f"{name}, in full"] = fixed[name]
        if one.settings.training != fixed[name]:
            columns[f"{name}, here"] = one.settings.training
    names = [f.name for f in fields(next(iter(columns.values())))]
    frame = pd.DataFrame({"Setting": [name.replace("_", " ") for name in names]} | {
        title: [str(getattr(recipe, name)) for name in names] for title, recipe in columns.items()
    })  # fmt: skip
    full, here = ([recipe.tokens for title, recipe in columns.items() if title.endswith(end)] for end in ("in full", "here"))
    said = f"Tokens of a run in full: {' and '.join(f'{n:,}' for n in full)}" + (f"; here: {' and '.join(f'{n:,}' for n in here)}." if here else ".")
    return display.table(frame, label=label, caption="The recipes. A step reads batch size times block size characters.", note=said)


# -- losses -------------------------------------------------------------------------------------------------------------


def losses(studies: Studies, *, label: str) -> Displayed:
    """Table 2: parameters, loss, and its standard error over evaluation batches and over seeds; published values beside ours."""
    quoted, known, rows = published()["shakespeare"], models_counted(), []
    synthetic = any(record.synthetic for record in studies.records)
    for recipe, one in studies.items():
        for model in one.settings.models:
            records, printed = one.of(model), {} if synthetic else quoted["losses"].get(recipe, {}).get(model, {})
            loss = [record["test"]["loss"] for record in records]
            rows.append({
                "Recipe": recipe, "Model": NAMES[model], "Parameters": records[0]["parameters"]["total"] if records else known[model]["total"],
                "Seeds": len(records), "Loss": f"{np.mean(loss):.4f}" if loss else "not measured yet",
                "Error, batches": f"{np.mean([r['test']['error'] for r in records]):.4f}" if loss else None,
                "Error, seeds": f"{np.std(loss, ddof=1) / np.sqrt(len(loss)):.4f}" if len(loss) > 1 else None,
                "Published": f"{printed['loss']:.4f}" if printed else None,
                "its error": f"{printed['error']:.2e}" if "error" in printed else None,
                "corrected": f"{printed['corrected_error']:.4f}" if printed.get("corrected_error") else None,
                "Ours − published": f"{np.mean(loss) - printed['loss']:+.4f}" if loss and printed and not one.settings.reduced else None,
            })  # fmt: skip
    if synthetic:
        rows = [{k: v for k, v in row.items() if k not in ("Published", "its error", "corrected", "Ours − published")} for row in rows]
    frame = pd.DataFrame(rows)
    reading = (
        "Loss in nats a character on the validation part, with the weights of lowest loss during training. "
        "Errors are standard errors: over batches of one evaluation (mean over seeds), which is how far another text of that size would move it, "
        "and over seeds, which is how far another training would."
    )
    if not synthetic:
        reading += (
            f" The published error divides by √(batches · {quoted['batch_size']}) and not by √batches; corrected, it is √{quoted['batch_size']} times as large. "
            "A difference is given for a recipe in full only."
        )
    return display.table(frame, label=label, caption="Validation loss.", note=noted(studies, reading, *studies.footnote))


def comparisons(studies: Studies, *, label: str) -> Displayed:
    """Each recurrent model against each standard one."""
    if (nothing := not_measured(studies)) is not None:
        return nothing
    rows = []
    for recipe, one in studies.items():
        for first in RECURRENT:
            for second in STANDARD:
                if (pair := paired(one.of(first), one.of(second))) is not None:
                    rows.append({
                        "Recipe": recipe, "Model": NAMES[first], "against": NAMES[second], "Difference": f"{pair.value:+.4f}",
                        "95 % interval over batches": f"{pair.low:+.4f} to {pair.high:+.4f}", "by seed": ", ".join(f"{d:+.4f}" for d in pair.by_seed),
                        "p over seeds": f"{pair.p:.2g}" if pair.p is not None else None, "Better": {-1: NAMES[first], 1: NAMES[second], 0: "undecided"}[pair.sign],
                    })  # fmt: skip
    if not rows:
        return display.text("Not measured yet: no recurrent and standard model have a seed in common.")
    reading = "Loss of the recurrent model minus that of the standard one, paired over the same batches and seeds; below 0 the recurrent one is better."
    return display.table(pd.DataFrame(rows), label=label, caption="Recurrent against standard models.", note=noted(studies, reading))


def verdict(studies: Studies) -> Displayed:
    """What these runs say of the claim, and of the comparison at equal computation."""
    paragraphs = []
    for recipe, one in studies.items():
        budget = "in full" if not one.settings.reduced else f"reduced to {one.settings.training.tokens:,} characters a run"
        said = [f"**Recipe `{recipe}`, {budget}.**"]
        for model in RECURRENT:
            beside = {second: paired(one.of(model), one.of(second)) for second in ("gpt-6", "gpt-2")}
            if (pair := beside["gpt-6"]) is None:
                said.append(f"That {NAMES[model]} beats {NAMES['gpt-6']} is not measured yet.")
                continue
            verdict = "is not measured at the published budget yet; at this one" if one.settings.reduced else f"is **{by_sign(-pair.sign)}**:"
            said.append(
                f"That {NAMES[model]} beats {NAMES['gpt-6']} {verdict} its loss is {abs(pair.value):.4f} {_word(pair.value)} "
                f"(95 % interval of the difference {pair.low:+.4f} to {pair.high:+.4f}, {_seeds(pair)})."
            )
            if (pair := beside["gpt-2"]) is not None:
                outcome = {-1: "it is better", 1: "it is worse", 0: "neither is clearly better"}[pair.sign]
                said.append(f"Against {NAMES['gpt-2']}, with the same matrix products for a character, {outcome}: {abs(pair.value):.4f} {_word(pair.value)}.")
        paragraphs.append(" ".join(said))
    read = []
    for recipe, one in studies.items():
        if one.settings.reduced and one.records and not one.records[0].synthetic:
            full, training = LANGUAGE["shakespeare"].recipes[recipe], one.settings.training
            warm = f", with {training.warmup_steps / training.steps:.0%} of the steps in the warm-up" * (training.warmup_steps > 0)
            read.append(f"under `{recipe}` {training.tokens / full.tokens:.2%} of the characters of the recipe in full{warm}")
    if read:
        paragraphs.append(f"These runs read {'; '.join(read)}. They compare which model learns faster at the start, and not where training ends.")
    return display.text("\n\n".join([*paragraphs, *(note for note in studies.notes if "Synthetic" in note)]))


def _word(difference: float) -> str:
    return "lower" if difference < 0 else "higher"


def _seeds(pair: Paired) -> str:
    p = f"; p = {pair.p:.2g} over seeds" if pair.p is not None else ""
    return f"{len(pair.by_seed)} seeds{p}" if len(pair.by_seed) > 1 else "one seed"


# -- text ---------------------------------------------------------------------------------------------------------------


def samples(studies: Studies, *, characters: int = 300) -> Displayed:
    """The beginning of what each model writes, of the first recipe that is measured and its first seed."""
    if (nothing := not_measured(studies)) is not None:
        return nothing
    recipe, one = next((recipe, one) for recipe, one in studies.items() if one.records)
    lines = []
    for model in one.models:
        record = one.of(model)[0]
        written = record["samples"][0]["text"][:characters].strip("\n")
        lines += [f"{NAMES[model]}, recipe `{recipe}`, seed {record['seed']}:", "", "~~~~text", written, "~~~~", ""]
    return display.text("\n".join([*lines, noted(studies)]))


def provenance(studies: Studies) -> Displayed:
    settings = next(iter(studies.values())).settings
    budget = "" if settings.budget == next(iter(LANGUAGE["shakespeare"].budgets)) else f" budget={settings.budget}"
    said = "The first line trains what is missing, and goes on after a kill; the second measures speed and memory on a quiet machine."
    commands = [f"python -m rtx_core.run_language shakespeare --run{budget}", "python -m benchmarks.recurrence"]
    return stories.recorded(list(studies.values()), studies.notes, said, commands)

