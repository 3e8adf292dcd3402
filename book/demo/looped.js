"use strict";
var rtxDemo = rtxDemo || {};

// The looped decoder of rtx_core/models/looped.py, one text at a time and in 32 bits:
//   s⁰ = E[ids],   sʳ⁺¹ = layers(sʳ),   logits = RMSNorm(s) Eᵀ
//   a layer: x += out(attention(norm x));  x += down(silu(gate norm x) · up norm x)
// A *step* is one application of one layer: a pass of a model with one layer, a layer of one with one pass.
// `open` reads a file of the exporter, `start` begins a text, and each call of `step` runs one layer and shows all of it.
rtxDemo.looped = function () {
  const BLOCK = 4; // tokens that share one reading of a weight; arrays hold a multiple of it, the rest zeros
  const UNREAD = { injection: "none", encoding: "none", lora_rank: 0, state_std: null, gate: false, loop_norm: false, state_norm: false, num_core_layers: 0, tie_embeddings: true };

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

  // {config, weights: {name: Float32Array}, …}.  A model with a switch that this file does not know is refused.
  function open(file) {
    for (const [name, usual] of Object.entries(UNREAD)) {
      if (name in file.config && file.config[name] !== usual) {
        throw new Error(`the page cannot run a model with ${name}`);
      }
    }
    const buffer = bytes(file.data).buffer;
    const weights = {};
    for (const [name, { shape, at }] of Object.entries(file.arrays)) {
      weights[name] = new Float32Array(buffer, at, shape.reduce((a, b) => a * b, 1));
    }
    return { file, config: file.config, weights };
  }

  // y = x Wᵀ for x (tokens, inputs) -> (tokens, outputs); W (outputs, inputs) lies row after row.  Four tokens and two
  // rows at a time share their readings, which makes it more than twice as fast as one row at a time.
  function linear(x, weight, inputs) {
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
        y[to] = a0;
        y[to + outputs] = b0;
        y[to + 2 * outputs] = c0;
        y[to + 3 * outputs] = d0;
        if (two) {
          y[to + 1] = a1;
          y[to + outputs + 1] = b1;
          y[to + 2 * outputs + 1] = c1;
          y[to + 3 * outputs + 1] = d1;
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

  // softmax(q kᵀ / √D) of every head over what stands before a token: {weights (H, N, N), mixed (tokens, d)}.
  // A head that is off mixes nothing in; where it would have looked is shown all the same.
  function attend(qkv, tokens, config, off) {
    const d = config.hidden_size;
    const size = d / config.num_heads;
    const mixed = new Float32Array(qkv.length / 3);
    const weights = new Float32Array(config.num_heads * tokens * tokens);
    const scores = new Float64Array(tokens);
    for (let head = 0; head < config.num_heads; head++) {
      for (let t = 0; t < tokens; t++) {
        const q = t * 3 * d + head * size;
        let most = -Infinity;
        for (let s = 0; s <= t; s++) {
          const k = s * 3 * d + d + head * size;
          let score = 0;
          for (let i = 0; i < size; i++) {
            score += qkv[q + i] * qkv[k + i];
          }
          scores[s] = score / Math.sqrt(size);
          most = Math.max(most, scores[s]);
        }
        let sum = 0;
        for (let s = 0; s <= t; s++) {
          scores[s] = Math.exp(scores[s] - most);
          sum += scores[s];
        }
        const row = (head * tokens + t) * tokens;
        const to = t * d + head * size;
        for (let s = 0; s <= t; s++) {
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

  function add(x, y) {
    for (let i = 0; i < x.length; i++) {
      x[i] += y[i];
    }
  }

  // A text before the first step: its state is the embedding of its tokens.
  function start(model, ids) {
    const d = model.config.hidden_size;
    const h = new Float32Array(Math.ceil(ids.length / BLOCK) * BLOCK * d);
    ids.forEach((id, t) => h.set(model.weights["word.weight"].subarray(id * d, id * d + d), t * d));
    return { h, tokens: ids.length, steps: 0 };
  }

  // The next layer on `state`, without the heads in the set `off` (counted from 0):
  // {step, weights (H, N, N), logits (N, V), lengths (N,) of the state's vectors}
  function step(model, state, off) {
    const { config, weights } = model;
    const { hidden_size: d, intermediate_size: f, norm_eps: eps } = config;
    const name = `layers.${state.steps % config.num_layers}`;
    const of = (part) => weights[`${name}.${part}`];
    const qkv = linear(rmsNorm(state.h, of("attention_norm.weight"), eps), of("qkv"), d);
    rotate(qkv, state.tokens, config);
    const looked = attend(qkv, state.tokens, config, off);
    add(state.h, linear(looked.mixed, of("out"), d));
    const both = linear(rmsNorm(state.h, of("ffn_norm.weight"), eps), of("gate_up"), d);
    const inner = new Float32Array(both.length / 2);
    for (let row = 0, at = 0; at < inner.length; row += 2 * f) {
      for (let i = row; i < row + f; i++) {
        inner[at++] = (both[i] / (1 + Math.exp(-both[i]))) * both[i + f];
      }
    }
    add(state.h, linear(inner, of("down"), f));
    state.steps += 1;
    const vocabulary = config.vocab_size;
    const logits = linear(rmsNorm(state.h, weights["norm.weight"], eps), weights["word.weight"], d);
    const lengths = Float32Array.from({ length: state.tokens }, (_, t) => Math.hypot(...state.h.subarray(t * d, t * d + d)));
    return { step: state.steps, weights: looked.weights, logits: logits.subarray(0, state.tokens * vocabulary), lengths };
  }

  // Shares among the logits of `options` (token ids) at a position.
  function shares(model, shown, position, options) {
    const at = position * model.config.vocab_size;
    const logits = options.map((id) => shown.logits[at + id]);
    const most = Math.max(...logits);
    const powers = logits.map((value) => Math.exp(value - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => value / sum);
  }

  return { open, start, step, shares };
};
