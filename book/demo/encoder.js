"use strict";
var rtxDemo = rtxDemo || {};

// The recurrent encoder of rtx_core/models/encoder.py, one text at a time:
//   h⁰ = RMSNorm(word + type),   h¹ = F(h⁰),   hʳ⁺¹ = F(hʳ) + α hʳ,   logits = W h[CLS] + b
// `open` reads a file of rtx_core/export_demo.py, `start` begins a text, and each call of `pass` runs the layers once
// more and answers.  Everything is inside one function, whose source a worker is made of.
rtxDemo.encoder = function () {
  const BLOCK = 4; // tokens that share one reading of a weight; arrays hold a multiple of it, the rest zeros
  const TYPES = { int8: Int8Array, int32: Int32Array, float32: Float32Array };

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

  // {name: typed array} of a file.
  function arrays(file) {
    const buffer = bytes(file.data).buffer;
    const found = {};
    for (const [name, { type, shape, at }] of Object.entries(file.arrays)) {
      found[name] = new TYPES[type](buffer, at, shape.reduce((a, b) => a * b, 1));
    }
    return found;
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

  function open(file) {
    const stored = arrays(file);
    const model = { config: file.config, classes: file.classes, weights: {}, rows: new Map() };
    for (const [name, values] of Object.entries(stored)) {
      const scale = stored[`${name}.scale`];
      if (name === "word.weight") {
        model.words = { values, scale };
      } else if (scale) {
        model.weights[name] = scaled(values, scale);
      } else {
        model.weights[name] = values;
      }
    }
    stored.met.forEach((id, row) => model.rows.set(id, row));
    return model;
  }

  // y = x Wᵀ + b for x (tokens, inputs) -> (tokens, outputs); W (outputs, inputs) lies row after row.
  function linear(x, weight, bias) {
    const outputs = bias.length;
    const inputs = weight.length / outputs;
    const tokens = x.length / inputs;
    const y = new Float32Array(tokens * outputs);
    for (let o = 0; o < outputs; o++) {
      const from = o * inputs;
      for (let t = 0; t < tokens; t += BLOCK) {
        const at = t * inputs;
        let a = 0, b = 0, c = 0, d = 0;
        for (let i = 0; i < inputs; i++) {
          const w = weight[from + i];
          a += w * x[at + i];
          b += w * x[at + inputs + i];
          c += w * x[at + 2 * inputs + i];
          d += w * x[at + 3 * inputs + i];
        }
        y[t * outputs + o] = a + bias[o];
        y[(t + 1) * outputs + o] = b + bias[o];
        y[(t + 2) * outputs + o] = c + bias[o];
        y[(t + 3) * outputs + o] = d + bias[o];
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

  // softmax(q kᵀ / √D) v of every head; adds the weights of [CLS] to `looked` (tokens,).
  function attention(qkv, tokens, config, looked) {
    const d = config.hidden_size;
    const size = d / config.num_heads;
    const mixed = new Float32Array(qkv.length / 3);
    const weights = new Float64Array(tokens);
    for (let head = 0; head < config.num_heads; head++) {
      for (let t = 0; t < tokens; t++) {
        const q = t * 3 * d + head * size;
        let most = -Infinity;
        for (let s = 0; s < tokens; s++) {
          const k = s * 3 * d + d + head * size;
          let score = 0;
          for (let i = 0; i < size; i++) {
            score += qkv[q + i] * qkv[k + i];
          }
          weights[s] = score / Math.sqrt(size);
          most = Math.max(most, weights[s]);
        }
        let sum = 0;
        for (let s = 0; s < tokens; s++) {
          weights[s] = Math.exp(weights[s] - most);
          sum += weights[s];
        }
        for (let s = 0; s < tokens; s++) {
          const weight = weights[s] / sum;
          const v = s * 3 * d + 2 * d + head * size;
          if (t === 0) {
            looked[s] += weight;
          }
          for (let i = 0; i < size; i++) {
            mixed[t * d + head * size + i] += weight * qkv[v + i];
          }
        }
      }
    }
    return mixed;
  }

  function add(x, y, factor) {
    for (let i = 0; i < x.length; i++) {
      x[i] += factor * y[i];
    }
  }

  // One layer: x += attention(norm x);  x += down(silu(gate x) · up x) of norm x, in place.
  function layer(model, name, x, tokens, looked) {
    const { config, weights } = model;
    const map = (part, input) => linear(input, weights[`${name}.${part}.weight`], weights[`${name}.${part}.bias`]);
    const normed = (part) => rmsNorm(x, weights[`${name}.${part}.weight`], config.norm_eps);
    const qkv = map("attention.qkv", normed("attention_norm"));
    rotate(qkv, tokens, config);
    add(x, map("attention.out", attention(qkv, tokens, config, looked)), 1);
    const both = map("ffn.gate_up", normed("ffn_norm"));
    const f = config.intermediate_size;
    const inner = new Float32Array(both.length / 2);
    for (let i = 0; i < inner.length; i++) {
      const at = Math.floor(i / f) * 2 * f + (i % f);
      inner[i] = (both[at] / (1 + Math.exp(-both[at]))) * both[at + f];
    }
    add(x, map("ffn.down", inner), 1);
  }

  // The state of a text before the first pass; an id that training never met is a row of zeros.
  function start(model, ids) {
    const d = model.config.hidden_size;
    const { values, scale } = model.words;
    const h = new Float32Array(Math.ceil(ids.length / BLOCK) * BLOCK * d);
    ids.forEach((id, t) => {
      const row = model.rows.get(id);
      for (let i = 0; i < d; i++) {
        const word = row === undefined ? 0 : values[row * d + i] * (scale ? scale[row] : 1);
        h[t * d + i] = word + model.weights["token_type.weight"][i];
      }
    });
    const normed = rmsNorm(h, model.weights["norm.weight"], model.config.norm_eps);
    return { h: normed, tokens: ids.length, passes: 0 };
  }

  // Run the layers once more: {passes, logits, probabilities, attention}, the last how [CLS] looked at each token, the
  // mean over the layers and heads of this pass.
  function pass(model, state) {
    const { config, weights } = model;
    const before = state.h.slice();
    const looked = new Float64Array(state.tokens);
    for (let i = 0; i < config.num_layers; i++) {
      layer(model, `layers.${i}`, state.h, state.tokens, looked);
    }
    if (state.passes > 0 || config.residual === "paper") {
      add(state.h, before, config.residual_scale);
    }
    state.passes += 1;
    const cls = new Float32Array(BLOCK * config.hidden_size);
    cls.set(state.h.subarray(0, config.hidden_size));
    const logits = Array.from(linear(cls, weights["head.weight"], weights["head.bias"]).subarray(0, config.num_labels));
    const attention = Array.from(looked, (sum) => sum / (config.num_layers * config.num_heads));
    return { passes: state.passes, logits, probabilities: softmax(logits), attention };
  }

  function softmax(logits) {
    const most = Math.max(...logits);
    const powers = logits.map((value) => Math.exp(value - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => value / sum);
  }

  return { arrays, open, start, pass, softmax };
};

// Logistic regression on word counts, weighted by TF-IDF, as rtx_core/evaluate/bag_of_words.py fits it.
rtxDemo.bagOfWords = function (file) {
  const { arrays, softmax } = rtxDemo.encoder();
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
