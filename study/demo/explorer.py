"""Files for *Watch the loop*: looped decoders whose every pass the page runs and draws, each as one classic script.

Each holds the weights in float16, what its record says of it, and what two counts over fresh texts say, made with
these weights: `heads[step][head]` names where a head looks, and `right[part][step]` is the share of answers that are
right after a step.  A step is one application of one layer.  The page opens with the texts of `explorer-texts.js`, and
`serves` names the heads, step.head, without which the front page's loop answers them wrongly.
"""

import base64
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core import records
from rtx_core.data.algorithmic import GroupWords, KHop
from rtx_core.data.config import GroupData, HopData
from rtx_core.errors import RtxError
from rtx_core.evaluate import inside
from rtx_core.experiments.weights import load_weights
from rtx_core.foreign import InvalidFile, invalid_file_errors, loads
from rtx_core.models import build_model
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.looped import Looped
from rtx_core.paths import write_atomically
from study.demo.export import script

PASSES = 12  # of a looped model that are counted; the page's slider ends there
TEXTS = 500  # of each part, for the names of heads and the shares that are right
UNREAD = {
    "cache",
    "halting",
    "injection",
    "encoding",
    "lora_rank",
    "state_std",
    "gate",
    "loop_norm",
    "state_norm",
    "num_core_layers",
}
STREAM = 4  # of the generator, beside those of validation (0) and test (1)


