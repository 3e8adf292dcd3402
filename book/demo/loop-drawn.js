"use strict";
var rtxDemo = rtxDemo || {};

// What an encoder of this study costs: width d, layers n, passes r; every layer 4 matrices d × d and 3 of d × 4d.
// {parameters, embedding, flops of the forward pass of one text of `tokens` tokens, weights and training in bytes}.
rtxDemo.cost = function (d, n, r, { vocabulary = 30522, classes = 2, tokens = 16 } = {}) {
  const f = 4 * d;
  const matrices = 4 * d * d + 3 * d * f;
  const layer = matrices + 4 * d + 2 * f + d + 2 * d; // with biases and two norms
  const embedding = vocabulary * d;
  const parameters = embedding + 2 * d + d + n * layer + classes * (d + 1); // with two types and a norm
  const flops = n * r * (2 * tokens * matrices + 4 * tokens * tokens * d) + 2 * d * classes;
  const training = 16 * parameters; // weights, gradients and AdamW's two moments, 4 bytes each
  return { parameters, embedding, flops, weights: 4 * parameters, training };
};

// The `count` recorded shapes nearest to one, by the ratios of width, layers and passes.
rtxDemo.nearest = function (runs, d, n, r, count) {
  const ratio = (a, b) => Math.abs(Math.log(a / b));
  const far = (run) => ratio(run.width, d) + ratio(run.layers, n) + ratio(run.passes, r);
  return runs
    .map((run) => ({ ...run, far: far(run) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, count);
};

// <div class="rtx-loop"></div> becomes three sliders, the diagram, the costs and the recorded runs nearest to them.
(function () {
  if (typeof document === "undefined") {
    return;
  }
  const HERE = new URL(".", document.currentScript.src);
  const SLIDERS = { // name: [least, most, step, first]
    Width: [64, 768, 64, 256],
    Layers: [1, 12, 1, 3],
    Passes: [1, 8, 1, 2],
  };
  const share = (layer, layers) => `hsl(${Math.round((360 * layer) / layers)} 60% 55%)`; // a color a layer

  function element(name, attributes = {}, ...children) {
    const svg = ["svg", "g", "rect", "path", "text", "defs", "marker"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  const whole = (value) => value.toLocaleString("en");
  const size = (bytes) => `${whole(Math.round(bytes / 2 ** 20))} MB`;

  // A column a pass, a box a layer, its width that of the model; boxes of one color are the same weights.  With its key.
  function diagram(d, n, r) {
    const column = 130, row = 26, gap = 30;
    const wide = 30 + (d / 768) * 70;
    const height = n * row + 2 * gap;
    const parts = [];
    for (let pass = 0; pass < r; pass++) {
      const middle = pass * column + column / 2;
      for (let i = 0; i < n; i++) {
        const y = height - gap - (i + 1) * row;
        const box = { x: middle - wide / 2, y, width: wide, height: row - 6, rx: 4, fill: share(i, n) };
        parts.push(element("rect", { ...box, "fill-opacity": pass === 0 ? 0.9 : 0.45 }));
        parts.push(element("text", { x: middle, y: y + 14, "text-anchor": "middle" }, `${i + 1}`));
      }
      parts.push(element("text", { x: middle, y: height - 4, "text-anchor": "middle" }, `pass ${pass + 1}`));
      const top = height - gap - n * row - 4;
      const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.5 };
      if (pass < r - 1) {
        const between = middle + column / 2;
        const next = `M ${middle} ${top} V ${top - 10} H ${between} V ${height - gap + 6} H ${middle + column} V ${height - gap - 4}`;
        parts.push(element("path", { ...line, d: next, "marker-end": "url(#rtx-arrow)" }));
      }
      if (pass > 0) {
        const side = middle + wide / 2 + 5;
        const around = `M ${middle} ${height - gap} H ${side} V ${top} H ${middle + 3}`;
        parts.push(element("path", { ...line, d: around, "stroke-dasharray": "3 3", "marker-end": "url(#rtx-arrow)" }));
        parts.push(element("text", { x: side + 2, y: height - gap - 6, "font-size": 12 }, "α"));
      }
    }
    const arrow = { id: "rtx-arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" };
    const head = element("marker", arrow, element("path", { d: "M 0 0 L 8 4 L 0 8 z", fill: "currentColor" }));
    const told = `${n} layers run ${r} times: ${n * r} applied, ${n} owned; the same layer has the same color in each pass`;
    const frame = { viewBox: `0 0 ${r * column} ${height}`, width: r * column, role: "img", "aria-label": told, fill: "currentColor", "font-size": 13 };
    const drawn = element("svg", { ...frame, style: `min-width: ${96 * r}px` }, element("defs", {}, head), ...parts);
    const key = "Boxes of one color are the same weights." + (r > 1 ? " Dashed arrows: from the second pass on, half of what goes into a pass (α = 0.5) is added to what comes out." : "");
    return [element("div", { class: "rtx-scroll" }, drawn), element("p", { class: "rtx-small" }, key)];
  }

  function table(caption, heads, rows) {
    const made = element("table", { class: "table" }, element("caption", {}, caption));
    made.append(element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))));
    const cells = (row) => row.map((text, i) => (i ? element("td", {}, text) : element("th", { scope: "row" }, text)));
    made.append(element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))));
    return element("div", { class: "rtx-scroll" }, made);
  }

  function build(root, number) {
    const runs = JSON.parse(document.querySelector("script.runs")?.textContent ?? "[]");
    const sliders = {};
    const controls = Object.entries(SLIDERS).map(([name, [min, max, step, value]]) => {
      const id = `rtx-loop-${number}-${name}`;
      const input = element("input", { id, type: "range", min, max, step, value });
      const output = element("output", { for: id });
      sliders[name] = { input, output };
      return element("div", { class: "rtx-slider" }, element("label", { for: id, class: "rtx-name" }, name), input, output);
    });
    const shown = element("div", {});
    root.replaceChildren(...controls, shown);

    function draw() {
      const [d, n, r] = Object.values(sliders).map(({ input, output }) => {
        output.textContent = input.value;
        return Number(input.value);
      });
      const looped = rtxDemo.cost(d, n, r);
      const unrolled = rtxDemo.cost(d, n * r, 1);
      const costs = [
        ["Parameters", whole(looped.parameters), whole(unrolled.parameters)],
        ["of them outside the embedding", whole(looped.parameters - looped.embedding), whole(unrolled.parameters - unrolled.embedding)],
        ["Operations for 16 tokens, in millions", whole(Math.round(looped.flops / 1e6)), whole(Math.round(unrolled.flops / 1e6))],
        ["Weights in memory, fp32", size(looped.weights), size(unrolled.weights)],
        ["Weights, gradients and AdamW's moments", size(looped.training), size(unrolled.training)],
      ];
      const near = rtxDemo.nearest(runs, d, n, r, 6).map((run) => [
        run.title,
        `${run.width} × ${run.layers} × ${run.passes}`,
        run.task,
        `${(100 * run.accuracy).toFixed(1)} %`,
        `${run.seeds}`,
      ]);
      shown.replaceChildren(
        ...diagram(d, n, r),
        table("What it costs", ["Cost", "with the loop", `${n * r} layers of its own`], costs),
        table("The recorded runs nearest to it", ["Model", "width × layers × passes", "Task", "Accuracy", "Seeds"], near),
      );
    }
    Object.values(sliders).forEach(({ input }) => (input.oninput = draw));
    draw();
  }

  document.head.append(element("link", { rel: "stylesheet", href: new URL("demo.css", HERE) }));
  document.querySelectorAll(".rtx-loop").forEach(build);
})();
