// How much of each word is left in the last state of an RNN, computed here from its weights.

// States h_1 … h_T, one row each, from a zero state: h_t = tanh(x_t W_xh + h_{t-1} W_hh + b).
export function states(x, W_xh, W_hh, b, T, D, H) {
  const read = matmul(x, W_xh, T, D, H), out = new Float64Array(T * H);
  for (let t = 0; t < T; t++) {
    const kept = t ? matmul(out.subarray((t - 1) * H, t * H), W_hh, 1, H, H) : new Float64Array(H);
    for (let j = 0; j < H; j++) out[t * H + j] = Math.tanh(read[t * H + j] + kept[j] + b[j]);
  }
  return out;
}

// Norms of ∂h_T/∂x_t, the root of the sum of all squares. (T, T): row = last word read, column = word t; 0 for later words.
export function influence(W_xh, W_hh, h, T, D, H) {
  const norms = new Float64Array(T * T);
  const squashed = (J, t) => J.map((x, c) => x * (1 - h[t * H + (c % H)] ** 2));
  for (let t = 0; t < T; t++)
    for (let last = t, J = W_xh; last < T; last++) {
      J = squashed(last > t ? matmul(J, W_hh, D, H, H) : J, last);
      norms[last * T + t] = Math.hypot(...J);
    }
  return norms;
}

// What is left of words 0 … last in the state after `last`, as a part of what is there of `last` itself.
export const left = (norms, last, T) => Float64Array.from({ length: last + 1 }, (_, t) => norms[last * T + t] / norms[last * T + last]);
// The factor that each step multiplies by, on average: the geometric mean.
export const factor = (shares) => (shares.length > 1 ? shares[0] ** (1 / (shares.length - 1)) : NaN);
// The same as `left` in powers of ten, for the picture.
export const decades = (shares) => Array.from(shares, (x) => Math.log10(x));

// Two digits at least, however little is left.
const few = (x) => (x && x < 0.01 ? x.toExponential(1).replace("-", "−") : fmt(x));
const ROW = 24, TOP = 62; // pixels: a row is a target for a finger

