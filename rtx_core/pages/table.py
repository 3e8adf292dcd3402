"""The paper's tables.  Each takes records (or what `results/` holds), makes a frame, and hands it to `display.table`."""

import re
from dataclasses import fields
from pathlib import Path

import pandas as pd

from rtx_core.corpora.preprocess import clean
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import published
from rtx_core.pages.runs import Runs, architectures
from rtx_core.results.record import Record
from rtx_core.results.statistics import accuracy_interval, mean_interval
from rtx_core.training import protocol as protocol_module
from rtx_core.training.protocol import Protocol

TITLES = {"baseline": "Baseline", "recurrent": "Recurrent", "recurrent-wide": "Recurrent, wide"}


# -- architectures ----------------------------------------------------------------------------------------------------


def configuration(name: str, *, label: str) -> Displayed:
    """Tables 4 and 5: a model's configuration, with its parameters counted from the model."""
    model, quoted = architectures()[name], published()["configuration"]
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
        ("Total parameters, as the report's table states", quoted[name]["parameters"]),
        ("Matrix-product MFLOPs a token, forward", f"{model['flops_per_token'] / 1e6:.1f}"),
    ]
    rows = [(component, display.show(value)) for component, value in rows]
    return display.table(
        pd.DataFrame(rows, columns=["Component", "Value"]), label=label, caption=f"Configuration of the {TITLES[name]} model."
    )


