"use strict";
var rtxDemo = rtxDemo || {};

// <div class="rtx-explorer" data-model="2x2" data-compare="2x1" data-hops="4" data-passes="2" data-letters="cacb…"> becomes the
// explorer when it is seen: a row of letters with the chain of hops, and a grid of what small models that run in the page would
// answer, passes down and hops across, for a model and for another one to compare it with.  All attributes may be left out.
// `data-state` of the element is loading, waiting, playing, done or failed; `data-answer` and `data-right` (yes, no, none) are of
// the hops that were asked for, after the last pass shown.  A link carries all: see explorer-state.js.
(function () {
  const HERE = new URL(".", document.currentScript.src);
  const FILES = ["forward.js", "toys.js", "explorer-state.js", "explorer-words.js", "explorer-draw.js", "explorer-view.js", "explorer-count.js", "models/explorer.js", "models/explorer-texts.js"];
  const BEAT = 2200; // milliseconds between passes that are played
  const COUNTED = 200; // texts on which heads that are off are missed or not
  const PAPER = 400; // pixels for letters and arcs in print, where explorer.css fits them to the page
  const KEPT = 24; // runs of models on sequences, so that a grid is computed once
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
    const looped = rtxDemo.forward().decoder;
    const words = rtxDemo.explorerWords();
    const view = rtxDemo.explorerView();
    const catalogue = rtxDemo.explorer;
    const usualModel = catalogue.find((one) => one.model === root.dataset.model) || catalogue[0];
    const kept = {}; // of each toy: items, asked and the letters that its model reads
    let entry, open, beside, state, said = [], runs = [], timer = 0, asking = 0, goal = 0, waiting = false, linked = false, halt = () => {};

    const toyOf = () => toys[entry.toy];
    const playing = () => timer !== 0;
    // The heads that are off in the passes shown; those of later passes wait.
    const offShown = () => new Set([...state.off].filter((key) => parseInt(key, 10) <= rules.steps(open.config, state.passes)));

    // The model that is shown beside one of the same task.
    const rivalOf = (next) => next.passes > 1 && catalogue.find((one) => one.model === root.dataset.compare && one.toy === next.toy && one.hops === next.hops && one.name !== next.name);

    // Show a model and what a link or the element's attributes say.  Text and hops stay; another model begins with the passes
    // of its own training and all of its heads.
    async function turnTo(next, given, words_ = [], wait = false) {
      const mine = ++asking;
      stop();
      goal = 0;
      try {
        const rival = rivalOf(next);
        const [found, other] = await Promise.all([next, rival].map((one) => one && model(looped, one.name)));
        if (mine !== asking) {
          return;
        }
        const { file } = found;
        const hops = state && state.hops < open.file.task.hops ? state.hops : file.task.hops; // the most stays the most
        const usual = { ...textFor(next.toy, file), hops, passes: next === entry ? state.passes : 0 };
        const again = next !== entry && state && state.off.size && given.off === undefined ? ["all heads are on again"] : [];
        [entry, open, beside] = [next, found, other && { entry: rival, open: other }];
        ({ said, ...state } = rules.complete(file, toyOf(), toys, given, usual));
        linked = state.tries > 0;
        waiting = wait;
        goal = wait ? rules.usualPasses(file) : 0;
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

    // The steps of a model on this text without the heads in `out`, asked for so many hops.
    function computed(model, hops, steps, out) {
      const ids = toyOf().ids(state.items, model.file.task, hops);
      const key = [model.file.key, ids, [...out].sort()].join(" ");
      const run = runs.find((one) => one.key === key) || { key, state: looped.start(model, ids), shown: [] };
      runs = [run, ...runs.filter((one) => one !== run)].slice(0, KEPT);
      while (run.shown.length < steps) {
        const next = `${run.shown.length + 1}.`;
        const off = new Set([...out].filter((one) => one.startsWith(next)).map((one) => Number(one.split(".")[1]) - 1));
        run.shown.push({ ...looped.step(model, run.state, off), off });
      }
      return run.shown.slice(0, steps);
    }

    const most = (shares) => shares.indexOf(Math.max(...shares));
    const sharesAt = (model, one, t) => looped.shares(model, one, t + toyOf().before, toyOf().options(model.file.task));

    // A row for each of the `steps`, counted from 1: what the model would answer in each column if it stopped there.
    function rowsOf(model, columns, steps, out) {
      const asked = columns.map(({ hops, at }) => ({ at, shown: computed(model, hops, steps.at(-1), out) }));
      return steps.map((step) => columns.map(({ truth }, c) => {
        const best = most(sharesAt(model, asked[c].shown[step - 1], asked[c].at));
        const share = out.size ? undefined : (model.file.right[columns[c].part] || [])[step - 1];
        return { best, share, right: truth < 0 ? "none" : best === truth ? "yes" : "no" };
      }));
    }

    const rights = (row) => row.filter(({ right }) => right === "yes").length;

    function show() {
      if (!parts.paper) {
        halt();
        delete root.dataset.counted;
        parts.counted.textContent = "";
      }
      const { file, config } = open;
      const toy = toyOf();
      const { passes } = state;
      const steps = rules.steps(config, passes);
      const off = offShown();
      const columns = toy.columns(state.items, file.task, state.asked);
      const ends = Array.from({ length: passes }, (_, i) => rules.steps(config, i + 1));
      const mine = rowsOf(open, columns, ends, off);
      const grids = [{ title: words.first(words.model(entry, file.task.hops)), rows: waiting ? [] : mine }];
      const rows = Array.from({ length: Math.max(passes, goal) }, (_, i) => i + 1);
      let rival;
      if (beside) {
        const { layers } = beside.entry;
        const [last] = rowsOf(beside.open, columns, [layers], new Set());
        const row = (number) => (waiting || number > passes ? undefined : number > 1 ? null : last);
        grids.unshift({ title: words.first(words.model(beside.entry, file.task.hops)), rows: rows.map(row), ended: 1 });
        rival = passes > 1 && goal <= passes ? rights(last) : undefined;
      }
      const [row, all] = [mine.at(-1), columns.filter(({ truth }) => truth >= 0).length];
      const chain = entry.toy === "hops" ? toy.chain(state.items, state.asked, state.hops) : [];
      const reached = new Set(waiting ? [] : columns.filter((_, c) => row[c].right === "yes").map(({ part }) => part));
      const names = toy.names(file.task);
      const truth = toy.truth(state.items, file.task, state.asked, state.hops);
      const shown = { entry, file, state: { ...state, off }, toy, names, answers: toy.answers(file.task), chain, truth, columns, grids, rows, steps, reached, newest: playing() ? passes : 0, playing: playing(), ...(parts.more.open ? inside(steps, chain) : {}) };
      view.render(parts, shown, catalogue, act);
      kept[entry.toy] = { items: state.items, asked: state.asked, letters: file.task.letters };
      const whole = off.size ? rights(rowsOf(open, columns, [steps], new Set())[0]) : null;
      const told = waiting ? "" : words.status({ config, task: file.task, passes, right: rights(row), all, off, whole, rival });
      parts.status.textContent = said.map((one) => `${words.first(one)}. `).join("") + told;
      const wrong = !off.size && !waiting && passes === rules.usualPasses(file) ? all - rights(row) : 0;
      parts.dare.textContent = entry.toy === "cups" ? "" : words.dare({ name: words.model(entry, file.task.hops).replace(",", ""), wrong, all, tries: state.tries, linked });
      parts.hint.textContent = entry.toy === "hops" ? "One hop: back to the same letter, then one to the right. Click a letter to start there; click it again, or type, to change it." : "Where are the three cups after the chosen move? Choose another; click it again to change it.";
      parts.link.dataset.link = rules.write({ ...state, off, tries: wrong ? state.tries : 0 }, entry, toys.write(toy, file.task, state.items));
      parts.source.textContent = `Model: ${file.record}, ${words.count(config.num_layers, "layer")} of width ${config.hidden_size}, run in this page.`;
      const best = most(sharesAt(open, computed(open, state.hops, steps, off).at(-1), state.asked));
      root.dataset.answer = shown.answers[best];
      root.dataset.right = truth < 0 ? "none" : best === truth ? "yes" : "no";
      root.dataset.state = waiting ? "waiting" : playing() ? "playing" : "done";
      if (off.size && !playing() && !parts.paper && passes <= rules.MOST) {
        count(steps);
      }
    }

    // What the strips show: where each head looks in each step, and which item the next step reads.
    function inside(steps, chain) {
      const { file, config } = open;
      const toy = toyOf();
      const strips = computed(open, state.hops, steps, state.off).map((one) => {
        const tokens = one.lengths.length;
        const row = (h, at) => Array.from(one.weights.subarray((h * tokens + at) * tokens, (h * tokens + at) * tokens + at + 1));
        const rows = (item) => Array.from({ length: config.num_heads }, (_, h) => row(h, item + toy.before));
        const usual = file.heads[Math.min(one.step, file.heads.length) - 1].map(({ does }) => does);
        const heads = (item) => rows(item).map((weights, h) => ({ weights, off: one.off.has(h), usual: usual[h], does: toys.doesHere(toy, file.task, state.items, item, weights, usual[h]) }));
        const reached = entry.toy === "cups" ? state.items.map((_, t) => most(sharesAt(open, one, t)) === toy.truth(state.items, file.task, t)) : null;
        return { step: one.step, reached, heads, shares: sharesAt(open, one, state.asked), length: one.lengths[state.asked + toy.before] };
      });
      const looks = (step, item) => strips[step].heads(item).map(({ weights, off }) => (off ? [0] : weights));
      return { strips, trail: toys.trail(strips.length, state.asked, chain.map(({ to }) => to), toy.before, looks) };
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
      waiting = false;
    }

    function change(next, words_ = []) {
      said = words_;
      waiting = false;
      if (next.items) { // a try of the challenge
        next.tries = linked ? 1 : Math.min(rules.MANY, state.tries + 1);
        linked = false;
      }
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
      breakOne: (key) => change({ off: new Set(key ? [key] : []) }),
      redraw: () => state && show(),
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
        const first = goal > state.passes && !waiting ? state.passes + 1 : 1; // what was paused goes on
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
    // Show what a link says; at first, where none does, what the attributes say.  That plays once, when the grid is seen.
    async function fromLink(first) {
      const given = rules.fields(location.hash);
      const meant = NAMED.some((name) => name in given) || ("passes" in given && !("text" in given)); // text is the other box's
      if (!first && !meant) {
        return;
      }
      const words_ = [];
      const next = rules.modelOf(catalogue, meant ? given : {}, meant || !entry ? usualModel : entry, words_);
      const { letters, hops, passes } = root.dataset;
      const wait = !meant && !matchMedia("(prefers-reduced-motion: reduce)").matches;
      await turnTo(next, meant ? given : { letters, hops, passes }, words_, wait);
      if (wait) {
        const watch = new IntersectionObserver(([grid]) => {
          if (grid.isIntersecting || !waiting) {
            watch.disconnect();
            waiting && act.play();
          }
        }, { threshold: 0.9 });
        watch.observe(parts.grid);
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
  // Nothing is loaded before it is seen.
  const seen = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((one) => one.isIntersecting)) {
      seen.unobserve(target);
      start(target);
    }
  }, { rootMargin: "0px 0px -25% 0px" });
  document.querySelectorAll(".rtx-explorer").forEach((root) => seen.observe(root)); // the script stands below its elements
})();
