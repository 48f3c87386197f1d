// Scaled dot-product attention, one step after the other, with numbers to edit.

// What each step gives. low, high (n, dv): the smallest and largest value among the keys that a query may see;
// Infinity and -Infinity where it may see none.
export function steps(q, k, v, mask, n, m, d, dv) {
  const { scores: scaled, weights, out } = attention(q, k, v, mask, n, m, d, dv);
  const raw = matmul(q, transpose(k, m, d), n, d, m);
  const masked = scaled.map((x, t) => (!mask || mask[t] ? x : -Infinity));
  const ends = (end) => Float64Array.from({ length: n * dv }, (_, t) => {
    const i = Math.floor(t / dv), seen = [];
    for (let j = 0; j < m; j++) if (!mask || mask[i * m + j]) seen.push(v[j * dv + (t % dv)]);
    return end(...seen);
  });
  return { raw, scaled, masked, weights, out, low: ends(Math.min), high: ends(Math.max) };
}

// The pairs of factors whose products add up to one cell. Scores: row i of q and row j of k, both of width d.
export const scoreTerms = (q, k, i, j, d) => Array.from({ length: d }, (_, c) => [q[i * d + c], k[j * d + c]]);
// Outputs: row i of the weights and column c of v.
export const mixTerms = (weights, v, i, c, m, dv) => Array.from({ length: m }, (_, j) => [weights[i * m + j], v[j * dv + c]]);

// What makes a mix convex, for query i: the smallest weight, their sum, and how far an output leaves the range of
// the values that it may see (0: not at all; rounding may give 1e-16).
export function convex(now, i, m, dv) {
  const row = now.weights.slice(i * m, i * m + m), outside = [];
  for (let t = i * dv; t < i * dv + dv; t++) outside.push(now.low[t] - now.out[t], now.out[t] - now.high[t]);
  return { least: Math.min(...row), sum: row.reduce((a, b) => a + b, 0), outside: Math.max(0, ...outside) };
}

// Without zeros at the end: 1.50 as 1.5.
const short = (x, digits = 2) => fmt(x, digits).replace(/\.0+$|(\.\d*?[1-9])0+$/, "$1");
const NAMES = ["scores", "scale", "mask", "softmax", "mix"];

