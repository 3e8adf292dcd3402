// If you build one: what fits into so many weights. The counts are those of study/pages/build_one.py, and a test holds both together.

const SIZES = {
  budget: { label: "million weights", value: 30, least: 0.01, most: 100000 },
  vocabulary: { label: "tokens in the vocabulary", value: 32000, least: 2, most: 10000000, whole: true },
  layers: { label: "layers stored", value: 4, least: 1, most: 1000, whole: true },
  passes: { label: "passes", value: 2, least: 1, most: 1000, whole: true },
};

/** What a decoder stores and computes: weights, multiply-adds per token, and numbers in the KV cache per token. */
function decoder(layers, passes, width, vocabulary, injected) {
  const matrices = 4 * width ** 2 + 3 * width * 8 * Math.ceil(width / 3);
  const mixing = injected ? 2 * width ** 2 : 0;
  const inLayers = layers * (matrices + 2 * width);
  return {
    layers, passes, width, injected, inLayers,
    weights: vocabulary * width + inLayers + width + mixing,
    work: layers * passes * matrices + passes * mixing + vocabulary * width,
    cache: 2 * layers * passes * width,
  };
}

/** The widest such decoder with at most so many weights, in steps of a head of 32; null if not even one head fits. */
function widest(layers, passes, vocabulary, room, injected = false) {
  let found = null;
  for (let width = 32; ; width += 32) {
    const next = decoder(layers, passes, width, vocabulary, injected);
    if (next.weights > room) return found;
    found = next;
  }
}

/** The candidates: the layers run once, run again, with their input injected, and the narrow stack of that depth. */
function candidates({ budget, vocabulary, layers, passes }) {
  const room = budget * 1e6;
  return [
    widest(layers, 1, vocabulary, room),
    widest(layers, passes, vocabulary, room),
    widest(layers, passes, vocabulary, room, true),
    widest(layers * passes, 1, vocabulary, room),
  ];
}

if (typeof document !== "undefined") {
  // make() is that of reading.js, which every page loads.
  const short = (n) => Number(n.toPrecision(3)).toLocaleString("en");
  const counted = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const HEADS = ["Model", "width", "weights", "in the layers", "multiply-adds per token", "KV cache"];

  /** The cells of a row. */
  function cells(name, one) {
    if (!one) return [name, "does not fit", "", "", "", ""];
    const millions = [one.weights, one.inLayers, one.work].map((n) => `${short(n / 1e6)} M`);
    return [name, one.width.toLocaleString("en"), ...millions, `${short(one.cache * 2 / 1024)} KiB`];
  }

  function calculator(place) {
    const inputs = Object.entries(SIZES).map(([name, { value, least, most, whole }]) =>
      make("input", { type: "number", name, value, min: least, max: most, step: whole ? 1 : "any", required: true }));
    const form = make("form", {}, ...inputs.map((input) => make("label", {}, input, ` ${SIZES[input.name].label}`)));
    const said = make("p", { className: "rtx-small" });
    const table = make("table", { className: "table" });
    said.setAttribute("role", "status");
    place.replaceChildren(form, said, make("div", { className: "rtx-scroll" }, table));

    const show = () => {
      const wrong = inputs.find((input) => !input.validity.valid);
      if (wrong) {
        const { label, least, most, whole } = SIZES[wrong.name];
        table.replaceChildren();
        said.textContent = `“${label}” needs a ${whole ? "whole " : ""}number from ${least.toLocaleString("en")} to ${most.toLocaleString("en")}.`;
        return;
      }
      said.textContent = "Each model has the greatest width that fits, in steps of 32. The KV cache is per token, in 16 bits.";
      const asked = Object.fromEntries(inputs.map((input) => [input.name, input.valueAsNumber]));
      const { layers, passes } = asked;
      const names = [
        counted(layers, "layer", "layers"), `the same, ${counted(passes, "pass", "passes")}`,
        "the same, its input injected", `narrow stack, ${counted(layers * passes, "layer", "layers")}`,
      ];
      const rows = candidates(asked).slice(0, passes === 1 ? 1 : 4).map((one, i) => cells(names[i], one));
      table.replaceChildren(
        make("thead", {}, make("tr", {}, ...HEADS.map((text) => make("th", { scope: "col" }, text)))),
        make("tbody", {}, ...rows.map(([name, ...rest]) =>
          make("tr", {}, make("th", { scope: "row" }, name), ...rest.map((text) => make("td", {}, text))))),
      );
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }

  document.head.append(make("link", { rel: "stylesheet", href: new URL("demo.css", document.currentScript.src) }));
  document.querySelectorAll(".rtx-sizes").forEach(calculator);
}
