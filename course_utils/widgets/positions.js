// Where two words stand: added sinusoids, learned vectors or rotations, and what a shift of both does to a score.

const dot = (a, b) => a.reduce((s, x, c) => s + x * b[c], 0);
const angle = (t, pair, d) => t * 10000 ** ((-2 * pair) / d);

// The wave of position t: sin and cos of the same angle stand side by side, features (0, 1), (2, 3), …
export const sinusoid = (t, d) =>
  Float64Array.from({ length: d }, (_, c) => (c % 2 ? Math.cos : Math.sin)(angle(t, c >> 1, d)));

// RoPE: the pairs (0, 1), (2, 3), … of x are turned by the angles of position t.
export function rotate(x, t) {
  const out = new Float64Array(x.length);
  for (let c = 0; c < x.length; c += 2) {
    const a = angle(t, c / 2, x.length), cos = Math.cos(a), sin = Math.sin(a);
    out[c] = x[c] * cos - x[c + 1] * sin;
    out[c + 1] = x[c] * sin + x[c + 1] * cos;
  }
  return out;
}

// What stands at position t: the vector turned, or with a row of the table (T, d) added.
export const placed = (kind, x, t, table) =>
  kind === "rope" ? rotate(x, t) : Float64Array.from(x, (value, c) => value + table[t * x.length + c]);

// Scores of the query at every position with the key at every position, (T, T), not scaled.
export function scoresOf(kind, q, k, table, T) {
  const all = (x) => Array.from({ length: T }, (_, t) => placed(kind, x, t, table)), keys = all(k);
  return Float64Array.from(all(q).flatMap((a) => keys.map((b) => dot(a, b))));
}

// The cosine of any two positions, (T, T); for RoPE that of a vector of ones, turned to both.
export function likeness(kind, table, T, d) {
  const rows = Array.from({ length: T }, (_, t) => placed(kind, new Float64Array(d).fill(kind === "rope" ? 1 : 0), t, table));
  const unit = rows.map((x) => x.map((value) => value / (Math.sqrt(dot(x, x)) || 1)));
  return Float64Array.from(unit.flatMap((a) => unit.map((b) => dot(a, b))));
}

// By how much values of the same distance differ at most.
export function unevenness(matrix, T) {
  let most = 0;
  for (let offset = 1 - T; offset < T; offset++) {
    let low = Infinity, high = -Infinity;
    for (let i = Math.max(0, -offset); i < T && i + offset < T; i++) {
      low = Math.min(low, matrix[i * T + i + offset]);
      high = Math.max(high, matrix[i * T + i + offset]);
    }
    most = Math.max(most, high - low);
  }
  return most;
}

// The four parts of a score with added positions: q·k, q·p_j, p_i·k, p_i·p_j.
export const terms = (q, k, a, b) => [dot(q, k), dot(q, b), dot(a, k), dot(a, b)];

// The shift that is possible: both positions stay from 0 to T - 1.
export const within = (shift, i, j, T) => Math.max(-Math.min(i, j), Math.min(T - 1 - Math.max(i, j), shift));

const NAMES = { rope: "RoPE", sinusoid: "Added sinusoids", learned: "Added learned vectors" };
const HINTS = {
  rope: "RoPE turns the pairs (0, 1), (2, 3), … of q by the angles i / 10000^(2c/d), and those of k by j / 10000^(2c/d).",
  sinusoid: "Sinusoids add p to q and to k: sin and cos of t / 10000^(2c/d) in features 2c and 2c + 1.",
  learned: "A learned table has one vector for each position, which is added to q and to k.",
};

