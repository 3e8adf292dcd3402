"""The paper's tables.  Each takes records (or what `results/` holds), makes a frame, and hands it to `display.table`."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.corpora.preprocess import clean
from rtx_core.errors import unknown
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Profiles, Runs, architectures
from rtx_core.results.record import Record
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
    """Table 1: share of each label in each part, for each way of splitting, beside the published shares."""
    quoted, rows = published()["labels"]["sst2"], []
    classes = next(iter(profiles.values()))["classes"]
    for split, profile in profiles.items():
        for part, facts in profile["parts"].items():
            row = {"Split": split, "Part": part, "n": facts["n"]}
            row |= {f"Label {i}, {name} (%)": f"{100 * n / facts['n']:.2f}" for i, (name, n) in enumerate(zip(classes, facts["labels"]))}
            printed = " / ".join(f"{percent:.2f}" for percent in quoted[part]["percent"]) if split == "published" else None
            rows.append(row | {"As printed": printed})
    caption = f"Label distribution by split, with the shares printed in the {quoted['source']}, beside the split they belong to."
    return display.table(pd.DataFrame(rows), label=label, caption=labelled(caption, profiles))


def lengths(profiles: Profiles, *, label: str) -> Displayed:
    """Length statistics of every part, from the recorded histograms."""
    rows = []
    for split, profile in profiles.items():
        for part, facts in profile["parts"].items():
            row = {"Split": split, "Part": part, "Texts": facts["n"], "Distinct": facts["distinct_texts"]}
            rows.append(row | {unit.capitalize(): _mean_median_most(facts[unit]) for unit in ("words", "tokens")}
                        | {"At the limit": facts["truncated"], "In a training text": facts["within_training"]})
    longest = next(iter(profiles.values()))["data"]["max_length"]
    caption = (
        f"Lengths by split as mean / median / longest: words between spaces, and tokens with [CLS] and [SEP], of which at most {longest} "
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


def benchmark(runs: Runs, *, label: str) -> Displayed:
    """Tables 6 to 12: parameters, size, metrics and latency of each model, published values beside ours."""
    rows = [_ours(records) for model in runs.settings.models if (records := runs.of(model))]
    caption = f"Results on {runs.records[0]['data']['name']} ({runs.settings.variant})"
    if all(record["protocol"] == "report" and not record.synthetic for record in runs):
        caption += ", with published values beside ours"
        for entry in published()["benchmarks"].get(runs.settings.corpus, []):
            rows += [_quoted(entry, model) for model in runs.settings.models if model in entry]
    return display.table(pd.DataFrame(rows), label=label, caption=f"{caption}.", note=" ".join([_reading(runs), *runs.notes]))


def _ours(records: list[Record]) -> dict:
    first, test = records[0], [record["test"] for record in records]
    return {
        "Model": title(first["model"]), "Result": f"ours, seed {first['seed']}" if len(records) == 1 else f"ours, mean of {len(records)} seeds",
        "Test set": f"{test[0]['n']:,} {first['data']['split']}",
        "Parameters": first["parameters"]["total"], "MB": f"{first['size_mb']:.2f}",
        **{name: _mean_and_deviation([t[name.lower()] for t in test]) for name in ("Accuracy", "F1", "Precision", "Recall")},
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
        **{name: text(name.lower(), ".4f") for name in ("Accuracy", "F1", "Precision", "Recall")}, "ms": text("ms", ".4f"),
    }  # fmt: skip


def _reading(runs: Runs) -> str:
    measured = runs.records[0]["latency"]["measured"][-1]
    spread = "Ours: mean ± standard deviation over seeds. " if len(runs.settings.seeds) > 1 else ""
    return (
        f"{spread}ms: inference time for a sentence, ours at batch {measured['batch']} on {devices_of(runs, 'latency')}"
        + ("." if runs.records[0].synthetic else "; the published ones come from other, unnamed machines and cannot be compared with ours.")
    )


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


def devices_of(runs: Runs, of: str = "") -> str:
    """Every machine that a table's numbers come from; more than one cannot be compared, and the reader sees it."""
    return " and ".join(dict.fromkeys(device_of(record, of) for record in runs))


def device_of(record: Record, of: str = "") -> str:
    environment = record[of]["environment"] if of else record["environment"]
    threads = environment["threads"]
    return environment["device"] + (f" ({threads} thread{'s' if threads > 1 else ''})" if environment["device_type"] == "cpu" else "")
