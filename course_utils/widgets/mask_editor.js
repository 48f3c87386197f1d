// Paint who may attend to whom, and see which outputs a change of one word can reach.

// How far each output moves when word j changes: 1 is added to every entry of its query, key and value.
export function moves(q, k, v, mask, n, d, dv, j, plain = false) {
  const nudged = (a, width) => Float64Array.from(a, (x, t) => x + (Math.floor(t / width) === j));
  const before = attention(q, k, v, mask, n, n, d, dv, plain).out;
  const after = attention(nudged(q, d), nudged(k, d), nudged(v, dv), mask, n, n, d, dv, plain).out;
  return Float64Array.from({ length: n }, (_, i) => {
    let most = 0;
    for (let c = i * dv; c < i * dv + dv; c++) most = Math.max(most, Math.abs(after[c] - before[c]));
    return most;
  });
}

// For each word: how far outputs before it move when it changes. All zero: nothing reaches back.
export function reachesBack(q, k, v, mask, n, d, dv) {
  return Float64Array.from({ length: n }, (_, j) => Math.max(0, ...moves(q, k, v, mask, n, d, dv, j).subarray(0, j)));
}

// How many outputs are NaN after one more layer with the same weights, when empty rows are left to a bare softmax.
export function spoiled(q, k, v, mask, n, d, dv) {
  const { weights, out } = attention(q, k, v, mask, n, n, d, dv, true);
  const next = matmul(weights, out, n, n, dv);
  let rows = 0;
  for (let i = 0; i < n; i++) rows += next.subarray(i * dv, i * dv + dv).some(Number.isNaN);
  return rows;
}

// The places where a mask differs from the goal, row by row.
export const wrongCells = (mask, goal) => Array.from(goal, (_, t) => t).filter((t) => +mask[t] !== +goal[t]);

