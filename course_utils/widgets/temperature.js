// How the size of the scores, d_k and a temperature make a softmax sharp or flat.

// Normal random numbers that Python makes as well (temperature.py): the number t of a seed is a hash of t (the
// finaliser of MurmurHash3), and two hashes give two normal numbers (Box and Muller 1958). start, count: even.
function hash(x) {
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
export function normals(seed, start, count) {
  const out = new Float64Array(count), begin = (Math.imul(seed + 1, 0x9e3779b9) + start) | 0;
  for (let t = 0; t < count; t += 2) {
    const radius = Math.sqrt(-2 * Math.log((hash((begin + t) | 0) + 0.5) / 2 ** 32));
    const angle = 2 * Math.PI * ((hash((begin + t + 1) | 0) + 0.5) / 2 ** 32);
    out[t] = radius * Math.cos(angle);
    out[t + 1] = radius * Math.sin(angle);
  }
  return out;
}

// n queries, each with m keys of its own; one flat array of dot products for each size 1, 2, 4, … most.
// A smaller size uses the first numbers of the same vectors.
export function scoresBySize(seed, n, m, most) {
  const sizes = Array.from({ length: Math.log2(most) + 1 }, () => new Float64Array(n * m));
  for (let i = 0; i < n; i++) {
    const vectors = normals(seed, i * (m + 1) * most, (m + 1) * most);
    for (let j = 0; j < m; j++)
      for (let c = 0, s = 0, next = 1, sum = 0, key = (j + 1) * most; c < most; c++) {
        sum += vectors[c] * vectors[key + c];
        if (c + 1 < next) continue;
        sizes[s++][i * m + j] = sum;
        next *= 2;
      }
  }
  return sizes;
}

export const weightsOf = (scores, i, m, by) => softmax(scores.slice(i * m, i * m + m).map((x) => x / by));

// Variance of the divided scores, and means over the queries: the largest weight, the entropy as a share of that of
// equal weights, and the slope a (1 - a) of the softmax. Written out in loops, since a slider waits for it.
export function measure(scores, n, m, by) {
  const row = new Float64Array(m);
  let sum = 0, squares = 0, largest = 0, entropy = 0, slope = 0;
  for (const x of scores) sum += x / by;
  for (const x of scores) squares += (x / by - sum / (n * m)) ** 2;
  for (let i = 0; i < n; i++) {
    let top = -Infinity, total = 0, most = 0, nats = 0;
    for (let t = i * m; t < i * m + m; t++) top = Math.max(top, scores[t] / by);
    for (let j = 0; j < m; j++) total += row[j] = Math.exp(scores[i * m + j] / by - top);
    for (let j = 0; j < m; j++) {
      const a = row[j] / total;
      most = Math.max(most, a);
      if (a > 0) nats -= a * Math.log(a);
      slope += (a * (1 - a)) / (n * m);
    }
    largest += most / n;
    entropy += nats / Math.log(m) / n;
  }
  return { variance: squares / (n * m - 1), largest, entropy, slope };
}

const QUERIES = 128, KEYS = 16, LAST = 10;
const SHOWN = { largest: "largest weight", entropy: "entropy (1 = uniform)", slope: "slope a(1−a)" };

function build(ui) {
  let made, scores, now, key, drawn;
  const size = () => Math.round(Math.log2(ui.get("d_k"))), scaled = () => ui.get("scaled"), tau = () => 2 ** ui.get("log_tau");
  const by = (s, divide) => (divide ? Math.sqrt(2 ** s) : 1) * tau();
  // Making two million numbers takes a moment: only once the answer is marked, and again for another seed alone.
  function compute() {
    if (made !== ui.get("seed")) scores = scoresBySize((made = ui.get("seed")), QUERIES, KEYS, 2 ** LAST);
    const next = `${made} ${tau()}`;
    if (key !== next) now = [false, true].map((divide) => scores.map((x, s) => measure(x, QUERIES, KEYS, by(s, divide))));
    key = next;
  }

  const slider = (label, options, onmove) => {
    const input = h("input", { type: "range", step: "1", "aria-label": label, ...options });
    input.addEventListener("input", () => onmove(+input.value));
    return input;
  };
  const power = (x) => (x < 0 ? `1/${2 ** -x}` : `${2 ** x}`);
  const sizes = slider("d_k, in powers of two", { min: 0, max: LAST }, (s) => ui.set({ d_k: 2 ** s })), sizeText = h("b");
  const taus = slider("temperature, in powers of two", { min: -4, max: 4 }, (x) => ui.set({ log_tau: x })), tauText = h("b");
  const scale = button("", () => ui.set({ scaled: !scaled() }));
  const again = button("Resample", () => ui.set({ seed: ui.get("seed") + 1 }));
  const which = choose("Curve of the", Object.entries(SHOWN), () => ui.paint());
  const bar = (label, ...nodes) => h("div", { class: "cw-bar", role: "group", "aria-label": label }, ...nodes);
  const control = (text, input, value) => h("label", { class: "cw-slider" }, h("span", { text }), input, value);

  const bars = h("div", { class: "cw-bars", "aria-hidden": "true" }), title = h("p"), claim = h("p", { class: "cw-claim" }), cards = h("div", { class: "cw-cards", "aria-hidden": "true" });
  const curve = h("div", { "aria-hidden": "true" });
  const percent = (x) => `${(100 * x).toFixed(2)}%`;
  function drawBars(s) {
    const row = ui.known() ? weightsOf(scores[s], 0, KEYS, by(s, scaled())) : new Float64Array(KEYS), top = Math.max(...row);
    title.textContent = `Weights of the first query over its ${KEYS} keys, scores ${scaled() ? "divided by √d_k" : "not divided"}:`;
    bars.replaceChildren(...Array.from(row, (a) =>
      h("div", {}, h("span", { text: top && a === top ? fmt(a, 2) : "", style: `bottom:${percent(0.87 * a)}` }), h("i", { style: `height:${percent(0.87 * a)}` }))));
  }
  // The chosen number for every d_k, with and without the division.
  function drawCurve(s) {
    const what = which.list.value, left = 46, bottom = 150, step = 27;
    const values = ui.known() ? now.map((row) => row.map((x) => x[what])) : [[], []];
    const most = what === "slope" ? 0.0625 : 1, x = (t) => left + 8 + t * step, y = (v) => bottom - (125 * v) / most;
    const text = (at, down, words, more = "") => `<text x="${at}" y="${down}" ${more}>${words}</text>`;
    const paths = values.map((row, divide) => `<polyline class="cw-curve${divide}" points="${row.map((v, t) => `${x(t)},${y(v).toFixed(1)}`).join(" ")}"/>`);
    const marks = values.map((row, divide) => (row.length ? `<circle cx="${x(s)}" cy="${y(row[s]).toFixed(1)}" r="${divide === +scaled() ? 7 : 4}" class="cw-mark${divide}"/>` : ""));
    const ticks = [0, 2, 4, 6, 8, 10].map((t) => text(x(t), bottom + 18, 2 ** t, 'text-anchor="middle"'));
    const axis = [0, most].map((v) => text(left - 4, y(v) + 4, v < 1 && v ? fmt(v, 4) : v, 'text-anchor="end"') + `<path class="cw-axis" d="M${left} ${y(v)}H${x(LAST) + 8}"/>`);
    const legend = `<path class="cw-curve0" d="M40 197h26"/>${text(71, 201, "not divided")}<path class="cw-curve1" d="M164 197h26"/>${text(195, 201, "divided by √d_k")}`;
    curve.innerHTML = `<svg viewBox="0 12 340 196"><path class="cw-line" d="M${x(s)} 22V${bottom}"/>${axis.join("")}${paths.join("")}${marks.join("")}${ticks.join("")}${text(x(5), bottom + 34, "d_k", 'text-anchor="middle"')}${legend}</svg>`;
  }
  const at = (divide) => now[+divide][size()];
  const dead = ({ largest }) => (largest > 0.8 ? "nearly all weight on one key, the softmax is saturated" : largest < 0.1 ? "nearly equal weights" : "weight on several keys");
  function about(divide) {
    const { variance, largest, entropy, slope } = at(divide);
    return `${divide ? "Divided by √d_k" : "Not divided"}: variance of the scores ${fmt(variance, 2)}, largest weight ${fmt(largest)}, entropy ${fmt(entropy)} (1 = uniform), slope a(1−a) ${fmt(slope, 4)}.`;
  }
  const rows = (f) => [false, true].flatMap((divide) => scores.map((_, s) => f(divide, s)));
  ui.on(["d_k", "scaled", "log_tau", "seed", "prediction"], () => ui.paint());
  return {
    nodes: [
      h("p", { class: "cw-muted", text: `${QUERIES} random queries meet ${KEYS} random keys each; entries are independent, with mean 0 and variance 1. Move d_k, then switch the division on and off. The temperature τ divides all scores as well.` }),
      bar("settings", control("d_k", sizes, sizeText), scale, again),
      bar("temperature", control("temperature τ", taus, tauText)),
      claim, cards,
      h("div", { class: "cw-row" }, h("div", {}, title, bars), h("div", {}, bar("curve", which.node), curve)),
    ],
    draw() {
      // Elements that are made anew for nothing are painted anew, and not always to the same pixels.
      const next = `${ui.get("d_k")} ${scaled()} ${tau()} ${ui.get("seed")} ${which.list.value} ${ui.known()}`;
      if (next === drawn) return;
      drawn = next;
      if (ui.known()) compute();
      const s = size();
      sizes.value = s;
      sizes.setAttribute("aria-valuetext", `d_k = ${2 ** s}`);
      sizeText.textContent = `${2 ** s}`;
      taus.value = ui.get("log_tau");
      tauText.textContent = power(ui.get("log_tau"));
      taus.setAttribute("aria-valuetext", tauText.textContent);
      scale.textContent = `Divide by √d_k: ${scaled() ? "on" : "off"}`;
      scale.setAttribute("aria-pressed", String(scaled()));
      claim.textContent = ui.known() ? `Variance of q·k: ${fmt(measure(scores[s], QUERIES, KEYS, 1).variance, 2)}; in theory d_k = ${2 ** s}` : "Variance of q·k: ?";
      const here = ui.known() && at(scaled());
      cards.replaceChildren(...Object.entries(SHOWN).map(([what, text]) =>
        h("div", {}, h("span", { text }), h("b", { text: here ? fmt(here[what], what === "slope" ? 4 : 3) : "?" }))));
      drawBars(s);
      drawCurve(s);
    },
    status() {
      const s = size(), here = at(scaled());
      return [
        `d_k = ${2 ** s}, scores ${scaled() ? `divided by √${2 ** s} = ${fmt(Math.sqrt(2 ** s), 2)}` : "not divided"}${tau() === 1 ? "" : `, then by τ = ${power(ui.get("log_tau"))}`}: ${dead(here)}.`,
        about(false), about(true), `Means over ${QUERIES} queries, sample ${ui.get("seed")}.`,
      ];
    },
    table: () => ({
      key: `${key}`, caption: `Means over ${QUERIES} queries with ${KEYS} keys each, temperature ${power(ui.get("log_tau"))}, sample ${made}`,
      head: ["d_k", "scores", "variance", "largest weight", "entropy (1 = uniform)", "slope a(1−a)"],
      rows: rows((divide, s) => {
        const { variance, largest, entropy, slope } = now[+divide][s];
        return [`${2 ** s}`, divide ? "divided by √d_k" : "not divided", ...[variance, largest, entropy, slope].map((x) => fmt(x, 4))];
      }),
    }),
  };
}

export default widget({ build });