@torch.inference_mode()
def watched(
    model: Looped, ids: Tensor, steps: int, off: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[Tensor, Tensor]]:
    """(attention (B, H, N, N), state (B, N, d)) after each application of a layer on texts `ids` (B, N).

    `off` holds (step, head), both from 0: such a head adds nothing to the stream.  Written beside `LlamaBlock`, which
    keeps no attention: softmax(q kᵀ / √D) with q and k rotated (Su et al. 2021), causal.
    """
    (B, N), d, H = ids.shape, model.config.hidden_size, model.config.num_heads
    cos, sin = rotary_table(torch.arange(N), d // H, model.config.rope_base)  # each (N, 1, D/2)
    later = torch.ones(N, N, dtype=torch.bool).triu(1)
    x = model.word(ids)
    for step in range(steps):
        layer = model.layers[step % len(model.layers)]
        q, k, v = F.linear(layer.attention_norm(x), layer.qkv).view(B, N, 3, H, d // H).unbind(2)
        q, k, v = (y.transpose(1, 2) for y in (rotate(q, (cos, sin)), rotate(k, (cos, sin)), v))
        weights = (q @ k.transpose(2, 3) * (d // H) ** -0.5).masked_fill(later, -torch.inf).softmax(-1)
        mixed = weights @ v  # (B, H, N, D)
        mixed[:, [head for at, head in off if at == step]] = 0
        x = x + F.linear(mixed.transpose(1, 2).reshape(B, N, d), layer.out)
        gate, up = F.linear(layer.ffn_norm(x), layer.gate_up).chunk(2, dim=-1)
        x = x + F.linear(F.silu(gate) * up, layer.down)
        yield weights, x


def hop_places(inputs: Tensor, hops: int) -> dict[str, Tensor]:
    """Where a head could look from each token of k-hop texts (B, N): {kind: places (B, N)}, −1 for nowhere."""
    positions, *chain = inside.places(inputs, hops)
    kinds = {"earlier": torch.where(chain[0] >= 0, chain[0] - 1, -1)}
    kinds |= {f"hop{k}": place for k, place in enumerate(chain, 1)}
    return kinds | {"self": positions, "back1": positions - 1, "question": torch.zeros_like(positions)}


def word_places(inputs: Tensor) -> dict[str, Tensor]:
    """The same for words over a group: itself, so many elements back, the first."""
    positions = torch.arange(inputs.shape[1]).expand_as(inputs)
    back = {f"back{n}": (positions - n).clamp(min=-1) for n in (1, 2, 3, 4, 6, 8, 12) if n < inputs.shape[1] - 1}
    return {"self": positions, **back, "first": torch.zeros_like(positions)}


def named(weights: Tensor, places: dict[str, Tensor], tokens: Tensor) -> list[dict]:
    """{does, share} of each head of attention (B, H, N, N): where it looks most, from AT_LEAST on, as in *Inside the
    loop*, from `tokens` (B, N) from which no two kinds lead to one place."""
    ordered = torch.stack(list(places.values())).sort(0).values
    tokens = tokens & ~((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any(0)
    mass = torch.stack([inside.mass(weights.transpose(0, 1), place, tokens) for place in places.values()])
    most = [(round(share, 3), list(places)[kind]) for share, kind in zip(*map(Tensor.tolist, mass.max(0)))]
    return [{"does": kind if share >= inside.AT_LEAST else "spread", "share": share} for share, kind in most]


def counted(model: Looped, task: KHop | GroupWords) -> dict:
    """`heads` and `right` of a model, over fresh texts: TEXTS of each number of hops, or so many words."""
    hops = len(task.parts) - 1 if isinstance(task, KHop) else 0
    n = TEXTS * (hops + 1)
    inputs, targets = map(torch.from_numpy, task.draw_evaluation(np.random.RandomState([0, STREAM]), n, 0))
    scored, part = targets >= 0, task.part_of(inputs).expand_as(targets)
    most = part[:, 0] == hops if hops else torch.arange(n) < 200  # heads are named where all hops are asked for
    places = hop_places(inputs[most], hops) if hops else word_places(inputs[most])
    heads, right, answers = [], [], torch.bincount(part[scored])
    steps = model.config.num_layers * (PASSES if model.config.num_passes > 1 else 1)
    for weights, state in watched(model, inputs, steps):
        heads.append(named(weights[most], places, scored[most]))
        hit = F.linear(model.norm(state), model.head).argmax(-1) == targets
        right.append(torch.bincount(part[scored], hit[scored].double()) / answers)
    return {"heads": heads, "right": np.round(torch.stack(right, 1).numpy(), 4).tolist(), "texts": TEXTS}


def explorer_file(model: Looped, name: str, origin: dict, data: dict) -> bytes:
    """The script of a model; `data` are the settings of its task, as a record has them."""
    plain = isinstance(model, Looped) and not UNREAD & model.config.changes(LoopedConfig()).keys()
    if not plain or ("hops" not in data and data.get("group") != "S3"):
        raise RtxError(f"{name} is no looped decoder of k-hop or of words over S3 that the page can run.")
    settings: dict[str, Any] = data | {"eval_texts": 16, "test_texts": 16}  # none of which is read
    task = KHop(HopData(**settings), 2) if "hops" in data else GroupWords(GroupData(**settings), 2)
    facts = {"kind": "hops" if "hops" in data else "cups"}
    facts |= {key: data[key] for key in ("letters", "alphabet", "hops") if key in data}
    model = deepcopy(model).half().float()  # as the page will run it
    header = origin | {"task": facts, "config": model.config.model_dump()} | counted(model, task)
    return script(name, header, {key: weight.half().numpy() for key, weight in model.state_dict().items()})


def export_explorer(address: str, folder: str, source: str = "generated") -> list[Path]:
    """Write NAME-MODEL.js for a record such as "khop/1x4-seed6", and list it; runs of the page are told apart by what
    they are of, not by how long they were trained."""
    record = records.load(address, source)
    origin = {"model": record["model"], "record": address, "key": record["key"]}
    path = Path(folder, f"{record['experiment']}-{record['model']}.js")
    data = {key: value for key, value in record["config"]["data"].items() if key != "digest"}
    write_atomically(path, explorer_file(load_weights(record), path.stem, origin, data))
    return [path, write_catalogue(Path(folder))]


def exported(folder: str) -> list[str]:
    """The addresses of the runs whose models lie in a folder."""
    headers = (read_header(path) for path in sorted(Path(folder).glob("*.js")))
    return [header["record"] for header in headers if "record" in header]


def write_catalogue(folder: Path) -> Path:
    """`explorer.js` beside the models: what the page needs to offer them before it loads any; few hops and random
    passes come first."""
    entries = []
    for path in folder.glob("*.js"):
        if task := (header := read_header(path)).get("task"):
            config, hops = header["config"], task.get("hops", 0)
            shape = {"layers": config["num_layers"], "passes": config["num_passes"], "random": config["random_passes"]}
            entries.append({"name": path.stem, "model": header["model"], "toy": task["kind"]} | shape | {"hops": hops})
    entries.sort(key=lambda e: (e["toy"] != "hops", e["hops"], not e["random"], -e["passes"], e["layers"], e["name"]))
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    content = f"var rtxDemo = rtxDemo || {{}};\nrtxDemo.explorer = [\n{lines},\n];\n"
    write_atomically(folder / "explorer.js", content.encode())
    return folder / "explorer.js"


def stored_model(path: Path) -> tuple[torch.nn.Module, dict]:
    """The model in a script that `export_explorer` wrote, and what the script says of it."""
    header = read_header(path)
    model, data = build_model("looped", seed=0, **header["config"]), base64.b64decode(header["data"])
    arrays = {}
    for name, place in header["arrays"].items():
        values = np.frombuffer(data, np.float16, int(np.prod(place["shape"])), place["at"])
        arrays[name] = torch.from_numpy(values.astype(np.float32)).view(place["shape"])
    model.load_state_dict(arrays)
    return model.eval(), header


def read_header(path: Path) -> dict:
    """What a script of `script` says, its arrays as they are stored; {} of another script."""
    try:
        with invalid_file_errors():
            before, _, content = path.read_text(encoding="utf-8").partition("] = ")
            return {**loads(content.rstrip().removesuffix(";").encode())} if "rtxDemo.files" in before else {}
    except InvalidFile as error:
        raise RtxError(f"{path} is no script of a model ({error}); take it out of its folder.") from error


def read_texts(folder: str | Path) -> dict[str, dict]:
    """{toy: {letters, serves}} of `explorer-texts.js`."""
    content = Path(folder, "explorer-texts.js").read_text(encoding="utf-8")
    return json.loads(content.partition("explorerTexts = ")[2].rstrip().removesuffix(";"))
