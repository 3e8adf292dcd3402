"use strict";
var rtxDemo = rtxDemo || {};

// How often a model is right on fresh texts with heads switched off, beside the whole model on the same texts: the causal
// test with numbers.  Every letter that has an answer is asked, or the move that is shown, as for the shares in a model's
// file.  Runs a few texts at a time, so that the page stays awake; returns a function that stops it.
rtxDemo.countTexts = function (looped, toys, open, toy, { asked: shown, hops, off }, steps, texts, told) {
  const AT_ONCE = 2;
  const { task } = open.file;
  const options = toy.options(task);
  let timer = 0, done = 0, asked = 0, without = 0, whole = 0;

  // The answer at every item of a text, after all steps and without the heads in `out`.
  function answers(items, out) {
    const state = looped.start(open, toy.ids(items, task, hops));
    let last;
    for (let step = 1; step <= steps; step++) {
      const now = [...out].map((one) => one.split(".").map(Number)).filter(([at]) => at === step);
      last = looped.step(open, state, new Set(now.map(([, head]) => head - 1)));
    }
    return items.map((_, t) => {
      const shares = looped.shares(open, last, t + toy.before, options);
      return shares.indexOf(Math.max(...shares));
    });
  }

  function some() {
    for (let i = 0; i < AT_ONCE && done < texts; i++, done++) {
      const items = toys.draw(toy, task, Math.random);
      const [missing, all] = [off, []].map((out) => answers(items, out));
      items.forEach((_, t) => {
        const truth = toy.truth(items, task, t, hops);
        const counts = truth >= 0 && (task.kind === "hops" || t === shown);
        asked += counts;
        without += counts && missing[t] === truth;
        whole += counts && all[t] === truth;
      });
    }
    told({ done, without: without / asked, whole: whole / asked, finished: done === texts });
    if (done < texts) {
      timer = setTimeout(some);
    }
  }
  timer = setTimeout(some);
  return () => clearTimeout(timer);
};
