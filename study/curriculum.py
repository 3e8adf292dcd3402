"""State tracking that begins with short products, a loop being run as often as there are factors."""

from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from rtx_core.data.algorithmic import MIN_LENGTH, GroupWords, tensors
from rtx_core.data.tasks import Loss


class GroupCurriculum(GroupWords):
    """Words over a group of at most 4 factors, after every `stage` steps of twice as many, up to all `letters`.

    A text of n factors is trained on with n passes (Fan et al. 2024, 2409.15647, §4); of a model that is run once,
    with its one.  Validation and test are those of `GroupWords`, at the model's own number of passes.
    """

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Tensor, Tensor]:
        random, most = np.random.RandomState([seed, i]), int(np.log2(self.config.letters // MIN_LENGTH))
        halved = most - random.randint(min(i // self.config.stage, most) + 1)
        return tensors(*self.texts(random, self.batch_size << halved, self.config.letters >> halved))

    def loss(self, model: Any, inputs: Tensor, targets: Tensor, step_examples: int) -> Loss:
        looped = partial(model, num_passes=inputs.shape[1]) if getattr(model.config, "num_passes", 1) > 1 else model
        return super().loss(looped, inputs, targets, step_examples)