function build(ui) {
  const { q, k } = ui.data, d = q.length, T = ui.get("size"), kinds = ["rope", "sinusoid", ...(ui.data.learned.length ? ["learned"] : [])];
  const waves = Float64Array.from(Array.from({ length: T }, (_, t) => Array.from(sinusoid(t, d))).flat());
  const tables = { rope: null, sinusoid: waves, learned: ui.data.learned }, row = (kind, t) => tables[kind].slice(t * d, t * d + d);
  const scores = Object.fromEntries(kinds.map((kind) => [kind, scoresOf(kind, q, k, tables[kind], T)]));
  const uneven = Object.fromEntries(kinds.map((kind) => [kind, unevenness(scores[kind], T)]));
  ui.root.classList.add("cw-lead");
  let now, hover = null;
  function compute() {
    const kind = ui.get("kind"), i = ui.get("i"), j = ui.get("j"), s = within(ui.get("shift"), i, j, T), show = ui.get("show");
    const matrix = show === "scores" ? scores[kind] : likeness(kind, tables[kind], T, d);
    const low = -Math.min(i, j), high = T - 1 - Math.max(i, j);
    now = { kind, i, j, s, show, matrix, low, high, one: scores[kind][i * T + j], two: scores[kind][(i + s) * T + j + s] };
  }
  const place = (i, j) => ui.set({ i, j, shift: within(ui.get("shift"), i, j, T) });

  const buttons = kinds.map((kind) => button(NAMES[kind], () => ui.set({ kind })));
  function slider(text, change) {
    const input = h("input", { type: "range", min: "0", max: `${T - 1}`, step: "1" }), said = h("output", {});
    input.addEventListener("input", () => change(+input.value));
    return { input, said, node: h("label", { class: "cw-slide" }, h("span", { text }), input, said) };
  }
  const si = slider("query at i", (x) => place(x, ui.get("j"))), sj = slider("key at j", (x) => place(ui.get("i"), x));
  const shift = slider("shift both by s", (x) => ui.set({ shift: x }));
  const show = choose("Matrix", [["scores", "scores of q and k"], ["positions", "likeness of positions alone"]], (value) => ui.set({ show: value }));

  const hint = h("p"), canvas = h("canvas", { "aria-hidden": "true" }), plot = h("canvas", { "aria-hidden": "true", style: "position:static" });
  const stage = h("div", {
    class: "cw-stage", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`,
    "aria-label": `Matrix of ${T} positions of the query in rows and of the key in columns. Up and down move the query, left and right the key; a click puts both.`,
  }, canvas);
  const box = h("div", { class: "cw-scroll" }, stage), beside = h("p", { class: "cw-muted" }), graph = h("div", {}, beside, plot);
  const name = h("p", { class: "cw-muted" }), LEFT = 30, TOP = 34;
  let cell = 8;
  function pen(target, width, height) {
    const ratio = Math.min(window.devicePixelRatio || 1, 3), c = target.getContext("2d");
    target.width = Math.round(width * ratio);
    target.height = Math.round(height * ratio);
    target.style.width = `${width}px`;
    target.style.height = `${height}px`;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "center";
    const text = (words, x, y, colour = ui.ink.ink) => { c.fillStyle = colour; c.fillText(words, x, y); };
    return { c, text };
  }
  function mark(c, x, y, size, square) {
    for (const [colour, width] of [[ui.ink.bg, 5], [ui.ink.accent, 2.5]]) {
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.beginPath();
      if (square) c.rect(x - size, y - size, 2 * size, 2 * size);
      else c.arc(x, y, size, 0, 7);
      c.stroke();
    }
  }
  function drawMatrix() {
    cell = Math.max(5, Math.min(T > 16 ? 12 : 28, Math.floor((box.clientWidth - LEFT - 8) / T)));
    const W = LEFT + T * cell + 8, H = TOP + T * cell + 8, { c, text } = pen(canvas, W, H);
    stage.style.width = `${W}px`;
    stage.style.height = `${H}px`;
    let low = Infinity, high = -Infinity;
    for (const x of now.matrix) { low = Math.min(low, x); high = Math.max(high, x); }
    for (let t = 0; t < T * T; t++) {
      c.fillStyle = `rgb(${ramp(ui.known() ? (now.matrix[t] - low) / (high - low || 1) : 0, ui.theme)})`;
      c.fillRect(LEFT + (t % T) * cell, TOP + Math.floor(t / T) * cell, cell, cell);
    }
    c.strokeStyle = ui.ink.rule;
    c.strokeRect(LEFT - 0.5, TOP - 0.5, T * cell + 1, T * cell + 1);
    for (let t = 0; t < T; t += T > 12 ? 5 : 1) {
      text(`${t}`, LEFT + (t + 0.5) * cell, TOP - 9, ui.ink.muted);
      text(`${t}`, LEFT - 12, TOP + (t + 0.5) * cell, ui.ink.muted);
    }
    text("key at", LEFT + (T * cell) / 2, 8, ui.ink.muted);
    const x = (at) => LEFT + (now.j + at + 0.5) * cell, y = (at) => TOP + (now.i + at + 0.5) * cell;
    c.strokeStyle = ui.ink.accent;
    c.lineWidth = 1.5;
    c.setLineDash([2, 4]);
    c.beginPath();
    c.moveTo(x(now.low), y(now.low));
    c.lineTo(x(now.high), y(now.high));
    c.stroke();
    c.setLineDash([]);
    mark(c, x(0), y(0), 6);
    mark(c, x(now.s), y(now.s), 6, true);
  }
  function drawPlot() {
    const width = Math.max(220, graph.clientWidth), H = 230, left = 44, right = width - 12, foot = H - 38, { c, text } = pen(plot, width, H);
    const line = (kind) => Array.from({ length: now.high - now.low + 1 }, (_, n) => scores[kind][(now.i + now.low + n) * T + now.j + now.low + n]);
    const all = kinds.flatMap(line), low = Math.min(...all), high = Math.max(...all), room = high - low || 1;
    const x = (s) => left + ((right - left) * (s - now.low)) / (now.high - now.low || 1), y = (v) => 14 + ((foot - 26) * (high - v)) / room;
    c.fillStyle = ui.ink.rule;
    c.fillRect(left, foot, right - left, 1);
    for (const s of new Set([now.low, 0, now.s, now.high])) if (s === now.s || Math.abs(x(s) - x(now.s)) > 22) text(fmt(s, 0), x(s), foot + 11, ui.ink.muted);
    text("both moved by s", (left + right) / 2, foot + 28, ui.ink.muted);
    if (!ui.known()) return;
    for (const v of [low, (low + high) / 2, high]) {
      c.fillStyle = ui.ink.line;
      c.fillRect(left, y(v), right - left, 1);
      text(fmt(v, 1), left - 22, y(v), ui.ink.muted);
    }
    for (const kind of [...kinds].sort((a, b) => (a === now.kind) - (b === now.kind))) {
      const mine = kind === now.kind;
      c.lineWidth = mine ? 2.5 : 1;
      c.strokeStyle = mine ? ui.ink.bar : ui.ink.rule;
      c.setLineDash(mine ? [] : [2, 3]);
      c.beginPath();
      line(kind).forEach((v, n) => c.lineTo(x(now.low + n), y(v)));
      c.stroke();
    }
    c.setLineDash([]);
    mark(c, x(0), y(now.one), 6);
    mark(c, x(now.s), y(now.two), 6, true);
  }
  const under = (e) => { const r = stage.getBoundingClientRect(); return cellAt(e.clientX - r.left, e.clientY - r.top, { left: LEFT, top: TOP, cell, rows: T, cols: T }); };
  const point = (at) => { if (at?.i !== hover?.i || at?.j !== hover?.j) { hover = at; ui.paint(false); } };
  stage.addEventListener("pointermove", (e) => point(under(e)));
  stage.addEventListener("pointerleave", () => point(null));
  stage.addEventListener("click", (e) => { const at = under(e); if (at) place(at.i, at.j); });
  ui.keys(stage, (e) => {
    const to = moveCell(now, e.key, T, T, e.ctrlKey);
    if (!to) return;
    place(to.i, to.j);
    e.preventDefault();
  });
  function changed() {
    compute();
    buttons.forEach((b, n) => b.setAttribute("aria-pressed", String(kinds[n] === now.kind)));
    for (const [{ input, said }, value] of [[si, now.i], [sj, now.j], [shift, now.s]]) {
      if (input === shift.input) { input.min = now.low; input.max = now.high; }
      input.value = said.textContent = value;
    }
    show.list.value = now.show;
    hint.textContent = `${HINTS[now.kind]} Move both by the same s: does the score stay?`;
    name.textContent = now.show === "scores" ? "Score of q at every i with k at every j. Circle: (i, j); square: (i + s, j + s)" : now.kind === "rope" ? "Cosine of one vector of ones, turned to every two positions" : "Cosine of the vectors of every two positions";
    beside.textContent = `${NAMES[now.kind]}: score along the dotted line, where the distance is always ${now.i - now.j} (thin: the other kinds)`.replace("-", "−");
    ui.paint();
  }
  ui.on(["kind", "i", "j", "shift", "show"], changed);
  changed();

  const exact = (x) => (x === 0 ? "exactly 0" : fmt(x));
  function aboutPair() {
    const far = now.s ? `at (${now.i + now.s}, ${now.j + now.s}) ${fmt(now.two, 4)}; difference ${exact(Math.abs(now.two - now.one))}` : "not moved yet";
    return `${NAMES[now.kind]}: score at (${now.i}, ${now.j}) ${fmt(now.one, 4)}, ${far}.`;
  }
  function aboutTerms() {
    if (now.kind === "rope") return "Rotations: only the difference of the two angles is left in the product.";
    const [a, b] = [0, now.s].map((s) => terms(q, k, row(now.kind, now.i + s), row(now.kind, now.j + s)).map((x) => fmt(x, 2)));
    return `Its parts, here and there: q·k ${a[0]} and ${b[0]}; q·p(j) ${a[1]} and ${b[1]}; p(i)·k ${a[2]} and ${b[2]}; p(i)·p(j) ${a[3]} and ${b[3]}.${now.kind === "sinusoid" ? " The last part knows the distance only; the mixed ones do not." : ""}`;
  }
  const aboutAll = () => `Scores of equal distance differ, over all positions, by at most: ${kinds.map((kind) => `${exact(uneven[kind])} (${NAMES[kind]})`).join(", ")}.`;
  const aboutCell = () => (hover ? `Query at ${hover.i}, key at ${hover.j}, distance ${fmt(hover.i - hover.j, 0)}: ${now.show === "scores" ? "score" : "cosine"} ${fmt(now.matrix[hover.i * T + hover.j], 4)}.` : "");
  return {
    nodes: [
      h("div", { class: "cw-bar", role: "group", "aria-label": "kind of position" }, ...buttons),
      hint,
      h("div", { class: "cw-bar", role: "group", "aria-label": "where they stand" }, si.node, sj.node, shift.node),
      h("div", { class: "cw-row" }, h("div", {}, h("div", { class: "cw-bar" }, show.node), name, box), graph),
    ],
    draw(all) { if (all) { drawMatrix(); drawPlot(); } },
    status: () => [aboutPair(), aboutTerms(), aboutAll(), aboutCell()],
    table: () => ({
      key: `${now.i} ${now.j}`, caption: `Scores at distance ${now.i - now.j}`,
      head: ["both moved by", "query at", "key at", ...kinds.map((kind) => NAMES[kind])],
      rows: Array.from({ length: now.high - now.low + 1 }, (_, n) => [n + now.low, n + now.low + now.i, n + now.low + now.j].map(String).concat(
        kinds.map((kind) => fmt(scores[kind][(now.i + now.low + n) * T + now.j + now.low + n], 4)))),
    }),
  };
}

export default widget({ packed: ["q", "k", "learned"], inputs: ["size"], build });
