"use strict";
var rtxDemo = rtxDemo || {};

// The forward passes of the study's two kinds of loop, one sequence at a time and in 32 bits.  Both apply one kind of layer:
//   x += out(attention(norm x));   x += down(silu(gate norm x) · up norm x)
// `encoder` (rtx_core/models/encoder.py) reads in both directions:   h⁰ = RMSNorm(word + type),  hʳ⁺¹ = layers(hʳ) + α hʳ
// `decoder` (rtx_core/models/looped.py) reads from left to right:    s⁰ = E[ids],  sʳ⁺¹ = layers(sʳ),  logits = RMSNorm(s) Eᵀ
// `open` reads a file of study/demo/export.py.  Everything is inside one function, whose source a worker is made of.
rtxDemo.forward = function () {
  const BLOCK = 4; // tokens that share one reading of a weight; arrays hold a multiple of it, the rest zeros
  const TYPES = { int8: Int8Array, int32: Int32Array, float32: Float32Array, float16: Uint16Array };
  const NONE = new Set();

  function bytes(base64) {
    const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const value = new Uint8Array(128);
    for (let i = 0; i < 64; i++) {
      value[LETTERS.charCodeAt(i)] = i;
    }
    const end = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
    const found = new Uint8Array((base64.length / 4) * 3 - end);
    for (let i = 0, j = 0; i < base64.length; i += 4) {
      const four =
        (value[base64.charCodeAt(i)] << 18) |
        (value[base64.charCodeAt(i + 1)] << 12) |
        (value[base64.charCodeAt(i + 2)] << 6) |
        value[base64.charCodeAt(i + 3)];
      found[j++] = four >> 16;
      found[j++] = four >> 8; // beyond the end nothing is stored
      found[j++] = four;
    }
    return found;
  }

  // {name: typed array} of a file; numbers of 16 bits become 32.
  function arrays(file) {
    const buffer = bytes(file.data).buffer;
    const found = {};
    for (const [name, { type, shape, at }] of Object.entries(file.arrays)) {
      const values = new TYPES[type](buffer, at, shape.reduce((a, b) => a * b, 1));
      found[name] = type === "float16" ? Float32Array.from(values, single) : values;
    }
    return found;
  }

  // The number whose 16 bits are given: a sign, 5 bits of exponent, 10 of fraction.
  function single(bits) {
    const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
    return (bits >> 15 ? -1 : 1) * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
  }

  // A matrix of int8 times the scale of each row.
  function scaled(values, scale) {
    const columns = values.length / scale.length;
    const matrix = new Float32Array(values.length);
    for (let row = 0, i = 0; row < scale.length; row++) {
      for (const end = i + columns; i < end; i++) {
        matrix[i] = values[i] * scale[row];
      }
    }
    return matrix;
  }

  // {file, config, weights: {name: values}}; both models' layers by the same names.  The encoder's words stay int8.
  function open(file) {
    const stored = arrays(file);
    const weights = {};
    for (const [name, values] of Object.entries(stored)) {
      const scale = name === "word.weight" ? null : stored[`${name}.scale`];
      const short = name.replace(/\.(attention|ffn)\.(qkv|out|gate_up|down)(\.weight)?/, ".$2");
      weights[short] = scale ? scaled(values, scale) : values;
    }
    return { file, config: file.config, weights };
  }

  // y = x Wᵀ + b, where there is one, for x (tokens, inputs) -> (tokens, outputs); W (outputs, inputs) lies row after row.  Four tokens and two
  // rows at a time share their readings, which makes it more than twice as fast as one row at a time.
  function linear(x, weight, inputs, bias) {
    const outputs = weight.length / inputs;
    const tokens = x.length / inputs;
    const y = new Float32Array(tokens * outputs);
    for (let t = 0; t < tokens; t += BLOCK) {
      const a = t * inputs, b = a + inputs, c = b + inputs, d = c + inputs;
      for (let o = 0; o < outputs; o += 2) {
        const two = o + 1 < outputs;
        const p = o * inputs, q = two ? p + inputs : p;
        let a0 = 0, b0 = 0, c0 = 0, d0 = 0, a1 = 0, b1 = 0, c1 = 0, d1 = 0;
        for (let i = 0; i < inputs; i++) {
          const v = weight[p + i], w = weight[q + i];
          const xa = x[a + i], xb = x[b + i], xc = x[c + i], xd = x[d + i];
          a0 += v * xa;
          b0 += v * xb;
          c0 += v * xc;
          d0 += v * xd;
          a1 += w * xa;
          b1 += w * xb;
          c1 += w * xc;
          d1 += w * xd;
        }
        const to = t * outputs + o;
        const [u, v] = bias ? [bias[o], bias[o + 1]] : [0, 0];
        y[to] = a0 + u;
        y[to + outputs] = b0 + u;
        y[to + 2 * outputs] = c0 + u;
        y[to + 3 * outputs] = d0 + u;
        if (two) {
          y[to + 1] = a1 + v;
          y[to + outputs + 1] = b1 + v;
          y[to + 2 * outputs + 1] = c1 + v;
          y[to + 3 * outputs + 1] = d1 + v;
        }
      }
    }
    return y;
  }

  // x / √(mean(x²) + ε) · g, row by row.
  function rmsNorm(x, gain, eps) {
    const size = gain.length;
    const y = new Float32Array(x.length);
    for (let row = 0; row < x.length; row += size) {
      let sum = 0;
      for (let i = 0; i < size; i++) {
        sum += x[row + i] * x[row + i];
      }
      const factor = 1 / Math.sqrt(sum / size + eps);
      for (let i = 0; i < size; i++) {
        y[row + i] = x[row + i] * factor * gain[i];
      }
    }
    return y;
  }

  // Turn the pairs (i, i + D/2) of each query and key of qkv (tokens, 3, H, D) by position · base^(−2i/D), in place.
  function rotate(qkv, tokens, config) {
    const size = config.hidden_size / config.num_heads;
    const width = 3 * config.hidden_size;
    for (let i = 0; i < size / 2; i++) {
      const theta = config.rope_base ** ((-2 * i) / size);
      for (let t = 0; t < tokens; t++) {
        const cos = Math.cos(t * theta);
        const sin = Math.sin(t * theta);
        for (let head = 0; head < 2 * config.num_heads; head++) {
          const at = t * width + head * size + i;
          const a = qkv[at];
          const b = qkv[at + size / 2];
          qkv[at] = a * cos - b * sin;
          qkv[at + size / 2] = b * cos + a * sin;
        }
      }
    }
  }

  // softmax(q kᵀ / √D) of every head over all tokens, or over those up to its own: {weights (H, N, N), mixed (tokens, d)}.
  // A head that is off mixes nothing in; where it would have looked is shown all the same.
  function attend(qkv, tokens, config, causal, off) {
    const d = config.hidden_size;
    const size = d / config.num_heads;
    const mixed = new Float32Array(qkv.length / 3);
    const weights = new Float32Array(config.num_heads * tokens * tokens);
    const scores = new Float64Array(tokens);
    for (let head = 0; head < config.num_heads; head++) {
      for (let t = 0; t < tokens; t++) {
        const q = t * 3 * d + head * size;
        const last = causal ? t : tokens - 1;
        let most = -Infinity;
        for (let s = 0; s <= last; s++) {
          const k = s * 3 * d + d + head * size;
          let score = 0;
          for (let i = 0; i < size; i++) {
            score += qkv[q + i] * qkv[k + i];
          }
          scores[s] = score / Math.sqrt(size);
          most = Math.max(most, scores[s]);
        }
        let sum = 0;
        for (let s = 0; s <= last; s++) {
          scores[s] = Math.exp(scores[s] - most);
          sum += scores[s];
        }
        const row = (head * tokens + t) * tokens;
        const to = t * d + head * size;
        for (let s = 0; s <= last; s++) {
          const weight = scores[s] / sum;
          weights[row + s] = weight;
          if (!off.has(head)) {
            const v = s * 3 * d + 2 * d + head * size;
            for (let i = 0; i < size; i++) {
              mixed[to + i] += weight * qkv[v + i];
            }
          }
        }
      }
    }
    return { weights, mixed };
  }

  function add(x, y, factor) {
    for (let i = 0; i < x.length; i++) {
      x[i] += factor * y[i];
    }
  }

  function softmax(logits) {
    const most = Math.max(...logits);
    const powers = logits.map((value) => Math.exp(value - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => value / sum);
  }

  // One layer on x in place; returns its attention (H, N, N).
  function layer({ config, weights }, name, x, tokens, causal, off) {
    const { hidden_size: d, intermediate_size: f } = config;
    const map = (part, input, inputs) => linear(input, weights[`${name}.${part}`], inputs, weights[`${name}.${part}.bias`]);
    const normed = (part) => rmsNorm(x, weights[`${name}.${part}.weight`], config.norm_eps);
    const qkv = map("qkv", normed("attention_norm"), d);
    rotate(qkv, tokens, config);
    const looked = attend(qkv, tokens, config, causal, off);
    add(x, map("out", looked.mixed, d), 1);
    const both = map("gate_up", normed("ffn_norm"), d);
    const inner = new Float32Array(both.length / 2);
    for (let row = 0, at = 0; at < inner.length; row += 2 * f) {
      for (let i = row; i < row + f; i++) {
        inner[at++] = (both[i] / (1 + Math.exp(-both[i]))) * both[i + f];
      }
    }
    add(x, map("down", inner, f), 1);
    return looked.weights;
  }

  const padded = (tokens, d) => new Float32Array(Math.ceil(tokens / BLOCK) * BLOCK * d);

  const encoder = {
    open(file) {
      const model = open(file);
      return { ...model, rows: new Map(Array.from(model.weights.met, (id, row) => [id, row])) };
    },

    // The state of a text before the first pass; an id that training never met is a row of zeros.
    start({ config, weights, rows }, ids) {
      const d = config.hidden_size;
      const [words, scale] = [weights["word.weight"], weights["word.weight.scale"]];
      const h = padded(ids.length, d);
      ids.forEach((id, t) => {
        const row = rows.get(id);
        for (let i = 0; i < d; i++) {
          const word = row === undefined ? 0 : words[row * d + i] * (scale ? scale[row] : 1);
          h[t * d + i] = word + weights["token_type.weight"][i];
        }
      });
      return { h: rmsNorm(h, weights["norm.weight"], config.norm_eps), tokens: ids.length, passes: 0 };
    },

    // Run the layers once more: {passes, logits, probabilities, attention}, the last how [CLS] looked at each token, the
    // mean over the layers and heads of this pass.
    pass(model, state) {
      const { config, weights } = model;
      const { num_layers: layers, num_heads: heads, hidden_size: d } = config;
      const before = state.h.slice();
      const attention = new Array(state.tokens).fill(0);
      for (let i = 0; i < layers; i++) {
        const looked = layer(model, `layers.${i}`, state.h, state.tokens, false, NONE);
        for (let head = 0; head < heads; head++) {
          attention.forEach((_, s) => (attention[s] += looked[head * state.tokens ** 2 + s] / (layers * heads)));
        }
      }
      if (state.passes > 0 || config.residual === "paper") {
        add(state.h, before, config.residual_scale);
      }
      state.passes += 1;
      const cls = padded(1, d);
      cls.set(state.h.subarray(0, d));
      const logits = Array.from(linear(cls, weights["head.weight"], d, weights["head.bias"]).subarray(0, config.num_labels));
      return { passes: state.passes, logits, probabilities: softmax(logits), attention };
    },
  };

  // Settings of a decoder that this file does not run, with the value that each has where it does nothing.
  const UNREAD = { cache: "all", halting: 0, injection: "none", encoding: "none", lora_rank: 0, state_std: null, gate: false, loop_norm: false, state_norm: false, num_core_layers: 0, tie_embeddings: true };

  const decoder = {
    open(file) {
      for (const [name, usual] of Object.entries(UNREAD)) {
        if (name in file.config && file.config[name] !== usual) {
          throw new Error(`the page cannot run a model with ${name}`);
        }
      }
      return open(file);
    },

    // A sequence before the first step: its state is the embedding of its tokens.
    start({ config, weights }, ids) {
      const d = config.hidden_size;
      const h = padded(ids.length, d);
      ids.forEach((id, t) => h.set(weights["word.weight"].subarray(id * d, id * d + d), t * d));
      return { h, tokens: ids.length, steps: 0 };
    },

    // The next layer on `state`, without the heads in the set `off` (counted from 0): a *step* is one application of one layer.
    // {step, weights (H, N, N), logits (N, V), lengths (N,) of the state's vectors}
    step(model, state, off) {
      const { config, weights } = model;
      const d = config.hidden_size;
      const looked = layer(model, `layers.${state.steps % config.num_layers}`, state.h, state.tokens, true, off);
      state.steps += 1;
      const logits = linear(rmsNorm(state.h, weights["norm.weight"], config.norm_eps), weights["word.weight"], d);
      const lengths = Float32Array.from({ length: state.tokens }, (_, t) => Math.hypot(...state.h.subarray(t * d, t * d + d)));
      return { step: state.steps, weights: looked, logits: logits.subarray(0, state.tokens * config.vocab_size), lengths };
    },

    // Shares among the logits of `options` (token ids) at a position.
    shares: ({ config }, shown, position, options) => softmax(options.map((id) => shown.logits[position * config.vocab_size + id])),
  };

  return { arrays, softmax, encoder, decoder };
};

// Logistic regression on word counts, weighted by TF-IDF, as study/measurements/bag_of_words.py fits it.
rtxDemo.bagOfWords = function (file) {
  const { arrays, softmax } = rtxDemo.forward();
  const { met, idf, coefficients, intercept } = arrays(file);
  const rows = new Map(Array.from(met, (id, row) => [id, row]));
  const classes = intercept.length;

  // {logits, probabilities, parts}: what each token adds to the logit of each class; an id that training never met
  // adds nothing, and makes the others count less.
  function classify(ids) {
    const counts = new Map();
    ids.forEach((id) => counts.set(id, (counts.get(id) || 0) + 1));
    const weight = (id) => (rows.has(id) ? idf[rows.get(id)] : file.idf_unmet);
    let squares = 0;
    counts.forEach((count, id) => (squares += (count * weight(id)) ** 2));
    const norm = Math.sqrt(squares);
    const parts = ids.map((id) =>
      Array.from(intercept, (_, c) =>
        rows.has(id) ? (weight(id) * coefficients[rows.get(id) * classes + c]) / norm : 0,
      ),
    );
    const logits = Array.from(intercept, (first, c) => parts.reduce((sum, part) => sum + part[c], first));
    return { logits, probabilities: softmax(logits), parts };
  }

  return { classify, knows: (id) => rows.has(id) };
};
