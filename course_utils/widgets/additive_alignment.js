// Where a decoder looks while it writes: one row of weights, and so one context vector, for each target word.

// The source word with the largest weight, for each target word; the first of equals. weights (n, m), flat.
export const largest = (weights, n, m) =>
  Array.from({ length: n }, (_, i) => rowOf(weights, i, m).reduce((best, x, j, row) => (x > row[best] ? j : best), 0));
export const rowOf = (weights, i, m) => Array.from(weights.slice(i * m, i * m + m));
export const sum = (values) => values.reduce((a, b) => a + b, 0);
// How much each source word is read in all.
export const columnSums = (weights, n, m) => Array.from({ length: m }, (_, j) => sum(Array.from({ length: n }, (_, i) => weights[i * m + j])));
// How many target words read their gold word most; -1: it has none.
export const agree = (best, gold) => ({
  right: gold.filter((j, i) => j >= 0 && best[i] === j).length, of: gold.filter((j) => j >= 0).length,
});
// How many pairs of target words read their source words in reverse order: 0 where the alignment never goes back.
export const reversed = (best) => sum(best.map((j, i) => best.slice(0, i).filter((before) => before > j).length));
// The share of the weight that lies elsewhere than one step before.
export const moved = (weights, i, m) => sum(rowOf(weights, i, m).map((x, j) => Math.abs(x - weights[(i - 1) * m + j]))) / 2;

const ROW = 26; // pixels, as in the style

