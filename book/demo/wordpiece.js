"use strict";
var rtxDemo = rtxDemo || {};

// Text -> word pieces, as rtx_core/data/preprocess.py cleans a text and as BERT's uncased WordPiece (the library
// `tokenizers`) cuts it.  `vocabulary` lists the pieces in the order of their ids.
rtxDemo.wordPiece = function (vocabulary) {
  const ids = new Map(vocabulary.map((piece, id) => [piece, id]));
  const LONGEST = 100; // letters of a word; a longer one is unknown
  const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's \s
  const SPACES = new RegExp(`[${SPACE}]+`, "gu");
  const ENDS = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
  const TAG = /<(?:\/?[a-z][^<>]*|!--[^\n]*?--)>/gu;
  const URL = new RegExp(`(?:https?:\\/\\/|www\\.)[^${SPACE}]+`, "gu");
  const REPEATED = new RegExp(`([^\\p{L}\\p{N}_${SPACE}<>\\/]|_)(?:[${SPACE}]?\\1)+`, "gu");
  const REMOVED = /[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu;
  const IDEOGRAPH =
    /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;
  const PUNCTUATION = /([!-/:-@[-`{-~\p{P}])/u;

  // Lower-case, one space between words, no HTML tags or URLs, punctuation marks never repeated.
  function clean(text) {
    for (;;) {
      let cleaned = text.toLowerCase().replace(SPACES, " ").replace(ENDS, "");
      cleaned = cleaned.replace(TAG, " ").replace(URL, " ");
      cleaned = cleaned.replace(REPEATED, "$1").replace(SPACES, " ").replace(ENDS, "");
      if (cleaned === text) {
        return cleaned;
      }
      text = cleaned;
    }
  }

  // The words of a text, accents taken off, each punctuation mark a word.
  function words(text) {
    let plain = clean(text).replace(REMOVED, "").replace(IDEOGRAPH, " $& ");
    plain = plain.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase();
    const parts = plain.split(SPACES).flatMap((word) => word.split(PUNCTUATION));
    return parts.filter((part) => part !== "");
  }

  // The ids of a word's pieces: the longest that fits, then the longest that goes on.
  function pieces(word) {
    const letters = Array.from(word);
    const found = [];
    if (letters.length > LONGEST) {
      return [ids.get("[UNK]")];
    }
    for (let start = 0; start < letters.length; ) {
      let end = letters.length;
      const prefix = start > 0 ? "##" : "";
      while (end > start && !ids.has(prefix + letters.slice(start, end).join(""))) {
        end -= 1;
      }
      if (end === start) {
        return [ids.get("[UNK]")];
      }
      found.push(ids.get(prefix + letters.slice(start, end).join("")));
      start = end;
    }
    return found;
  }

  // {ids, words: [{text, from, to}], cut}: a word's pieces are ids[from] … ids[to − 1]; `cut`: pieces left out, as
  // the model reads `maxLength` of them, [CLS] and [SEP] included.
  function encode(text, maxLength) {
    const encoded = { ids: [ids.get("[CLS]")], words: [], cut: 0 };
    for (const word of words(text)) {
      const found = pieces(word);
      const kept = found.slice(0, maxLength - 1 - encoded.ids.length);
      if (kept.length > 0) {
        encoded.words.push({ text: word, from: encoded.ids.length, to: encoded.ids.length + kept.length });
        encoded.ids.push(...kept);
      }
      encoded.cut += found.length - kept.length;
    }
    encoded.ids.push(ids.get("[SEP]"));
    return encoded;
  }

  return { clean, words, encode, vocabulary };
};
