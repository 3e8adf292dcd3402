"use strict";
var rtxDemo = rtxDemo || {};

// What the explorer says: names of models and heads, and a sentence for each strip.
rtxDemo.explorerWords = function () {
  const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
  const percent = (share) => `${Math.round(100 * share)} %`;
  const size = (length) => (length < 9.95 ? length.toFixed(1) : String(Math.round(length)));
  const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
  const word = (n) => NUMBERS[n] || String(n);

  // A model of the catalogue; of one that knows more hops than `usual` that is said too.
  function model({ layers, passes, random, hops }, usual) {
    const stack = `${word(layers)} ${layers === 1 ? "layer" : "layers"}`;
    const times = { 1: layers === 1 ? ", once" : "", 2: ", twice", 3: ", three times", 4: ", four times" }[passes] ?? `, ${passes} times`;
    const more = hops > usual ? ` (to ${hops} hops)` : "";
    return stack + (random ? `, 1 to ${passes} times` : times) + more;
  }

  // What a strip is, said of a whole model.
  function unit({ num_layers: layers, num_passes: passes }) {
    if (passes === 1) {
      return layers === 1 ? "This layer runs once." : "Each layer has weights of its own and runs once.";
    }
    return `Each pass runs the same ${layers === 1 ? "layer" : `${word(layers)} layers`} once more.`;
  }

  const AT_LEAST = 0.3; // of a head's attention, for a name, as in *Inside the loop*

  // What a head does in most texts: [kind for its color, a few letters beside its switch, words for a sentence].
  function head({ does }, hops, letter) {
    const [, what, n] = /^(hop|back)(\d+)$/.exec(does) || [];
    if (what === "hop") {
      return n === "1" ? ["follow", "follows to hop 1", "follows the pointer to hop 1"] : ["jump", `jumps to hop ${n}`, `jumps to hop ${n}`];
    }
    if (what === "back") {
      return ["back", `${n} back`, n === "1" ? "looks one back" : `looks ${word(Number(n))} back`];
    }
    const known = {
      earlier: ["previous", `previous ${letter}`, `looks at the previous ${letter}`],
      question: ["rest", `looks at ${hops}×`, "looks at the number of hops"],
      first: ["rest", "first move", "looks at the first move"],
      self: ["rest", "itself", "looks at where it stands"],
      spread: ["rest", "spread out", "looks at many places"],
    };
    return known[does] || known.spread;
  }

  // The same in this text, where so much of the head's attention lies on what it looks at in most.
  const headHere = (named, hops, letter, share) => (named.does === "spread" || share >= AT_LEAST ? head(named, hops, letter) : ["rest", "elsewhere", "looks elsewhere than in most texts"]);

  // The name of a strip: pass 3, layer 2, or pass 2 with layer 1.
  function strip(config, step) {
    if (config.num_passes === 1) {
      return { title: `layer ${step}`, part: "" };
    }
    const pass = Math.ceil(step / config.num_layers);
    return { title: `pass ${pass}`, part: config.num_layers > 1 ? `layer ${step - (pass - 1) * config.num_layers}` : "" };
  }

  // Where a head looks from position `asked`, said: "94 % on the a 5 back".
  function looks(row, asked, nameOf, before) {
    let best = 0;
    row.forEach((weight, at) => (best = weight > row[best] ? at : best));
    const back = asked + before - best;
    const name = back ? (nameOf(best - before) || "").replace(/^the /, "") : "";
    const where = best < before ? "the number of hops" : back === 0 ? "itself" : `the ${name} ${count(back, "place")} back`;
    return `${percent(row[best])} on ${where}`;
  }

  // What came out, said: with heads off beside what the whole model answers, else beside how it fares with others of the kind.
  function status(config, { unit, answer, right, off, others, whole }) {
    const after = `after ${unit} the answer is ${answer}`;
    if (right === "none") {
      return `A${after.slice(1)}, but nothing is right here: the chain ends before.`;
    }
    const verdict = right === "yes" ? "right" : "wrong";
    if (off.size) {
      const [step, head] = [...off][0].split(".");
      const { title, part } = strip(config, Number(step));
      const without = off.size === 1 ? `head ${head} in ${title}${part ? `, ${part}` : ""},` : `${word(off.size)} heads,`;
      const first = `Without ${without} ${after}: ${verdict}. `;
      return first + (whole === answer ? "With all heads on it is the same." : `With all heads on it is ${whole}.`);
    }
    const alike = Math.round(100 * (right === "yes" ? others : 1 - others));
    const many = { 0: "hardly any", 100: "nearly all" }[alike] || `${alike} of 100`;
    const share = others === undefined ? "" : `, as for ${many} such questions`;
    return `A${after.slice(1)}: ${verdict}${share}.`;
  }

  function counted({ done, without, whole }, off) {
    const them = off === 1 ? "it" : "them";
    return `On ${done} fresh texts ${percent(without)} of the answers are right without ${them}, ${percent(whole)} with all heads.`;
  }

  // The chain, for those who do not see it.
  function chain(hops, items, names, asked) {
    const steps = hops.map(({ to }, i) => `hop ${i + 1} leads to the ${names[items[to]]} at ${to + 1}`);
    return `From the ${names[items[asked]]} at ${asked + 1}${steps.length ? `, ${steps.join(", ")}` : ""}.`;
  }

  return { status, counted, chain, model, unit, headHere, strip, looks, count, percent, size };
};
