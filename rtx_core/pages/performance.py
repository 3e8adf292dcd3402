"""Tables and figures of `results/benchmarks/`, which `python -m benchmarks.<name>` writes: what is slow, what is fast, and the floor."""

import numpy as np
import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import COLORS, MARKERS, PALETTE, STYLES, canvas
from rtx_core.pages.runs import runs
from rtx_core.pages.table import title
from rtx_core.pages.text import commit_of, when
from rtx_core.parameters import settings
from rtx_core.paths import REPOSITORY
from rtx_core.results.record import read_json

TARGETS = {"plain, padded to 128": {"baseline": 14, "recurrent": 12}, "transformers' EuroBert, padded to the longest": {"baseline": 4.5}}
FLOOR_TARGET, SENTENCE_TARGET = 1.3, 1.5
GPU_TARGETS = (
    ("a training step of SST-2 against the plain way, padded to 128", "≥ 20 times"),
    ("the report's 14 runs, one seed, full protocol", "≤ 5 minutes"),
    ("the same with five seeds", "≤ 15 minutes"),
    ("Yelp at 512 tokens, of the device's peak 16-bit rate", "≥ 40 %"),
)


def benchmark(name: str, device: str = "cpu") -> dict | None:
    """A recorded benchmark; None where it is not measured."""
    path = REPOSITORY / "results" / "benchmarks" / f"{name}-{device}.json"
    return read_json(path, needs=("benchmark", "environment", "code", "finished")) if path.exists() else None


def missing(name: str, device: str = "cpu") -> Displayed:
    option = "" if device == "cpu" else f" --device {device}"
    return display.text(f"Not measured yet: `python -m benchmarks.{name.replace('-', '_')}{option}` measures it.")


def machine(content: dict) -> str:
    e = content["environment"]
    return f"{e['device']}, {e['threads']} thread{'s' * (e['threads'] > 1)}, torch {e['packages']['torch']}, {when(content['finished'])}, commit {commit_of(content['code'])}"


def _split(contestant: str) -> tuple[str, str]:
    """`baseline, plain, padded to 128` -> the model and the way."""
    return tuple(contestant.split(", ", 1))


def _spread(t: dict) -> str:
    return f"{t['median_ms']:.1f} ({t['p10_ms']:.1f} to {t['p90_ms']:.1f})"


def _verdict(reached: float, target: float | None, more_is_better: bool = True) -> str | None:
    if target is None:
        return None
    return "reached" if (reached >= target) == more_is_better else "not reached"


def steps(*, label: str, device: str = "cpu") -> Displayed:
    """One training step of SST-2 by every way, and how many times longer it takes than ours."""
    if (content := benchmark("training-step", device)) is None:
        return missing("training-step", device)
    ours = {_split(name)[0]: t["median_ms"] for name, t in content["steps"].items() if _split(name)[1] == "this project"}
    rows = []
    for contestant, t in content["steps"].items():
        model, way = _split(contestant)
        ratio, target = t["median_ms"] / ours[model], TARGETS.get(way, {}).get(model)
        rows.append({
            "Model": title(model), "Way": way, "ms a step": _spread(t), "Times ours": f"{ratio:.2f}",
            "Target": f"≥ {target:g}" if target and device == "cpu" else None, "Target is": _verdict(ratio, target) if device == "cpu" else None,
        })  # fmt: skip
    for model, floor in content.get("floor", {}).items():
        ratio = ours[model] / floor["ms"]
        rows.append({
            "Model": title(model), "Way": "floor", "ms a step": f"{floor['ms']:.1f}", "Times ours": f"{1 / ratio:.2f}",
            "Target": f"ours ≤ {FLOOR_TARGET:g} floors: {ratio:.2f}" if model == "baseline" else None,
            "Target is": _verdict(ratio, FLOOR_TARGET, more_is_better=False) if model == "baseline" else None,
        })  # fmt: skip
    caption = (
        f"One training step on {content['batch']} sentences of SST-2, on average {content['tokens_per_step']:.0f} tokens, the longest {content['longest_per_step']:.0f}: "
        "median with 10th and 90th percentile, the contestants taking turns in one process."
    )
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=f"{machine(content)}.")


def floor(*, label: str) -> Displayed:
    """What the floor is made of."""
    if (content := benchmark("training-step")) is None:
        return missing("training-step")
    rows = {
        "Matrix products a step (GFLOP)": lambda f: f"{f['gflops_per_step']:.2f}",
        "Best rate measured for these shapes (GFLOP/s)": lambda f: f"{f['gflops_per_second']:.0f}",
        "Matrix products (ms)": lambda f: f"{f['matrix_products_ms']:.1f}",
        "Parameters that AdamW must update": lambda f: f["parameters_updated"],
        "Copy rate measured (GB/s, read and written)": lambda f: f"{f['copy_gb_per_second']:.1f}",
        "AdamW, 28 bytes a parameter (ms)": lambda f: f"{f['adamw_ms']:.1f}",
        "Floor (ms)": lambda f: f"{f['ms']:.1f}",
    }
    frame = pd.DataFrame({"": list(rows)} | {title(model): [show(f) for show in rows.values()] for model, f in content["floor"].items()})
    return display.table(frame, label=label, caption="The floor of a training step: what its matrix products and AdamW's memory traffic must cost here.")


