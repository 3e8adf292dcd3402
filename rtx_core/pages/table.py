"""The paper's tables.  Each takes records (or what `results/` holds), makes a frame, and hands it to `display.table`."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.corpora.preprocess import clean
from rtx_core.errors import unknown
from rtx_core.pages import display
from rtx_core.pages.benchmark import beside, benchmark  # noqa: F401  (part of `rtx.table`)
from rtx_core.pages.cells import device_of, devices_of, mean_accuracy, mean_auc, title, with_interval  # noqa: F401  (which other pages ask for here)
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Profiles, Runs, Studies, architectures, measured
from rtx_core.results.statistics import answers_all, difference, equals
from rtx_core.training import protocol as protocol_module
from rtx_core.training.protocol import Protocol

# -- architectures ----------------------------------------------------------------------------------------------------


def configuration(name: str, *, label: str) -> Displayed:
    """Tables 4 and 5: a model's configuration, with its parameters counted from the model."""
    known, quoted = architectures(), published()["configuration"]
    if name not in known:
        raise unknown("model", name, known)
    model = known[name]
    c = model["config"]
    rows = [
        ("Layers with weights of their own", c["num_layers"]),
        ("Passes through them", c["num_passes"]),
        ("Effective depth", model["effective_depth"]),
        ("Hidden dimension", c["hidden_size"]),
        ("Attention heads", c["num_heads"]),
        ("FFN intermediate size", c["intermediate_size"]),
        ("Residual scale α", c["residual_scale"] if c["num_passes"] > 1 else None),
        ("Dropout", c["dropout"]),
        ("Vocabulary", c["vocab_size"]),
        ("Total parameters, counted", model["parameters"]["total"]),
        ("Total parameters, as the report's table states", quoted.get(name, {}).get("parameters")),
        ("Matrix-product MFLOPs a token, forward", f"{model['flops_per_token'] / 1e6:.1f}"),
    ]
    rows = [(component, display.show(value)) for component, value in rows]
    return display.table(
        pd.DataFrame(rows, columns=["Component", "Value"]), label=label, caption=f"Configuration of the {title(name)} model."
    )


def parameter_counts(*, label: str) -> Displayed:
    """Parameters by component for every classifier, beside the published totals."""
    quoted, rows = published()["counts"], []
    for name, model in architectures().items():
        p = model["parameters"]
        rows.append({
            "Model": title(name), **{k.capitalize(): v for k, v in p["components"].items()}, "Total": p["total"],
            "Published total": quoted.get(name, {}).get("total"), "Outside the word embedding": p["non_embedding"],
            "MB at 32 bits": f"{model['size_mb']:.2f}",
        })  # fmt: skip
    frame = pd.DataFrame(rows).astype({"Published total": "Int64"}).set_index("Model").T.reset_index(names="Parameters")
    return display.table(frame, label=label, caption=f"Parameters of the two-class models; published totals from the {quoted['source']}.")


def counts() -> dict:
    """The counts that sentences quote."""
    known = architectures()
    base, rec = known["baseline"]["parameters"], known["recurrent"]["parameters"]
    return {
        "baseline_total": base["total"], "baseline_non_embedding": base["non_embedding"], "baseline_layer": base["layer"],
        "recurrent_total": rec["total"], "recurrent_non_embedding": rec["non_embedding"], "recurrent_layer": rec["layer"],
        "recurrent_wide_total": known["recurrent-wide"]["parameters"]["total"],
        "saving_total": 1 - rec["total"] / base["total"],
        "saving_non_embedding": 1 - rec["non_embedding"] / base["non_embedding"],
    }  # fmt: skip


# -- protocol and data ------------------------------------------------------------------------------------------------


def protocol(*, label: str) -> Displayed:
    """Every setting of the report's protocol with its reason, both read from the dataclass that training uses."""
    source = Path(protocol_module.__file__).read_text(encoding="utf-8")
    reasons = dict(re.findall(r"^    (\w+): \w+ = \S+  # (.+)$", source, flags=re.MULTILINE))
    rows = [(f.name.replace("_", " "), str(f.default), reasons[f.name]) for f in fields(Protocol)]
    return display.table(
        pd.DataFrame(rows, columns=["Setting", "Value", "Reason"]), label=label, caption="The training protocol `report`."
    )


def label_distribution(profiles: Profiles, *, label: str) -> Displayed:
    """Tables 1 to 3: share of each label in each part, for each way of splitting or subset, beside the published shares."""
    rows, sources = [], []
    for name, profile in profiles.items():
        quoted = printed_labels(profiles, name)
        sources += [quoted["source"]] if quoted else []
        for part, facts in profile["parts"].items():
            row = {profiles.heading: name, "Part": part, "n": facts["n"]}
            row |= {f"Label {i}, {kind} (%)": f"{100 * n / facts['n']:.2f}" for i, (kind, n) in enumerate(zip(profile["classes"], facts["labels"]))}
            rows.append(row | {"As printed": " / ".join(f"{percent:.2f}" for percent in quoted[part]["percent"]) if quoted else None})
    caption = f"Label distribution by {profiles.heading.lower()}" + (f", with the shares printed in the {sources[0]}." if sources else ".")
    return display.table(pd.DataFrame(rows), label=label, caption=labelled(caption, profiles))


def printed_labels(profiles: Profiles, name: str) -> dict:
    """The printed label shares of a profile's corpus, where the profile is of that split and of all the data; else empty."""
    settings = profiles.settings.get(name)
    if settings is None or profiles[name]["data"]["source"] == "embedded":
        return {}
    quoted = published()["labels"].get(settings.corpus, {})
    return quoted if quoted and not settings.subset and quoted.get("split", settings.split) == settings.split else {}