function build(ui) {
  const words = ui.get("words"), n = words.length, { q, k, v } = ui.data;
  const d = q.length / n, dv = v.length / n;
  const focus = { cell: null };
  let now, painted = 1, checks = 0;
  const mask = () => Uint8Array.from(ui.get("mask").flat());
  const setMask = (flat) => ui.set({ mask: words.map((_, i) => [...flat.subarray(i * n, i * n + n)]) });
  const both = (other) => setMask(mask().map((x, t) => x & other[t]));

  const far = choose("width", words.map((_, i) => [i + 1, `${i + 1}`]), () => {});
  far.list.value = Math.min(3, n);
  const word = choose("Change", [[-1, "no word"], ...words.map((w, i) => [i, `${i} ${w}`])], (value) => ui.set({ changed: +value }));
  const empty = choose("An empty row gives", [["zeros", "zeros"], ["nan", "a bare softmax"]], (value) => ui.set({ empty: value }));
  const bar = (label, ...nodes) => h("div", { class: "cw-bar", role: "group", "aria-label": label }, ...nodes);
  const presets = bar("mask",
    button("Show everything", () => setMask(mask().fill(1))),
    button("Hide the future", () => both(causalMask(n))),
    button("Hide padding", () => both(keyMask(n, ui.get("real")))),
    button("Apply a window", () => both(windowMask(n, +far.list.value))), far.node,
    button("Reset", () => ui.set({ ...ui.get("initial"), empty: "zeros" })));
  const goal = ui.get("goal").flat(), check = button("Check", () => {
    checks++;
    ui.set({ checked: true, solved: !wrongCells(now.m, goal).length });
    ui.paint();
  });

  function compute() {
    const m = mask(), plain = ui.get("empty") === "nan", j = ui.get("changed");
    now = { m, plain, j, ...attention(q, k, v, m, n, n, d, dv, plain), back: reachesBack(q, k, v, m, n, d, dv) };
    now.moved = j < 0 ? null : moves(q, k, v, m, n, d, dv, j, plain);
    now.empty = words.map((_, i) => i).filter((i) => !m.subarray(i * n, i * n + n).some(Boolean));
  }
  ui.on(["mask"], () => ui.get("checked") && ui.set({ checked: false, solved: false }));
  const changed = () => { compute(); word.list.value = now.j; empty.list.value = ui.get("empty"); ui.paint(); };
  const map = heatmap(ui, {
    rows: words, cols: words, label: "Mask and weights", does: "hides or shows a cell", focus, drag: true, min: 24, max: 46,
    value: (i, j) => (!now.m[i * n + j] ? null : ui.known() ? now.weights[i * n + j] : undefined),
    text: (i, j) => fmt(now.weights[i * n + j], 2),
    side: {
      title: "moved by",
      text: (i) => (ui.known() && now.moved ? fmt(now.moved[i], 2) : "–"),
      amount: (i) => (ui.known() && now.moved ? now.moved[i] / Math.max(...now.moved.map((x) => x || 0)) : 0),
    },
    act({ i, j }, start) {
      const m = mask();
      if (start) painted = 1 - m[i * n + j];
      if (m[i * n + j] === painted) return;
      m[i * n + j] = painted;
      setMask(m);
    },
  });
  ui.on(["mask", "changed", "empty", "checked"], changed);
  compute();
  word.list.value = now.j;
  empty.list.value = ui.get("empty");

  const quoted = (i) => `“${words[i]}”`;
  function aboutCell() {
    if (!focus.cell) return `${now.m.filter(Boolean).length} of ${n * n} cells may attend.`;
    const { i, j } = focus.cell, t = i * n + j;
    const what = now.m[t] ? `may attend, score ${fmt(now.scores[t], 2)}, weight ${fmt(now.weights[t])}` : "hidden, weight exactly 0";
    return `Query ${quoted(i)}, key ${quoted(j)}: ${what}.`;
  }
  function aboutChange() {
    if (!now.moved) return "No word is changed.";
    const before = now.moved.subarray(0, now.j), after = now.moved.subarray(now.j + 1);
    const most = (part) => (part.length ? fmt(Math.max(...part)) : "none there");
    return `${quoted(now.j)} is changed. Largest move of an output before it: ${most(before)}; its own output: ${fmt(now.moved[now.j])}; after it: ${most(after)}.`;
  }
  function aboutLeaks() {
    const leaks = words.map((_, j) => j).filter((j) => now.back[j] > 0);
    if (!leaks.length) return "Every word changed in turn: no output before it ever moves.";
    return `Every word changed in turn: outputs before it move for ${leaks.map((j) => `${quoted(j)} (by ${fmt(now.back[j])})`).join(", ")}.`;
  }
  function aboutEmpty() {
    if (!now.empty.length) return "";
    const rows = `${now.empty.map(quoted).join(", ")} may attend to nothing: `;
    if (!now.plain) return `${rows}weights and output are set to zero, the convention of this course.`;
    return `${rows}0 / 0 is NaN. After one more layer with this mask ${spoiled(q, k, v, now.m, n, d, dv)} of ${n} outputs are NaN, because 0 · NaN is NaN.`;
  }
  function aboutGoal() {
    if (!ui.get("checked")) return goal.length ? "Not checked yet." : "";
    const wrong = wrongCells(now.m, goal), t = wrong[0], told = `Check ${checks || 1}: `;
    if (!wrong.length) return `${told}every cell is right.`;
    return `${told}${wrong.length} of ${n * n} cells wrong. The first: query ${quoted(Math.floor(t / n))}, key ${quoted(t % n)} should be ${now.m[t] ? "hidden" : "shown"}.`;
  }
  const cellText = (t) => (now.m[t] ? fmt(now.weights[t], 4) : "hidden");
  return {
    nodes: [presets, bar("experiment", word.node, empty.node, ...(goal.length ? [check] : [])), map.node],
    draw: map.draw,
    status: () => [aboutCell(), aboutGoal(), aboutChange(), aboutLeaks(), aboutEmpty()],
    table: () => ({
      key: `${now.m} ${now.plain} ${now.j}`, caption: "Weights, and how far each output moved",
      head: ["query", ...words.map((w) => `key ${w}`), "moved by"],
      rows: words.map((w, i) => [w, ...words.map((_, j) => cellText(i * n + j)), now.moved ? fmt(now.moved[i], 4) : "–"]),
    }),
  };
}

export default widget({ packed: ["q", "k", "v"], inputs: ["words", "real", "goal"], build });