function build(ui) {
  const queries = ui.get("query_words"), sources = ui.get("key_words"), n = queries.length, m = sources.length;
  const d = ui.get("q")[0].length, dv = ui.get("v")[0].length, root = fmt(Math.sqrt(d));
  const outputs = Array.from({ length: dv }, (_, c) => `output ${c + 1}`);
  const flat = (name) => Float64Array.from(ui.get(name).flat());
  let now, drawn, q, k, v, mask, cursor = null, cells = [];

  function compute() {
    [q, k, v] = ["q", "k", "v"].map(flat);
    mask = ui.get("mask").length ? flat("mask") : null;
    now = steps(q, k, v, mask, n, m, d, dv);
  }
  compute();
  const step = () => ui.get("step");
  const go = (to) => ui.set({ step: Math.max(0, Math.min(4, to)) });
  const columns = () => (step() === 4 ? outputs : sources);
  // The pinned cell; it may lie beyond the columns of another step.
  const pinned = () => (ui.get("query") < 0 ? null : { i: ui.get("query"), j: Math.min(ui.get("column"), columns().length - 1) });
  const active = () => cursor ?? pinned();

  // ---- The numbers that can be changed ----
  const fields = { q: [], k: [], v: [] };
  function editor(name, title, words, width) {
    const rows = words.map((word, i) => [h("span", { text: word }), ...Array.from({ length: width }, (_, c) => {
      const field = h("input", { type: "number", step: "0.5", "aria-label": `${name} of ${word}, number ${c + 1} of ${width}` });
      field.addEventListener("input", () => {
        if (!(Math.abs(field.valueAsNumber) <= 1e6)) return; // as in the class: beyond, products overflow
        const rows = ui.get(name).map((row) => [...row]);
        rows[i][c] = field.valueAsNumber;
        ui.set({ [name]: rows });
      });
      field.addEventListener("change", fill); // what is no number becomes again what it was
      fields[name].push(field);
      return field;
    })]);
    const grid = h("div", { class: "cw-edit", style: `grid-template-columns: minmax(2em, max-content) repeat(${width}, 3.7em)` }, ...rows.flat());
    return h("div", { class: "cw-scroll", role: "group", "aria-label": title }, h("b", { text: title }), grid);
  }
  function fill() {
    for (const name in fields)
      ui.get(name).flat().forEach((x, t) => {
        const field = fields[name][t];
        field.disabled = !ui.known();
        // Not while somebody types: "1." is on the way to 1.5.
        if (field !== document.activeElement || field.valueAsNumber !== x) field.value = ui.known() ? +x.toFixed(3) : "";
      });
  }
  const inputs = h("div", { class: "cw-row cw-inputs" },
    editor("q", `Q: queries, d = ${d}`, queries, d), editor("k", "K: keys", sources, d), editor("v", "V: values", sources, dv));

  // ---- Steps ----
  const tabs = NAMES.map((name, s) => button(`${s + 1} ${name}`, () => go(s)));
  const back = button("Previous", () => go(step() - 1)), on = button("Next", () => go(step() + 1));
  const bar = h("div", { class: "cw-bar", role: "group", "aria-label": "steps" }, back, ...tabs, on);
  const says = h("p", { class: "cw-say" });
  const explain = () => [
    "Scores, Q Kᵀ: each query meets each key. A score is the sum of the products of their numbers.",
    `Scale: every score is divided by √d = √${d} = ${root}. Without it, scores would grow with d.`,
    mask ? "Mask: a hidden key gets the score −∞, so that its weight becomes exactly 0." : "Mask: there is none here. Every query may see every key, and nothing changes.",
    "Softmax: each row becomes weights, exp(score) divided by the sum of the row. None is negative, and each row sums to 1.",
    `Mix: each output is the weighted sum of the values, weights · V.${ui.known() ? " It always lies between the values." : ""}`,
  ][step()];

  // ---- The result of the step ----
  const stage = h("div", {
    class: "cw-stage cw-cells", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`,
    "aria-label": "Result of the step, queries in rows. Arrow keys move, Enter keeps a cell, Escape lets go, Page Down and Page Up change the step.",
  });
  const values = () => [now.raw, now.scaled, now.masked, now.weights, now.out][step()];
  function shade(x) {
    if (step() === 3) return x;
    const all = step() === 4 ? v : now.raw, low = Math.min(...all);
    return (x - low) / (Math.max(...all) - low || 1);
  }
  function drawCells() {
    const names = columns(), sums = step() === 3;
    stage.style.gridTemplateColumns = `minmax(3em, auto) repeat(${names.length + sums}, minmax(3.6em, 6em))`;
    const label = (text, more = "") => h("span", { class: `cw-name ${more}`, text });
    cells = [];
    const rows = queries.map((word, i) => [label(word), ...names.map((_, j) => {
      const t = i * names.length + j, x = values()[t], hidden = step() >= 2 && step() < 4 && mask && !mask[t];
      const cell = h("span", { class: `cw-cell ${hidden ? "cw-hidden" : ""}`, "data-i": i, "data-j": j });
      if (ui.known()) {
        cell.append(h("b", { text: fmt(x) }));
        if (!hidden) {
          const colour = ramp(shade(x), ui.theme);
          cell.style.background = `rgb(${colour})`;
          cell.style.color = luminance(colour) > 0.179 ? "#000" : "#fff";
        }
      }
      cells.push(cell);
      return cell;
    }), ...(sums ? [label(ui.known() ? `= ${fmt(convex(now, i, m, dv).sum)}` : "", "cw-muted")] : [])]);
    stage.replaceChildren(label(""), ...names.map((name) => label(name, "cw-top")), ...(sums ? [label("sum", "cw-top")] : []), ...rows.flat());
  }
  // One line for each output: its values as marks as high as their weights, and the output between them.
  const lines = h("div", { class: "cw-lines", "aria-hidden": "true" }), legend = h("p", { class: "cw-muted" }), claim = h("p", { class: "cw-claim" });
  function drawLines() {
    lines.hidden = legend.hidden = claim.hidden = step() < 4 || !ui.known();
    if (lines.hidden) return;
    const { outside, sum } = convex(now, active()?.i ?? 0, m, dv);
    claim.textContent = sum ? `A mix: weights ≥ 0 with sum ${fmt(sum)}; output outside the values by ${fmt(outside)}` : "No mix: every weight is 0";
    const i = active()?.i ?? 0, low = Math.min(...v), high = Math.max(...v), span = high - low || 1;
    const at = (x) => `left:${(100 * (x - low)) / span}%`;
    const rows = outputs.map((name, c) => {
      const t = i * dv + c, marks = [];
      if (now.low[t] <= now.high[t]) marks.push(h("i", { class: "cw-range", style: `${at(now.low[t])};width:${(100 * (now.high[t] - now.low[t])) / span}%` }));
      mixTerms(now.weights, v, i, c, m, dv).forEach(([w, x], j) => {
        if (!mask || mask[i * m + j]) marks.push(h("i", { class: "cw-value", style: `${at(x)};height:${4 + 22 * w}px` }));
      });
      marks.push(h("i", { class: "cw-out", style: at(Math.max(low, Math.min(high, now.out[t]))) }));
      return [h("span", { text: name }), h("div", {}, ...marks), h("b", { text: fmt(now.out[t]) })];
    });
    legend.textContent = `Query “${queries[i]}”: bars stand at the values, as high as their weights; the dot is the output. Axis from ${short(low)} to ${short(high)}.`;
    lines.replaceChildren(...rows.flat());
  }
  function drawCursor() {
    const at = active(), width = columns().length, pin = pinned();
    cells.forEach((cell, t) => {
      const here = (p) => p && p.i * width + p.j === t;
      cell.classList.toggle("cw-here", Boolean(here(at)));
      cell.classList.toggle("cw-pin", Boolean(here(pin)));
    });
    // The numbers that the cell is made of.
    const used = { q: (t) => step() < 4 && Math.floor(t / d) === at.i, k: (t) => step() < 4 && Math.floor(t / d) === at.j, v: (t) => step() === 4 && t % dv === at.j };
    for (const name in fields) fields[name].forEach((field, t) => field.classList.toggle("cw-here", Boolean(at && used[name](t))));
  }

  const same = (a, b) => a === b || (a && b && a.i === b.i && a.j === b.j);
  function move(cell) {
    if (same(cursor, cell)) return;
    cursor = cell;
    ui.paint(false);
  }
  const keep = (cell) => ui.set(same(cell, pinned()) ? { query: -1, column: -1 } : { query: cell.i, column: cell.j });
  const under = (e) => {
    const cell = e.target.closest(".cw-cell");
    return cell && { i: +cell.dataset.i, j: +cell.dataset.j };
  };
  stage.addEventListener("pointermove", (e) => move(under(e)));
  stage.addEventListener("pointerleave", () => move(null));
  stage.addEventListener("click", (e) => under(e) && keep(under(e)));
  stage.addEventListener("focus", () => stage.matches(":focus-visible") && move(active() ?? { i: 0, j: 0 }));
  stage.addEventListener("blur", () => move(null));
  ui.keys(stage, (e) => {
    const at = active() ?? { i: 0, j: 0 }, to = moveCell(at, e.key, n, columns().length, e.ctrlKey);
    if (to) move(to);
    else if (e.key === "Enter" || e.key === " ") keep(at);
    else if (e.key === "Escape") ui.set({ query: -1, column: -1 });
    else if (e.key === "PageDown") go(step() + 1);
    else if (e.key === "PageUp") go(step() - 1);
    else return;
    e.preventDefault();
  });
  ui.on(["q", "k", "v", "mask"], () => { compute(); fill(); ui.paint(); });
  ui.on(["query", "column"], () => ui.paint(false));
  ui.on(["prediction"], fill);
  ui.on(["step"], () => {
    if (cursor) cursor = { i: cursor.i, j: Math.min(cursor.j, columns().length - 1) };
    ui.paint();
  });
  fill();

  const signed = (x) => (x < 0 ? `(${short(x)})` : short(x));
  const times = (pairs) => pairs.map(([a, b]) => `${signed(a)}·${signed(b)}`).join(" + ");
  const letters = Array.from({ length: d }, (_, c) => `q${c + 1}·k${c + 1}`).join(" + ");
  function sumOf({ i, j }) {
    const t = i * m + j, s = step(), name = `Query “${queries[i]}”, ${s === 4 ? outputs[j] : `key “${sources[j]}”`}: `;
    if (s < 4 && s > 1 && mask && !mask[t]) return `${name}hidden by the mask, score −∞, weight exactly 0.`;
    if (s === 0) return `${name}${letters} = ${times(scoreTerms(q, k, i, j, d))} = ${fmt(now.raw[t])}.`;
    if (s === 1) return `${name}${fmt(now.raw[t])} / √${d} = ${fmt(now.raw[t])} / ${root} = ${fmt(now.scaled[t])}.`;
    if (s === 2) return `${name}may attend, the score stays ${fmt(now.masked[t])}.`;
    if (s === 4) return `${name}sum of weight · value = ${times(mixTerms(now.weights, v, i, j, m, dv))} = ${fmt(now.out[i * dv + j])}.`;
    const row = Array.from(now.masked.subarray(i * m, i * m + m)), top = Math.max(...row), less = Math.abs(top) > 30 ? top : 0;
    const power = row.map((x) => Math.exp(x - less)), of = less ? `exp(score − ${fmt(top)})` : "exp(score)";
    return `${name}${of} / sum of the row = ${fmt(power[j])} / (${power.map((x) => fmt(x)).join(" + ")}) = ${fmt(now.weights[t])}.`;
  }
  function aboutMix(i) {
    const { least, sum } = convex(now, i, m, dv);
    if (!sum) return `“${queries[i]}” may attend to nothing: weights and output are set to 0, the convention of this course. That is no mix.`;
    return `Weights of “${queries[i]}”: the smallest is ${fmt(least)}, their sum is ${fmt(sum)}.`;
  }
  function aboutRange(i) {
    if (step() < 4 || !convex(now, i, m, dv).sum) return "";
    const said = outputs.map((name, c) => `${name}: ${[now.low, now.out, now.high].map((x) => short(x[i * dv + c], 3)).join(" ≤ ")}`);
    return `Smallest value ≤ output ≤ largest value. For “${queries[i]}” ${said.join("; ")}.`;
  }
  const each = (rows) => rows.map((x) => fmt(x, 4));
  return {
    nodes: [h("p", { class: "cw-muted", text: "Change any number. Go through the five steps. Point at a cell (or use the arrow keys) to see the sum it is made of." }), inputs, bar, says, h("div", { class: "cw-scroll" }, stage), legend, lines, claim],
    draw() {
      // Elements that are made anew for nothing are painted anew, and not always to the same pixels.
      const next = `${step()} ${now.raw} ${v} ${mask} ${ui.known()} ${ui.theme}`;
      if (next !== drawn) {
        drawn = next;
        tabs.forEach((tab, s) => tab.setAttribute("aria-pressed", String(s === step())));
        // A button that is disabled while it has the focus would lose it.
        back.setAttribute("aria-disabled", String(step() === 0));
        on.setAttribute("aria-disabled", String(step() === 4));
        says.textContent = explain();
        drawCells();
      }
      drawLines();
      drawCursor();
    },
    status() {
      const at = active(), i = at?.i ?? 0;
      return [at ? sumOf(at) : "No cell is chosen.", ...(step() > 2 ? [aboutMix(i), aboutRange(i)] : [])];
    },
    table: () => ({
      key: `${now.raw} ${now.out} ${mask}`, caption: "Every step, and the range of the values that each query may see",
      head: ["query", "key", "score", "scaled", "after the mask", "weight", ...outputs.map((_, c) => `value ${c + 1}`)],
      rows: queries.flatMap((word, i) => [
        ...sources.map((source, j) => [word, source, ...each([now.raw, now.scaled, now.masked, now.weights].map((x) => x[i * m + j])), ...each(v.subarray(j * dv, j * dv + dv))]),
        [word, "sum, output", "", "", "", fmt(convex(now, i, m, dv).sum, 4), ...each(now.out.subarray(i * dv, i * dv + dv))],
        ...[["smallest", now.low], ["largest", now.high]].map(([name, ends]) => [word, `${name} value`, "", "", "", "", ...each(ends.subarray(i * dv, i * dv + dv))]),
      ]),
    }),
  };
}

export default widget({ inputs: ["query_words", "key_words"], build });