def lengths(profiles: Profiles, *, label: str) -> Displayed:
    """Length statistics of every part, from the recorded histograms."""
    rows = []
    for split, profile in profiles.items():
        for part, facts in profile["parts"].items():
            row = {profiles.heading: split, "Part": part, "Texts": facts["n"], "Distinct": facts["distinct_texts"]}
            rows.append(row | {unit.capitalize(): _mean_median_most(facts[unit]) for unit in ("words", "tokens")}
                        | {"At the limit": facts["truncated"], "In a training text": facts["within_training"]})
    limits = {profile["data"]["max_length"] for profile in profiles.values()}
    caption = (
        f"Lengths by {profiles.heading.lower()} as mean / median / longest: words between spaces in the whole text, and tokens with [CLS] and "
        f"[SEP], of which at most {limits.pop() if len(limits) == 1 else 'the limit of the row'} are kept and read. The last column counts texts "
        "that are, word for word, a training text or a part of one."
    )
    frame = pd.DataFrame(rows).astype({"In a training text": "Int64"})
    return display.table(frame, label=label, caption=labelled(caption, profiles))


def _mean_median_most(histogram: dict[str, int]) -> str:
    lengths = _expanded(histogram)
    return f"{lengths.mean():.1f} / {median(histogram)} / {lengths.max()}"


def median(histogram: dict[str, int]) -> str:
    return f"{np.median(_expanded(histogram)):g}"


def _expanded(histogram: dict[str, int]) -> np.ndarray:
    return np.repeat([int(length) for length in histogram], list(histogram.values()))


def preprocessing(texts: list[str], *, label: str) -> Displayed:
    """What the preprocessing does to some texts."""
    frame = pd.DataFrame({"Text": texts, "After preprocessing": [clean(text) for text in texts]})
    return display.table(frame, label=label, caption="The preprocessing on invented examples.")


def labelled(caption: str, profiles: Profiles) -> str:
    synthetic = any(p["data"]["source"] == "embedded" for p in profiles.values())
    return f"Synthetic data (embedded corpus). {caption}" if synthetic else caption


# -- results ----------------------------------------------------------------------------------------------------------


def accuracies(studies: Studies, *, label: str) -> Displayed:
    """One row for each value of a setting and each budget: accuracy of every model, and the paired difference of the first two."""
    rows = []
    for name, runs in [(name, one) for name, best in studies.items() for one in best.budgets]:
        data = runs.records[0]["data"] if runs.records else {"n_train": None, "n_test": None}
        row = {studies.heading: name, "Budget": runs.budget_named, "Training texts": data["n_train"], "Test texts": data["n_test"]}
        row |= {title(model): with_interval(records) if (records := runs.of(model)) else "not measured yet" for model in runs.settings.models}
        if len(runs.models) > 1 and all(answers_all(record) for model in runs.models[:2] for record in runs.of(model)):
            first, second = runs.models[:2]
            pair = difference(runs.of(first), runs.of(second))
            row |= {
                f"{title(first)} − {title(second)} (points)": f"{100 * pair.value:+.2f} ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})",
                "p": equals(pair.p).removeprefix("= ") if pair.p is not None else None,
            }
        rows.append(row | _ranking(runs))
    frame = pd.DataFrame(rows).astype({"Training texts": "Int64", "Test texts": "Int64"})
    note = (
        "In brackets 95 % intervals: of an accuracy, Wilson's, or Student's over seeds where there are several; of a difference on the same "
        "texts, from resampled texts with McNemar's exact p, over both of two seeds without p, or over three and more by the paired t-test. "
        "AUC: area under the ROC curve, the mean over seeds, which is the share of pairs of a positive and a negative text of which the positive one "
        "is scored higher; it knows no threshold, so it does not fall where a model merely calls too many or too few texts positive. A dash: more "
        "than two classes, or no record. Budget: what differs from the report's protocol; rows can be compared where it is the same."
    )
    return display.table(frame, label=label, caption=f"Test accuracy by {studies.heading.lower()}.", note=" ".join([note, *studies.notes]))


def _ranking(runs: Runs) -> dict[str, str | None]:
    """The area under the ROC curve of each model in one cell."""
    models = runs.settings.models
    found = [mean_auc(runs.of(model)) for model in models]
    cell = " / ".join(display.MISSING if value is None else f"{value:.4f}" for value in found)
    return {f"AUC: {' / '.join(map(title, models))}": None if all(value is None for value in found) else cell}


@measured
def latency(runs: Runs, *, label: str) -> Displayed:
    """Latency at each batch size: median and spread over batches."""
    rows = []
    for record in runs:
        for m in record["latency"]["measured"]:
            rows.append({
                "Model": title(record["model"]), "Seed": str(record["seed"]), "Batch": m["batch"], "Median (ms)": f"{m['median_ms']:.2f}",
                "10–90 % (ms)": f"{m['p10_ms']:.2f}–{m['p90_ms']:.2f}", "Per text (ms)": f"{m['per_sentence_ms']:.3f}",
                "Threads": m["threads"],
            })  # fmt: skip
    batches = runs.records[0]["latency"]["measured"][0]["batches"]
    note = (
        f"Median and 10th to 90th percentile over {batches} batches, measured on {devices_of(runs, 'latency')}: the whole forward pass from "
        "token ids to logits, after warm-up, device synchronized."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Inference latency on unpadded test texts.", note=" ".join([note, *runs.notes]))
