"""TinyStories as llama2.c reads it: sequences of `block_size` tokens, in which a token attends to the stories before its own too."""

from rtx_core.corpora import stories
from rtx_core.training.recipes import Recipe


def data(source: str, recipe: Recipe) -> stories.Stories:
    return stories.data(source, recipe, crossing=True)
