// A figure with a chart gets a button that puts the chart, which answers to its reader, in place of the picture.

const LOOK = {
  background: null,
  view: { stroke: null },
  axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", gridOpacity: 0.5, labelLimit: 230 },
  legend: { labelFontSize: 12, orient: "top", columns: 3, labelLimit: 230, title: null },
  point: { opacity: 1 },
};

function askable(data) {
  const figure = document.getElementById(data.dataset.at);
  const picture = figure.querySelector("img");
  const chart = make("div", { className: "asked", hidden: true });
  const button = make("button", { type: "button", className: "ask" }, "Explore this figure");
  button.onclick = async () => {
    const asked = chart.hidden;
    chart.hidden = !asked;
    (picture.closest("a") ?? picture).hidden = asked;
    button.textContent = asked ? "Back to the picture" : "Explore this figure";
    if (!asked || chart.childElementCount) return;
    button.disabled = true;
    await load("vega.js");
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    const config = { ...LOOK, font: getComputedStyle(document.body).fontFamily };
    await vegaEmbed(chart, JSON.parse(data.textContent), { actions: false, renderer: "svg", config, tooltip: { theme } });
    button.disabled = false;
  };
  figure.prepend(button);
  (picture.closest("a") ?? picture).after(chart);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("script.chart").forEach(askable));
