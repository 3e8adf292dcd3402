"""The page *Try it*: a trained encoder in int8 as a page opened from disk can run it."""