def ablation(*, label: str) -> Displayed:
    """What each part gains, added one after the other."""
    if (content := benchmark("training-step")) is None or "ablation" not in content:
        return missing("training-step")
    rows, before = [], None
    for what, t in content["ablation"].items():
        rows.append({"Step of the baseline": what, "ms a step": _spread(t), "Gain (ms)": None if before is None else f"{before - t['median_ms']:.1f}"})
        before = t["median_ms"]
    return display.table(pd.DataFrame(rows), label=label, caption="The parts of the fast step, added one after the other to a packed step in eager mode.",
                         note=f"{machine(content)}.")  # fmt: skip


def breakdown(*, label: str) -> Displayed:
    """Where a step's time goes, before and after."""
    if (content := benchmark("training-step")) is None:
        return missing("training-step")
    found = pd.DataFrame(content["breakdown"]).T.fillna(0.0)
    found = found[found.sum().sort_values(ascending=False).index]
    fig, (left, right) = canvas(2, height=2.7, sharey=True)
    for ax, shown in ((left, found), (right, 100 * found.div(found.sum(axis=1), axis=0))):
        done = np.zeros(len(found))
        for kind, color, hatch in zip(found, PALETTE, ("", "//", "..", "xx", "--", "oo")):
            ax.barh(found.index, shown[kind], left=done, label=kind, color=color, edgecolor="black", linewidth=0.4, hatch=hatch)
            done += shown[kind].to_numpy()
    left.set(xlabel="ms a step")
    right.set(xlabel="share of the step (%)")
    left.invert_yaxis()
    fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    said = "; ".join(f"{way}: " + ", ".join(f"{kind} {ms:.0f} ms" for kind, ms in row.items()) for way, row in found.iterrows())
    caption = (
        "One training step of the baseline by kind of work, in the plain way, packed but eager, and as the trainer does it: the profiler's own times "
        "of the calling thread, which make a step slower than it is unobserved."
    )
    return display.figure(fig, label=label, caption=caption, alt=f"Stacked bars. {said}.")


def by_size(*, label: str, device: str = "cpu") -> Displayed:
    """Cost against the length of sentences and their number, on logarithmic axes."""
    if (content := benchmark("training-step", device)) is None:
        return missing("training-step", device)
    fig, axes = canvas(2, sharey=True)
    frame, said = pd.DataFrame(content["by_size"]), []
    for ax, swept, what in zip(axes, ("length", "batch"), ("tokens a sentence, 16 sentences", "sentences of 16 tokens")):
        for n, (who, rows) in enumerate(frame[frame["swept"] == swept].groupby("who")):
            model = _split(who)[0] if ", " in who else who
            plain = who.endswith("plain")
            ax.plot(rows[swept], rows["median_ms"], color=COLORS[model], marker=MARKERS[model], linestyle=STYLES[1 if plain else 0],
                    markerfacecolor="white" if plain else None, label=f"{title(model)}, {'plain' if plain else 'this project'}")  # fmt: skip
            said.append(f"{what}, {who}: {rows['median_ms'].iloc[0]:.0f} ms at {rows[swept].iloc[0]}, {rows['median_ms'].iloc[-1]:.0f} ms at {rows[swept].iloc[-1]}")
        ax.set(xscale="log", yscale="log", xlabel=what, ylabel="ms a step")
        ax.set_xticks(sorted(frame[frame["swept"] == swept][swept].unique()), labels=sorted(frame[frame["swept"] == swept][swept].unique()))
        ax.minorticks_off()
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    caption = "Time of a training step against the length of the sentences (left) and their number (right); made-up sentences of one length, so nobody pads."
    return display.figure(fig, label=label, caption=caption, alt=f"Two log-log plots. {'; '.join(said)}.")


def sentence(*, label: str) -> Displayed:
    """One sentence, by every way."""
    if (content := benchmark("latency")) is None:
        return missing("latency")
    rows = []
    for model, found in content["models"].items():
        reading = min(t["median_ms"] for way, t in found.items() if way.startswith("reading"))
        for way, t in found.items():
            if not isinstance(t, dict):
                continue
            ratio, ours = t["median_ms"] / reading, way == "packed, prepared for serving"
            rows.append({
                "Model": title(model), "Way": way, "ms a sentence": f"{t['median_ms']:.2f} ({t['p10_ms']:.2f} to {t['p90_ms']:.2f})", "Times the floor": f"{ratio:.2f}",
                "Target": f"≤ {SENTENCE_TARGET:g}" if ours else None, "Target is": _verdict(ratio, SENTENCE_TARGET, more_is_better=False) if ours else None,
            })  # fmt: skip
        if found["matrix_products_ms"] is not None:
            rows.append({"Model": title(model), "Way": "its matrix products alone, 13 tokens", "ms a sentence": f"{found['matrix_products_ms']:.2f}",
                         "Times the floor": f"{found['matrix_products_ms'] / reading:.2f}"})  # fmt: skip
    caption = (
        f"One sentence of SST-2, on average {content['tokens_per_sentence']:.0f} tokens, from token ids (in the plain way from text) to logits: "
        "median with 10th and 90th percentile. The floor is reading every weight outside the embedding once, by the faster of two ways."
    )
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=f"{machine(content)}.")


