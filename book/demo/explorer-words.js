"use strict";
var rtxDemo = rtxDemo || {};

// What the explorer says: names of models and heads, and a sentence for each strip.
rtxDemo.explorerWords = function () {
  const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
  const percent = (share) => `${Math.round(100 * share)} %`;
  const size = (length) => (length < 9.95 ? length.toFixed(1) : String(Math.round(length)));
  const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
  const word = (n) => NUMBERS[n] || String(n);
  const layersOf = (n) => `${word(n)} ${n === 1 ? "layer" : "layers"}`;
  const first = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
  const passes = ({ num_passes }, n) => (num_passes > 1 ? count(n, "pass", "passes") : count(n, "layer"));

  // A model of the catalogue, "two layers, run twice"; of one that knows more hops than `usual` that is said too.
  function model({ layers, passes, random, hops }, usual) {
    const times = `, run ${{ 1: "once", 2: "twice" }[passes] ?? `${word(passes)} times`}`;
    const more = hops > usual ? ` (to ${hops} hops)` : "";
    return layersOf(layers) + (random ? ", random passes" : times) + more;
  }

  // What happens in a strip: of one layer on letters as *Inside the loop* finds it, and no more than that.
  function how({ config, task, right }) {
    const { num_layers: layers } = config;
    if (config.num_passes === 1) {
      return layers === 1 ? "This layer runs once." : "Each layer has weights of its own and runs once.";
    }
    const same = `Each pass runs the same ${layers === 1 ? "layer" : layersOf(layers)} again, on all ${task.kind === "cups" ? "moves" : "letters"} at once`;
    if (layers > 1) {
      return `${same}.`;
    }
    if (task.kind === "cups") {
      return `${same}, and carries the cups about one move further.`;
    }
    return right[1][0] > 0.9 // which finds one hop in its first pass
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

  // What a pass did, and how many of the answers are right by then: `right` of `all`; `rival`: how many another model gets.
  function status({ config, task, passes: n, right, all, off, whole, rival }) {
    const noun = task.kind === "cups" ? "order" : "answer";
    const some = right === all ? `all ${all} ${noun}s are right` : `${right} of ${all} ${noun}s ${right === 1 ? "is" : "are"} right`;
    if (!all) {
      return "Nothing is right here: the chain ends before.";
    }
    if (off.size) {
      const [step, head] = [...off][0].split(".");
      const { title, part } = strip(config, Number(step));
      const without = off.size === 1 ? `head ${head} in ${title}${part ? `, ${part}` : ""}` : `${word(off.size)} heads`;
      return `Without ${without}, ${some} after ${passes(config, n)}. With all heads ${right === whole ? "it is the same" : `${whole} of ${all}`}.`;
    }
    if (config.num_passes === 1) {
      return `After ${passes(config, n)} ${some}.`;
    }
    const [layers, s] = [config.num_layers === 1 ? "layer" : layersOf(config.num_layers), config.num_layers === 1 ? "s" : ""];
    const did = n === 1 ? `the ${layers} read${s} the whole sequence once` : `the same ${layers} run${s} again, on what pass ${n - 1} left`;
    const others = rival === undefined ? "" : ` The model that runs once: ${rival} of ${all}.`;
    return `Pass ${n}: ${did}. ${n === 1 ? first(some) : `Now ${some}`}.${others}`;
  }

  // What the table of answers is.
  const caption = (kind, texts) => (kind === "cups" ? "Where are the cups after each move? ✓ where the answer is right by then." : `What each model would answer if it stopped there; green is right. Small: per cent right there on ${texts} other sequences.`);

  // The challenge; `tries` of the visitor's own, or of who made the link that was opened.
  function dare({ name, wrong, all, tries, linked }) {
    const times = count(tries, "try", "tries");
    if (!wrong) {
      return `Can you fool it? Change letters or shuffle until an answer of ${name} is wrong.${tries && !linked ? ` Tries so far: ${tries}.` : ""}`;
    }
    const found = `${wrong} of ${all} ${wrong === 1 ? "is" : "are"} wrong here`;
    return linked ? `Somebody fooled ${name} in ${times}: ${found}. Can you do it in fewer?` : tries ? `You fooled ${name} in ${times}: ${found}.` : `This sequence fools ${name}: ${found}.`;
  }

  const counted = ({ done, without, whole, finished }, texts) =>
    finished ? `On ${texts} other sequences: ${percent(whole).replace(" %", "")} → ${percent(without)} right.` : `counting… ${done} of ${texts}`;

  // The chain, for those who do not see it.
  function chain(hops, items, names, asked) {
    const steps = hops.map(({ to }, i) => `hop ${i + 1} leads to the ${names[items[to]]} at ${to + 1}`);
    return `From the ${names[items[asked]]} at ${asked + 1}${steps.length ? `, ${steps.join(", ")}` : ""}.`;
  }

  return { status, caption, dare, counted, chain, model, how, head, heads, asks, strip, looks, count, passes, percent, size, first };
};
