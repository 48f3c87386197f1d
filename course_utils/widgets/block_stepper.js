// A Transformer block step by step, and the stream as the sum of what the blocks added to it.

// Row k of an array (k, T, d) that begins at `from` rows, at one position.
export const vectorAt = (flat, row, position, T, d) => flat.slice((row * T + position) * d, (row * T + position + 1) * d);
export const lengthOf = (v) => Math.sqrt(v.reduce((s, x) => s + x * x, 0));

// The start plus the first `count` vectors that were added, in the order in which they were added. flat holds, one
// after the other, start (1), read (layers), added (layers) and stream (layers), each row (T, d).
export function sumOf(flat, count, position, layers, T, d) {
  const sum = vectorAt(flat, 0, position, T, d);
  for (let k = 0; k < count; k++) vectorAt(flat, 1 + layers + k, position, T, d).forEach((x, c) => (sum[c] += x));
  return sum;
}

// The largest entry of sum minus stream after `count` sub-layers.
export function missing(flat, count, position, layers, T, d) {
  const stream = vectorAt(flat, count ? 2 * layers + count : 0, position, T, d);
  return sumOf(flat, count, position, layers, T, d).reduce((most, x, c) => Math.max(most, Math.abs(x - stream[c])), 0);
}

// The part of the start and of each added vector that points along the stream after the last block (1 + layers). These
// parts add up, as lengths do not: if the stream is the sum, to its length.
export function along(flat, position, layers, T, d) {
  const last = vectorAt(flat, 3 * layers, position, T, d), length = lengthOf(last) || 1;
  return Float64Array.from({ length: layers + 1 }, (_, k) =>
    vectorAt(flat, k ? layers + k : 0, position, T, d).reduce((s, x, c) => s + (x * last[c]) / length, 0));
}

// What is done after step s of a stack: which sub-layer it belongs to, which of its three steps it is, and how many
// vectors have been added to the stream by then.
export function stage(norm, s) {
  const layer = Math.floor(s / 3), part = s % 3;
  return { layer, part, added: layer + (norm === "pre" ? +(part === 2) : +(part >= 1)) };
}

const SUB = ["attention", "MLP"];
const TITLE = { pre: "pre-norm", post: "post-norm" };