def parameter_counts(*, label: str) -> Displayed:
    """Parameters by component for every classifier, beside the published totals."""
    quoted, rows = published()["counts"], []
    for name, model in architectures().items():
        p = model["parameters"]
        rows.append({
            "Model": TITLES[name], **{k.capitalize(): v for k, v in p["components"].items()}, "Total": p["total"],
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
        "flops_ratio": known["baseline"]["flops_per_token"] / known["recurrent"]["flops_per_token"],
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


def label_distribution(profiles: dict[str, dict], *, label: str) -> Displayed:
    """Table 1: share of each label in each part, for each way of splitting, beside the published shares."""
    quoted, rows = published()["labels"]["sst2"], []
    for part, known in ((k, v) for k, v in quoted.items() if k != "source"):
        rows.append([f"as printed ({quoted['source']})", part, *(f"{p:.2f}" for p in known["percent"]), known["n"]])
    for split, profile in profiles.items():
        for part, facts in profile["parts"].items():
            rows.append([f"`{split}`", part, *(f"{100 * n / facts['n']:.2f}" for n in facts["labels"]), facts["n"]])
    classes = next(iter(profiles.values()))["classes"]
    columns = ["Split", "Part", *(f"Label {i}, {name} (%)" for i, name in enumerate(classes)), "n"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["Split"] = frame["Split"].str.strip("`")
    return display.table(frame, label=label, caption=_labelled("Label distribution by split.", profiles))


def lengths(profiles: dict[str, dict], *, label: str) -> Displayed:
    """Length statistics of every part, from the recorded histograms."""
    rows = []
    for split, profile in profiles.items():
        for part, facts in profile["parts"].items():
            row = {"Split": split, "Part": part, "Texts": facts["n"], "Distinct texts": facts["distinct_texts"]}
            for unit in ("words", "tokens"):
                expanded = pd.Series({int(k): v for k, v in facts[unit].items()})
                quantile = expanded.sort_index().cumsum() / expanded.sum()
                mean = (expanded.index.to_numpy() * expanded.to_numpy()).sum() / expanded.sum()
                row |= {f"Mean {unit}": f"{mean:.1f}", f"Median {unit}": int(quantile[quantile >= 0.5].index[0]), f"Most {unit}": int(expanded.index.max())}
            rows.append(row | {"Cut off": facts["truncated"]})
    profile = next(iter(profiles.values()))
    caption = f"Lengths by split: words between spaces, and tokens with [CLS] and [SEP]; cut off at {profile['data']['max_length']} tokens."
    return display.table(pd.DataFrame(rows), label=label, caption=_labelled(caption, profiles))


def preprocessing(texts: list[str], *, label: str) -> Displayed:
    """What the preprocessing does to some texts."""
    frame = pd.DataFrame({"Text": texts, "After preprocessing": [clean(text) for text in texts]})
    return display.table(frame, label=label, caption="The preprocessing on invented examples.")


def _labelled(caption: str, profiles: dict[str, dict]) -> str:
    synthetic = any(p["data"]["source"] == "embedded" for p in profiles.values())
    return f"Synthetic data (embedded corpus). {caption}" if synthetic else caption


# -- results ----------------------------------------------------------------------------------------------------------


def benchmark(runs: Runs, *, label: str) -> Displayed:
    """Tables 6 to 12: parameters, size, metrics and latency of each model, published values beside ours."""
    rows = [_ours(records) for model in runs.settings.models if (records := runs.of(model))]
    if not any(record.synthetic for record in runs):
        for entry in published()["benchmarks"].get(runs.settings.corpus, []):
            rows += [_quoted(entry, model) for model in runs.settings.models if model in entry]
    caption = f"Results on {runs.records[0]['data']['name']} ({runs.settings.variant}), with published values beside ours."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=" ".join([_reading(runs), *runs.notes]))


def _ours(records: list[Record]) -> dict:
    first, test = records[0], [record["test"] for record in records]
    seeds = f"ours, {len(records)} seeds" if len(records) > 1 else f"ours, seed {first['seed']}"
    at_batch = [record["latency"]["measured"][-1]["per_sentence_ms"] for record in records]
    if len(records) > 1:
        accuracy, low, high = mean_interval([t["accuracy"] for t in test])
    else:
        accuracy, (low, high) = test[0]["accuracy"], accuracy_interval(first)
    return {
        "Model": TITLES[first["model"]], "Result": seeds, "Test sentences": f"{test[0]['n']:,}",
        "Parameters": first["parameters"]["total"], "Size (MB)": f"{first['size_mb']:.2f}",
        "Accuracy": f"{accuracy:.4f}", "95 % interval": f"{low:.4f} to {high:.4f}",
        **{name: f"{mean_interval([t[name.lower()] for t in test])[0]:.4f}" for name in ("F1", "Precision", "Recall")},
        "Inference (ms)": f"{mean_interval(at_batch)[0]:.3f}",
    }  # fmt: skip


def _quoted(entry: dict, model: str) -> dict:
    value = entry[model]

    def text(key: str, form: str) -> str | None:
        return format(value[key], form) if key in value else None

    return {
        "Model": TITLES[model], "Result": f"published: {entry['source']}", "Test sentences": entry["test_set"],
        "Parameters": value.get("total"), "Size (MB)": text("size_mb", ".2f"), "Accuracy": text("accuracy", ".4f"),
        "95 % interval": None, "F1": text("f1", ".4f"), "Precision": text("precision", ".4f"), "Recall": text("recall", ".4f"),
        "Inference (ms)": text("ms", ".4f"),
    }  # fmt: skip


def _reading(runs: Runs) -> str:
    measured = runs.records[0]["latency"]["measured"][-1]
    interval = (
        "The interval is Student's over seeds." if len(runs.settings.seeds) > 1
        else "The interval is Wilson's: the uncertainty of a finite test set, not of training, which one seed cannot show."
    )
    return f"{interval} Our inference time is per sentence at batch {measured['batch']} on {_device(runs.records[0])}; the published ones are on other, unnamed machines."


def latency(runs: Runs, *, label: str) -> Displayed:
    """Latency at each batch size: median and spread over batches."""
    rows = []
    for record in runs:
        for m in record["latency"]["measured"]:
            rows.append({
                "Model": TITLES[record["model"]], "Seed": str(record["seed"]), "Batch": m["batch"], "Median (ms)": f"{m['median_ms']:.2f}",
                "10th to 90th percentile (ms)": f"{m['p10_ms']:.2f} to {m['p90_ms']:.2f}",
                "Per sentence (ms)": f"{m['per_sentence_ms']:.3f}", "Batches": m["batches"], "Threads": m["threads"],
            })  # fmt: skip
    note = f"Measured on {_device(runs.records[0], 'latency')}; whole forward pass from token ids to logits, after warm-up, device synchronized."
    return display.table(pd.DataFrame(rows), label=label, caption="Inference latency on unpadded test sentences.", note=" ".join([note, *runs.notes]))


def _device(record: Record, of: str = "") -> str:
    environment = record[of]["environment"] if of else record["environment"]
    threads = environment["threads"]
    return environment["device"] + (f" ({threads} thread{'s' if threads > 1 else ''})" if environment["device_type"] == "cpu" else "")
