"use strict";
var rtxDemo = rtxDemo || {};

// The explorer's elements and how they are filled.  `build` makes them once, `render` fills them from what is shown:
// {entry, file, state, toy, names, answers, chain, columns, rows, grids, strips: [{step, heads, shares, length,
// reached}], trail, playing, truth, …}; `heads(item)` is [{weights, off, does, usual}], `trail` an item for each strip, a
// grid {title, rows: [[{best, right, share}, …] or null, …]}.  Text is text alone.
rtxDemo.explorerView = function () {
  const draw = rtxDemo.explorerDraw();
  const words = rtxDemo.explorerWords();
  const rules = rtxDemo.explorerState();
  const NARROW = 560; // pixels
  const FEW = 4; // rows and strips at either end of many
  let made = 0; // elements with an id

  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) {
        node.setAttribute(key, value);
      }
    }
    node.append(...children);
    return node;
  }
  const span = (kind, ...children) => element("span", { class: kind }, ...children);
  const hidden = (text) => span("rtx-hidden", text);
  const button = (text, key, onclick, attributes = {}) => {
    const node = element("button", { type: "button", "data-key": key, ...attributes }, text);
    node.onclick = onclick;
    return node;
  };

  // A group of radio buttons: options are [value, text].
  function choice(legend, name, options, chosen, onchoose) {
    const group = element("fieldset", { class: `rtx-choice rtx-choose-${name}` }, element("legend", {}, legend));
    const id = `rtx-x${++made}`;
    options.forEach(([value, text]) => {
      const input = element("input", { type: "radio", name: id, value, "data-key": `${name}=${value}` });
      input.checked = value === chosen;
      input.onchange = () => onchoose(value);
      group.append(element("label", {}, input, span("", text)));
    });
    return group;
  }

  function build(root, act) {
    const id = `rtx-x${++made}`;
    const parts = {
      root,
      hint: element("p", { class: "rtx-hint" }),
      above: element("div", { class: "rtx-above" }),
      items: element("div", { class: "rtx-items", role: "radiogroup" }),
      chain: element("p", { class: "rtx-hidden" }),
      back: button("‹", "back", () => act.walk(-1)),
      on: button("›", "on", () => act.walk(1)),
      grid: element("table", { class: "rtx-grid" }),
      status: element("p", { class: "rtx-status", role: "status" }),
      play: button("", "play", act.play, { class: "rtx-play" }),
      broken: element("select", { id: `${id}-head`, "data-key": "break" }),
      whole: button("All heads on", "whole", act.whole, { class: "rtx-whole" }),
      counted: element("p", { class: "rtx-counted", role: "status" }),
      dare: element("span", { role: "status" }),
      link: button("Copy a link to this", "link", act.link, { class: "rtx-link" }),
      controls: element("div", { class: "rtx-controls" }),
      slider: element("input", { id, type: "range", min: 1, max: rules.MOST, step: 1, "data-key": "passes" }),
      passes: element("output", { for: id }),
      label: element("label", { for: id }),
      far: button("", "far", act.far, { class: "rtx-far" }),
      how: element("p", { class: "rtx-how" }),
      key: element("ul", { class: "rtx-key" }),
      from: span(""),
      strips: element("ol", { class: "rtx-strips" }),
      source: element("p", { class: "rtx-foot" }),
    };
    parts.slider.oninput = () => act.passes(Number(parts.slider.value));
    parts.broken.onchange = () => act.breakOne(parts.broken.value);
    parts.items.onkeydown = act.key;
    parts.items.onpaste = act.paste;
    parts.strips.onkeydown = toNextHead;
    parts.main = element("div", { class: "rtx-main" }, parts.above, parts.items, parts.chain);
    parts.more = element(
      "details",
      { class: "rtx-more", open: root.classList.contains("full-width") },
      element("summary", { "data-key": "more" }, "More: other models, and where each head looks"),
      parts.controls,
      element("div", { class: "rtx-slide" }, parts.label, parts.slider, parts.passes, parts.far),
      parts.how,
      parts.key,
      element("div", { class: "rtx-headings", "aria-hidden": "true" }, span("", "click a head to switch it off"), parts.from, element("span", { class: "rtx-side" }, span("", "answer so far"), element("span", { class: "rtx-length", title: "of the state's vector where it is asked" }, "length"))),
      parts.strips,
      parts.source,
    );
    parts.more.ontoggle = act.redraw;
    const shuffle = button("Shuffle", "shuffle", act.shuffle);
    root.replaceChildren(
      parts.hint,
      parts.main,
      element("div", { class: "rtx-run" }, parts.play, shuffle, element("span", { class: "rtx-walk" }, parts.back, parts.on), element("span", { class: "rtx-break" }, element("label", { for: `${id}-head` }, "Break this head"), parts.broken), parts.whole),
      element("div", { class: "rtx-answers" }, parts.grid, element("div", {}, parts.status, parts.counted)),
      element("p", { class: "rtx-dare" }, parts.dare, " ", parts.link),
      parts.more,
    );
    return parts;
  }

  function controls(parts, shown, catalogue, act) {
    const { entry, file, state } = shown;
    const names = { hops: "Letters", cups: "Cups" };
    const toys = [...new Set(catalogue.map((one) => one.toy))].map((toy) => [toy, names[toy]]);
    const alike = catalogue.filter((one) => one.toy === entry.toy);
    const usual = Math.min(...alike.map((one) => one.hops));
    const models = alike.map((one) => [one.name, words.model(one, usual)]);
    const groups = [choice("Task", "toy", toys, entry.toy, act.toy), choice("Model", "model", models, entry.name, act.model)];
    if (entry.toy === "hops") {
      const some = Array.from({ length: file.task.hops + 1 }, (_, k) => [k, String(k)]);
      groups.push(choice("Hops", "hops", some, state.hops, act.hops));
    }
    parts.controls.replaceChildren(...groups);
  }

  // The heads of every step as the options of a list; of several that are off their number is chosen.
  function breakable(parts, { entry, file, state, names, steps }) {
    const chosen = [...state.off];
    const option = (value, text) => {
      const node = element("option", { value }, text);
      node.selected = chosen.length === 1 ? value === chosen[0] : !value;
      return node;
    };
    const groups = Array.from({ length: steps }, (_, i) => {
      const { title, part } = words.strip(file.config, i + 1);
      const usual = file.heads[Math.min(i, file.heads.length - 1)];
      const heads = usual.map(({ does }, h) => option(`${i + 1}.${h + 1}`, `head ${h + 1} (${words.head(does, state.hops, names[state.items[state.asked]], entry.toy)[1]})`));
      return element("optgroup", { label: part ? `${title}, ${part}` : title }, ...heads);
    });
    parts.broken.replaceChildren(option("", chosen.length > 1 ? words.count(chosen.length, "head") : "none"), ...groups);
    parts.whole.hidden = !chosen.length;
  }

  // The arrow keys go from head to head.
  function toNextHead(event) {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const heads = [...event.currentTarget.querySelectorAll(".rtx-head")];
    const to = heads[heads.indexOf(event.target) + by];
    if (to && heads.includes(event.target)) {
      to.focus();
      event.preventDefault();
    }
  }

  // What the colors and the dots mean.
  function key(parts, { entry, state, names }) {
    const heads = words.heads(state.hops, names[state.items[state.asked]], entry.toy);
    const said = heads.map(([kind, text]) => element("li", {}, span(`rtx-swatch rtx-does-${kind}`), text));
    parts.key.replaceChildren(...said, ...(entry.toy === "cups" ? [element("li", {}, span("rtx-swatch rtx-right-yes"), "move after which the answer is right")] : []));
  }

  function row(parts, shown, place, act) {
    const { entry, state, toy, chain, names } = shown;
    const cups = entry.toy === "cups";
    const tall = cups ? 56 : place.width < NARROW ? 46 : 54;
    parts.above.replaceChildren(cups ? draw.braid(toy, state.items, state.asked, place, tall) : draw.chain(chain, place, tall, shown.reached));
    const led = new Map(chain.map(({ to }, i) => [to, i + 1]));
    const backs = new Set(chain.map(({ back }) => back));
    parts.items.setAttribute("aria-label", cups ? "Moves; the chosen one is asked" : "Letters; the chosen one is asked");
    const cells = place.hidden ? [span("rtx-gap", "…")] : [];
    for (let t = place.first; t <= place.last; t++) {
      const hop = led.has(t) ? `, hop ${led.get(t)} leads here` : "";
      const cell = button(cups ? "" : names[state.items[t]], t === state.asked ? "asked" : `item=${t}`, () => act.ask(t), {
        class: "rtx-cell",
        role: "radio",
        "aria-checked": String(t === state.asked),
        "aria-label": `${names[state.items[t]]}, ${t + 1} of ${state.items.length}${hop}`,
        tabindex: t === state.asked ? 0 : -1,
        "data-item": t,
      });
      if (cups) {
        cell.append(draw.crossing(toy.moves[state.items[t]]));
      }
      cell.style.width = `${place.cell}px`;
      cell.style.fontSize = `${Math.min(15, 1.2 * place.cell)}px`;
      cell.classList.toggle("rtx-later", t > state.asked);
      cell.classList.toggle("rtx-led", led.has(t));
      cell.classList.toggle("rtx-back", backs.has(t));
      cells.push(cell);
    }
    parts.items.replaceChildren(...cells);
    parts.chain.textContent = cups ? "" : words.chain(chain, state.items, names, state.asked);
  }

  // Passes down, hops or moves across: what a model would answer by then; of many passes the first and the last ones.
  function grid(parts, shown) {
    const { entry, toy, answers, columns, grids, rows, file } = shown;
    const cups = entry.toy === "cups";
    const written = (best) => (cups ? "" : answers[best]);
    const gap = () => element("td", { class: "rtx-between", "aria-hidden": "true" });
    const spread = (cells) => cells.flatMap((some, i) => (i ? [gap(), ...some] : some));
    const titles = grids.map(({ title }) => [element("th", { colspan: columns.length, scope: "colgroup" }, title)]);
    const heads = grids.map(() => columns.map(({ name, unit, truth }) => {
      const answer = truth < 0 ? "–" : cups ? draw.stack(toy.moves[truth]) : answers[truth];
      return element("th", { scope: "col" }, name, span("rtx-unit", unit), span("rtx-truth", answer, hidden(cups ? answers[truth] : "")));
    }));
    const cell = (one, column) => {
      if (!one) {
        return element("td", { class: "rtx-empty" });
      }
      const mark = { yes: "✓", no: "✗", none: "" }[one.right];
      const told = { yes: "right", no: "wrong", none: "nothing is right here" }[one.right];
      const node = element("td", { class: `rtx-is-${one.right}`, "data-answer": answers[one.best], "data-right": one.right }, written(one.best), element("span", { class: "rtx-tick", "aria-hidden": "true" }, mark), hidden(`${cups ? answers[one.best] : ""} ${told}`));
      if (one.share !== undefined && !cups) {
        const share = Math.round(100 * one.share);
        node.append(element("small", { "aria-hidden": "true" }, String(share)), hidden(`, of 100 other sequences ${share} are right`));
      }
      node.style.setProperty("--column", column);
      return node;
    };
    const body = rows.map((number, i) => {
      const cells = grids.map((one) => (one.rows[i] === null ? [element("td", { class: "rtx-ended", colspan: columns.length }, number === one.ended + 1 ? "no second pass" : "")] : columns.map((_, c) => cell(one.rows[i]?.[c], c))));
      const { title } = words.strip(file.config, number * rules.perPass(file.config));
      return element("tr", { "data-pass": number }, element("th", { scope: "row" }, span("rtx-after", "after "), title), ...spread(cells));
    });
    if (rows.length > rules.MOST) {
      const skipped = body.splice(FEW, rows.length - 2 * FEW);
      body.splice(FEW, 0, element("tr", {}, element("td", { class: "rtx-skipped", colspan: 1 + columns.length * grids.length + grids.length - 1 }, `… ${skipped.length} more passes …`)));
    }
    const newest = body.find((one) => Number(one.dataset.pass) === shown.newest);
    newest?.classList.add("rtx-newest");
    const head = element("thead", {}, element("tr", {}, element("td"), ...spread(titles)), element("tr", {}, element("th", { scope: "row" }, cups ? "move" : "right answer"), ...spread(heads)));
    parts.grid.replaceChildren(element("caption", {}, words.caption(entry.toy, file.texts)), head, element("tbody", {}, ...body));
  }

  // The answer's columns, whether it is right, and the state's length.
  function answer(shown, strip) {
    const { entry, toy, answers, truth } = shown;
    const best = strip.shares.indexOf(Math.max(...strip.shares));
    const right = truth < 0 ? "none" : best === truth ? "yes" : "no";
    const columns = element("div", { class: "rtx-columns", "aria-hidden": "true" });
    strip.shares.forEach((share, i) => {
      const column = span(`rtx-column-of ${i === best ? `rtx-best rtx-right-${right}` : ""}`);
      const bar = span("rtx-stick");
      bar.style.setProperty("--share", share.toFixed(4));
      column.append(bar, entry.toy === "cups" ? draw.stack(toy.moves[i]) : span("rtx-of", answers[i]));
      columns.append(column);
    });
    const mark = { yes: "✓", no: "✗", none: "" }[right];
    const verdict = element("span", { class: `rtx-verdict rtx-right-${right}`, "aria-hidden": "true" }, span("rtx-mark", mark), span("rtx-sure", words.percent(strip.shares[best])));
    const length = element("span", { class: "rtx-length", "aria-hidden": "true" }, words.size(strip.length));
    return { node: element("div", { class: "rtx-side" }, columns, verdict, length), best, right };
  }

  function strip(shown, one, place, act) {
    const { file, state, entry, names, answers, toy, chain, trail } = shown;
    const { title, part } = words.strip(file.config, one.step);
    const found = answer(shown, one);
    const nameOf = (item) => names[state.items[item]];
    const called = (does, item) => words.head(does, state.hops, nameOf(item), entry.toy);
    const headsOf = (item) => one.heads(item).map((head, h) => ({ ...head, number: h + 1, kind: called(head.does, item)[0], short: called(head.does, item)[1] }));
    const heads = headsOf(state.asked);
    const looks = (head) => words.looks(head.weights, state.asked, nameOf, toy.before);
    const switches = heads.map((head) => {
      const key = `${one.step}.${head.number}`;
      const usual = called(head.usual, state.asked)[1];
      return button("", `off=${key}`, () => act.off(key), {
        role: "switch", class: `rtx-head rtx-does-${head.kind}`, "aria-checked": String(!head.off), "data-head": head.number,
        "aria-label": `Head ${head.number} in ${title}${part ? `, ${part}` : ""}: ${head.short}`, title: `Head ${head.number}: ${looks(head)}; in most sequences ${usual}. Click to switch it ${head.off ? "on" : "off"}.`,
      });
    });
    switches.forEach((made, h) => made.append(span("rtx-dot", String(h + 1)), span("rtx-does", heads[h].off ? "off" : heads[h].short)));
    const told = heads.map((head) => (head.off ? `head ${head.number} is off` : `head ${head.number}, ${head.short}: ${looks(head)}`));
    const said = { yes: "right", no: "wrong", none: "and nothing is right here" }[found.right];
    const sentence = `${title}${part ? `, ${part}` : ""}: ${told.join("; ")}. Answer: ${answers[found.best]}, ${words.percent(one.shares[found.best])}, ${said}. Length of the state: ${words.size(one.length)}.`;
    const marked = new Map(chain.map(({ to }, i) => [to, i + 1]));
    const height = place.width < NARROW ? 76 : 88;
    const next = trail[one.step - 1];
    const sources = [{ item: state.asked, heads }, ...(next === state.asked ? [] : [{ item: next, heads: headsOf(next) }])];
    const node = element(
      "li",
      { class: "rtx-strip", "data-step": one.step, "data-answer": answers[found.best], "data-right": found.right },
      element("p", { class: "rtx-hidden" }, sentence),
      element("div", { class: "rtx-heads" }, element("p", { class: "rtx-title" }, title, part ? span("rtx-part", ` ${part}`) : ""), element("div", { class: "rtx-switches", role: "group", "aria-label": `Heads of ${title}` }, ...switches)),
      element("div", { class: "rtx-arcs" }, draw.strip(sources, state, words.asks(state.hops), toy.before, place, height, one.reached || ((item) => names[item]), marked)),
      found.node,
    );
    const light = (number) => () => number ? (node.dataset.lit = number) : delete node.dataset.lit;
    switches.forEach((made, h) => {
      made.onpointerenter = made.onfocus = light(h + 1);
      made.onpointerleave = made.onblur = light(0);
    });
    return node;
  }

  // Where items are shown in so many pixels.
  function placed({ entry, state, toy, chain }, width, before) {
    const [least, widest] = entry.toy === "cups" ? [19, 54] : [width < NARROW - 140 ? 20 : 9, 27];
    return draw.places(width, state.items.length, state.asked, Math.min(state.asked, ...chain.map(({ back }) => back)), before, least, widest);
  }

  // What stands under "More".
  function more(parts, shown, catalogue, act) {
    const { state, file, entry, names, strips, toy } = shown;
    controls(parts, shown, catalogue, act);
    key(parts, shown);
    parts.how.textContent = words.how(file);
    const looped = rules.looped(file.config);
    const [usual, most] = [rules.usualPasses(file), rules.trained(file.config)];
    parts.slider.max = rules.mostPasses(file.config);
    parts.slider.value = state.passes;
    parts.slider.disabled = rules.mostPasses(file.config) === 1;
    parts.slider.setAttribute("aria-valuetext", words.passes(file.config, state.passes));
    parts.label.textContent = looped ? "Passes" : "Layers";
    const trained = file.config.random_passes ? `trained with 1 to ${most}, at random` : `trained with ${most}`;
    parts.passes.textContent = looped ? `${state.passes} (${trained})` : `${state.passes} of ${most}`;
    parts.far.hidden = !looped;
    parts.far.textContent = state.passes === rules.FAR ? `Back to ${usual}` : `${rules.FAR} passes`;
    const from = entry.toy === "cups" ? ["where each head looks from the chosen move"] : [`where each head looks from the asked ${names[state.items[state.asked]]}; `, span("rtx-dashes"), " from the letter that is read next"];
    parts.from.replaceChildren(...from);
    const place = placed(shown, parts.paper || parts.from.clientWidth || parts.strips.clientWidth, toy.before);
    const many = strips.length > rules.MOST;
    const kept = many ? [...strips.slice(0, FEW), ...strips.slice(-FEW)] : strips;
    const nodes = kept.map((one) => strip(shown, one, place, act));
    if (many) {
      nodes.splice(FEW, 0, element("li", { class: "rtx-skipped" }, `… ${strips.length - 2 * FEW} more, not drawn …`));
    }
    parts.strips.replaceChildren(...nodes);
  }

  // Fill everything.
  function render(parts, shown, catalogue, act) {
    const focused = parts.root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const { entry } = shown;
    const [verb, item] = entry.toy === "cups" ? ["Choose", "move"] : ["Ask", "letter"];
    parts.root.dataset.toy = entry.toy;
    [parts.back, parts.on].forEach((one, i) => one.setAttribute("aria-label", `${verb} the ${["previous", "next"][i]} ${item}`));
    row(parts, shown, placed(shown, parts.paper || parts.main.clientWidth, 0), act);
    grid(parts, shown);
    breakable(parts, shown);
    parts.play.textContent = shown.playing ? "❚❚ Pause" : "▶ Play";
    if (parts.more.open) {
      more(parts, shown, catalogue, act);
    }
    if (focused) {
      const again = [...parts.root.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused && !one.hidden);
      again?.focus({ preventScroll: true });
    }
  }

  return { build, render };
};