def startup(*, label: str) -> Displayed:
    """What a reader waits for."""
    if (content := benchmark("startup")) is None:
        return missing("startup")
    took = content["imports"]
    rows = [
        ("import torch", took["torch"], None, None),
        ("import rtx_core", took["rtx_core"], "< 2", took["rtx_core"] < 2),
        ("import of all that a training run needs, torch deducted", took["everything a training run imports"] - took["torch"], None, None),
        ("import rtx_core, python's own start deducted", took["rtx_core"] - took["python alone"], "< 0.2", took["rtx_core"] - took["python alone"] < 0.2),
        ("the whole book", content["book"]["whole"], None, None),
        ("the book, nothing changed", content["book"]["nothing changed"], None, None),
        ("the book, one record changed", content["book"]["one record changed"], "< 20", content["book"]["one record changed"] < 20),
    ]
    frame = pd.DataFrame([
        {"What": what, "Seconds": f"{seconds:.2f}", "Target": target, "Target is": None if good is None else "reached" if good else "not reached"}
        for what, seconds, target, good in rows
    ])  # fmt: skip
    return display.table(frame, label=label, caption="Seconds until a reader can go on; `rtx_core` loads its parts when they are first used.", note=f"{machine(content)}.")


def gpu_targets(*, label: str) -> Displayed:
    """What a GPU should reach; a row says so where it is not measured."""
    content, reached = benchmark("training-step", "cuda"), {}
    if content is not None:
        t = {name: found["median_ms"] for name, found in content["steps"].items()}
        ratios = [t[f"{model}, plain, padded to 128"] / t[f"{model}, this project"] for model in ("baseline", "recurrent")]
        reached[GPU_TARGETS[0][0]] = ", ".join(f"{ratio:.1f} times" for ratio in ratios)
    rows = [{"On one GPU": what, "Target": target, "Measured": reached.get(what, "not measured yet")} for what, target in GPU_TARGETS]
    note = f"{machine(content)}." if content else ""
    return display.table(pd.DataFrame(rows), label=label, caption="What one GPU should reach.", note=note)


def memory(*, label: str) -> Displayed:
    """The peak of each recorded run on SST-2."""
    rows = [
        {"Run": "/".join(record.path.parts[-2:]).removesuffix(".json"), "Device": record["environment"]["device"],
         "Peak (MiB)": f"{record['peak_memory_mib']:,.0f}", "Target": "< 2,048" if record["environment"]["device_type"] == "cpu" else None,
         "Target is": _verdict(record["peak_memory_mib"], 2048, more_is_better=False) if record["environment"]["device_type"] == "cpu" else None}
        for split in ("seeded", "official") for record in runs(settings("sst2", {"split": split}))
    ]  # fmt: skip
    return display.table(pd.DataFrame(rows), label=label, caption="Most memory held while training, from the records.") if rows else display.text("Not measured yet.")


def told() -> Displayed:
    """The results on the CPU in sentences."""
    if (content := benchmark("training-step")) is None:
        return missing("training-step")
    t = {name: found["median_ms"] for name, found in content["steps"].items()}
    sentences = []
    for model in ("baseline", "recurrent"):
        ours, floor = t[f"{model}, this project"], content["floor"][model]
        plain, tight = t[f"{model}, plain, padded to 128"], t[f"{model}, plain, padded to the longest"]
        sentences.append(
            f"A step of {title(model)} takes {ours:.0f} ms, the plain way {plain:.0f} ms, {plain / ours:.1f} times as long, and still {tight / ours:.1f} "
            f"times as long when it pads to the longest sentence of the batch only. The floor is {floor['ms']:.0f} ms; ours is {ours / floor['ms']:.2f} times that. "
            f"With these matrix products at the better of the two libraries' rates and nothing else, the plain way would take {plain / floor['ms']:.1f} times as long."
        )
    public = t.get("baseline, transformers' EuroBert, padded to the longest")
    if public is not None:
        ours, floor = t["baseline, this project"], content["floor"]["baseline"]["ms"]
        sentences.append(
            f"The public library's step takes {public:.0f} ms, {public / ours:.1f} times as long as ours; at the floor it would be {public / floor:.1f} times."
        )
    if (compiled := content.get("compiled")) is not None:
        eager, fast = (compiled[way]["median_ms"] for way in ("packed, eager", "packed, torch.compile"))
        sentences.append(
            f"torch.compile on the plain formulation of the blocks, for any number of tokens, gives {fast:.0f} ms where eager gives {eager:.0f} ms, after "
            f"{compiled['compile_seconds']:.0f} seconds of compilation; the trainer does without it and without a compiler."
        )
    sentences.append(f"Of the {content['rows']:,} rows of the embedding, {content['rows_trained']:,} occur in the data and are trained.")
    return display.text("\n\n".join(sentences) + f"\n\nMeasured on {machine(content)}.")