function build(ui) {
  const words = ui.get("words"), [blocks, T, d] = ui.get("sizes"), layers = 2 * blocks, gradients = ui.get("gradients");
  const has = ui.data.post.length ? ["pre", "post"] : ["pre"];
  ui.root.classList.add("cw-lead");
  let now;
  const kinds = () => (ui.get("norm") === "pre" ? ["norm", 0, "add"] : [0, "add", "norm"]);
  const stepName = (s) => { const kind = kinds()[s % 3]; return kind === 0 ? SUB[Math.floor(s / 3) % 2] : kind; };
  const layerName = (k) => `block ${k >> 1}, ${SUB[k % 2]}`;
  function compute() {
    const norm = ui.get("norm"), step = ui.get("step"), p = ui.get("position"), flat = ui.data[norm];
    const at = (row) => vectorAt(flat, row, p, T, d), { layer, part, added } = stage(norm, step);
    const before = at(layer ? 2 * layers + layer : 0), given = at(1 + layers + layer), after = at(1 + 2 * layers + layer), f = SUB[layer % 2];
    const total = before.map((x, c) => x + given[c]);
    const rows = norm === "pre"
      ? [["stream x", before, -1], ["LN(x)", at(1 + layer), 0], [`${f} gives`, given, 1], [`x + ${f}`, after, 2]]
      : [["stream x", before, -1], [`${f} gives`, given, 0], [`x + ${f}`, total, 1], [`LN(x + ${f})`, after, 2]];
    const lengths = Array.from({ length: layers + 1 }, (_, k) => lengthOf(at(k ? layers + k : 0)));
    const streams = Array.from({ length: layers + 1 }, (_, k) => lengthOf(at(k ? 2 * layers + k : 0)));
    const wrong = Array.from({ length: layers + 1 }, (_, k) => missing(flat, k, p, layers, T, d));
    // Between add and norm of a post-norm block the stream is the sum that the norm has not touched yet.
    const here = norm === "post" && part === 1 ? total : added > layer ? after : before;
    const off = sumOf(flat, added, p, layers, T, d).reduce((most, x, c) => Math.max(most, Math.abs(x - here[c])), 0);
    const parts = along(flat, p, layers, T, d), reached = [0];
    parts.forEach((x, k) => reached.push(reached[k] + x));
    now = { reached, norm, step, p, layer, part, added, rows, lengths, streams, wrong, off, here: lengthOf(here), f };
  }

  const bar = (label, ...nodes) => h("div", { class: "cw-bar", role: "group", "aria-label": label }, ...nodes);
  const norms = has.map((name) => button(TITLE[name], () => ui.set({ norm: name })));
  const block = choose("Block", Array.from({ length: blocks }, (_, b) => [b, `${b}`]), (b) => ui.set({ step: 6 * b + (ui.get("step") % 6) }));
  const word = choose("Position", words.map((w, i) => [i, `${i} ${w}`]), (i) => ui.set({ position: +i }));
  const go = (by) => ui.set({ step: Math.max(0, Math.min(6 * blocks - 1, ui.get("step") + by)) });
  const [back, next] = [button("← Back", () => go(-1)), button("Next step →", () => go(1))];
  const chips = Array.from({ length: 6 }, (_, k) => button("", () => ui.set({ step: 6 * Math.floor(ui.get("step") / 6) + k })));
  const path = h("ol", { class: "cw-blocksteps" }, ...chips.map((chip) => h("li", {}, chip)));
  const say = h("p"), picture = (label) => {
    const canvas = h("canvas", { "aria-hidden": "true", style: "position:static" });
    return { canvas, node: h("div", { class: "cw-picture" }, h("p", { class: "cw-muted", text: label }), canvas) };
  };
  const vectors = picture(`The vector of this position, one bar for each of ${d} features; all four have the same scale`);
  const sum = picture("What was added, laid end to end: of each vector the part that points along the last stream. Lengths do not add up; these parts do.");
  const slope = picture("Norm of the gradient, by block (logarithmic)");
  slope.node.hidden = !Object.keys(gradients).length;

  function pen({ canvas, node }, height) {
    const width = Math.max(200, node.clientWidth), ratio = Math.min(window.devicePixelRatio || 1, 3), c = canvas.getContext("2d");
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    const text = (words, x, y, colour = ui.ink.ink, align = "left") => { c.fillStyle = colour; c.textAlign = align; c.fillText(words, x, y); };
    const box = (x, y, w, h, colour) => { c.fillStyle = colour; c.fillRect(x, y, w, h); };
    return { c, width, text, box };
  }
  function drawVectors() {
    const HIGH = 46, { width, text, box } = pen(vectors, 4 * HIGH + 4), left = 112, wide = (width - left - 84) / d;
    const top = Math.max(...now.rows.flatMap(([, v]) => Array.from(v, Math.abs)));
    now.rows.forEach(([name, v, from], i) => {
      const middle = i * HIGH + HIGH / 2, here = from === now.part, shown = now.part >= from;
      text(name, 0, middle, here ? ui.ink.accent : shown ? ui.ink.ink : ui.ink.muted);
      box(left, middle, wide * d, 1, ui.ink.line);
      if (!shown) return text("not yet", left + 6, middle - 8, ui.ink.muted);
      if (!ui.known()) return;
      v.forEach((x, c) => box(left + c * wide, middle, Math.max(1, wide - 1), (-x / top) * (HIGH / 2 - 3), here ? ui.ink.accent : ui.ink.bar));
      text(`length ${fmt(lengthOf(v), 2)}`, left + wide * d + 6, middle, here ? ui.ink.accent : ui.ink.ink);
    });
  }
  function drawSum() {
    const HIGH = 20, above = 18, { c, width, text, box } = pen(sum, above + (layers + 2) * HIGH + 4), left = 126, room = width - left - 58;
    const { reached } = now, end = now.streams[layers], low = Math.min(0, ...reached), top = Math.max(end, ...reached);
    const x = (value) => left + (room * (value - low)) / (top - low);
    text("length", width, above / 2, ui.ink.muted, "right");
    now.lengths.forEach((length, k) => {
      const y = above + k * HIGH, done = k <= now.added, here = k === now.layer + 1, colour = here ? ui.ink.accent : ui.ink.bar;
      text(k ? layerName(k - 1) : "start x₀", 0, y + HIGH / 2, here ? ui.ink.accent : done ? ui.ink.ink : ui.ink.muted);
      if (!ui.known()) return;
      if (!done) return text("not yet", x(0) + 4, y + HIGH / 2, ui.ink.muted);
      const [from, to] = [x(reached[k]), x(reached[k + 1])];
      box(Math.min(from, to), y + 3, Math.max(2, Math.abs(to - from)), HIGH - 6, colour);
      if (k < now.added) box(to - 0.5, y + HIGH - 3, 1, 6, ui.ink.ink);
      text(fmt(length, 2), width, y + HIGH / 2, ui.ink.ink, "right");
    });
    const y = above + (layers + 1) * HIGH;
    text("last stream", 0, y + HIGH / 2);
    if (!ui.known()) return;
    box(x(0), y + 3, x(end) - x(0), HIGH - 6, ui.ink.rule);
    text(fmt(end, 2), width, y + HIGH / 2, ui.ink.ink, "right");
    c.strokeStyle = ui.ink.ink;
    c.lineWidth = 1.5;
    c.setLineDash([4, 3]);
    c.beginPath();
    c.moveTo(x(end), above);
    c.lineTo(x(end), y + HIGH - 2);
    c.stroke();
    c.setLineDash([]);
  }
  function drawSlope() {
    if (slope.node.hidden) return;
    const HIGH = 170, { c, width, text, box } = pen(slope, HIGH), left = 52, right = width - 76, foot = HIGH - 34;
    const names = Object.keys(gradients), all = names.flatMap((name) => gradients[name]).filter((x) => x > 0).map(Math.log10);
    const low = Math.floor(Math.min(...all, 0)), high = Math.max(low + 1, Math.ceil(Math.max(...all))), most = Math.max(2, ...names.map((name) => gradients[name].length));
    const x = (b) => left + ((right - left) * b) / (most - 1), y = (g) => foot - ((foot - 12) * (Math.max(low, Math.log10(g)) - low)) / (high - low);
    const blank = !ui.known(), every = Math.ceil((high - low) / 5);
    for (let e = low; e <= high && !blank; e += every) {
      box(left, y(10 ** e), right - left, 1, ui.ink.line);
      text(e < -3 || e > 4 ? `1e${e}`.replace("-", "−") : `${+(10 ** e).toFixed(6)}`, left - 6, y(10 ** e), ui.ink.muted, "right");
    }
    box(left, foot, right - left, 1, ui.ink.rule);
    for (let b = 0; b < most; b += Math.ceil(most / 8)) text(`${b}`, x(b), foot + 11, ui.ink.muted, "center");
    text("block", (left + right) / 2, foot + 26, ui.ink.muted, "center");
    const ends = [];
    names.forEach((name) => {
      if (blank) return;
      const post = name === "post", colour = post ? ui.ink.accent : ui.ink.bar, g = gradients[name];
      c.strokeStyle = colour;
      c.lineWidth = name === now.norm ? 3 : 1.5;
      c.setLineDash(post ? [6, 4] : []);
      c.beginPath();
      g.forEach((value, b) => c.lineTo(x(b), y(value)));
      c.stroke();
      g.forEach((value, b) => (post ? box(x(b) - 3, y(value) - 3, 6, 6, colour) : (c.beginPath(), c.arc(x(b), y(value), 3.5, 0, 7), (c.fillStyle = colour), c.fill())));
      let at = y(g.at(-1));
      if (ends.some((other) => Math.abs(other - at) < 15)) at += at > ends[0] ? 15 : -15;
      ends.push(at);
      text(TITLE[name], right + 8, at, ui.ink.ink);
    });
    c.setLineDash([]);
  }

  function changed() {
    compute();
    norms.forEach((b, i) => b.setAttribute("aria-pressed", String(has[i] === now.norm)));
    block.list.value = Math.floor(now.step / 6);
    word.list.value = now.p;
    back.disabled = now.step === 0;
    next.disabled = now.step === 6 * blocks - 1;
    chips.forEach((chip, k) => {
      chip.textContent = `${k + 1} ${stepName(k)}`;
      if (k === now.step % 6) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    ui.paint();
  }
  ui.on(["norm", "step", "position"], changed);
  changed();

  function meaning() {
    const kind = kinds()[now.part], { f } = now;
    if (kind === 0) return `${f === "MLP" ? "The MLP works on this position alone" : "Attention mixes what all positions offer"}${now.norm === "pre" ? ", and reads the normalised copy" : ", and reads the stream itself"}. It gives a vector that is yet to be added.`;
    if (kind === "add") return `What the ${f} gave is added to the stream${now.norm === "pre" ? ": nothing else ever happens to it" : ", and the sum goes into the norm"}.`;
    if (now.norm === "pre") return `A normalised copy of the stream, for the ${f} to read. The stream itself is left as it is.`;
    return "The norm stands on the stream: everything that was added so far is centred and scaled anew.";
  }
  const exact = (x) => (x === 0 ? "exactly 0" : fmt(x));
  function aboutSum() {
    const so = now.added ? `the start plus ${now.added} added vector${now.added > 1 ? "s" : ""}` : "the start, with nothing added";
    return `Stream minus (${so}): ${exact(now.off)}${now.off ? ", the largest entry" : ""}. After the last block: ${exact(now.wrong[layers])}; the parts along it add up to ${fmt(now.reached.at(-1))}, its length is ${fmt(now.streams[layers])}.`;
  }
  function aboutSlope() {
    return Object.entries(gradients).map(([name, g]) => `Gradient, ${TITLE[name]}: ${fmt(g[0])} in the first of ${g.length} blocks, ${fmt(g.at(-1))} in the last.`).join(" ");
  }
  return {
    nodes: [
      bar("which block", ...norms, block.node, word.node), bar("steps", back, next), path, say, vectors.node, sum.node, slope.node,
    ],
    draw() {
      say.textContent = `Block ${Math.floor(now.step / 6)}, step ${(now.step % 6) + 1} of 6, ${stepName(now.step % 6)}: ${meaning()}`;
      drawVectors();
      drawSum();
      drawSlope();
    },
    status: () => [aboutSum(), `${TITLE[now.norm]}, block ${Math.floor(now.step / 6)}, ${stepName(now.step % 6)}. Length of the stream ${fmt(now.here)}, of what the ${now.f} gives ${fmt(now.lengths[now.layer + 1])}.`, aboutSlope()],
    table: () => ({
      key: `${now.norm} ${now.p}`, caption: `${TITLE[now.norm]}, position “${words[now.p]}”`,
      head: ["vector or block", "length", "part along last stream", "stream after it", "sum minus stream", "gradient, pre-norm", "gradient, post-norm"],
      rows: [
        ...now.lengths.map((length, k) => [k ? layerName(k - 1) : "start", fmt(length, 4), fmt(now.reached[k + 1] - now.reached[k], 4), fmt(now.streams[k], 4), fmt(now.wrong[k], 4), "–", "–"]),
        ...Array.from({ length: Math.max(0, ...Object.values(gradients).map((g) => g.length)) }, (_, b) =>
          [`block ${b}`, "–", "–", "–", "–", ...["pre", "post"].map((name) => (gradients[name]?.[b] === undefined ? "–" : fmt(gradients[name][b], 4)))]),
      ],
    }),
  };
}

export default widget({ packed: ["pre", "post"], inputs: ["words", "sizes", "gradients"], build });
