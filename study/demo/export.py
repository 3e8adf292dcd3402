"""Files for the page *Try it*: a trained encoder, a bag of words and the vocabulary, each as one classic script.

A page opened from disk may load such scripts and nothing else.  A script puts {…header, data} into `rtxDemo.files`;
`data` is base64 of arrays that lie one after the other, and `arrays` says of each its type, its shape and the byte at
which it begins.
"""

import base64
import json
from pathlib import Path

import numpy as np
import torch

from rtx_core import data, records
from rtx_core.data.config import ClassificationData
from rtx_core.errors import RtxError
from rtx_core.experiments.weights import load_weights
from rtx_core.paths import write_atomically
from study.demo import measure as demo
from study.measurements import bag_of_words


def script(name: str, header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """The script of a file: arrays of int8, int32, float16 or float32, each padded to a multiple of four bytes."""
    places, parts, at = {}, [], 0
    for key, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        places[key] = {"type": str(array.dtype), "shape": list(array.shape), "at": at}
        parts.append(content + bytes(-len(content) % 4))
        at += len(parts[-1])
    content = header | {"arrays": places, "data": base64.b64encode(b"".join(parts)).decode()}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"var rtxDemo = rtxDemo || {{}};\n(rtxDemo.files = rtxDemo.files || {{}})[{name!r}] = {text};\n".encode()


def encoder_arrays(model: torch.nn.Module, met: np.ndarray, int8: bool = True) -> dict[str, np.ndarray]:
    """The weights by their names, word rows only of the ids in `met`; `NAME.scale` beside an int8 matrix."""
    arrays = {"met": met.astype(np.int32)}
    for name, weight in model.state_dict().items():
        weight = weight[torch.from_numpy(met)] if name == "word.weight" else weight
        if int8 and weight.dim() == 2:
            weight, scale = demo.quantized(weight)
            arrays[f"{name}.scale"] = scale.numpy()
        arrays[name] = weight.numpy()
    return arrays


def words_arrays(pipeline, met: np.ndarray) -> dict[str, np.ndarray]:
    """A fitted bag of words: idf (U,), coefficients (U, C), intercepts (C,), of the U ids in `met`."""
    coefficients, intercept = pipeline[-1].coef_, pipeline[-1].intercept_
    if len(coefficients) == 1:  # of two classes the second alone has any
        coefficients, intercept = np.vstack([0 * coefficients, coefficients]), np.append(0, intercept)
    arrays = {"idf": pipeline[0].idf_[met], "coefficients": coefficients.T[met], "intercept": intercept}
    return {"met": met.astype(np.int32)} | {name: array.astype(np.float32) for name, array in arrays.items()}


def export_demo(address: str, folder: str, source: str = "hub") -> list[Path]:
    """Write NAME-MODEL.js, NAME-words.js, and vocabulary.js of a record "sst2/recurrent-seed0"."""
    record = records.load(address, source)
    config = ClassificationData(**record["config"]["data"])
    task = data.task(config, record["config"]["train"]["batch_size"])
    if task.facts["sha256"] != record["data"]["sha256"]:
        raise RtxError(f"{address} was made on other data than today's; export where it was made.")
    model = load_weights(record)
    met = np.unique(task.parts["train"].ids)
    pipeline, _ = bag_of_words.fit(task.parts["train"], task.parts["test"])
    vocabulary = task.tokenizer().get_vocab()
    origin = {"of": record["name"], "classes": list(config.classes), "max_length": config.max_length}
    header = origin | {"model": record["model"], "record": address, "key": record["key"]}
    header |= {"config": model.config.model_dump()}
    words = origin | {"idf_unmet": float(np.log(1 + len(task.parts["train"])) + 1)}
    name, words_name = f"{record['name']}-{record['model']}", f"{record['name']}-words"
    files = {
        f"{name}.js": script(name, header, encoder_arrays(model, met)),
        f"{words_name}.js": script(words_name, words, words_arrays(pipeline, met)),
        "vocabulary.js": script("vocabulary", {"pieces": sorted(vocabulary, key=vocabulary.get)}, {}),
    }
    for file, content in files.items():
        write_atomically(Path(folder, file), content)
    return [Path(folder, file) for file in files]
