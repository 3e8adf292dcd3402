(() => {
  // CONSTANTS
  // FORMULAS
  const steps = 320;

  const draw = (root) => {
    const at = {};
    for (const input of root.querySelectorAll("input")) {
      at[input.name] = Number(input.value);
      input.nextElementSibling.textContent = at[input.name].toFixed(1);
    }
    const grid = Array.from({length: steps + 1}, (_, i) => reach * (2 * i / steps - 1));
    ["value", "slope"].forEach((kind, which) => {
      for (const name in curves) {
        const points = grid.map((x) => {
          const y = curves[name][which]({...at, x});
          return (width * (1 + x / reach) / 2).toFixed(1) + " " + (height * (1 - y / reach) / 2).toFixed(1);
        });
        root.querySelector(`.${kind} .curve.${name}`).setAttribute("d", "M" + points.join("L"));
      }
    });
    const [value, slope] = curves.swiglu.map((f) => f({...at, x: 1}).toFixed(3).replace("-", "−"));
    root.querySelector(".told").textContent = `At x = 1 SwiGLU is ${value} and its gradient by x is ${slope}.`;
  };

  for (const root of document.querySelectorAll(".gates:not([data-ready])")) {
    root.dataset.ready = "";
    const form = root.querySelector("form");
    form.addEventListener("input", () => draw(root));
    for (const button of root.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        if (button.type === "reset") form.reset();
        else form.elements.beta.value = button.dataset.beta;
        draw(root);
      });
    }
    form.reset();
    draw(root);
  }
})();
