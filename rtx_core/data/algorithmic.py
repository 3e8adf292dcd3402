"""Tasks of which the rule is known: k-hop induction and words over a group, drawn afresh, and random facts.

A text is a row of tokens; a target of `IGNORE_INDEX` is not scored.  Training texts are a pure function of
(seed, step), the validation and test texts of nothing but the settings.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.data.config import FactData, GroupData, HopData, SequenceTask
from rtx_core.data.sources import sha256_of
from rtx_core.data.tasks import EVALUATION_SEED, Autocast, Language, Loss, evaluation_mode, test_entry
from rtx_core.errors import RtxError
from rtx_core.models.packed import Packed
from rtx_core.models.protocols import LoopedDecoder, is_looped

BATCH_TEXTS = 256  # of an evaluation
MIN_LENGTH = 4  # elements of a word to train on
IGNORE_INDEX = -100  # which torch's cross-entropy leaves out


def tensors(inputs: np.ndarray, targets: np.ndarray) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(inputs), torch.from_numpy(targets)


class AlgorithmicTask(Language):
    """What the tasks share.  Each of them gives `vocab_size`, `name` and

    draw(random, n)                    n texts to train on: inputs and targets, (n, N) each
    draw_evaluation(random, n, first)  n texts to evaluate on, of which the first is number `first` of all
    parts, by                          the parts that the test is reported by, such as 0 … 4, and their name: "hops"
    reported_parts                     those that every evaluation reports
    part_of(inputs)                    the index of each position's part, (B, N) or what broadcasts to it
    """

    name: str
    by: str
    parts: Sequence[Any]
    reported_parts: Collection[Any]

    def draw(self, random: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def draw_evaluation(self, random: np.random.RandomState, n: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def part_of(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def __init__(self, config, length: int, batch_size: int, micro_batches: int):
        if micro_batches > 1:  # parts would hold unlike numbers of answers
            raise RtxError(f"micro_batches is {micro_batches}; expected 1, as a step of {self.name} is not split.")
        super().__init__(batch_size, micro_batches, length, eval_batches=0)
        self.config = config
        test = self.test_batches()
        sha256 = sha256_of(array.numpy() for batch in test for array in batch)
        self.facts = {"name": self.name, "source": config.source, "sha256": sha256, "unit": "tokens"}
        n_test = sum(int((targets >= 0).sum()) for _, targets in test)
        self.facts |= {"vocabulary": self.vocab_size, "drawn_afresh": True, "n_train": 0, "n_test": n_test}

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Tensor, Tensor]:
        return tensors(*self.draw(np.random.RandomState([seed, i]), self.batch_size))

    def evaluation_stream(self, texts: int, stream: int) -> list[tuple[Tensor, Tensor]]:
        """Evaluation batches, the same for every run; seeds of three numbers never meet those of training, of two."""
        batches, size = [], min(BATCH_TEXTS, -(-texts // 2))  # a standard error needs two
        for first in range(0, texts, size):
            random = np.random.RandomState([EVALUATION_SEED, stream, first])
            batches.append(tensors(*self.draw_evaluation(random, min(size, texts - first), first)))
        return batches

    @cached_property
    def validation(self) -> list[tuple[Tensor, Tensor]]:
        return self.evaluation_stream(self.config.eval_texts, 0)

    def test_batches(self) -> list[tuple[Tensor, Tensor]]:
        return self.evaluation_stream(self.config.test_texts, 1)

    def evaluate(self, model: nn.Module, device: torch.device, autocast: Autocast) -> dict:
        losses, answers, wrong = self.evaluate_batches(model, self.validation, device, autocast)
        row = {"validation_loss": float((losses * answers.sum(1)).sum() / answers.sum())}
        row["validation_accuracy"] = 1 - float(wrong[-1].sum() / answers.sum())
        errors = (wrong[-1] / answers.sum(0).clamp(min=1)).tolist()
        pairs = zip(self.parts, errors)
        return row | {f"error_{self.by}_{part}": error for part, error in pairs if part in self.reported_parts}

    def test(self, model: nn.Module, device: torch.device, autocast: Autocast) -> tuple[dict, None]:
        """Also the error of each part; of a looped model, after each pass up to twice the trained number too."""
        in_turn = getattr(model.config, "cache", "all") == "last"  # an earlier pass depends on how many follow
        trained = getattr(model.config, "num_passes", 1) if is_looped(model) and not in_turn else 1
        passes = 2 * trained if trained > 1 else 1
        losses, answers, wrong = self.evaluate_batches(model, self.test_batches(), device, autocast, passes)
        of_part, result = answers.sum(0), test_entry(losses, answers.sum(1))
        result["accuracy"] = 1 - float(wrong[trained - 1].sum() / answers.sum())
        errors = (wrong / of_part.clamp(min=1)).T.tolist()
        result["by"], result["parts"] = self.by, []
        for part, n, by_passes in zip(self.parts, of_part.long().tolist(), errors):
            row = {self.by: part, "answers": n, "error": by_passes[trained - 1]}
            result["parts"].append(row | ({"error_by_passes": by_passes} if trained > 1 else {}))
        return result, None

    def evaluate_batches(
        self, model: nn.Module | LoopedDecoder, batches, device, autocast, passes: int = 1
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(mean loss of each batch, its answers by part (batches, parts), wrong ones by pass and part (R, parts)).

        With R `passes` above 1 every number up to that is read; losses are those of the trained number.
        """
        losses, answers, wrong, kinds = [], [], 0, len(self.parts)
        trained = model.config.num_passes - 1 if passes > 1 and is_looped(model) else 0
        with evaluation_mode(model):
            for inputs, targets in batches:
                scored = targets >= 0
                part = self.part_of(inputs).expand_as(targets)[scored].numpy()
                expected, scored = targets[scored].to(device), scored.to(device)
                inputs = inputs.to(device)
                with autocast:
                    if passes == 1 or not is_looped(model):
                        outputs = [model(inputs)[scored]]
                    else:
                        batch, rows = Packed.from_rows(inputs), scored.flatten()
                        states = model.states(batch, passes)
                        outputs = [F.linear(model.output_hidden(state, batch)[rows], model.head) for state in states]
                is_wrong = [(logits.argmax(-1) != expected).cpu().numpy() for logits in outputs]
                wrong = wrong + np.stack([np.bincount(part, m, kinds) for m in is_wrong])
                answers.append(np.bincount(part, minlength=kinds))
                losses.append(F.cross_entropy(outputs[trained].float(), expected).double().cpu())
        return torch.stack(losses), torch.tensor(np.stack(answers)).double(), torch.from_numpy(wrong)


