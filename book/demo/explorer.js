"use strict";
var rtxDemo = rtxDemo || {};

// <div class="rtx-explorer" data-model="1x4" data-hops="4" data-passes="4" data-letters="cacb…"> becomes the explorer: a row
// of letters, the chain of hops over it, and a strip for each pass of a small model that runs in the page.  All attributes
// may be left out.  `data-state` of the element is loading, playing, done or failed; `data-answer` and `data-right` (yes,
// no, none) are of the last strip.  A link carries all: see explorer-state.js.
(function () {
  const HERE = new URL(".", document.currentScript.src);
  const FILES = ["looped.js", "toys.js", "explorer-state.js", "explorer-words.js", "explorer-draw.js", "explorer-view.js", "explorer-count.js", "models/explorer.js", "models/explorer-texts.js"];
  const BEAT = 1200; // milliseconds between passes that are played
  const COUNTED = 200; // texts on which heads that are off are missed or not
  const PAPER = 400; // pixels for letters and arcs in print, where explorer.css fits them to the page
  const NAMED = ["letters", "asked", "hops", "model", "off", "toy"]; // any of these in a link is meant for this element

  const loading = new Map();
  function load(path) {
    if (!loading.has(path)) {
      const script = document.createElement("script");
      script.src = new URL(path, HERE);
      const loaded = new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${path} is not in this copy of the book`));
      });
      loading.set(path, loaded);
      document.head.append(script);
    }
    return loading.get(path);
  }

  const opened = new Map();
  async function model(looped, name) {
    await load(`models/${name}.js`);
    if (!opened.has(name)) {
      opened.set(name, looped.open(rtxDemo.files[name]));
    }
    return opened.get(name);
  }

  async function start(root) {
    root.dataset.state = "loading";
    try {
      await Promise.all(FILES.map(load));
      explorer(root);
    } catch (error) {
      failed(root, error);
    }
  }

  function failed(root, error) {
    root.dataset.state = "failed";
    const said = document.createElement("p");
    said.setAttribute("role", "alert");
    said.textContent = `This cannot be shown: ${error.message}.`;
    if (!root.dataset.answer) {
      root.replaceChildren(); // what was never filled
    }
    root.prepend(said);
  }

  function explorer(root) {
    const rules = rtxDemo.explorerState();
    const toys = rtxDemo.toys();
    const looped = rtxDemo.looped();
    const words = rtxDemo.explorerWords();
    const view = rtxDemo.explorerView();
    const catalogue = rtxDemo.explorer;
    const usualModel = catalogue.find((one) => one.model === root.dataset.model) || catalogue[0];
    const kept = {}; // of each toy: items, asked and the letters that its model reads
    let entry, open, state, said = [], runs = [], timer = 0, asking = 0, goal = 0, halt = () => {};

    const toyOf = () => toys[entry.toy];
    const playing = () => timer !== 0;
    // The heads that are off in the passes shown; those of later passes wait.
    const offShown = () => new Set([...state.off].filter((key) => parseInt(key, 10) <= rules.steps(open.config, state.passes)));

    // Show a model and what a link or the element's attributes say.  Text and hops stay; another model begins with the passes
    // of its own training and all of its heads.
    async function turnTo(next, given, words_ = []) {
      const mine = ++asking;
      stop();
      goal = 0;
      try {
        const found = await model(looped, next.name);
        if (mine !== asking) {
          return;
        }
        const { file } = found;
        const toy = toys[next.toy];
        const hops = state && state.hops < open.file.task.hops ? state.hops : file.task.hops; // the most stays the most
        const usual = { ...textFor(next.toy, file), hops, passes: next === entry ? state.passes : 0 };
        const again = next !== entry && state && state.off.size && given.off === undefined ? ["all heads are on again"] : [];
        [entry, open] = [next, found];
        ({ said, ...state } = rules.complete(file, toy, toys, given, usual));
        said = [...words_, ...again, ...said];
        show();
      } catch (error) {
        failed(root, error);
      }
    }

    // The text that was shown last, as much of its end as the model reads; a whole example grows with it.
    function textFor(name, file) {
      const { letters } = file.task;
      const symbols = toys[name].symbols(file.task);
      const example = Array.from(rtxDemo.explorerTexts[name].letters, (letter) => symbols.indexOf(letter));
      const last = kept[name];
      const untouched = !last || last.items.join() === example.slice(-last.letters).join();
      const items = (untouched ? example : last.items).slice(-letters);
      const end = items.length - 1;
      return { items, asked: last ? Math.max(0, end - (last.items.length - 1 - last.asked)) : rules.usualAsked(file, end) };
    }

    // The steps of the model on this text without the heads in `out`; the last two runs are kept.
    function computed(steps, out) {
      const ids = toyOf().ids(state.items, open.file.task, state.hops);
      const key = [entry.name, ids, [...out].sort()].join(" ");
      let run = runs.find((one) => one.key === key);
      if (!run) {
        run = { key, state: looped.start(open, ids), shown: [] };
        runs = [run, ...runs].slice(0, 2);
      }
      while (run.shown.length < steps) {
        const next = `${run.shown.length + 1}.`;
        const off = new Set([...out].filter((one) => one.startsWith(next)).map((one) => Number(one.split(".")[1]) - 1));
        run.shown.push({ ...looped.step(open, run.state, off), off });
      }
      return run.shown.slice(0, steps);
    }

    function show() {
      if (!parts.paper) {
        halt();
        delete root.dataset.counted;
        parts.counted.textContent = "";
      }
      const { file, config } = open;
      const toy = toyOf();
      const steps = rules.steps(config, state.passes);
      const off = offShown();
      const at = state.asked + toy.before;
      const options = toy.options(file.task);
      const names = toy.names(file.task);
      const letter = names[state.items[state.asked]];
      const strips = computed(steps, state.off).map((one) => {
        const tokens = one.lengths.length;
        const row = (h, at) => Array.from(one.weights.subarray((h * tokens + at) * tokens, (h * tokens + at) * tokens + at + 1));
        const rows = (item) => Array.from({ length: config.num_heads }, (_, h) => row(h, item + toy.before));
        const usual = file.heads[Math.min(one.step, file.heads.length) - 1].map(({ does }) => does);
        const heads = (item) => rows(item).map((weights, h) => ({ weights, off: one.off.has(h), usual: usual[h], does: toys.doesHere(toy, file.task, state.items, item, weights, usual[h]) }));
        const best = (t) => {
          const found = looped.shares(open, one, t + toy.before, options);
          return found.indexOf(Math.max(...found));
        };
        const reached = entry.toy === "cups" ? state.items.map((_, t) => best(t) === toy.truth(state.items, file.task, t)) : null;
        return { step: one.step, reached, solved: rules.solved(file, one.step), heads, shares: looped.shares(open, one, at, options), length: one.lengths[at] };
      });
      const looks = (step, item) => strips[step].heads(item).map(({ weights, off }) => (off ? [0] : weights));
      const answers = toy.answers(file.task);
      const chain = entry.toy === "hops" ? toy.chain(state.items, state.asked, state.hops) : [];
      const trail = toys.trail(strips.length, state.asked, chain.map(({ to }) => to), toy.before, looks);
      const truth = toy.truth(state.items, file.task, state.asked, state.hops);
      const shown = { entry, file, state: { ...state, off }, toy, names, answers, chain, truth, strips, trail, playing: playing() };
      const found = view.render(parts, shown, catalogue, act);
      kept[entry.toy] = { items: state.items, asked: state.asked, letters: file.task.letters };
      const whole = off.size ? looped.shares(open, computed(steps, new Set()).at(-1), at, options) : null;
      const others = (file.right[entry.toy === "hops" ? state.hops : state.asked] || [])[steps - 1];
      const first = said.map((one) => `${one[0].toUpperCase()}${one.slice(1)}. `).join("");
      parts.status.textContent = first + words.status(config, { ...found, off, others, whole: whole && answers[whole.indexOf(Math.max(...whole))] });
      parts.hint.textContent = entry.toy === "hops" ? "One hop: back to the same letter, then one to the right. Ask any letter; click it again, or type, to change it." : "Where are the three cups after the chosen move? Choose another; click it again to change it.";
      parts.link.dataset.link = rules.write({ ...state, off }, entry, toys.write(toy, file.task, state.items));
      parts.source.textContent = `Model: ${file.record}, ${words.count(config.num_layers, "layer")} of width ${config.hidden_size}, run in this page.`;
      root.dataset.answer = found.answer;
      root.dataset.right = found.right;
      root.dataset.state = playing() ? "playing" : "done";
      if (off.size && !playing() && !parts.paper && state.passes <= rules.MOST) {
        count(steps);
      }
    }

    // How much the heads that are off are missed on other texts.
    function count(steps) {
      const told = (found) => {
        parts.counted.textContent = words.counted(found, COUNTED);
        parts.counted.setAttribute("aria-busy", String(!found.finished)); // heard when it is done
        if (found.finished) {
          root.dataset.counted = [found.without, found.whole].map((share) => share.toFixed(3)).join();
        }
      };
      told({ done: 0 });
      halt = rtxDemo.countTexts(looped, toys, open, toyOf(), state, steps, COUNTED, told);
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
    }

    function change(next, words_ = []) {
      said = words_;
      state = { ...state, ...next };
      show();
    }

    function set(t, item) {
      const items = state.items.slice();
      items[t] = item;
      change({ items });
    }

    const act = {
      ask(t) {
        if (t === state.asked) {
          set(t, toys.nextThere(toyOf(), open.file.task, state.items, t));
        } else {
          change({ asked: t });
          parts.items.querySelector("[tabindex='0']").focus({ preventScroll: true });
        }
      },
      walk: (by) => change({ asked: Math.max(0, Math.min(state.items.length - 1, state.asked + by)) }),
      shuffle() {
        let items;
        do {
          items = toys.draw(toyOf(), open.file.task, Math.random);
        } while (toyOf().truth(items, open.file.task, items.length - 1, state.hops) < 0);
        change({ items, asked: items.length - 1 });
      },
      passes(passes) {
        stop();
        change({ passes });
      },
      hops: (hops) => change({ hops }),
      model: (name) => turnTo(catalogue.find((one) => one.name === name), {}),
      toy: (toy) => turnTo(catalogue.find((one) => one.toy === toy), {}),
      off(key) {
        const off = new Set(state.off);
        off.delete(key) || off.add(key);
        change({ off });
      },
      // Not an <a>: the theme takes every href with a # for a heading of the page.
      link() {
        history.replaceState(null, "", parts.link.dataset.link);
        const said = () => (parts.status.textContent = "The link stands in the address bar, and is copied where the browser allows it.");
        navigator.clipboard ? navigator.clipboard.writeText(location.href).then(said, said) : said();
      },
      whole: () => change({ off: new Set() }),
      far() {
        stop();
        change({ passes: state.passes === rules.FAR ? rules.usualPasses(open.file) : rules.FAR });
      },
      play() {
        if (playing()) {
          stop();
          return show();
        }
        const first = goal > state.passes ? state.passes + 1 : 1; // what was paused goes on
        goal = first > 1 ? goal : Math.min(rules.mostPasses(open.config), Math.max(state.passes, rules.usualPasses(open.file)));
        timer = setInterval(() => {
          if (state.passes + 1 >= goal) {
            stop();
          }
          change({ passes: state.passes + 1 });
        }, BEAT);
        if (first === goal) {
          stop();
        }
        return change({ passes: first });
      },
      key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) {
          return;
        }
        const toy = toyOf();
        const task = open.file.task;
        const last = state.items.length - 1;
        const to = { ArrowLeft: state.asked - 1, ArrowRight: state.asked + 1, Home: 0, End: last }[event.key];
        const item = event.key.length === 1 ? toy.symbols(task).indexOf(event.key.toLowerCase()) : -1;
        const turn = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (to !== undefined) {
          change({ asked: Math.max(0, Math.min(last, to)) });
        } else if (turn) {
          set(state.asked, toys.nextThere(toy, task, state.items, state.asked, turn));
        } else if (item >= 0) {
          if (item === state.items[state.asked]) {
            change({}, [`this is ${toy.names(task)[item]} already`]);
          } else if (toys.fits(toy, state.items, state.asked, item)) {
            set(state.asked, item);
          } else {
            change({}, ["no two equal neighbours"]);
          }
        } else if (/^\d$/.test(event.key) && task.hops >= Number(event.key)) {
          act.hops(Number(event.key));
        } else if (/^\S$/u.test(event.key)) {
          const digits = task.hops ? ` as letters, and 0 to ${task.hops} as hops` : "";
          change({}, [`only ${toy.symbols(task).split("").join(", ")} are known${digits}`]);
        } else {
          return;
        }
        event.preventDefault();
      },
      paste(event) {
        event.preventDefault();
        turnTo(entry, { letters: event.clipboardData.getData("text").slice(0, 1000), passes: String(state.passes), off: [...offShown()].join() });
      },
    };

    const parts = view.build(root, act);
    function fromLink(first) {
      const given = rules.fields(location.hash);
      const meant = NAMED.some((name) => name in given) || ("passes" in given && !("text" in given)); // text is the other box's
      if (first || meant) {
        const words_ = [];
        const next = rules.modelOf(catalogue, meant ? given : {}, meant || !entry ? usualModel : entry, words_);
        const { letters, hops, passes } = root.dataset;
        turnTo(next, meant ? given : { letters, hops, passes }, words_);
      }
    }
    addEventListener("hashchange", () => fromLink(false));
    const onPaper = (width) => {
      parts.paper = width;
      if (state) {
        show();
      }
    };
    addEventListener("beforeprint", () => onPaper(PAPER));
    addEventListener("afterprint", () => onPaper(0));
    let width = 0;
    new ResizeObserver(() => {
      if (state && Math.abs(parts.main.clientWidth - width) > 1) {
        width = parts.main.clientWidth;
        show();
      }
    }).observe(parts.main);
    fromLink(true);
  }

  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("explorer.css", HERE);
  document.head.append(style);
  document.querySelectorAll(".rtx-explorer").forEach(start); // the script stands below its elements
})();
