"use strict";
var rtxDemo = rtxDemo || {};

// The explorer's pictures, as SVG: the chain of hops or the cups above the row, and the arcs of a strip.
// `place` maps positions to x: {width, cell, x(item), edge, question, first, last}; items left of its window stand at its edge.
rtxDemo.explorerDraw = function () {
  const SPACE = "http://www.w3.org/2000/svg";

  function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const round = (x) => Math.round(10 * x) / 10;

  const LEAST = 9; // pixels of an item, where many have to be seen

  // Which items are shown, and where, each `least` to `most` pixels wide: all that fit, else a window that ends just after
  // the asked one and reaches back to the item `from`, if need be with narrower items.
  function places(width, length, asked, from, before, least, most) {
    const question = before ? 44 : 0;
    const all = length * least <= width - question;
    const gap = all ? 0 : 16;
    const fit = (size) => Math.max(5, Math.floor((width - question - gap) / size));
    const shown = all ? length : Math.min(length, fit(LEAST), Math.max(fit(least), asked + 2 - from));
    const last = all ? length - 1 : Math.min(length - 1, Math.max(asked + 1, shown - 1));
    const first = last - shown + 1;
    const cell = Math.min(most, (width - question - (first > 0 ? gap : 0)) / shown);
    const left = question + (first > 0 ? gap : 0);
    return {
      width, cell, first, last, left,
      question: before ? question / 2 : 0,
      hidden: first > 0,
      edge: question + gap / 2,
      x: (item) => (item < first ? question + gap / 2 : left + (item - first + 0.5) * cell),
    };
  }

  // An arc from x to a place at its left (or above itself), `height` high.
  function arc(from, to, base, height) {
    const up = base - (4 / 3) * height;
    const lean = 0.1 * (from - to);
    return `M${round(from)},${base} C${round(from - lean)},${round(up)} ${round(to + lean)},${round(up)} ${round(to)},${base}`;
  }

  const arcHeight = (span, most) => Math.min(most, 7 + 3.1 * Math.sqrt(Math.max(0, span)));

  function arrowHead(x, y, size, kind) {
    return svg("path", { d: `M${round(x)},${y} l${-size},${-1.5 * size} l${2 * size},0 z`, class: kind });
  }

  // The hops as arcs: back to the same letter, and a short arrow to the letter after it; `reached` hops are green, others gold.
  function chain(hops, place, height, reached) {
    const base = height - 1;
    const group = svg("svg", { width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const middles = hops.filter((hop) => hop.from > place.first).map(({ from, back }) => (place.x(from) + place.x(back)) / 2);
    const wide = middles.every((x, i) => i === 0 || middles[i - 1] - x > 40); // room for "hop 1" over each
    hops.forEach(({ from, back, to }, i) => {
      const [a, b, c] = [from, back, to].map(place.x);
      const high = arcHeight(a - b, height - 17);
      const drawn = svg("g", { class: reached.has(i + 1) ? "rtx-got" : "" });
      group.append(drawn);
      drawn.append(svg("path", { d: arc(a, b, base, high), class: "rtx-chain" }));
      if (to > place.first) {
        const end = c - 0.24 * place.cell;
        drawn.append(svg("path", { d: `M${round(b)},${base} Q${round((b + end) / 2)},${base - 12} ${round(end)},${base - 4}`, class: "rtx-chain" }));
        drawn.append(arrowHead(end, base, 2.6, "rtx-chain-end"));
      }
      if (from > place.first) {
        const label = svg("text", { x: round((a + b) / 2), y: round(base - high - 4), class: "rtx-hop" });
        label.textContent = wide || i === 0 ? `hop ${i + 1}` : `${i + 1}`;
        drawn.append(label);
      }
    });
    return group;
  }

  // The cups as three lines that cross where a move swaps them, up to the asked move.
  function braid(toy, items, asked, place, height) {
    const group = svg("svg", { width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const rows = [0, 1, 2].map((row) => 8 + (row * (height - 20)) / 2);
    const standing = toy.places(items, asked);
    for (const cup of [0, 1, 2]) {
      let before = place.first > 0 ? standing[place.first - 1][cup] : cup;
      let path = `M${round(place.left - 4)},${rows[before]} H${round(place.left)}`;
      for (let t = place.first; t <= asked; t++) {
        const now = standing[t][cup];
        const [x, y] = [place.x(t) - place.cell / 2, place.x(t) + place.cell / 2];
        path += `C${round((x + y) / 2)},${rows[before]} ${round((x + y) / 2)},${rows[now]} ${round(y)},${rows[now]}`;
        before = now;
      }
      group.append(svg("path", { d: path, class: `rtx-wire rtx-cup-${cup}` }));
      group.append(svg("circle", { cx: round(place.x(asked) + place.cell / 2), cy: rows[before], r: 4.5, class: `rtx-ball rtx-cup-${cup}` }));
    }
    return group;
  }

  // A move as a small crossing of three lines, or what stands where after moves.
  function crossing(move) {
    const made = svg("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true", focusable: "false" });
    move.forEach((to, from) => made.append(svg("path", { d: `M0,${2 + 5 * from} C7,${2 + 5 * from} 7,${2 + 5 * to} 14,${2 + 5 * to}`, class: "rtx-cross" })));
    return made;
  }
  function stack(move) {
    const made = svg("svg", { viewBox: "0 0 10 26", width: 10, height: 26, "aria-hidden": "true", focusable: "false" });
    move.forEach((to, cup) => made.append(svg("circle", { cx: 5, cy: 4 + 9 * to, r: 3.6, class: `rtx-ball rtx-cup-${cup}` })));
    return made;
  }

  // Arcs of every head from the asked item, and dashed those from the item that the next step reads; sources: [{item, heads:
  // [{weights (by token), kind, off, number}]}].  Below them the items again, as `glyph` writes them, or, of a list, a dot
  // for each item, filled where the answer is right.  `asks` is the first token; `marked`: the hop that leads to an item.
  function strip(sources, { items, asked }, asks, before, place, height, glyph, marked) {
    const base = height - 18;
    const group = svg("svg", { width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const arcs = sources.flatMap(({ item, heads }) => heads.flatMap((head) => head.weights.map((weight, token) => ({ source: item, head, weight, token }))));
    const seen = ({ source, weight, token }) => (source === asked ? weight >= 0.04 : weight >= 0.2 && source >= place.first && token >= before && token - before < source);
    const pale = (one) => one.head.kind === "rest" || one.head.off;
    const order = (a, b) => pale(b) - pale(a) || a.weight - b.weight; // what matters lies on top
    for (const { source, head, weight, token } of arcs.filter(seen).sort(order)) {
      const item = token - before;
      const from = place.x(source);
      const shift = (head.number - (sources[0].heads.length + 1) / 2) * Math.min(2.2, place.cell / 9);
      const to = (item < 0 ? place.question : place.x(item)) + shift;
      const strong = 1 + (head.kind === "rest" ? 1.5 : 5) * weight;
      const looks = svg("g", { class: `rtx-look rtx-does-${head.kind}`, "data-head": head.number });
      looks.classList.toggle("rtx-off", head.off);
      looks.classList.toggle("rtx-next", source !== asked);
      looks.style.setProperty("--strong", (head.kind === "rest" ? 0.25 + 0.3 * weight : 0.22 + 0.7 * weight).toFixed(2));
      if (item === source) {
        looks.append(svg("circle", { cx: round(from + shift), cy: base - 9, r: round(2.5 + 2 * weight), fill: "none", "stroke-width": round(0.8 + 2 * weight), class: "rtx-arc" }));
      } else {
        const high = arcHeight(from - to, base - 8) * (0.86 + 0.07 * head.number);
        looks.append(svg("path", { d: arc(from + shift, to, base - 3, Math.min(high, base - 8)), "stroke-width": round(strong), class: "rtx-arc" }));
        looks.append(arrowHead(to, base + 1, round(2.2 + (head.kind === "rest" ? 0.6 : 2) * weight), "rtx-arrow"));
      }
      group.append(looks);
    }
    for (const { item } of sources.slice(1).filter(({ item }) => item >= place.first)) {
      group.append(svg("circle", { cx: round(place.x(item)), cy: height - 8, r: 7, class: "rtx-read" }));
    }
    const letter = (x, text, kind, lower = 0) => {
      const made = svg("text", { x: round(x), y: height - 4 + lower, class: kind });
      made.textContent = text;
      group.append(made);
    };
    if (before) {
      letter(place.question, asks, "rtx-item rtx-later");
    }
    if (place.hidden) {
      letter(place.edge, "…", "rtx-item rtx-later");
    }
    for (let t = place.first; t <= place.last; t++) {
      const kind = `rtx-item ${t > asked ? "rtx-later" : ""} ${t === asked ? "rtx-asked" : ""} ${marked.has(t) ? "rtx-marked" : ""}`;
      if (Array.isArray(glyph)) {
        group.append(svg("circle", { cx: round(place.x(t)), cy: height - 8, r: 3.4, class: `${kind} ${glyph[t] ? "rtx-reached" : "rtx-missed"}` }));
      } else {
        letter(place.x(t), glyph(items[t]), kind);
        if (marked.has(t)) {
          letter(place.x(t), marked.get(t), "rtx-number", 10);
        }
      }
    }
    return group;
  }

  return { svg, places, chain, braid, crossing, stack, strip };
};
