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
    return stack + (random ? ", random passes" : times) + more;
  }

  // What happens in a strip: of one layer on letters as *Inside the loop* finds it, and no more than that.
  function how({ config, task }, first) {
    const { num_layers: layers, num_passes: passes } = config;
    if (passes === 1) {
      return layers === 1 ? "This layer runs once." : "Each layer has weights of its own and runs once.";
    }
    const same = `Each pass runs the same ${layers === 1 ? "layer" : `${word(layers)} layers`} again, on all ${task.kind === "cups" ? "moves" : "letters"} at once`;
    if (layers > 1) {
      return `${same}.`;
    }
    if (task.kind === "cups") {
      return `${same}, and carries the cups about one move further.`;
    }
    return first
      ? `${same}. Pass 1 looks a few letters back, where most letters find the letter one hop on. In pass 2 every letter looks there and takes over what that one found: two hops. So it goes on, about a hop a pass; asked for fewer hops, it answers as many passes sooner.`
      : `${same}. From pass 2 on every letter looks one hop on and takes over what that letter holds by then.`;
  }

  // What a head does: [kind for its color, a few letters beside its switch].
  function head(does, hops, letter, toy) {
    const [, what, n] = /^(hop|back)(\d+)$/.exec(does) || [];
    if (what) {
      const kind = what === "back" ? (toy === "cups" ? "back" : "rest") : n === "1" ? "follow" : "jump";
      return [kind, what === "back" ? `${n} back` : `hop ${n}`];
    }
    const known = { earlier: ["previous", `previous ${letter}`], question: ["rest", `“${asks(hops)}”`], first: ["rest", "first move"], self: ["rest", "itself"] };
    return known[does] || ["rest", "spread out"];
  }

  // All of these, for the key.
  function heads(hops, letter, toy) {
    const spread = "spread out: nowhere 40 %";
    return toy === "cups"
      ? [["back", "1 back, 2 back …"], ["rest", `itself, or ${spread}`]]
      : [["previous", `previous ${letter}`], ["follow", "hop 1"], ["jump", "hop 2, hop 3 …"], ["rest", `itself, 2 back, “${asks(hops)}”, or ${spread}`]];
  }

  const asks = (hops) => count(hops, "hop"); // the first token

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
    const where = best < before ? "the first token, the number of hops" : back === 0 ? "itself" : `the ${name} ${count(back, "place")} back`;
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

  const counted = ({ done, without, whole, finished }, texts) =>
    finished ? `On ${texts} texts: ${percent(whole).replace(" %", "")} → ${percent(without)} right.` : `counting… ${done} of ${texts}`;

  // The chain, for those who do not see it.
  function chain(hops, items, names, asked) {
    const steps = hops.map(({ to }, i) => `hop ${i + 1} leads to the ${names[items[to]]} at ${to + 1}`);
    return `From the ${names[items[asked]]} at ${asked + 1}${steps.length ? `, ${steps.join(", ")}` : ""}.`;
  }

  return { status, counted, chain, model, how, head, heads, asks, strip, looks, count, percent, size };
};
