"""An outsider, which recurs along the sequence instead of in depth: an LSTM (Hochreiter & Schmidhuber 1997).

    i, f, g, o = W x_t + U h_(t−1) + b + b', of which i, f and o pass a sigmoid and g a tanh
    c_t = f c_(t−1) + i g;  h_t = o tanh(c_t)

The forget gate f is of Gers et al. (2000).  `layers` of them are stacked.
"""

from torch import Tensor, nn


class LSTM(nn.Module):
    """Token ids (B, N) -> logits (B, N, V)."""

    def __init__(self, vocab_size: int, width: int = 64, layers: int = 1):
        super().__init__()
        self.word, self.head = nn.Embedding(vocab_size, width), nn.Linear(width, vocab_size)
        self.cells = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.cells(self.word(ids))
        return self.head(states)
