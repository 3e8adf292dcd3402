"use strict";
var rtxDemo = rtxDemo || {};

// What the explorer shows, as a link carries it: #letters=cacb…&asked=32&hops=4&passes=3&model=1x6-random&off=2.1,3.2, and
// &tries=7 of a sequence that was found to fool the model.
// Of a bad value the nearest good one is taken, and a word said about it.
rtxDemo.explorerState = function () {
  const MOST = 12; // passes on the slider
  const FAR = 64; // passes of the fast-forward
  const MANY = 9999; // tries of the challenge

  // {name: value} of a hash; what cannot be decoded is left as it is.
  function fields(hash) {
    const found = {};
    for (const part of hash.replace(/^#/, "").split("&")) {
      const at = part.indexOf("=");
      if (at > 0) {
        try {
          found[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1).replace(/\+/g, " "));
        } catch {
          found[part.slice(0, at)] = part.slice(at + 1);
        }
      }
    }
    return found;
  }

  function number(given, usual, least, most, what, said) {
    const value = Number(given);
    if (given === undefined || given === "") {
      return usual;
    }
    if (!Number.isFinite(value)) {
      said.push(`${what} is a number`);
      return usual;
    }
    const near = Math.min(most, Math.max(least, Math.round(value)));
    if (near !== value) {
      said.push(`${what} goes from ${least} to ${most}`);
    }
    return near;
  }

  // The model of the catalogue that a link names, else the usual one.
  function modelOf(catalogue, given, usual, said) {
    const toy = given.toy || usual.toy;
    const named = (name) => catalogue.find((one) => one.model === name && one.toy === toy) || catalogue.find((one) => one.model === name || one.name === name);
    if (given.model !== undefined) {
      const found = named(given.model);
      if (found) {
        return found;
      }
      said.push("there is no such model here");
    }
    if (given.toy !== undefined && given.toy !== usual.toy) {
      const found = catalogue.find((one) => one.toy === given.toy);
      if (found) {
        return found;
      }
      said.push("there is no such toy here");
    }
    return usual;
  }

  const looped = (config) => config.num_passes > 1;
  const mostPasses = (config) => (looped(config) ? MOST : config.num_layers);
  const farthest = (config) => (looped(config) ? FAR : config.num_layers);
  const trained = (config) => (looped(config) ? config.num_passes : config.num_layers);
  // Passes that a model is shown with: those of its training; of a random number, one for each hop.
  const usualPasses = ({ config, task }) => (config.random_passes ? Math.min(config.num_passes, task.hops) : trained(config));
  // Applications of a layer in a pass; a standard model is shown layer by layer.
  const perPass = (config) => (looped(config) ? config.num_layers : 1);
  const steps = (config, passes) => passes * perPass(config);

  // The item that is asked at first: of letters the last, of moves as many as there are passes.
  const usualAsked = ({ config, task }, last) => (task.kind === "cups" ? Math.min(last, trained(config) - 1) : last);

  // {items, asked, hops, passes, off, said} of a link's fields for a model's file; `usual` gives what the link leaves out.
  function complete(file, toy, toys, given, usual) {
    const { task, config } = file;
    const said = [];
    let items = usual.items;
    let asked = usual.asked;
    if (given.letters !== undefined) {
      const found = toys.read(toy, task, given.letters);
      said.push(...found.said);
      items = found.items || items;
      asked = items.length - 1;
    }
    asked = number(given.asked, asked + 1, 1, items.length, "the letter that is asked", said) - 1;
    const hops = "hops" in task ? number(given.hops, Math.min(usual.hops, task.hops), 0, task.hops, "the number of hops", said) : 0;
    const what = looped(config) ? "the number of passes" : "the number of layers";
    const passes = number(given.passes, usual.passes || usualPasses(file), 1, farthest(config), what, said);
    const off = new Set();
    const written = given.off === undefined ? [] : given.off.split(",").filter((one) => one.trim());
    for (const one of written) {
      const [, step, head] = /^\s*(\d+)\.(\d+)\s*$/.exec(one) || [];
      if (step >= 1 && step <= steps(config, passes) && head >= 1 && head <= config.num_heads) {
        off.add(`${Number(step)}.${Number(head)}`);
      } else {
        said.push(`what is off is written as pass.head, here from 1.1 to ${steps(config, passes)}.${config.num_heads}`);
      }
    }
    const tries = number(given.tries, 0, 0, MANY, "the number of tries", said);
    return { items, asked, hops, passes, off, tries, said: [...new Set(said)] };
  }

  const byNumber = (a, b) => {
    const [x, y] = [a, b].map((one) => one.split(".").map(Number));
    return x[0] - y[0] || x[1] - y[1];
  };

  function write(state, entry, letters) {
    const parts = [`letters=${letters}`];
    if (state.asked !== state.items.length - 1) {
      parts.push(`asked=${state.asked + 1}`);
    }
    if (entry.toy === "hops") {
      parts.push(`hops=${state.hops}`);
    } else {
      parts.push(`toy=${entry.toy}`);
    }
    parts.push(`passes=${state.passes}`, `model=${entry.model}`);
    if (state.off.size) {
      parts.push(`off=${[...state.off].sort(byNumber).join(",")}`);
    }
    if (state.tries) {
      parts.push(`tries=${state.tries}`);
    }
    return `#${parts.join("&")}`;
  }

  return { fields, modelOf, usualAsked, usualPasses, complete, write, looped, mostPasses, farthest, trained, perPass, steps, MOST, FAR, MANY };
};
