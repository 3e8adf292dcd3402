"""Files for *Watch the loop*: looped decoders whose every pass the page runs and draws, each as one classic script.

Each holds the weights in float32, what its record says of it, and what two counts over fresh texts say:
`heads[step][head]` names where a head looks, and `right[part][step]` is the share of answers that are right after a
step. A step is one application of one layer.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core import records
from rtx_core.data.algorithmic import GroupWords, KHop
from rtx_core.data.config import GroupData, HopData
from rtx_core.errors import RtxError
from rtx_core.evaluate.inside import AT_LEAST
from rtx_core.experiments.weights import load_weights
from rtx_core.models import build_model
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.looped import Looped
from rtx_core.paths import write_atomically
from study.demo.export import script

HERE = 0.4  # of a head's attention on one place, for the page to say what it does in a text, as in toys.js
PASSES = 12  # of a looped model that are counted; the page's slider ends there
TEXTS = 500  # of each part, for the names of heads and the shares that are right
STREAM = 4  # of the generator, beside those of validation (0) and test (1)

# What `looped.js` reads, or what matters in training alone; every other setting has to be the usual one.
READ = {"vocab_size", "hidden_size", "num_layers", "num_passes", "num_heads", "intermediate_size", "rope_base"}
READ |= {"norm_eps", "initializer_std", "lora_scale", "random_passes", "weight_noise"}
UNREAD = {name: field.default for name, field in LoopedConfig.model_fields.items() if name not in READ}


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


def hop_places(inputs: np.ndarray, alphabet: int, hops: int) -> dict[str, np.ndarray]:
    """Where a head could look from each position of k-hop texts (B, N + 1): {kind: positions (B, N + 1)},
    −1 for nowhere."""
    letters = inputs[:, 1:]
    B, N = letters.shape
    earlier = np.full((B, N), -1)  # the last earlier occurrence of the letter
    for t in range(N):
        for s in range(t):
            earlier[letters[:, s] == letters[:, t], t] = s
    found, rows, kinds = np.tile(np.arange(N), (B, 1)), np.arange(B)[:, None], {"earlier": earlier}
    for k in range(1, hops + 1):
        from_here = np.where(found >= 0, earlier[rows, found], -1)
        found = np.where(from_here >= 0, from_here + 1, -1)
        kinds[f"hop{k}"] = found
    kinds = {kind: np.pad(at + (at >= 0), ((0, 0), (1, 0)), constant_values=-1) for kind, at in kinds.items()}
    own = np.tile(np.arange(N + 1), (B, 1))
    return kinds | {"self": own, "back1": own - 1, "question": np.zeros_like(own)}


def word_places(inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The same for words over a group (B, N): itself, so many elements back, the first."""
    own = np.tile(np.arange(inputs.shape[1]), (len(inputs), 1))
    back = {f"back{n}": np.maximum(own - n, -1) for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)}
    return {"self": own, **back, "first": np.zeros_like(own)}