function build(ui) {
  const words = ui.get("words"), N = words.length, { x, W_xh, W_hh, b } = ui.data, H = b.length, D = x.length / N;
  const h_ = states(x, W_xh, W_hh, b, N, D, H), norms = influence(W_xh, W_hh, h_, N, D, H);
  const focus = { t: null };
  const T = () => ui.get("length"), step = () => Math.min(focus.t ?? ui.get("step"), T() - 1);
  const shares = () => left(norms, T() - 1, N);
  const setT = (value) => ui.set({ length: Math.max(1, Math.min(N, value)) });
  const setStep = (t) => ui.set({ step: Math.max(0, Math.min(T() - 1, t)) });
  // One scale for all lengths, so that only the words move.
  const all = words.flatMap((_, last) => decades(left(norms, last, N))).filter(Number.isFinite);
  const low = Math.max(-16, Math.min(-2, Math.floor(Math.min(...all)))), high = Math.max(0, Math.ceil(Math.max(...all) - 1e-9));

  const length = slider("Words read, T", 1, N, 1, (v) => `${v} of ${N}`, setT);
  const time = slider("Look at word t", 1, N, 1, (v) => `${v} “${words[v - 1]}”`, (v) => setStep(v - 1));
  // Keys and sliders count more than a pointer that happens to rest on the picture.
  const changed = () => { focus.t = null; length.put(T()); time.put(step() + 1, T()); ui.paint(); };
  ui.on(["length", "step"], changed);
  changed();

  const rowAt = (y) => (y === undefined ? -1 : Math.floor((y - TOP) / ROW));
  const map = picture(ui, {
    label: `${N} words in rows, each with its state and with what is left of it in the last state. Up and Down choose a word, Left and Right the number of words read.`,
    height: () => TOP + N * ROW + 22,
    hover(_, y) {
      const t = rowAt(y), next = t >= 0 && t < T() ? t : null;
      if (next !== focus.t) { focus.t = next; ui.paint(); }
    },
    act(_, y) {
      const t = rowAt(y);
      if (t >= 0 && t < T()) setStep(t);
    },
    key(e) {
      const to = { ArrowUp: step() - 1, ArrowDown: step() + 1, Home: 0, End: T() - 1 }[e.key], more = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (to !== undefined) setStep(to);
      if (more) setT(T() + more);
      return to !== undefined || more;
    },
    draw,
  });

  function draw(c, width) {
    const { ink, muted, line, accent, bar, bg } = ui.ink, known = ui.known(), t = step(), last = T() - 1;
    const wide = Math.min(width * 0.22, 88, Math.max(...words.map((w) => c.measureText(w).width)));
    const word = width < 400 ? 24 : 34, chain = word + wide + 14, cells = chain + 12, cell = Math.max(3, Math.min(14, Math.floor((width * 0.24) / H)));
    const from = cells + H * cell + 14, to = width - 50, y = (i) => TOP + (i + 0.5) * ROW;
    const scale = (p) => from + ((Math.max(low, p) - low) / (high - low)) * (to - from);
    // The two paths in numbers, which are the legend as well.
    stroke(c, [[4, 10], [30, 10]], accent, 3);
    write(c, `RNN: ${last - t} ${last - t === 1 ? "step" : "steps"} from “${words[t]}” to h${sub(T())}`, 38, 10, ink, "left", width - 40);
    stroke(c, [[4, 28], [30, 28]], bar, 2, [5, 3]);
    write(c, "attention: 1 step, from any word", 38, 28, ink, "left", width - 40);
    write(c, `h: ${H} numbers`, cells, 50, muted);
    write(c, `left in h${sub(T())}`, width - 4, 50, muted, "right", width - 4 - Math.max(from - 4, cells + c.measureText(`h: ${H} numbers`).width + 8));
    if (known) {
      const every = Math.ceil((high - low) / Math.max(2, Math.floor((to - from) / 34)));
      for (let p = high; p >= low; p -= every) {
        stroke(c, [[scale(p), TOP], [scale(p), TOP + N * ROW]], line);
        write(c, p ? `10${sup(p)}` : "1", scale(p), TOP + N * ROW + 11, muted, "center");
      }
    }
    const rest = known ? shares() : [];
    for (let i = 0; i < N; i++) {
      const here = i === t, out = i > last;
      if (here) { c.fillStyle = line; c.globalAlpha = 0.35; c.fillRect(word - 6, TOP + i * ROW, width - word + 6, ROW); c.globalAlpha = 1; }
      c.font = `${here || i === last ? "bold " : ""}12px system-ui, sans-serif`;
      write(c, words[i], word + wide, y(i), out ? muted : here ? accent : ink, "right", wide + 4);
      c.font = "12px system-ui, sans-serif";
      if (out) { write(c, i === last + 1 ? "not read yet" : "·", cells, y(i), muted); continue; }
      for (let j = 0; j < H; j++) {
        c.fillStyle = known ? `rgb(${ramp((h_[i * H + j] + 1) / 2, ui.theme)})` : bg;
        c.fillRect(cells + j * cell, y(i) - 7, cell, 14);
      }
      c.strokeStyle = i === last ? accent : muted;
      c.lineWidth = i === last ? 2.5 : 1;
      c.strokeRect(cells - 0.5, y(i) - 7.5, H * cell + 1, 15);
      if (!known) continue;
      c.fillStyle = here ? accent : bar;
      c.fillRect(from, y(i) - 5, Math.max(1.5, scale(Math.log10(rest[i])) - from), 10);
      write(c, few(rest[i]), width - 4, y(i), here ? accent : ink, "right");
    }
    stroke(c, [[chain, y(0)], [chain, y(last)]], muted, 1.5);
    stroke(c, [[chain, y(t)], [chain, y(last)]], accent, 3);
    for (let i = 0; i <= last; i++) {
      c.fillStyle = i >= t ? accent : muted;
      c.beginPath();
      c.arc(chain, y(i), i >= t ? 4 : 2.5, 0, 7);
      c.fill();
    }
    if (t === last) return;
    c.strokeStyle = bar;
    c.lineWidth = 2;
    c.setLineDash([5, 3]);
    c.beginPath();
    c.moveTo(word - 8, y(t));
    const bend = (38 - 2 * word) / 6; // the curve just stays on the page
    c.bezierCurveTo(bend, y(t) + 6, bend, y(last) - 6, word - 10, y(last));
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = bar;
    c.beginPath();
    c.moveTo(word - 4, y(last));
    c.lineTo(word - 13, y(last) - 5);
    c.lineTo(word - 12, y(last) + 5);
    c.fill();
  }
  const digits = (n, table) => `${n}`.replace(/./g, (d) => table[d] ?? d);
  const sub = (n) => digits(n, "₀₁₂₃₄₅₆₇₈₉");
  const sup = (n) => digits(n, { ..."⁰¹²³⁴⁵⁶⁷⁸⁹", "-": "⁻" });

  return {
    nodes: [
      h("p", { class: "cw-muted", text: "Read fewer or more words, then choose one and follow it. Squares: the numbers of each state, from −1 (pale) to 1 (strong). Bars: how much the last state still depends on each word, on a logarithmic scale." }),
      h("div", { class: "cw-bar", role: "group", "aria-label": "length and word" }, length.node, time.node),
      map.stage,
    ],
    draw: map.draw,
    status() {
      const t = step(), last = T() - 1, rest = shares(), far = last - t;
      return [
        `Word ${t + 1} of ${T()}, “${words[t]}”: its influence on h${sub(T())} is ${few(rest[t])} times that of the last word (norms of ∂h/∂x: ${few(norms[last * N + t])} and ${few(norms[last * N + last])}). The RNN takes ${far} ${far === 1 ? "step" : "steps"} to get there, attention 1.`,
        `${T() * D} numbers have been read, ${D} a word; h${sub(T())} holds ${H}, as at any length.`,
        last ? `Of the first word ${few(rest[0])} is left: on average a factor of ${fmt(factor(rest), 2)} for each of ${last} ${last === 1 ? "step" : "steps"}.` : "",
      ];
    },
    table() {
      const last = T() - 1, rest = shares();
      return {
        key: last, caption: `What is left in h${sub(T())}, and the states`,
        head: ["word", "RNN steps", "attention steps", "norm", "left", ...Array.from(b, (_, j) => `h[${j}]`)],
        rows: words.slice(0, T()).map((w, i) => [w, `${last - i}`, "1", few(norms[last * N + i]), few(rest[i]), ...Array.from(h_.subarray(i * H, i * H + H), (v) => fmt(v))]),
      };
    },
  };
}

export default widget({ packed: ["x", "W_xh", "W_hh", "b"], inputs: ["words"], build });
