"""Performance."""

from collections.abc import Mapping

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.benchmarks import (
    bf16_gain,
    floor_share,
    graph_steps,
    kernel_shares,
    kind_shares,
    layer_gains,
    median,
    step_ms,
    story_gain,
)
from study.analysis.classifiers import PAIR, of_model
from study.analysis.wording import span

PLAIN, PADDED = "plain, padded to the longest", "plain, padded to 128"
PACKED, PREPARED = "packed, the model as it is", "packed, prepared for serving"


def quantities(local: Mapping, amd: Mapping, xeon: Mapping, gpu: Mapping, yelp: list[Record]) -> Quantities:
    """Of benchmarks by their names, as recorded on the page's machine, on a CPU with avx512_bf16, on one with AMX and
    on a GPU; and of runs on Yelp."""

    def plain_over_ours(benchmarks: Mapping, model: str, way: str = PLAIN) -> float:
        return step_ms(benchmarks["training-step"], model, way) / step_ms(benchmarks["training-step"], model)

    def fastest(benchmarks: Mapping, model: str) -> bool:
        """Whether our step is the fastest at 32 bits, and faster with 16-bit products."""
        steps = benchmarks["training-step"]["steps"]
        others = [median(steps, name) for name in steps if name.startswith(f"{model}, ") and "this project" not in name]
        ours = median(steps, f"{model}, this project")
        return median(steps, f"{model}, this project, bf16") < ours < min(others)

    def share(benchmarks: Mapping, model: str, kind: str) -> float:
        return kind_shares(benchmarks["training-step"])[model][kind]

    def floor(benchmarks: Mapping, model: str) -> float:
        return floor_share(benchmarks["training-step"], model)

    def gains(benchmarks: Mapping, texts: str = "steps") -> list[float]:
        return [bf16_gain(benchmarks["training-step"], model, texts) for model in PAIR]

    def instructions(benchmarks: Mapping, name: str) -> list[str]:
        return benchmarks[name]["environment"]["instructions"]

    def device(benchmarks: Mapping, name: str) -> str:
        return benchmarks[name]["environment"]["device"]

    def recurrence_gain(benchmarks: Mapping) -> float:
        steps = benchmarks["recurrence"]["steps"]
        return median(steps, "this project") / median(steps, "this project, bf16")

    def sentence(benchmarks: Mapping, model: str, way: str = PACKED) -> float:
        return median(benchmarks["latency"], "models", model, way)

    def served(model: str, batch: int, products: str = "32 bits") -> float:
        return median(gpu["latency"], "served", model, f"batch of {batch}, {products}")

    def peak(model: str) -> float:
        """MiB of the GPU's memory that training on Yelp took."""
        return of_model(yelp, model)[0]["peak_memory_mib"]

    def graphs() -> Mapping:
        return graph_steps(gpu["graphs"])

    def graph_share(name: str) -> float:
        """What the kernels take of a step as a graph."""
        return graphs()[name].kernels / graphs()[name].graph

    def times_beside(name: str) -> float:
        """How many times as long a program takes beside two others."""
        took = amd["busy"]["took"][name]
        return took["beside_s"] / took["alone_s"]

    def decimal(value: float) -> str:
        return number(value, ".1f")

    numbers = {
        # A training step
        "step_of_plain": lambda: number(1 / plain_over_ours(local, "baseline"), ".0%"),
        "floor": lambda: number(floor(local, "baseline"), ".0%"),
        "times_padded": lambda: decimal(plain_over_ours(local, "baseline", PADDED)),
        # 16 bits
        "amd_sentences": lambda: span(gains(amd), decimal),
        "amd_long_texts": lambda: span(gains(amd, "long_texts"), decimal),
        "amd_stories": lambda: decimal(story_gain(amd["decoder"])),
        "xeon_sentences": lambda: span(gains(xeon), lambda gain: number(gain, ".2f")),
        "xeon_long_texts": lambda: span(gains(xeon, "long_texts"), decimal),
        "xeon_stories": lambda: decimal(story_gain(xeon["decoder"])),
        "xeon_recurrence": lambda: decimal(recurrence_gain(xeon)),
        "xeon_no_products": lambda: number(1 - share(xeon, "baseline", "matrix products"), ".0%"),
        # One sentence, in milliseconds
        "xeon_baseline_sentence": lambda: decimal(sentence(xeon, "baseline")),
        "xeon_recurrent_sentence": lambda: decimal(sentence(xeon, "recurrent")),
        "xeon_baseline_prepared": lambda: decimal(sentence(xeon, "baseline", PREPARED)),
        "xeon_recurrent_prepared": lambda: decimal(sentence(xeon, "recurrent", PREPARED)),
        "gpu_baseline_sentence": lambda: decimal(sentence(gpu, "baseline")),
        "gpu_recurrent_sentence": lambda: decimal(sentence(gpu, "recurrent")),
        "gpu_baseline_sixteen": lambda: decimal(served("baseline", 16)),
        "gpu_recurrent_sixteen": lambda: decimal(served("recurrent", 16)),
        "baseline_memory": lambda: number(peak("baseline"), ",.0f"),
        "recurrent_memory": lambda: number(peak("recurrent"), ",.0f"),
        # A step of small models
        "medium": lambda: span(
            [step_ms(amd["training-step"], m, "this project, medium") / step_ms(amd["training-step"], m) for m in PAIR],
            lambda ratio: number(ratio, ".2f"),
        ),
        "others": lambda: words(amd["busy"]["others"]),
        "start_alone": lambda: number(amd["busy"]["took"]["quick start"]["alone_s"], ".0f"),
        "start_beside": lambda: decimal(times_beside("quick start")),
        "tests_alone": lambda: number(amd["busy"]["took"]["tests that train"]["alone_s"], ".0f"),
        "tests_beside": lambda: decimal(times_beside("tests that train")),
        "layers_gain": lambda: span(layer_gains(amd["layers"]), lambda gain: number(gain, ".2f")),
        "layers_kernels": lambda: span(kernel_shares(amd["layers"]), lambda share: number(share, ".0%")),
        "kernels": lambda: span([step.launches for step in graphs().values()], lambda count: number(count, ".0f")),
        "kernels_of_step": lambda: span(
            [step.kernels / step.written for step in graphs().values()], lambda share: number(share, ".0%")
        ),
        "graph_gain": lambda: span([step.written / step.graph for step in graphs().values()], decimal),
    }
    checks = {
        "layers_gain": lambda: [1.05 < min(layer_gains(amd["layers"])) <= max(layer_gains(amd["layers"])) < 1.3],
        "medium": lambda: [
            step_ms(amd["training-step"], m, "this project, medium") > 0.9 * step_ms(amd["training-step"], m)
            for m in PAIR
        ],
        "tests_beside": lambda: [times_beside("quick start") < 3 < times_beside("tests that train") < 4],
        "layers_kernels": lambda: [min(kernel_shares(amd["layers"])) > 0.6],
        "step_of_plain": lambda: [
            plain_over_ours(local, "baseline") > 2,
            plain_over_ours(local, "recurrent") > 2,
            1 < 1 / floor(local, "baseline") < 2,
            all(fastest(local, model) for model in PAIR),
        ],
        "times_padded": lambda: [
            plain_over_ours(local, "baseline", PADDED) > 7,
            median(local["training-step"], "compiled", "packed, torch.compile")
            > 0.9 * median(local["training-step"], "compiled", "packed, eager"),
        ],
        "amd_sentences": lambda: [
            min(gains(amd)) > 1.1
            and [name for name in instructions(amd, "training-step") if "bf16" in name] == ["avx512_bf16"],
            min(gains(amd, "long_texts")) > 1.4,
            story_gain(amd["decoder"]) > 1.5 and device(amd, "decoder") == device(amd, "training-step"),
        ],
        "xeon_sentences": lambda: [
            1 < gains(xeon)[1] < gains(xeon)[0] < 1.3 < gains(xeon, "long_texts")[1] < gains(xeon, "long_texts")[0]
            and all("amx_bf16" in instructions(xeon, name) for name in ("training-step", "decoder"))
        ],
        "gpu_bf16": lambda: [
            all(served(model, n, "bf16 products") > served(model, n) for model in PAIR for n in (1, 16))
        ],
        "gpu_baseline_sentence": lambda: [
            max(served(model, 16) / served(model, 1) for model in PAIR) < 1.2,
            abs(sentence(gpu, "recurrent") / sentence(gpu, "baseline") - 1) < 0.1,
            peak("recurrent") < 0.7 * peak("baseline")
            and all(run["environment"]["device"] == device(gpu, "latency") for run in yelp),
        ],
        "kernels": lambda: [
            max(step.kernels / step.written for step in graphs().values()) < 0.25,
            min(step.written / step.graph for step in graphs().values()) > 2,
        ],
        "graph_floor": lambda: [
            min(map(graph_share, ("facts, 2x2", "98 letters, 1x4, width 256"))) > 0.9,
            max(map(graph_share, ("k-hop, 1x4", "k-hop, 4x1"))) < 0.5,
        ],
    }
    return Quantities(numbers, checks)
