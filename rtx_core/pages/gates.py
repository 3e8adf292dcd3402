"""SwiGLU to play with: a figure with sliders that a browser draws from disk, without a server, a library or a network.

Its formulas are written once, in the arithmetic that Python and JavaScript share: `functions()` evaluates them here,
`script()` hands the same text to the browser.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import PALETTE

# name -> (arguments, expression); each may use those before it.
FORMULAS: dict[str, tuple[str, str]] = {
    "sigmoid": ("z", "1 / (1 + exp(-z))"),
    "density": ("z", "exp(-z * z / 2) / sqrt(2 * pi)"),  # φ of the standard normal distribution
    "share": ("z", "1 / (1 + 0.2316419 * abs(z))"),
    # P(Z > |z|) to 7.5e-8 (Abramowitz & Stegun 1964, 26.2.17): JavaScript has no error function
    "tail": ("z", "density(z) * share(z) * (0.31938153 + share(z) * (-0.356563782 + share(z) * (1.781477937 + share(z) * "
                  "(-1.821255978 + share(z) * 1.330274429))))"),
    "normal": ("z", "(z >= 0) - (2 * (z >= 0) - 1) * tail(z)"),  # Φ
    "relu": ("z", "max(z, 0)"),
    "relu_slope": ("z", "(z > 0) * 1"),
    "gelu": ("z", "z * normal(z)"),
    "gelu_slope": ("z", "normal(z) + z * density(z)"),
    "swish": ("z, beta", "z * sigmoid(beta * z)"),
    "swish_slope": ("z, beta", "sigmoid(beta * z) * (1 + beta * z * (1 - sigmoid(beta * z)))"),
    "swiglu": ("x, w, b, v, c, beta", "swish(w * x + b, beta) * (v * x + c)"),
    "swiglu_slope": ("x, w, b, v, c, beta", "w * swish_slope(w * x + b, beta) * (v * x + c) + swish(w * x + b, beta) * v"),
}  # fmt: skip

# symbol -> (what it is, smallest, largest, step, at the start)
SLIDERS = {
    "beta": ("β, sharpness of the gate", 0, 10, 0.1, 1),
    "w": ("w, weight of the gate", -3, 3, 0.1, 1),
    "b": ("b, bias of the gate", -3, 3, 0.1, 0),
    "v": ("v, weight of the value", -3, 3, 0.1, 1),
    "c": ("c, bias of the value", -3, 3, 0.1, 0),
}
PRESETS = {"SiLU gate (β = 1)": 1, "linear gate (β = 0)": 0, "close to GELU (β = 1.7)": 1.7, "close to ReLU (β = 10)": 10}

# curve -> (label, colour, dashes, value, slope); expressions in x and the sliders' symbols
CURVES = {
    "relu": ("ReLU(w x + b)", PALETTE[2], "2 4", "relu(w * x + b)", "w * relu_slope(w * x + b)"),
    "gelu": ("GELU(w x + b)", PALETTE[3], "8 3 2 3", "gelu(w * x + b)", "w * gelu_slope(w * x + b)"),
    "swish": ("the gate, Swish(w x + b)", PALETTE[1], "7 4", "swish(w * x + b, beta)", "w * swish_slope(w * x + b, beta)"),
    "swiglu": ("SwiGLU = gate × (v x + c)", PALETTE[0], "", "swiglu(x, w, b, v, c, beta)", "swiglu_slope(x, w, b, v, c, beta)"),
}
REACH = 4  # both axes run from −4 to 4
WIDTH, HEIGHT = 340, 240  # of a panel's plotting area, in its own units


def functions() -> dict[str, Callable]:
    """The formulas as functions of NumPy arrays."""
    scope = {"exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "max": np.maximum, "pi": np.pi}
    for name, (arguments, expression) in FORMULAS.items():
        scope[name] = eval(f"lambda {arguments}: {expression}", scope)  # noqa: S307  (constants of this file)
    return {name: scope[name] for name in FORMULAS}


def script() -> str:
    """The formulas and the curves as JavaScript."""
    lines = ["const {exp, sqrt, abs, max, PI: pi} = Math;"]
    lines += [f"const {name} = ({arguments}) => {expression};" for name, (arguments, expression) in FORMULAS.items()]
    lines += ["const curves = {", *(f"{name}: [{_of_all(value)}, {_of_all(slope)}]," for name, (*_, value, slope) in CURVES.items()), "};"]
    return "\n".join(lines)


def _of_all(expression: str) -> str:
    return f"({{x, w, b, v, c, beta}}) => {expression}"


def interactive() -> Displayed:
    """Two panels, values and gradients, under five sliders.  Not for print: the figure beside it is."""
    drawing = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").replace("// FORMULAS", script())
    drawing = drawing.replace("// CONSTANTS", f"const reach = {REACH}, width = {WIDTH}, height = {HEIGHT};")
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    html = f"<style>\n{style}</style>\n{_body()}\n<script>\n{drawing}</script>"
    plain = "An interactive figure of SwiGLU, ReLU and GELU and their gradients; it needs a browser."
    markdown = f"````{{raw}} html\n{html}\n````"
    return Displayed({"text/markdown": markdown, "text/html": html, "text/plain": plain})


def _body() -> str:
    sliders = "\n".join(
        f'<label><span>{name}</span><input type="range" name="{symbol}" min="{low}" max="{high}" step="{step}" value="{start}">'
        f"<output>{start}</output></label>"
        for symbol, (name, low, high, step, start) in SLIDERS.items()
    )
    buttons = "\n".join(f'<button type="button" data-beta="{beta}">{name}</button>' for name, beta in PRESETS.items())
    keys = "\n".join(
        f'<li><svg viewBox="0 0 34 10" aria-hidden="true"><path d="M1 5H33" stroke="{color}" stroke-dasharray="{dashes}"/></svg>{label}</li>'
        for label, color, dashes, *_ in CURVES.values()
    )
    return f"""<div class="gates" role="group" aria-label="SwiGLU with sliders">
