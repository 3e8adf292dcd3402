"""The paper's tables.  Each takes records (or what `results/` holds), makes a frame, and hands it to `display.table`."""

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.corpora.preprocess import clean
from rtx_core.errors import unknown
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import apart, published, quotations
from rtx_core.pages.runs import Profiles, Runs, Studies, architectures, measured, recorded
from rtx_core.parameters import Settings
from rtx_core.results.record import Record
from rtx_core.results.statistics import accuracy_interval, difference, equals, mean_interval
from rtx_core.training import protocol as protocol_module
from rtx_core.training.protocol import Protocol

TITLES = {"recurrent-wide": "Recurrent, wide"}  # where capitals are not enough


def title(model: str) -> str:
    """A model's name as pages write it."""
    return TITLES.get(model, model.capitalize())


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
    longest = next(iter(profiles.values()))["data"]["max_length"]
    caption = (
        f"Lengths by {profiles.heading.lower()} as mean / median / longest: words between spaces, and tokens with [CLS] and [SEP], of which at most {longest} "
        "are kept. The last column counts texts that are, word for word, a training text or a part of one."
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


def benchmark(runs: Runs | Studies, *, label: str) -> Displayed:
    """Tables 6 to 12: parameters, size, metrics and latency of each model, published values and the difference beside ours."""
    every = Studies.of(runs)
    rows = [({every.heading: name} if name else {}) | row for name, one in every.items() for row in _rows(one)]
    names = dict.fromkeys(record["data"]["name"] for record in every.records)
    variants = ", ".join(one.settings.variant for one in every.values())
    results = [row["Result"] for row in rows]
    quoted = any(result.startswith("published") for result in results)
    if names:
        caption = f"Results on {'; '.join(names)} ({variants})" + (", with published values" if quoted else "")
    else:
        caption = f"Published results ({variants}); ours are not measured yet" if quoted else f"Results ({variants}), not measured yet"
    if any(result.startswith(DIFFERENCE) for result in results):
        caption += " and their difference to ours"
    return display.table(pd.DataFrame(rows), label=label, caption=f"{caption}.", note=" ".join([*_reading(every), *every.footnote, *every.notes]))


def beside(settings: Settings, *, label: str, **other: object) -> Displayed:
    """The benchmark of the same settings but for one or some, as far as it is recorded; nothing is trained for it."""
    changed = settings.but(**other)
    return display.text("The benchmark above is of these settings.") if changed == settings else benchmark(recorded(changed), label=label)


DIFFERENCE = "difference"
METRICS = ("Accuracy", "F1", "Precision", "Recall")


def _rows(runs: Runs) -> list[dict]:
    """Ours, and the published ones, with a difference where both were found on texts of the same kind."""
    settings, rows = runs.settings, []
    quoted = quotations(settings)
    average = quoted[0].get("average") if quoted else None
    for model in settings.models:
        records = runs.of(model)
        rows.append(_ours(records, average) if records else {"Model": title(model), "Result": "not measured yet"})
    for entry in quoted:
        models = [model for model in settings.models if model in entry]
        rows += [_quoted(entry, model) for model in models]
        if not apart(entry, settings):
            rows += [_difference(runs, entry, model) for model in models if runs.of(model)]
    return rows


def scores(records: list[Record], metric: str, average: str | None = None) -> list[float]:
    """A test metric of each record: the record's own, or for precision, recall and F1 another average, from the predictions."""
    if metric == "accuracy" or average in (None, records[0]["test"]["average"]):
        return [record["test"][metric] for record in records]
    from sklearn.metrics import precision_recall_fscore_support

    found = [record.predictions for record in records]
    all_three = [precision_recall_fscore_support(f["labels"], f["logits"].argmax(1), average=average, zero_division=0.0) for f in found]
    return [float(three[("precision", "recall", "f1").index(metric)]) for three in all_three]


def _ours(records: list[Record], average: str | None) -> dict:
    first = records[0]
    return {
        "Model": title(first["model"]), "Result": f"ours, seed {first['seed']}" if len(records) == 1 else f"ours, mean of {len(records)} seeds",
        "Test set": f"{first['test']['n']:,} {first['data']['split']}",
        "Parameters": first["parameters"]["total"], "MB": f"{first['size_mb']:.2f}",
        **{name: _mean_and_deviation(scores(records, name.lower(), average)) for name in METRICS},
        "ms": f"{np.median([record['latency']['measured'][-1]['per_sentence_ms'] for record in records]):.3f}",
    }  # fmt: skip


def _mean_and_deviation(values: list[float]) -> str:
    return f"{values[0]:.4f}" if len(values) == 1 else f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"


def _quoted(entry: dict, model: str) -> dict:
    value = entry[model]

    def text(key: str, form: str) -> str | None:
        return format(value[key], form) if key in value else None

    return {
        "Model": title(model), "Result": entry["source"], "Test set": entry["test_set"],
        "Parameters": value.get("total"), "MB": text("size_mb", ".2f"),
        **{name: text(name.lower(), ".4f") for name in METRICS}, "ms": text("ms", ".4f"),
    }  # fmt: skip


def _difference(runs: Runs, entry: dict, model: str) -> dict:
    value, records, changed = entry[model], runs.of(model), runs.settings.reduced
    smaller = changed.keys() <= {"epochs", "train_rows"} and runs.settings.protocol.epochs <= Protocol().epochs
    return {
        "Model": title(model), "Result": f"{DIFFERENCE} ({'smaller budget' if smaller else 'another protocol'})" if changed else DIFFERENCE,
        **{name: f"{np.mean(scores(records, name.lower(), entry.get('average'))) - value[name.lower()]:+.4f}" for name in METRICS if name.lower() in value},
    }  # fmt: skip


def _reading(studies: Studies) -> list[str]:
    """How to read the columns of a benchmark."""
    records, said = studies.records, []
    if not records:
        return said
    if len({record["seed"] for record in records}) > 1:
        said.append("Ours: mean ± standard deviation over seeds.")
    synthetic = any(record.synthetic for record in records)
    weighted = [name for name, runs in studies.items() if any(entry.get("average") for entry in quotations(runs.settings))]
    for name, runs in studies.items():
        for entry in quotations(runs.settings):
            if (why := apart(entry, runs.settings)) and any(model in entry for model in runs.models):
                said.append(f"{f'{name}: n' if name else 'N'}o difference to \"{entry['source']}\": {why}.")
    if weighted:
        where = f" at {', '.join(weighted)}" if any(weighted) else ""
        said.append(f"F1, precision and recall{where} are averages over the classes, weighted by their size, as in the published rows.")
    elif len(records[0]["test"]["confusion"]) > 2:
        said.append("F1, precision and recall are plain averages over the classes.")
    measured = records[0]["latency"]["measured"][-1]
    said.append(
        f"ms: inference time for a sentence, ours at batch {measured['batch']} on {devices_of(records, 'latency')}"
        + ("." if synthetic else "; the published ones come from other, unnamed machines and cannot be compared with ours.")
    )
    return said


def accuracies(studies: Studies, *, label: str) -> Displayed:
    """One row for each value of a setting and each budget: accuracy of every model, and the paired difference of the first two."""
    rows = []
    for name, runs in [(name, one) for name, best in studies.items() for one in best.budgets]:
        data = runs.records[0]["data"] if runs.records else {"n_train": None, "n_test": None}
        row = {studies.heading: name, "Budget": runs.budget_named, "Training texts": data["n_train"], "Test texts": data["n_test"]}
        row |= {title(model): with_interval(records) if (records := runs.of(model)) else "not measured yet" for model in runs.settings.models}
        if len(runs.models) > 1:
            first, second = runs.models[:2]
            pair = difference(runs.of(first), runs.of(second))
            row |= {
                f"{title(first)} − {title(second)} (points)": f"{100 * pair.value:+.2f} ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})",
                "p": equals(pair.p).removeprefix("= ") if pair.p is not None else None,
            }
        rows.append(row)
    frame = pd.DataFrame(rows).astype({"Training texts": "Int64", "Test texts": "Int64"})
    note = (
        "In brackets 95 % intervals: of an accuracy, Wilson's, or Student's over seeds where there are several; of a difference on the same "
        "texts, from resampled texts with McNemar's exact p, over both of two seeds without p, or over three and more by the paired t-test. Budget: what differs from the report's "
        "protocol; rows can be compared where it is the same."
    )
    return display.table(frame, label=label, caption=f"Test accuracy by {studies.heading.lower()}.", note=" ".join([note, *studies.notes]))


def with_interval(records: list[Record]) -> str:
    if len(records) > 1:
        value, low, high = mean_interval([record["test"]["accuracy"] for record in records])
    else:
        value, (low, high) = records[0]["test"]["accuracy"], accuracy_interval(records[0])
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def mean_accuracy(records: list[Record]) -> str | None:
    """Over the seeds; None where there is no record."""
    return f"{np.mean([record['test']['accuracy'] for record in records]):.4f}" if records else None


@measured
def latency(runs: Runs, *, label: str) -> Displayed:
    """Latency at each batch size: median and spread over batches."""
    rows = []
    for record in runs:
        for m in record["latency"]["measured"]:
            rows.append({
                "Model": title(record["model"]), "Seed": str(record["seed"]), "Batch": m["batch"], "Median (ms)": f"{m['median_ms']:.2f}",
                "10–90 % (ms)": f"{m['p10_ms']:.2f}–{m['p90_ms']:.2f}", "Per sentence (ms)": f"{m['per_sentence_ms']:.3f}",
                "Threads": m["threads"],
            })  # fmt: skip
    batches = runs.records[0]["latency"]["measured"][0]["batches"]
    note = (
        f"Median and 10th to 90th percentile over {batches} batches, measured on {devices_of(runs, 'latency')}: the whole forward pass from "
        "token ids to logits, after warm-up, device synchronized."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Inference latency on unpadded test sentences.", note=" ".join([note, *runs.notes]))


def devices_of(runs: Iterable[Record], of: str = "") -> str:
    """Every machine that a table's numbers come from; more than one cannot be compared, and the reader sees it."""
    return " and ".join(dict.fromkeys(device_of(record, of) for record in runs))


def device_of(record: Record, of: str = "") -> str:
    environment = record[of]["environment"] if of else record["environment"]
    threads = environment["threads"]
    return environment["device"] + (f" ({threads} thread{'s' if threads > 1 else ''})" if environment["device_type"] == "cpu" else "")
