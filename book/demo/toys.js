"use strict";
var rtxDemo = rtxDemo || {};

// The two tasks that the explorer shows, as rtx_core/data/algorithmic.py makes them.  A text is a list of whole numbers,
// `items`; a toy says how they are written, which token ids a model reads, and what is true at a position.
//   before      tokens that stand before the first item
//   names       of items, said; symbols are how a link writes them
//   options     token ids among which the model answers, in the order of `truth`; answers: how they are said
//   columns     of the grid: {name, unit, hops, at, part, truth}; `part` is where a model's file counts such answers
//   neighbour   whether an item may stand beside another
//   place       the token at which a head looks that does what a model's file says of it, −1 for none
//   roles       what a head may do that has a name of its own; else it looks so many back
rtxDemo.toys = function () {
  // k-hop induction: one hop leads from a letter to the one that followed its last earlier occurrence.
  const hops = {
    before: 1,
    symbols: (task) => "abcdefghijklmnop".slice(0, task.alphabet),
    names: (task) => Array.from(hops.symbols(task)),
    answers: (task) => hops.names(task),
    ids: (items, task, k) => [task.alphabet + 1 + k, ...items],
    options: (task) => Array.from({ length: task.alphabet }, (_, i) => i),
    neighbour: (a, b) => a !== b,
    roles: (task) => ["earlier", ...Array.from({ length: task.hops }, (_, i) => `hop${i + 1}`), "question", "self"],
    // [{from, back, to}, …]: back to the same letter, then one to the right; shorter than k where there is none.
    chain(items, asked, k) {
      const found = [];
      for (let from = asked; found.length < k; from = found.at(-1).to) {
        const back = items.lastIndexOf(items[from], from - 1);
        if (from === 0 || back < 0) {
          break;
        }
        found.push({ from, back, to: back + 1 });
      }
      return found;
    },
    place(items, asked, does) {
      const [, k] = /^hop(\d+)$/.exec(does) || [];
      const hop = hops.chain(items, asked, Number(k || 1))[(k || 1) - 1];
      const item = does === "question" ? -1 : k ? hop?.to : does === "earlier" ? hop?.back : asked - stepsBack(does);
      return (item ?? -2) + 1;
    },
    columns: (items, task, asked) => Array.from({ length: task.hops }, (_, i) => i + 1).map((k) => ({ name: String(k), unit: k === 1 ? " hop" : " hops", hops: k, at: asked, part: k, truth: hops.truth(items, task, asked, k) })),
    truth(items, task, asked, k) {
      const chain = hops.chain(items, asked, k);
      return chain.length < k ? -1 : items[k ? chain.at(-1).to : asked];
    },
  };

  // Words over S3: three cups, of which a move swaps two, turns all, or leaves them; element n in lexical order.
  const MOVES = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]; // what stood at place i goes to place e[i]
  const cups = {
    before: 0,
    moves: MOVES,
    symbols: () => "nludro",
    names: () => ["nothing moves", "the lower two swap", "the upper two swap", "all move down", "all rise", "the outer two swap"],
    // The cups from top to bottom, as each element leaves them.
    answers: () => MOVES.map((move) => [0, 1, 2].map((place) => ["red", "blue", "gold"][move.indexOf(place)]).join(" ")),
    ids: (items) => items.map((item, t) => (t ? item : item + 6)),
    options: () => [0, 1, 2, 3, 4, 5],
    neighbour: () => true,
    roles: () => ["self"],
    // Places of the three cups after each of the first `asked` + 1 moves.
    places(items, asked) {
      let now = MOVES[0];
      return items.slice(0, asked + 1).map((item) => (now = now.map((place) => MOVES[item][place])));
    },
    columns: (items, task) => items.map((_, t) => ({ name: String(t + 1), unit: "", at: t, part: t, truth: cups.truth(items, task, t) })),
    place: (items, asked, does) => (does === "first" ? 0 : Math.max(-1, asked - stepsBack(does))),
    truth(items, task, asked) {
      const now = cups.places(items, asked).at(-1);
      return MOVES.findIndex((move) => move.every((place, i) => place === now[i]));
    },
  };

  const stepsBack = (does) => Number(does.replace(/^back|^self/, "")); // back3 is three, self none

  const HERE = 0.4; // of a head's attention on one place, else it is spread out

  // What a head does in this text, from its attention by token; where two names lead to one place, what it usually does.
  function doesHere(toy, task, items, asked, weights, usual) {
    const best = weights.indexOf(Math.max(...weights));
    const role = [usual, ...toy.roles(task)].find((does) => toy.place(items, asked, does) === best);
    return weights[best] < HERE ? "spread" : role || `back${asked + toy.before - best}`;
  }

  // The item of a chain that the next step reads, for each step, from the last one back: the item that a head looks at
  // most, if it is one of `chain` further on and has HERE or more.  `looks(step, item)` are the heads' attentions by token.
  function trail(steps, asked, chain, before, looks) {
    const found = [];
    for (let step = steps - 1, at = asked; step >= 0; step--) {
      found[step] = at;
      const most = (item) => Math.max(...looks(step, at).map((weights) => weights[item + before] ?? 0));
      const [next] = chain.filter((item) => item < at && most(item) >= HERE).sort((a, b) => most(b) - most(a));
      at = next ?? at;
    }
    return found;
  }

  // A text of so many items drawn by `random`, which gives numbers from 0 to 1.
  function draw(toy, task, random) {
    const kinds = toy.symbols(task).length;
    const items = [];
    while (items.length < task.letters) {
      const next = Math.floor(random() * kinds);
      if (!items.length || toy.neighbour(items.at(-1), next)) {
        items.push(next);
      }
    }
    return items;
  }

  // The item that follows `item` in the alphabet and may stand at position t.
  function nextThere(toy, task, items, t, step = 1) {
    const kinds = toy.symbols(task).length;
    for (let n = 1; n <= kinds; n++) {
      const next = (items[t] + kinds + step * n) % kinds;
      if (fits(toy, items, t, next)) {
        return next;
      }
    }
    return items[t];
  }

  function fits(toy, items, t, item) {
    return (t === 0 || toy.neighbour(items[t - 1], item)) && (t + 1 >= items.length || toy.neighbour(item, items[t + 1]));
  }

  // Written letters as a text: {items, said}, the nearest good one and a word on what was changed.
  function read(toy, task, written) {
    const symbols = toy.symbols(task);
    const said = [];
    const known = Array.from(String(written).toLowerCase()).filter((letter) => /\S/.test(letter));
    let items = known.map((letter) => symbols.indexOf(letter)).filter((item) => item >= 0);
    if (items.length < known.length) {
      said.push(`only the letters ${Array.from(symbols).join(", ")} are known`);
    }
    if (items.length > task.letters) {
      items = items.slice(0, task.letters);
      said.push(`a text has at most ${task.letters} letters`);
    }
    const before = items.join();
    items.forEach((item, t) => {
      if (t && !toy.neighbour(items[t - 1], item)) {
        items[t] = nextThere(toy, task, items, t);
      }
    });
    if (items.join() !== before) {
      said.push("no two equal neighbours: letters are changed");
    }
    return items.length < 2 ? { items: null, said: [...said, "a text has at least 2 letters"] } : { items, said };
  }

  const write = (toy, task, items) => items.map((item) => toy.symbols(task)[item]).join("");

  return { hops, cups, doesHere, trail, draw, read, write, fits, nextThere };
};