def masses(weights: Tensor, places: dict[str, np.ndarray], asked: np.ndarray) -> np.ndarray:
    """(kinds, H): mean attention to each kind of place from the positions `asked` (B, N) from which all kinds that lead
    somewhere lead to places of their own; a kind is averaged where it leads somewhere."""
    stacked = np.stack(list(places.values()))  # (kinds, B, N)
    ordered = np.sort(stacked, 0)
    apart = asked & ~((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any(0)
    found = []
    for at in stacked:
        b, t = np.nonzero(apart & (at >= 0))
        found.append(weights[b, :, t, at[b, t]].mean(0).numpy() if len(b) else np.zeros(weights.shape[1]))
    return np.stack(found)


def named(mass: np.ndarray, kinds: list[str]) -> list[dict]:
    """What each head does in a step, from mass (kinds, H): {does, share}; as in *Inside the loop*, from AT_LEAST on."""
    best = mass.argmax(0)
    return [
        {"does": kinds[k] if mass[k, head] >= AT_LEAST else "spread", "share": round(float(mass[k, head]), 3)}
        for head, k in enumerate(best)
    ]


def counted(model: Looped, task: KHop | GroupWords) -> dict:
    """`heads` and `right` of a model, over fresh texts: TEXTS of each number of hops, or so many words."""
    hops, steps = isinstance(task, KHop), steps_of(model)
    random = np.random.RandomState([0, STREAM])
    n = TEXTS * len(task.parts) if hops else TEXTS
    inputs, targets = task.fixed(random, n, 0)
    asked = targets >= 0
    part = np.broadcast_to(task.part_of(torch.from_numpy(inputs)).numpy(), targets.shape)
    if hops:  # heads are named where all hops are asked for
        most = part[:, 0] == len(task.parts) - 1
        places = hop_places(inputs[most], task.alphabet, len(task.parts) - 1)
    else:
        most = np.arange(n) < 200
        places = word_places(inputs[most])
    heads, right = [], []
    for weights, state in watched(model, torch.from_numpy(inputs), steps):
        heads.append(named(masses(weights[torch.from_numpy(most)], places, asked[most]), list(places)))
        answers = F.linear(model.norm(state), model.head).argmax(-1).numpy()
        hit = np.bincount(part[asked], (answers == targets)[asked], len(task.parts))
        right.append(hit / np.bincount(part[asked], minlength=len(task.parts)))
    return {"heads": heads, "right": np.round(np.array(right).T, 4).tolist(), "texts": TEXTS}


def steps_of(model: Looped) -> int:
    """How often a layer is applied, at most, where the page counts: twelve passes,
    or all layers of a standard model."""
    config = model.config
    return config.num_layers * (PASSES if config.num_passes > 1 else 1)


def explorer_file(model: Looped, name: str, about: dict, data: dict) -> bytes:
    """The script of a model; `data` are the settings of its task, as a record has them."""
    if not isinstance(model, Looped) or any(getattr(model.config, s) != usual for s, usual in UNREAD.items()):
        raise RtxError(f"{name} is no plain looped decoder; the page runs k-hop and state-tracking models.")
    small = {"eval_texts": 16, "test_texts": 16}  # none of which is read
    if "hops" in data:
        task = KHop(HopData(**data | small), 2)
        facts = {"kind": "hops", "letters": data["letters"], "alphabet": data["alphabet"], "hops": data["hops"]}
    elif data.get("group") == "S3":
        task = GroupWords(GroupData(**data | small), 2)
        facts = {"kind": "cups", "letters": data["letters"]}
    else:
        raise RtxError(f"{name} is of another task; the page runs k-hop and words over S3.")
    header = about | {"task": facts, "config": model.config.model_dump()} | counted(model, task)
    arrays = {key: weight.numpy() for key, weight in model.state_dict().items()}
    return script(name, header, arrays)


def export_explorer(address: str, folder: str, source: str = "generated") -> Path:
    """Write NAME-MODEL.js for a record such as "khop/1x4-seed6", and list it."""
    record = records.at(address, source)
    about = {"model": record["model"], "record": address, "key": record["key"]}
    # runs of the page are told apart by what they are of, not by how long they were trained
    name = f"{record['experiment']}-{record['model']}"
    path = Path(folder, f"{name}.js")
    data = {key: value for key, value in record["config"]["data"].items() if key != "digest"}
    write_atomically(path, explorer_file(load_weights(record), name, about, data))
    write_catalogue(Path(folder))
    return path


def exported(folder: str) -> list[str]:
    """The addresses of the runs whose models lie in a folder."""
    headers = (read_header(path) or {} for path in sorted(Path(folder).glob("*.js")))
    return [header["record"] for header in headers if "record" in header]


def write_catalogue(folder: Path) -> Path:
    """`explorer.js` beside the models: what the page needs to offer them before it loads any;
    few hops and random passes come first."""
    entries = []
    for path in folder.glob("*.js"):
        header = read_header(path)
        if header and "task" in header:
            config = header["config"]
            entry = {"name": path.stem, "model": header["model"], "toy": header["task"]["kind"]}
            entry |= {"layers": config["num_layers"], "passes": config["num_passes"]}
            entry |= {"random": config["random_passes"], "hops": header["task"].get("hops", 0)}
            entries.append(entry)
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
        values = np.frombuffer(data, np.float32, int(np.prod(place["shape"])), place["at"])
        arrays[name] = torch.from_numpy(values.copy()).view(place["shape"])
    model.load_state_dict(arrays)
    return model.eval(), header


def read_header(path: Path) -> dict | None:
    """What a script of `script` says, without its arrays; None for another script."""
    text = path.read_text(encoding="utf-8")
    before, found, content = text.partition("] = ")
    if not found or "rtxDemo.files" not in before:
        return None
    return json.loads(content.rstrip().removesuffix(";"))