<noscript><p>This figure moves only where JavaScript runs; the figure above it shows the curves at fixed settings.</p></noscript>
<form>
{sliders}
</form>
<p class="presets">{buttons}
<button type="reset">all as at the start</button></p>
<div class="panels">
{_panel("value", "Value")}
{_panel("slope", "Gradient by x")}
</div>
<ul>
{keys}
</ul>
<p class="told" aria-live="polite"></p>
</div>"""


def _panel(kind: str, name: str) -> str:
    """Axes with five ticks each, and an empty path for each curve; what is beyond the axes is cut off."""
    ticks = [f"{tick:g}".replace("-", "−") for tick in np.linspace(-REACH, REACH, 5)]
    across = "".join(
        f'<path class="grid" d="M{x:g} 0V{HEIGHT}"/><text x="{x:g}" y="{HEIGHT + 16}" text-anchor="middle">{tick}</text>'
        for x, tick in zip(np.linspace(0, WIDTH, 5), ticks)
    )
    up = "".join(
        f'<path class="grid" d="M0 {y:g}H{WIDTH}"/><text x="-6" y="{y + 4:g}" text-anchor="end">{tick}</text>'
        for y, tick in zip(np.linspace(HEIGHT, 0, 5), ticks)
    )
    curves = "".join(
        f'<path class="curve {curve}" stroke="{color}" stroke-dasharray="{dashes}"/>' for curve, (_, color, dashes, *_) in CURVES.items()
    )
    return (
        f'<figure><figcaption>{name}</figcaption><svg class="{kind}" viewBox="-24 -6 {WIDTH + 30} {HEIGHT + 28}" role="img" aria-label="{name}">'
        f'{across}{up}<svg width="{WIDTH}" height="{HEIGHT}">{curves}</svg></svg></figure>'
    )
