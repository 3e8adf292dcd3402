"""How pictures and tables show what experiments call a registered model with other settings: title, color, marker."""

LOOKS = {
    "gpt-1": ("Standard, 1 layer", "#99cc77", "o"),
    "gpt-2": ("Standard, 2 layers", "#55aa55", "^"),
    "gpt-4": ("Standard, 4 layers", "#338844", "<"),
    "gpt-6": ("Standard, 6 layers", "#117733", "v"),
    "kausik-positions": ("Recurrent, positions", "#e69f00", "D"),
    "control-8": ("Control, 8 layers", "#888888", "<"),
    "control-16": ("Control, 16 layers", "#aaaaaa", ">"),
    "control-long": ("Control, longer", "#222222", "P"),
    "1x1": ("1×1", "#a9c6e0", "o"),  # layers × passes: standard in blue, looped in warm colors
    "2x1": ("2×1", "#7faad3", "v"),
    "3x1": ("3×1", "#558cc2", "^"),
    "4x1": ("4×1", "#2f6aa8", "s"),
    "6x1": ("6×1", "#123f73", "D"),
    "2x2": ("2×2", "#f0a04b", "P"),
    "1x2": ("1×2", "#eab26b", "^"),
    "1x8": ("1×8", "#7a0019", "D"),
    "1x4": ("1×4", "#cc3311", "X"),
    "3x2": ("3×2", "#f4c145", "h"),
    "2x3": ("2×3", "#e07b39", "<"),
    "1x6": ("1×6", "#8f1d3f", ">"),
    "1x6-random": ("1×6, random passes", "#d6457f", "*"),
    "1x4-gated": ("1×4, gated", "#b5651d", "p"),
    "4x1-noise": ("4×1, noise", "#8fb0d9", "s"),
    "1x4-noise": ("1×4, noise", "#e58f80", "X"),
    "bag-of-words": ("Bag of words", "#999933", "X"),
}
