"""What a forward pass does with each parameter, seen from the operations that torch dispatches.

Parameters are told apart by their storage and not by their name, so a layer counts as shared only if it is one.
"""

from collections import Counter

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LOOKS_UP = ("aten::embedding", "aten::index_select", "aten::gather")
DRAWS = ("rand", "normal", "bernoulli", "dropout", "multinomial", "uniform", "exponential")


def place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def names_by_storage(model: nn.Module) -> dict[int, list[str]]:
    """The names of the parameters that lie in each storage; more than one where they are shared."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(place(parameter), []).append(name)
    return names


class Applications(TorchDispatchMode):
    """While active, counts for each parameter's storage the operations that join it with other data.

    A tensor made of parameters alone, such as a cast or a merged low-rank update, counts for all of them.  `drawn` are
    the names of operations that draw random numbers, and `looked_up` the storages used as tables.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.sources = {storage: frozenset([storage]) for storage in names_by_storage(model)}
        self.uses: Counter = Counter()  # of (storage, where in it)
        self.looked_up: set[int] = set()
        self.drawn: set[str] = set()
        self.derived: list[Tensor] = []  # kept alive, so that no other tensor takes their place

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result, name = function(*args, **(kwargs or {})), function._schema.name
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if any(word in name for word in DRAWS):
            self.drawn.add(name.removeprefix("aten::"))
        origins = [self.sources.get(place(tensor)) for tensor in inputs]
        if not any(origins):
            return result
        if all(origins):
            together = frozenset(storage for origin in origins for storage in origin or ())
            outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
            for output in outputs:
                if place(output) not in self.sources:
                    self.sources[place(output)] = together
                    self.derived.append(output)
            return result
        for tensor, origin in zip(inputs, origins):
            for storage in origin or ():
                if name in LOOKS_UP:
                    self.looked_up.add(storage)
                else:
                    self.uses[storage, tensor.storage_offset()] += 1
        return result

    def times(self, storage: int) -> int:
        """How often a parameter was applied; of one that is used in slices, the slice used most often."""
        return max((n for (used, _), n in self.uses.items() if used == storage), default=0)