class KHop(AlgorithmicTask):
    """k-hop induction (Sanford et al. 2024): a text is a number of hops k and N letters, no two neighbours equal.

    From a letter one hop leads to the letter that followed its last earlier occurrence; the target of a position is
    the letter that k hops lead to, and there is none where a letter on the way had not occurred before.
    Tokens are the letters 0 … alphabet − 1, "no answer", and a token for each k.
    """

    name = "k-hop induction"
    by = "hops"

    def __init__(self, config: HopData, batch_size: int, micro_batches: int = 1):
        self.alphabet = config.alphabet
        self.parts = self.reported_parts = list(range(config.hops + 1))
        self.vocab_size = self.alphabet + 1 + len(self.parts)
        super().__init__(config, config.letters + 1, batch_size, micro_batches)

    def draw(self, random: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
        none = self.alphabet if self.config.scored == "all" else IGNORE_INDEX
        return self.texts(random, random.randint(len(self.parts), size=n), none)

    def draw_evaluation(self, random: np.random.RandomState, n: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        """As many of each k; only answers count."""
        return self.texts(random, np.arange(first, first + n) % len(self.parts), IGNORE_INDEX)

    def texts(self, random: np.random.RandomState, hops: np.ndarray, none: int) -> tuple:
        steps = random.randint(1, self.alphabet, size=(len(hops), self.config.letters))
        steps[:, 0] = random.randint(self.alphabet, size=len(hops))
        letters = steps.cumsum(1) % self.alphabet  # a step leads to another letter
        inputs = np.concatenate((self.alphabet + 1 + hops[:, None], letters), 1)
        return inputs, np.pad(hop(letters, hops, none), ((0, 0), (1, 0)), constant_values=none)

    def part_of(self, inputs: Tensor) -> Tensor:
        return inputs[:, :1] - (self.alphabet + 1)

    def copying(self, hops: int, guess: int, texts: int = 2000) -> float:
        """The error at `hops` hops of saying the letter `guess` hops away, since chance is not 1 − 1/alphabet."""
        inputs, targets = self.texts(np.random.RandomState(0), np.full(texts, hops), IGNORE_INDEX)
        guesses = hop(inputs[:, 1:], np.full(texts, guess), IGNORE_INDEX)
        scored = targets[:, 1:] != IGNORE_INDEX
        return float((guesses != targets[:, 1:])[scored].mean())


def hop(letters: np.ndarray, hops: np.ndarray, none: int = IGNORE_INDEX) -> np.ndarray:
    """The letter that `hops` (B,) hops lead to from each position of letters (B, N), or `none`: (B, N)."""
    B, N = letters.shape
    place, rows = np.broadcast_to(np.arange(N), (B, N)), np.arange(B)[:, None]
    after = np.full((B, N), -1)  # the position after the last earlier occurrence of the letter
    for letter in np.unique(letters):
        matches = letters == letter
        last = np.maximum.accumulate(np.where(matches, place, -2), 1)  # up to here
        before = np.concatenate((np.full((B, 1), -2), last[:, :-1]), 1)
        after[matches] = before[matches] + 1
    position = place.copy()
    for k in range(hops.max(initial=0)):
        further = np.where(position >= 0, after[rows, position], -1)
        position = np.where(hops[:, None] > k, further, position)
    return np.where(position >= 0, letters[rows, position], none)


class GroupWords(AlgorithmicTask):
    """State tracking as the word problem of a group: of elements x₁ … x_N the target at n is x₁ · … · x_n.

    Tokens are the elements 0 … |G| − 1, and |G| more for an element that begins a text, as rotary positions tell
    offsets alone.  A test is reported by n.  In S3 the order of the factors matters, in Z6 it does not; those of A5 and
    S5 need a depth that grows with the length (Merrill & Sabharwal 2025).
    """

    by = "length"
    reported_parts = (4, 8, 16, 32, 64)

    def __init__(self, config: GroupData, batch_size: int, micro_batches: int = 1):
        self.name, self.parts = f"words over {config.group}", list(range(1, config.letters + 1))
        self.table = products(config.group)
        self.vocab_size = 2 * len(self.table)
        super().__init__(config, config.letters, batch_size, micro_batches)

    def draw(self, random: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Each step has a length of its own, the whole or a half, a quarter, …; the shorter, the more texts."""
        halved = random.randint(1 + int(np.log2(self.config.letters // MIN_LENGTH)))
        return self.texts(random, n << halved, self.config.letters >> halved)

    def draw_evaluation(self, random: np.random.RandomState, n: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        return self.texts(random, n, self.config.letters)

    @cached_property
    def validation(self) -> list[tuple[Tensor, Tensor]]:
        """Of all lengths that are trained on: the longest alone would hardly show what is learned of shorter ones."""
        seeds = [[EVALUATION_SEED, 0, b] for b in range(self.config.eval_texts // 16)]
        return [tensors(*self.draw(np.random.RandomState(seed), 16)) for seed in seeds]

    def texts(self, random: np.random.RandomState, n: int, letters: int) -> tuple[np.ndarray, np.ndarray]:
        inputs = random.randint(len(self.table), size=(n, letters))
        targets = inputs.copy()
        for i in range(1, letters):
            targets[:, i] = self.table[targets[:, i - 1], inputs[:, i]]
        inputs[:, 0] += len(self.table)
        return inputs, targets

    def part_of(self, inputs: Tensor) -> Tensor:
        return torch.arange(inputs.shape[1])[None]


class GroupScan(GroupWords):
    """State tracking with a target for each pass, as in the scan of Hillis & Steele 1986: after pass r, or layer r of a
    model that is run once, it is the product of the last 2^r factors.  The test asks as `GroupWords` does."""

    def loss(self, model: nn.Module, inputs: Tensor, targets: Tensor, step_examples: int) -> Loss:
        """The mean over passes; sums are [losses]."""
        batch, losses = Packed.from_rows(inputs), []
        decoder = looped(model)
        for state, product in zip(pass_states(model, batch), self.scan(inputs)):
            losses.append(decoder.loss(decoder.output_hidden(state, batch), product.flatten()))
        loss = torch.stack(losses).mean() * (targets.numel() / step_examples)
        return loss, (loss.detach() * step_examples).double().reshape(1)

    def scan(self, inputs: Tensor) -> Iterator[Tensor]:
        """(B, N): the products of the last 2, 4, 8, … factors up to each position, or of all there are."""
        table, reach = torch.from_numpy(self.table).to(inputs.device), 1
        product = inputs % len(table)
        while True:
            product = torch.cat((product[:, :reach], table[product[:, :-reach], product[:, reach:]]), 1)
            yield product
            reach = min(2 * reach, inputs.shape[1])


def looped(model: nn.Module) -> LoopedDecoder:
    """The model, or an error where its passes cannot be read."""
    if not is_looped(model) or not hasattr(model.config, "num_passes"):
        kind = f"a model {type(model).__name__}, which has no states(batch) or no config.num_passes"
        raise RtxError(f"Got {kind}; expected both, as `Looped` has them, since each pass has its target.")
    return model


def pass_states(model: nn.Module, batch: Packed) -> Iterator[Tensor]:
    """The state (T, d) of a `Looped` model after each pass, of one that is run once after each layer."""
    decoder = looped(model)
    if decoder.config.num_passes > 1:
        yield from decoder.states(batch)
        return
    state, grid = decoder.word(batch.ids), decoder.grid(batch)
    for layer in decoder.layers:
        state = layer(state, grid)
        yield state


class Facts(AlgorithmicTask):
    """Facts to be learned by heart: a text is a pair (a, b), asked for at b is v, drawn at random once for each pair.

    A model of loss L nats holds facts · (log2 values − L / ln 2) bits of them (Allen-Zhu & Li 2024, 2404.05405).  An
    epoch reads every fact once; test and training are the same facts.  Tokens are the a, the b, then the values.
    """

    name, by = "random facts", "facts"

    def __init__(self, config: FactData, batch_size: int, micro_batches: int = 1):
        random = np.random.RandomState(EVALUATION_SEED)
        pairs = random.permutation(config.keys**2)[: config.facts]
        values = random.randint(config.values, size=config.facts) + 2 * config.keys
        self.inputs = np.stack((pairs // config.keys, config.keys + pairs % config.keys), 1)
        self.targets = np.stack((np.full(config.facts, IGNORE_INDEX), values), 1)
        self.parts = self.reported_parts = [config.facts]
        self.vocab_size = 2 * config.keys + config.values
        self.steps_per_epoch = self.epoch_steps = -(-config.facts // batch_size)
        super().__init__(config, 2, batch_size, micro_batches)
        self.facts |= {"drawn_afresh": False, "n_train": config.facts}

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Tensor, Tensor]:
        epoch, k = divmod(i, self.epoch_steps)
        order = np.random.RandomState([seed, epoch]).permutation(len(self.inputs))
        rows = order[k * self.batch_size : (k + 1) * self.batch_size]
        return tensors(self.inputs[rows], self.targets[rows])

    def examples(self, i: int) -> int:
        remaining = len(self.inputs) - i % self.epoch_steps * self.batch_size
        return self.block_size * min(self.batch_size, remaining)

    def evaluation_stream(self, texts: int, stream: int) -> list[tuple[Tensor, Tensor]]:
        n = min(texts, len(self.inputs))
        size = min(4 * BATCH_TEXTS, -(-n // 2))
        rows = [slice(first, min(first + size, n)) for first in range(0, n, size)]
        return [(torch.from_numpy(self.inputs[r]), torch.from_numpy(self.targets[r])) for r in rows]

    def test_batches(self) -> list[tuple[Tensor, Tensor]]:
        return self.evaluation_stream(len(self.inputs), 1)

    def part_of(self, inputs: Tensor) -> Tensor:
        return torch.zeros(1, 1, dtype=torch.long)


class Sequences(AlgorithmicTask):
    """A task of one's own, as its settings draw it (`config.SequenceTask`)."""

    def __init__(self, config: SequenceTask, batch_size: int, micro_batches: int = 1):
        self.name, self.by, self.vocab_size = type(config).__name__, config.by, config.vocab_size
        self.parts = self.reported_parts = list(config.parts)
        has_name = isinstance(self.by, str) and self.by not in ("", "answers", "error", "error_by_passes")
        valid = [part for part in self.parts if part != "" and (type(part) is str or (type(part) is int and part >= 0))]
        if not has_name or not self.parts or len({*map(str, valid)}) < len(self.parts):
            got = f"{self.name} reports by {self.by!r:.40} the parts {self.parts!r:.80}"
            raise RtxError(f"{got}; expected another name than 'answers' or 'error', and different numbers or words.")
        self.config, self.part_of = config, config.part_of
        inputs = torch.from_numpy(self.draw(np.random.RandomState(0), 2)[0])
        part = self.part_of(inputs).expand_as(inputs)
        if part.is_floating_point() or part.min() < 0 or part.max() >= len(self.parts):
            got = f"{self.name}.part_of gave {part.dtype} from {part.min()} to {part.max()}"
            raise RtxError(f"{got}; expected whole numbers, places in its {len(self.parts)} parts from 0.")
        super().__init__(config, inputs.shape[1], batch_size, micro_batches)

    def draw(self, random: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
        method, (inputs, targets) = f"{type(self.config).__name__}.draw", map(np.asarray, self.config.draw(random, n))
        if inputs.ndim != 2 or inputs.shape != targets.shape or len(inputs) != n:
            raise RtxError(f"{method} gave shapes {inputs.shape} and {targets.shape}; expected ({n}, N) of both.")
        for kind, tokens in (("inputs", inputs), ("targets", targets[targets != IGNORE_INDEX])):
            if not np.issubdtype(tokens.dtype, np.integer) or not ((tokens >= 0) & (tokens < self.vocab_size)).all():
                got = f"{method} gave {kind} of {tokens.dtype} from {tokens.min()} to {tokens.max()}"
                raise RtxError(f"{got}; expected whole numbers from 0 to {self.vocab_size - 1}, or −100 as no target.")
        if not tokens.size:
            raise RtxError(f"{method} gave no target but −100; expected some that are scored.")
        return inputs.astype(np.int64), targets.astype(np.int64)

    def draw_evaluation(self, random: np.random.RandomState, n: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        return self.draw(random, n)


def products(group: str) -> np.ndarray:
    """table[a, b] is the element a · b of Zn, Sn or An, where a · b is b after a, and element 0 changes nothing."""
    n = int(group[1:])
    if group[0] == "Z":
        return np.add.outer(np.arange(n), np.arange(n)) % n
    elements = list(permutations(range(n)))  # of (0, 1, …) in lexical order
    if group[0] == "A":  # those that swap an even number of pairs
        elements = [e for e in elements if round(np.linalg.det(np.eye(n)[list(e)])) == 1]
    number = {element: i for i, element in enumerate(elements)}
    return np.array([[number[tuple(b[i] for i in a)] for b in elements] for a in elements])
