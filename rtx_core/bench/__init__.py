"""Tools for a loop of one's own: `check` looks whether it is one, and whether it is sound."""