function build(ui) {
  const source = ui.get("source_words"), target = ui.get("target_words"), gold = ui.get("gold"), { weights } = ui.data;
  const m = source.length, n = target.length, judged = gold.some((j) => j >= 0);
  const best = largest(weights, n, m), read = columnSums(weights, n, m), sums = target.map((_, i) => sum(rowOf(weights, i, m)));
  const focus = { cell: null }, step = () => ui.get("step");
  const pin = () => ({ i: step(), j: ui.get("source_word") < 0 ? best[step()] : ui.get("source_word") });
  const here = () => focus.cell ?? pin(), word = (i) => `“${target[i]}”`, from = (j) => `“${source[j]}”`;
  const go = (i) => ui.set({ step: i, source_word: -1 });

  const time = slider("Decoder step", 1, n, 1, (v) => `${v} of ${n} “${target[v - 1]}”`, (v) => go(v - 1));
  const next = button("Next word", () => go((step() + 1) % n));
  // What the pointer rests on belongs to the step before.
  const changed = () => { focus.cell = null; time.put(step() + 1); ui.paint(); };
  ui.on(["step", "source_word"], changed);
  changed();

  const map = heatmap(ui, {
    rows: target, cols: source, label: "Weights of target words over source words", does: "goes to that step and source word; Escape to its largest weight",
    focus, pin: () => (ui.known() ? pin() : null), min: 24, max: 32,
    value: (i, j) => (ui.known() ? weights[i * m + j] : undefined),
    text: (i, j) => (weights[i * m + j] < 0.005 ? "" : fmt(weights[i * m + j], 2)),
    act: ({ i, j }) => ui.set({ step: i, source_word: j }),
    leave: () => go(step()),
    side: {
      title: judged ? "gold" : "sum",
      text: (i) => (!ui.known() ? "–" : !judged ? fmt(sums[i], 4) : gold[i] < 0 ? "·" : best[i] === gold[i] ? "✓" : "✗"),
      amount: () => 0,
    },
  });

  // The sentences as two columns with a line for each weight. Keys do the same in the matrix.
  const column = (words, title, cell, act) => {
    const items = words.map((text, i) => {
      const item = h("li", { text, onclick: () => act(i) });
      const point = (at) => () => { focus.cell = ui.known() ? at(i) : null; ui.paint(false); };
      item.addEventListener("pointerenter", point(cell));
      item.addEventListener("pointerleave", point(() => null));
      return item;
    });
    return { items, node: h("ol", { "aria-label": title }, ...items) };
  };
  const left = column(source, "source words", (j) => ({ i: step(), j }), (j) => ui.set({ source_word: j }));
  const right = column(target, "target words", (i) => ({ i, j: best[i] }), go);
  const canvas = h("canvas", { "aria-hidden": "true" }), between = h("div", {}, canvas), tall = ROW * Math.max(n, m);
  const lines = h("div", { class: "cw-lines", style: `height:${tall}px` }, left.node, between, right.node);
  function drawLines() {
    const { i: at, j: chosen } = here(), width = between.clientWidth, ratio = Math.min(window.devicePixelRatio || 1, 3);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${tall}px`;
    left.items.forEach((e, j) => e.classList.toggle("cw-here", ui.known() && j === chosen));
    right.items.forEach((e, i) => e.classList.toggle("cw-here", i === at));
    if (!ui.known()) return;
    const c = canvas.getContext("2d"), y = (k, size) => tall / 2 + (k + 0.5 - size / 2) * ROW;
    c.scale(ratio, ratio);
    const line = (j, i) => { c.beginPath(); c.moveTo(2, y(j, m)); c.lineTo(width - 2, y(i, n)); c.stroke(); };
    const order = [...target.keys()].filter((i) => i !== at);
    for (const i of [...order, at])
      rowOf(weights, i, m).forEach((w, j) => {
        c.globalAlpha = i === at ? 1 : 0.1 + 0.4 * w;
        c.strokeStyle = i === at ? ui.ink.accent : ui.ink.bar;
        c.lineWidth = 9 * w;
        if (w >= 0.005) line(j, i);
      });
    if (gold[at] < 0 || gold[at] === best[at]) return;
    c.strokeStyle = ui.ink.ink;
    c.lineWidth = 2;
    c.setLineDash([3, 4]);
    line(gold[at], at);
  }

  function aboutStep({ i }) {
    const verdict = gold[i] < 0 ? "" : best[i] === gold[i] ? ", its gold word" : `; its gold word is ${from(gold[i])}`;
    const change = i ? ` ${Math.round(100 * moved(weights, i, m))} % of the weight lies elsewhere than for ${word(i - 1)}.` : "";
    const row = rowOf(weights, i, m), top = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3).filter((j) => row[j] >= 0.005);
    const mix = top.map((j) => `${fmt(row[j], 2)} · h${from(j)}`).join(" + ");
    return `Context vector ${i + 1} = ${mix}${m > top.length ? " + …" : ""}; its weights sum to ${fmt(sums[i], 6)}. The largest lies on ${from(best[i])}${verdict}.${change}`;
  }
  function aboutAll() {
    const { right: hits, of } = agree(best, gold), judge = judged ? ` On the gold word: ${hits} of ${of}.` : "";
    return `${n} target words: ${n} rows of weights, ${n} context vectors.${judge} Read in reverse order: ${reversed(best)} of ${(n * (n - 1)) / 2} pairs of target words (0 = the alignment never goes back).`;
  }
  return {
    nodes: [
      h("p", { class: "cw-muted", text: `Go through the target words; point at a word or a cell. A line is as wide as its weight.${judged ? " ✓: the largest weight lies on the gold word; ✗: not, the dashed line leads there." : ""}` }),
      h("div", { class: "cw-bar", role: "group", "aria-label": "decoder step" }, time.node, next),
      h("div", { class: "cw-row" }, h("div", {}, h("p", { class: "cw-muted cw-ends" }, h("span", { text: "source (keys)" }), h("span", { text: "target (queries)" })), lines), h("div", { style: `flex-basis:${170 + 24 * m}px` }, map.node)),
    ],
    draw(all) { drawLines(); map.draw(all); },
    status() {
      const { i, j } = here();
      return [
        `Query ${word(i)} (step ${i + 1} of ${n}), key ${from(j)}: weight ${fmt(weights[i * m + j], 4)}. In all steps together ${from(j)} gets ${fmt(read[j], 2)}.`,
        aboutStep({ i }), aboutAll(),
      ];
    },
    table: () => ({
      key: "all", caption: "Weights of each target word over the source words",
      head: ["target word", ...source, "sum", "largest on", "gold"],
      rows: target.map((w, i) => [w, ...rowOf(weights, i, m).map((x) => fmt(x, 4)), fmt(sums[i], 6), source[best[i]], gold[i] < 0 ? "–" : source[gold[i]]]),
    }),
  };
}

export default widget({ packed: ["weights"], inputs: ["source_words", "target_words", "gold"], build });
