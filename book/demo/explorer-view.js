"use strict";
var rtxDemo = rtxDemo || {};

// The explorer's elements and how they are filled.  `build` makes them once, `render` fills them from what is shown:
// {entry, file, state, toy, names, answers, chain, truth, strips: [{step, heads, shares, length, reached, solved}], trail, playing};
// `heads(item)` is [{weights, off, does, usual}], `trail` an item for each strip.  Text is text alone.
rtxDemo.explorerView = function () {
  const draw = rtxDemo.explorerDraw();
  const words = rtxDemo.explorerWords();
  const rules = rtxDemo.explorerState();
  const NARROW = 560; // pixels
  const FEW = 4; // strips at either end of many
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
  const button = (text, attributes = {}) => element("button", { type: "button", ...attributes }, text);

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
      controls: element("div", { class: "rtx-controls" }),
      hint: element("p", { class: "rtx-hint" }),
      above: element("div", { class: "rtx-above" }),
      items: element("div", { class: "rtx-items", role: "radiogroup" }),
      truth: element("p", { class: "rtx-true" }),
      play: button("", { class: "rtx-play", "data-key": "play" }),
      slider: element("input", { id, type: "range", min: 1, max: rules.MOST, step: 1, "data-key": "passes" }),
      passes: element("output", { for: id }),
      label: element("label", { for: id }),
      far: button("", { class: "rtx-far", "data-key": "far" }),
      from: span(""),
      how: element("p", { class: "rtx-how" }),
      key: element("ul", { class: "rtx-key" }),
      strips: element("ol", { class: "rtx-strips" }),
      status: element("p", { class: "rtx-status", role: "status" }),
      link: button("Copy a link to this", { class: "rtx-link", "data-key": "link" }),
      source: span("rtx-source"),
      counted: span(""),
      whole: button("All heads on", { class: "rtx-whole", "data-key": "whole" }),
    };
    parts.counted.setAttribute("role", "status");
    parts.test = element("div", { class: "rtx-test" }, parts.counted, parts.whole);
    const walk = element("div", { class: "rtx-walk" });
    parts.back = button("‹", { "data-key": "back" });
    parts.on = button("›", { "data-key": "on" });
    const shuffle = button("Shuffle", { "data-key": "shuffle" });
    [[parts.back, () => act.walk(-1)], [parts.on, () => act.walk(1)], [shuffle, act.shuffle], [parts.play, act.play], [parts.far, act.far], [parts.whole, act.whole], [parts.link, act.link]].forEach(([one, does]) => (one.onclick = does));
    walk.append(parts.back, parts.on, shuffle);
    parts.slider.oninput = () => act.passes(Number(parts.slider.value));
    parts.items.onkeydown = act.key;
    parts.items.onpaste = act.paste;
    parts.strips.onkeydown = toNextHead;
    parts.main = element("div", { class: "rtx-main" }, parts.above, parts.items);
    root.replaceChildren(
      parts.controls,
      parts.hint,
      element("div", { class: "rtx-row" }, walk, parts.main, parts.truth),
      element("div", { class: "rtx-run" }, parts.play, parts.label, parts.slider, parts.passes, parts.far),
      parts.status,
      parts.test,
      parts.how,
      parts.key,
      element("div", { class: "rtx-headings", "aria-hidden": "true" }, span("", "click a head to switch it off"), parts.from, element("span", { class: "rtx-side" }, span("", "answer so far"), element("span", { class: "rtx-length", title: "of the state's vector where it is asked" }, "length"))),
      parts.strips,
      element("p", { class: "rtx-foot" }, parts.link, " ", parts.source),
    );
    return parts;
  }

  function controls(parts, shown, catalogue, act) {
    const { entry, file, state } = shown;
    const toys = [...new Set(catalogue.map((one) => one.toy))];
    const groups = [];
    if (toys.length > 1) {
      const names = { hops: "Letters", cups: "Cups" };
      groups.push(choice("Task", "toy", toys.map((toy) => [toy, names[toy]]), entry.toy, act.toy));
    }
    const alike = catalogue.filter((one) => one.toy === entry.toy);
    const usual = Math.min(...alike.map((one) => one.hops));
    const models = alike.map((one) => [one.name, words.model(one, usual)]);
    groups.push(choice("Model", "model", models, entry.name, act.model));
    if (entry.toy === "hops") {
      const some = Array.from({ length: file.task.hops + 1 }, (_, k) => [k, String(k)]);
      groups.push(choice("Hops", "hops", some, state.hops, act.hops));
    }
    parts.controls.replaceChildren(...groups);
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
    const last = entry.toy === "hops" ? [pips(2, 3), "hops right by then in 9 of 10 texts, not only in this one"] : [span("rtx-swatch rtx-right-yes"), "move after which the answer is right"];
    parts.key.replaceChildren(...said, element("li", {}, ...last));
  }

  // So many dots of so many are full.
  const pips = (full, all) => element("span", { class: "rtx-pips", "aria-hidden": "true" }, ...Array.from({ length: all }, (_, i) => span(i < full ? "rtx-full" : "")));

  function row(parts, shown, place, act) {
    const { entry, state, toy, chain, names, truth } = shown;
    const tall = entry.toy === "cups" ? 56 : place.width < NARROW ? 46 : 54;
    parts.above.replaceChildren(entry.toy === "cups" ? draw.braid(toy, state.items, state.asked, place, tall) : draw.chain(chain, place, tall));
    const led = new Map(chain.map(({ to }, i) => [to, i + 1]));
    const backs = new Set(chain.map(({ back }) => back));
    parts.items.setAttribute("aria-label", entry.toy === "cups" ? "Moves; the chosen one is asked" : "Letters; the chosen one is asked");
    const cells = [];
    if (toy.before) {
      cells.push(element("span", { class: "rtx-question", title: "The model reads this first: so many hops are asked for" }, words.asks(state.hops)));
    }
    if (place.hidden) {
      cells.push(span("rtx-gap", "…"));
    }
    for (let t = place.first; t <= place.last; t++) {
      const hop = led.has(t) ? `, hop ${led.get(t)} leads here` : "";
      const cell = button(entry.toy === "cups" ? "" : names[state.items[t]], {
        class: "rtx-cell",
        role: "radio",
        "aria-checked": String(t === state.asked),
        "aria-label": `${names[state.items[t]]}, ${t + 1} of ${state.items.length}${hop}`,
        tabindex: t === state.asked ? 0 : -1,
        "data-key": t === state.asked ? "asked" : `item=${t}`,
        "data-item": t,
      });
      if (entry.toy === "cups") {
        cell.append(draw.crossing(toy.moves[state.items[t]]));
      }
      cell.style.width = `${place.cell}px`;
      cell.style.fontSize = `${Math.min(15, 1.2 * place.cell)}px`;
      cell.classList.toggle("rtx-later", t > state.asked);
      cell.classList.toggle("rtx-led", led.has(t));
      cell.classList.toggle("rtx-back", backs.has(t));
      cell.onclick = () => act.ask(t);
      cells.push(cell);
    }
    parts.items.style.setProperty("--question", `${2 * place.question}px`);
    parts.items.replaceChildren(...cells);
    const answer = truth < 0 ? span("rtx-none", "none") : entry.toy === "cups" ? draw.stack(toy.moves[truth]) : span("rtx-letter", shown.answers[truth]);
    const told = entry.toy === "cups" ? shown.answers[truth] : words.chain(chain, state.items, names, state.asked);
    parts.truth.replaceChildren(span("rtx-hidden", told), span("rtx-caption", "true answer"), answer);
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
    const verdict = span(`rtx-verdict rtx-right-${right}`, span("rtx-mark", mark), span("rtx-sure", words.percent(strip.shares[best])));
    verdict.setAttribute("aria-hidden", "true");
    const length = span("rtx-length", words.size(strip.length));
    length.setAttribute("aria-hidden", "true");
    return { node: element("div", { class: "rtx-side" }, columns, verdict, length), best, right };
  }

  function strip(shown, one, place, act) {
    const { file, state, entry, names, answers, toy, chain, trail } = shown;
    const { title, part } = words.strip(file.config, one.step);
    const found = answer(shown, one);
    const nameOf = (item) => names[state.items[item]];
    const phone = matchMedia("(max-width: 640px)").matches; // as in explorer.css
    const called = (does, item) => words.head(does, state.hops, nameOf(item), entry.toy);
    const headsOf = (item) => one.heads(item).map((head, h) => ({ ...head, number: h + 1, kind: called(head.does, item)[0], short: called(head.does, item)[1] }));
    const heads = headsOf(state.asked);
    const looks = (head) => words.looks(head.weights, state.asked, nameOf, toy.before);
    const switches = heads.map((head) => {
      const key = `${one.step}.${head.number}`;
      const usual = called(head.usual, state.asked)[1];
      const made = element("button", {
        type: "button", role: "switch", class: `rtx-head rtx-does-${head.kind}`, "aria-checked": String(!head.off), "data-key": `off=${key}`, "data-head": head.number,
        "aria-label": `Head ${head.number} in ${title}${part ? `, ${part}` : ""}: ${head.short}`, title: `Head ${head.number}: ${looks(head)}; in most texts ${usual}. Click to switch it ${head.off ? "on" : "off"}.`,
      }, span("rtx-dot", String(head.number)), span("rtx-does", head.off ? "off" : head.short));
      made.onclick = () => act.off(key);
      return made;
    });
    const told = heads.map((head) => (head.off ? `head ${head.number} is off` : `head ${head.number}, ${head.short}: ${looks(head)}`));
    const said = { yes: "right", no: "wrong", none: "and nothing is right here" }[found.right];
    const whole = one.solved === null || state.off.size ? null : one.solved; // it was counted with all heads on
    const solves = whole === null ? "" : ` In 9 of 10 texts ${words.count(whole, "hop")} right by then.`;
    const sentence = `${title}${part ? `, ${part}` : ""}: ${told.join("; ")}. Answer: ${answers[found.best]}, ${words.percent(one.shares[found.best])}, ${said}. Length of the state: ${words.size(one.length)}.${solves}`;
    const marked = new Map(chain.map(({ to }, i) => [to, i + 1]));
    const height = place.width < NARROW ? 76 : 88;
    const next = trail[one.step - 1];
    const sources = [{ item: state.asked, heads }, ...(next === state.asked ? [] : [{ item: next, heads: headsOf(next) }])];
    const node = element(
      "li",
      { class: "rtx-strip", "data-step": one.step, "data-answer": answers[found.best], "data-right": found.right },
      element("p", { class: "rtx-hidden" }, sentence),
      element("div", { class: "rtx-heads" }, element("p", { class: "rtx-title", title: whole === null ? false : `${words.count(whole, "hop")} right by then in 9 of 10 texts, not only in this one` }, title, part ? span("rtx-part", ` ${part}`) : "", whole === null ? "" : pips(whole, file.task.hops)), element("div", { class: "rtx-switches", role: "group", "aria-label": `Heads of ${title}` }, ...switches)),
      element("div", { class: "rtx-arcs" }, draw.strip(sources, state, words.asks(state.hops), toy.before, place, height, one.reached || ((item) => names[item]), marked)),
      found.node,
    );
    const light = (number) => () => number ? (node.dataset.lit = number) : delete node.dataset.lit;
    switches.forEach((made, h) => {
      made.onpointerenter = made.onfocus = light(h + 1);
      made.onpointerleave = made.onblur = light(0);
    });
    return { ...found, node };
  }

  // Fill everything; returns {answer, right} of the last strip.
  function render(parts, shown, catalogue, act) {
    const focused = parts.root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const { state, file, toy, entry, names } = shown;
    parts.root.dataset.toy = entry.toy;
    controls(parts, shown, catalogue, act);
    key(parts, shown);
    parts.how.textContent = words.how(file, rules.solved(file, 1) === 1);
    [parts.back, parts.on].forEach((one, i) => one.setAttribute("aria-label", `${entry.toy === "cups" ? "Choose" : "Ask"} the ${["previous", "next"][i]} ${entry.toy === "cups" ? "move" : "letter"}`));
    const width = parts.paper || parts.main.clientWidth;
    const [least, widest] = entry.toy === "cups" ? [19, 54] : [width < NARROW - 140 ? 20 : 9, 27];
    const place = draw.places(width, state.items.length, state.asked, Math.min(state.asked, ...shown.chain.map(({ back }) => back)), toy.before, least, widest);
    row(parts, shown, place, act);
    const many = shown.strips.length > rules.MOST;
    const kept = many ? [...shown.strips.slice(0, FEW), ...shown.strips.slice(-FEW)] : shown.strips;
    const drawn = kept.map((one) => strip(shown, one, place, act));
    const nodes = drawn.map((one) => one.node);
    if (many) {
      const skipped = shown.strips.length - 2 * FEW;
      nodes.splice(FEW, 0, element("li", { class: "rtx-skipped" }, `… ${skipped} more, not drawn …`));
    }
    parts.strips.replaceChildren(...nodes);
    const { best, right } = drawn.at(-1);
    const from = entry.toy === "cups" ? ["where each head looks from the chosen move"] : [`where each head looks from the asked ${names[state.items[state.asked]]}; `, span("rtx-dashes"), " from the letter that is read next"];
    parts.from.replaceChildren(...from);
    const looped = rules.looped(file.config);
    const unit = looped ? "pass" : "layer";
    const [usual, most] = [rules.usualPasses(file), rules.trained(file.config)];
    parts.slider.max = rules.mostPasses(file.config);
    parts.slider.value = state.passes;
    parts.slider.disabled = rules.mostPasses(file.config) === 1;
    parts.slider.setAttribute("aria-valuetext", words.count(state.passes, unit, looped ? "passes" : "layers"));
    parts.label.textContent = looped ? "Passes" : "Layers";
    const trained = file.config.random_passes ? `trained with 1 to ${most}, at random` : `trained with ${most}`;
    parts.passes.textContent = looped ? `${state.passes} (${trained})` : `${state.passes} of ${most}`;
    parts.far.hidden = !looped;
    parts.far.textContent = state.passes === rules.FAR ? `Back to ${usual}` : `${rules.FAR} passes`;
    parts.test.hidden = state.off.size === 0;
    parts.play.textContent = shown.playing ? "❚❚ Pause" : "▶ Play";
    if (focused) {
      const again = [...parts.root.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused && !one.hidden);
      if (again) {
        again.focus({ preventScroll: true });
      }
    }
    return { answer: shown.answers[best], right, unit: words.count(state.passes, unit, looped ? "passes" : "layers") };
  }

  return { build, render, element };
};
