"""Tools for a loop of one's own: `check` tests whether it is one and is sound, `bench` trains and compares it."""
