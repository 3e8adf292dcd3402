"use strict";
var rtxDemo = rtxDemo || {};

// <div class="rtx-try" data-demos="sst2"><p>Examples</p><ul><li data-meant="positive">An example.</li></ul></div> becomes a text box, buttons with the examples
// and, for each demo named, the answers of its recurrent model and of its bag of words.  Files are loaded on first use; a link #text=…&passes=3 is a use.  What a visitor types
// becomes text nodes alone.  `data-state` of the element is idle, loading, working, done or failed.
(function () {
  const HERE = new URL(".", document.currentScript.src);
  const MOST = 6; // passes
  const WAIT = 150; // milliseconds after a key
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const loading = new Map();
  function load(path) {
    if (!loading.has(path)) {
      const script = element("script", { src: new URL(path, HERE) });
      const loaded = new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${path} is not in this copy of the book`));
      });
      loading.set(path, loaded);
      document.head.append(script);
    }
    return loading.get(path);
  }

  // Runs in a worker: one answer a pass, until a newer text comes.
  function inWorker(encoder, most) {
    let model, newest;
    function go(state, number) {
      if (number === newest) {
        postMessage({ number, answer: encoder.pass(model, state) });
        if (state.passes < most) {
          setTimeout(go, 0, state, number);
        }
      }
    }
    onmessage = ({ data }) => {
      if (data.file) {
        model = encoder.open(data.file);
      } else {
        newest = data.number;
        go(encoder.start(model, data.ids), data.number);
      }
    };
  }

  function workerOf(file) {
    const source = `"use strict"; (${inWorker})((${rtxDemo.forward})().encoder, ${MOST});`;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.postMessage({ file });
    return worker;
  }

  // A bar a class, with the share in words.
  function bars(list, classes, probabilities) {
    const rows = classes.map((name, c) => {
      const bar = element("span", { class: `rtx-bar rtx-class-${c}`, "aria-hidden": "true" });
      bar.style.setProperty("--share", probabilities[c]);
      return element("li", {}, element("span", { class: "rtx-name" }, name), bar, percent(probabilities[c]));
    });
    list.replaceChildren(...rows);
  }

  // The words of a text, each with a strength from 0 to 1 and what a pointer or a screen reader is told.
  function words(list, shown) {
    const items = shown.map(({ text, strength, told, kind, known }) => {
      const item = element("li", { class: `rtx-word ${kind}`, title: told }, text);
      item.style.setProperty("--strength", strength.toFixed(3));
      item.classList.toggle("rtx-unknown", !known);
      item.append(element("span", { class: "rtx-hidden" }, `, ${told}${known ? "" : ", unknown to the model"}; `));
      return item;
    });
    list.replaceChildren(...items);
  }

  function panelOf(demo, title, compact) {
    const parts = {
      answer: element("ul", { class: "rtx-bars" }),
      passes: element("ol", { class: "rtx-passes" }),
      looked: element("ul", { class: "rtx-words" }),
      bag: element("ul", { class: "rtx-bars" }),
      lit: element("ul", { class: "rtx-words" }),
      source: element("p", { class: "rtx-small" }),
    };
    const heading = (text) => element("p", { class: "rtx-heading" }, text);
    const model = element("section", {}, heading(`Recurrent model${title}`), parts.answer);
    model.append(heading("Its answer after each pass"), parts.passes);
    const rival = element("section", {}, heading(`Bag of words${title}`), parts.bag);
    if (!compact) {
      model.append(heading("Where [CLS] looks in the chosen pass"), parts.looked, parts.source);
      rival.append(heading("What each word speaks for"), parts.lit);
    }
    const body = element("div", { class: "rtx-panel" }, model, rival);
    let file, cut, bag, worker, encoded, answers, number = 0;

    async function ready() {
      await Promise.all(["wordpiece.js", "forward.js"].map(load));
      await Promise.all([`models/${demo}-recurrent.js`, `models/${demo}-words.js`, "models/vocabulary.js"].map(load));
      if (!worker) {
        file = rtxDemo.files[`${demo}-recurrent`];
        cut = rtxDemo.wordPiece(rtxDemo.files.vocabulary.pieces);
        bag = rtxDemo.bagOfWords(rtxDemo.files[`${demo}-words`]);
        worker = workerOf(file);
        parts.source.textContent = `Weights of the run ${file.record} (${file.key}), stored as int8.`;
      }
    }

    // Answers as they come: `show()` after each, and at once for the bag of words; {cut, trained}.
    function ask(text, show, failed) {
      encoded = cut.encode(text, file.max_length);
      answers = [];
      number += 1;
      worker.onmessage = ({ data }) => {
        if (data.number === number) {
          answers.push(data.answer);
          show();
        }
      };
      worker.onerror = (error) => failed(error);
      worker.postMessage({ number, ids: encoded.ids });
      return encoded.cut;
    }

    const sumOver = (values, word) => values.slice(word.from, word.to).reduce((a, b) => a + b, 0);
    const known = (word) => encoded.ids.slice(word.from, word.to).every((id) => bag.knows(id));

    function drawBag() {
      const found = bag.classify(encoded.ids);
      bars(parts.bag, file.classes, found.probabilities);
      const adds = encoded.words.map((word) => {
        const each = file.classes.map((_, c) => sumOver(found.parts.map((part) => part[c]), word));
        const best = each.indexOf(Math.max(...each));
        const mean = each.reduce((a, b) => a + b, 0) / each.length;
        return { word, best, size: each[best] - mean };
      });
      const most = Math.max(0.5, ...adds.map(({ size }) => size));
      words(parts.lit, adds.map(({ word, best, size }) => ({
        text: word.text,
        strength: size / most,
        told: size > 0 ? `${size.toFixed(2)} for ${file.classes[best]}` : "for no class",
        kind: `rtx-class-${best}`,
        known: known(word),
      })));
    }

    function draw(passes) {
      drawBag();
      const chosen = answers[passes - 1];
      const columns = Array.from({ length: MOST }, (_, i) => {
        const item = element("li", {}, element("span", {}, `${i + 1}`));
        if (answers[i]) {
          const best = answers[i].probabilities.indexOf(Math.max(...answers[i].probabilities));
          const bar = element("span", { class: `rtx-column rtx-class-${best}`, "aria-hidden": "true" });
          bar.style.setProperty("--share", answers[i].probabilities[best]);
          item.append(bar, element("span", {}, `${file.classes[best]} ${Math.round(100 * answers[i].probabilities[best])} %`));
        }
        if (i + 1 === passes) {
          item.setAttribute("aria-current", "true");
        }
        return item;
      });
      parts.passes.replaceChildren(...columns);
      if (!chosen) {
        return null;
      }
      bars(parts.answer, file.classes, chosen.probabilities);
      const tokens = [
        { text: "[CLS]", from: 0, to: 1 },
        ...encoded.words,
        { text: "[SEP]", from: encoded.ids.length - 1, to: encoded.ids.length },
      ];
      const shares = tokens.map((word) => sumOver(chosen.attention, word));
      words(parts.looked, tokens.map((word, i) => ({
        text: word.text,
        strength: shares[i] / Math.max(...shares),
        told: `${percent(shares[i])} of the attention`,
        kind: "rtx-looked",
        known: known(word),
      })));
      const best = chosen.probabilities.indexOf(Math.max(...chosen.probabilities));
      return `${file.classes[best]}, ${percent(chosen.probabilities[best])}`;
    }

    const about = () => ({ trained: file.config.num_passes, longest: file.max_length });
    return { body, ready, ask, draw, about, done: () => answers.length === MOST, knowsAny: () => encoded.words.some(known) };
  }

  let made = 0;
  function build(root) {
    const name = `rtx-try-${++made}`;
    const compact = root.hasAttribute("data-compact");
    const demos = root.dataset.demos.split(" ");
    const titles = (root.dataset.titles || "").split(",");
    const given = Array.from(root.querySelectorAll("ul"), (list) => [list.previousElementSibling, list.querySelectorAll("li")]);
    const box = element("textarea", { id: `${name}-text`, rows: compact ? 2 : 3, dir: "auto", spellcheck: "false" });
    const slider = element("input", { id: `${name}-passes`, type: "range", min: 1, max: MOST, step: 1, value: 2 });
    const count = element("output", { for: `${name}-passes` }, "2");
    const status = element("p", { class: "rtx-status", role: "status" }, "Type a text, or choose an example.");
    const link = element("button", { type: "button", class: "rtx-copy", hidden: "" }, "Copy a link to this");
    const examples = element("div", {});
    const panels = demos.map((demo, i) => panelOf(demo, titles[i] ? `, ${titles[i]}` : "", compact));
    const panelBox = element("div", { hidden: "" }, ...panels.map((panel) => panel.body));
    root.replaceChildren(
      element("label", { for: `${name}-text` }, "A sentence or a few, as of a film review"),
      box,
      examples,
      element("div", { class: "rtx-slider" }, element("label", { for: `${name}-passes` }, "Passes through the layers"), slider, count),
      status,
      panelBox,
      link,
    );
    given.forEach(([title, items]) => {
      const row = element("p", { class: "rtx-examples" }, title ? title.textContent : "");
      items.forEach(({ textContent, dataset }) => {
        const button = element("button", { type: "button", title: dataset.meant ? `meant: ${dataset.meant}` : "" }, textContent);
        button.onclick = () => {
          box.value = textContent;
          answer();
        };
        row.append(button);
      });
      examples.append(row);
    });

    const say = (text, state) => {
      status.textContent = text;
      root.dataset.state = state;
    };
    const failed = (error) => say(`This cannot be shown: ${error.message}.`, "failed");

    function show(cutOff) {
      const passes = Number(slider.value);
      const { trained, longest } = panels[0].about();
      count.textContent = `${passes}, ${passes === trained ? "as trained" : passes < trained ? "fewer than trained" : "more than trained"}`;
      const found = panels.map((panel) => panel.draw(passes));
      link.dataset.link = `#${new URLSearchParams({ text: box.value, passes })}`;
      link.hidden = false;
      panelBox.hidden = false;
      if (found.some((answered) => answered === null)) {
        say("Computing …", "working");
        return;
      }
      const cut = cutOff ? ` The model reads ${longest} word pieces: the last ${cutOff} of this text are left out.` : "";
      const strange = panels.some((panel) => panel.knowsAny()) ? "" : " No word of this text was in training, so this says nothing about it.";
      say(`After ${passes} ${passes === 1 ? "pass" : "passes"}: ${found.join("; ")}.${cut}${strange}`, panels.every((panel) => panel.done()) ? "done" : "working");
    }

    let asked = 0, cutOff = 0;
    async function answer() {
      const mine = ++asked;
      if (!box.value.trim()) {
        panelBox.hidden = true;
        link.hidden = true;
        say("Type a text, or choose an example.", "idle");
        return;
      }
      try {
        if (root.dataset.state !== "done" && root.dataset.state !== "working") {
          say("Loading the model, once …", "loading");
        }
        await Promise.all(panels.map((panel) => panel.ready()));
        if (mine === asked) {
          const cuts = panels.map((panel) => panel.ask(box.value, () => mine === asked && show(cutOff), failed));
          cutOff = cuts[0];
          show(cutOff);
        }
      } catch (error) {
        failed(error);
      }
    }

    // Not an <a>: the theme takes every href with a # for a heading of the page.
    link.onclick = () => {
      history.replaceState(null, "", link.dataset.link);
      const said = () => (status.textContent = "The link stands in the address bar, and is copied where the browser allows it.");
      navigator.clipboard ? navigator.clipboard.writeText(location.href).then(said, said) : said();
    };

    let timer;
    box.oninput = () => {
      clearTimeout(timer);
      timer = setTimeout(answer, WAIT);
    };
    box.onfocus = () => Promise.all(panels.map((panel) => panel.ready())).catch(failed);
    slider.oninput = () => {
      count.textContent = slider.value;
      if (!panelBox.hidden) {
        show(cutOff);
      }
    };
    function fromLink() {
      const given = new URLSearchParams(location.hash.slice(1));
      if (given.has("text")) {
        box.value = given.get("text");
        slider.value = Number(given.get("passes")) || 2; // a slider keeps within its ends
        answer();
      }
    }
    root.dataset.state = "idle";
    addEventListener("hashchange", fromLink);
    fromLink();
  }

  document.head.append(element("link", { rel: "stylesheet", href: new URL("demo.css", HERE) }));
  const start = () => document.querySelectorAll(".rtx-try").forEach(build);
  if (document.readyState === "loading") {
    addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
