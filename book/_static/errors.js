// Sentences on which two models disagree, by the score from which on a text is called positive.

const MOST = 15; // sentences shown at once
const percent = (share) => `${(100 * share).toFixed(1)}\u202f%`;

function explorer(script) {
  // models: two titles; scores: one list a model, in thousandths; labels: 0 or 1; texts: a list, or null
  const { models, scores, labels, texts } = JSON.parse(script.textContent);
  const slider = make("input", { type: "range", min: 0.05, max: 0.95, step: 0.01, value: 0.5 });
  slider.setAttribute("aria-label", "Threshold");
  const threshold = make("output", {});
  const kind = make("select", {});
  kind.setAttribute("aria-label", "Which sentences");
  for (const name of ["they disagree", `only ${models[0]} is right`, `only ${models[1]} is right`, "both are wrong"]) {
    kind.append(new Option(name));
  }
  const summary = make("p", { className: "errors-summary" });
  summary.setAttribute("aria-live", "polite");
  const body = make("tbody", {});
  const heads = ["True", ...models, "Sentence"].map((name) => make("th", {}, name));
  const table = make("table", { className: "table errors-list" }, make("thead", {}, make("tr", {}, ...heads)), body);

  function show() {
    const least = 1000 * slider.value;
    const right = scores.map((all) => all.map((score, i) => (score >= least) === (labels[i] === 1)));
    const wanted = [
      (a, b) => a !== b,
      (a, b) => a && !b,
      (a, b) => b && !a,
      (a, b) => !a && !b,
    ];
    const places = wanted.map((which) => labels.map((_, i) => i).filter((i) => which(right[0][i], right[1][i])));
    const found = places[kind.selectedIndex];
    found.sort((i, j) => Math.abs(scores[0][j] - scores[1][j]) - Math.abs(scores[0][i] - scores[1][i]));
    const share = right.map((all) => all.filter(Boolean).length / labels.length);
    threshold.textContent = Number(slider.value).toFixed(2);
    summary.textContent = `${models[0]} ${percent(share[0])}, ${models[1]} ${percent(share[1])}; they disagree on `
      + `${places[0].length} of ${labels.length} sentences, and both are wrong on ${places[3].length}. `
      + `${found.length} fit; the widest gaps of score first.`;
    body.replaceChildren(...found.slice(0, MOST).map((i) => make(
      "tr", {},
      make("td", {}, labels[i] ? "positive" : "negative"),
      ...scores.map((all, m) => make("td", { className: right[m][i] ? "right" : "wrong" }, (all[i] / 1000).toFixed(2))),
      make("td", { className: "text-left" }, texts ? texts[i] : `number ${i + 1} of the test set`),
    )));
  }

  slider.oninput = show;
  kind.onchange = show;
  const controls = make(
    "div", { className: "board-controls" },
    make("label", {}, "Threshold ", slider, threshold),
    make("label", {}, "Where ", kind),
  );
  const scroll = make("div", { className: "pst-scrollable-table-container" }, table);
  script.before(make("div", { className: "errors", id: "error-explorer" }, controls, summary, scroll));
  show();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("script.errors").forEach(explorer));
