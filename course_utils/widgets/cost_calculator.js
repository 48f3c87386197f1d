// What attention costs: multiply-adds and memory for a length, where they cross, and the reader's own timings.

// Multiply-adds of one forward pass, all layers and the whole batch; bytes of one layer for the whole batch, 4 a number.
// window 0: every position meets all T; else the last `window` of them.
export function costs(T, d, heads, layers, batch, window) {
  const passes = layers * batch, met = T * (window ? Math.min(window, T) : T);
  return {
    projections: passes * 4 * T * d ** 2, scores: passes * 2 * met * d, mlp: passes * 8 * T * d ** 2,
    weights: batch * heads * met * 4, qkv: batch * 3 * T * d * 4,
  };
}
// The length at which scores and mixing cost as much as the rest; Infinity if a window keeps them below.
export function crossing(d, mlp, window) {
  const T = mlp ? 6 * d : 2 * d;
  return window && window < T ? Infinity : T;
}
// The length at which the weights take as much memory as queries, keys and values.
export function memoryCrossing(d, heads, window) {
  const T = (3 * d) / heads;
  return window && window < T ? Infinity : T;
}
// The power of T with which y grows: the slope of log y over log T, by least squares.
export function power(Ts, ys) {
  const a = Ts.map(Math.log), b = ys.map(Math.log), mean = (v) => v.reduce((s, x) => s + x, 0) / v.length, [x, y] = [mean(a), mean(b)];
  return a.reduce((s, v, i) => s + (v - x) * (b[i] - y), 0) / a.reduce((s, v) => s + (v - x) ** 2, 0);
}
// Multiply-adds a second: the median over the timings.
export const rate = (counts, seconds) => median(counts.map((count, i) => count / seconds[i]));

const LOW = 4, HIGH = 17; // powers of two of the shortest and the longest T
const tidy = (x) => (Math.abs(x - Math.round(x)) < 1e-9 && x < 1e4) ? `${Math.round(x)}` : fmt(x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
function scaled(x, units, base) {
  let i = 0;
  for (; x >= base && i < units.length - 1; i++) x /= base;
  return `${tidy(x)} ${units[i]}`.trim();
}
const big = (x) => scaled(x, ["", "thousand", "million", "billion", "trillion", "thousand trillion"], 1000);
const bytes = (x) => scaled(x, ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
const seconds = (s) => (s >= 1 ? `${tidy(s)} s` : s >= 1e-3 ? `${tidy(s * 1e3)} ms` : `${tidy(s * 1e6)} µs`);
const whole = (n) => `${Math.round(n)}`.replace(/\B(?=(\d{3})+$)/g, ",");

function build(ui) {
  const timings = ui.get("timings"), setup = ui.get("measured");
  const get = (name) => ui.get(name), of = (T) => costs(T, get("d"), get("heads"), get("layers"), get("batch"), get("window"));
  const rest = (c) => c.projections + (get("mlp") ? c.mlp : 0);
  const total = (c, mlp) => c.projections + c.scores + (mlp ? c.mlp : 0);
  // What was measured stays what it was, whatever is chosen now.
  const Ts = timings.map(([T]) => T), took = timings.map(([, s]) => s);
  const counted = Ts.map((T) => total(costs(T, setup.d, setup.heads, setup.layers, setup.batch, setup.window), setup.mlp));
  const speed = timings.length ? rate(counted, took) : NaN, slopes = new Set(Ts).size > 1 ? [power(Ts, took), power(Ts, counted)] : null;
  const focus = { T: null }, at = () => focus.T ?? get("T");
  const setT = (power2) => ui.set({ T: Math.round(2 ** Math.max(LOW, Math.min(HIGH, power2))) });

  const length = slider("Length T", LOW, HIGH, 0.25, (v) => whole(2 ** v), setT);
  const twos = (low, high, more) => [...new Set([...Array.from({ length: high - low + 1 }, (_, i) => 2 ** (low + i)), more])].sort((a, b) => a - b);
  const option = (values) => values.map((v) => [v, whole(v)]);
  const heads = (d) => Array.from({ length: 128 }, (_, i) => i + 1).filter((n) => d % n === 0);
  const d = choose("Features d", option(twos(4, 14, get("d"))), (v) => ui.set({ d: +v, heads: heads(+v).filter((n) => n <= get("heads")).at(-1) }));
  const hd = choose("heads h", [], (v) => ui.set({ heads: +v }));
  const layers = choose("layers", option(twos(0, 7, get("layers"))), (v) => ui.set({ layers: +v }));
  const batch = choose("batch B", option(twos(0, 10, get("batch"))), (v) => ui.set({ batch: +v }));
  const window_ = choose("window w", [[0, "none"], ...option(twos(4, 13, get("window") || 16))], (v) => ui.set({ window: +v }));
  const mlp = button("Count the MLP too", () => ui.set({ mlp: !get("mlp") }));
  const show = choose("Draw", [["operations", "multiply-adds"], ["memory", "memory of one layer"]], (v) => ui.set({ show: v }));

  const row = () => h("li", {}, h("span"), h("i"), h("span"));
  const rows = Array.from({ length: 5 }, row), list = (mine, text) => h("div", {}, h("p", { class: "cw-muted", text }), h("ul", { class: "cw-cost", "aria-hidden": "true" }, ...mine));
  function changed() {
    focus.T = null;
    length.put(Math.log2(get("T")));
    length.node.lastChild.textContent = whole(get("T"));
    hd.list.replaceChildren(...heads(get("d")).map((n) => h("option", { value: n, text: `${n}` })));
    for (const [c, name] of [[d, "d"], [hd, "heads"], [layers, "layers"], [batch, "batch"], [window_, "window"], [show, "show"]]) c.list.value = get(name);
    mlp.setAttribute("aria-pressed", get("mlp"));
    ui.paint();
  }
  ui.on(["T", "d", "heads", "layers", "batch", "window", "mlp", "show"], changed);
  changed();

  // Both axes are logarithmic: a cost like T is a line with slope 1, one like T² a line with slope 2.
  const frame = { left: 62, top: 26, bottom: 40 };
  let right = 0;
  const xOf = (T, width) => frame.left + ((Math.log2(T) - LOW) / (HIGH - LOW)) * (width - frame.left - right);
  const powerAt = (x, width) => LOW + ((x - frame.left) / (width - frame.left - right)) * (HIGH - LOW);
  const map = picture(ui, {
    label: "Costs over the length T, both axes logarithmic. Left and Right change T by a factor of 2 to the power of a quarter, Home and End go to the ends.",
    height: (width) => Math.min(330, 180 + width * 0.25),
    hover(x) {
      const p = x === null ? null : powerAt(x, map.stage.clientWidth);
      focus.T = p === null || p < LOW || p > HIGH ? null : Math.round(2 ** (Math.round(p * 4) / 4));
      ui.paint();
    },
    act: (x) => setT(Math.round(powerAt(x, map.stage.clientWidth) * 4) / 4),
    key(e) {
      const step = { ArrowLeft: -0.25, ArrowRight: 0.25, Home: -99, End: 99 }[e.key];
      if (step) setT(Math.round(Math.log2(get("T")) * 4) / 4 + step);
      return step;
    },
    draw(c, width, tall) {
      const { ink, muted, line, accent, bar } = ui.ink, ops = get("show") === "operations", mine = ops && timings.length && ui.known();
      right = mine ? 56 : 14;
      const parts = ops ? [rest, (x) => x.scores] : [(x) => x.qkv, (x) => x.weights];
      const ends = [2 ** LOW, 2 ** HIGH].flatMap((T) => parts.map((f) => f(of(T)))), dots = mine ? took.map((s) => s * speed) : [];
      const base = ops ? 10 : 2, log = (v) => Math.log(v) / Math.log(base);
      const low = Math.floor(log(Math.min(...ends, ...dots))), high = Math.ceil(log(Math.max(...ends, ...dots)));
      const floor = tall - frame.bottom, x = (T) => xOf(T, width), y = (v) => floor - ((log(v) - low) / (high - low)) * (floor - frame.top);
      const every = Math.ceil((high - low) / Math.floor((floor - frame.top) / 26));
      write(c, ops ? "multiply-adds" : "bytes", 2, 9, muted);
      for (let p = LOW; p <= HIGH; p += width < 480 ? 4 : 2) {
        stroke(c, [[x(2 ** p), frame.top], [x(2 ** p), floor]], line);
        write(c, whole(2 ** p), x(2 ** p), floor + 12, muted, "center");
      }
      write(c, "length T", (frame.left + width - right) / 2, floor + 29, muted, "center");
      for (let p = low; p <= high; p += every) {
        stroke(c, [[frame.left, y(base ** p)], [width - right, y(base ** p)]], line);
        if (ui.known()) write(c, ops ? power10(p) : bytes(2 ** p), frame.left - 6, y(base ** p), muted, "right");
      }
      if (!ui.known()) return;
      const curve = Array.from({ length: 53 }, (_, i) => 2 ** (LOW + i / 4)), T = at(), now = of(T);
      stroke(c, [[x(T), frame.top], [x(T), floor]], ink, 1.5, [2, 3]);
      const far = 2 ** (HIGH - 1.5), heights = parts.map((f) => f(of(far))), square = get("window") ? "Tw" : "T²";
      const names = ops ? [get("mlp") ? "12Td²" : "4Td²", `2${square}d`] : ["3Td", `h${square}`];
      parts.forEach((f, i) => {
        stroke(c, curve.map((t) => [x(t), y(f(of(t)))]), i ? accent : bar, i ? 3.5 : 2.5, i ? [] : [8, 4]);
        dot(c, x(T), y(f(now)), 4.5, i ? accent : bar);
        const above = heights[i] > heights[1 - i];
        write(c, names[i], x(above ? far : 2 ** HIGH) - 8, y(heights[i]) + (above ? -8 : 14), i ? accent : bar, "right");
      });
      const cross = ops ? crossing(get("d"), get("mlp"), get("window")) : memoryCrossing(get("d"), get("heads"), get("window"));
      if (cross >= 2 ** LOW && cross <= 2 ** HIGH) {
        const cy = y(parts[1](of(cross))), on = x(cross) < (width + frame.left) / 2;
        c.strokeStyle = ink;
        c.lineWidth = 2;
        c.beginPath();
        c.arc(x(cross), cy, 9, 0, 7);
        c.stroke();
        c.font = "bold 12px system-ui, sans-serif";
        const equal = `equal at T = ${whole(cross)}`, wide = c.measureText(equal).width + 6;
        c.fillStyle = ui.ink.bg;
        c.fillRect(x(cross) + (on ? 11 : -11 - wide), cy + (on ? 10 : -26), wide, 16);
        write(c, equal, x(cross) + (on ? 14 : -14), cy + (on ? 18 : -18), ink, on ? "left" : "right");
        c.font = "12px system-ui, sans-serif";
      }
      if (!mine) return;
      write(c, "your timings", width - 2, 9, muted, "right");
      stroke(c, Ts.map((t, i) => [x(t), y(dots[i])]), ink, 1.5);
      Ts.forEach((t, i) => diamond(c, x(t), y(dots[i])));
      for (let p = Math.ceil(low - Math.log10(speed)); p <= high - Math.log10(speed); p += every) write(c, p > -7 && p < 5 ? seconds(10 ** p) : `${power10(p)} s`, width - right + 5, y(10 ** p * speed), muted);
    },
  });
  const power10 = (p) => `10${`${p}`.replace(/./g, (s) => ({ ..."⁰¹²³⁴⁵⁶⁷⁸⁹", "-": "⁻" })[s])}`;
  function dot(c, x, y, r, colour) {
    c.fillStyle = colour;
    c.beginPath();
    c.arc(x, y, r, 0, 7);
    c.fill();
  }
  function diamond(c, x, y) {
    c.save();
    c.translate(x, y);
    c.rotate(Math.PI / 4);
    c.fillStyle = ui.ink.bg;
    c.strokeStyle = ui.ink.ink;
    c.lineWidth = 2;
    c.fillRect(-4.5, -4.5, 9, 9);
    c.strokeRect(-4.5, -4.5, 9, 9);
    c.restore();
  }

  const met = () => (get("window") ? "T·min(w, T)" : "T²"), w = () => (get("window") ? "T·min(w, T)·d" : "T²d");
  // name, formula, amount, the total it is a part of, number
  function parts(T) {
    const c = of(T), all = total(c, get("mlp")), memory = c.weights + c.qkv;
    return [
      ["projections", "4Td²", c.projections, all, big], ["MLP", "8Td²", get("mlp") ? c.mlp : null, all, big], ["scores, mix", `2${w()}`, c.scores, all, big],
      ["Q, K, V", "B·3Td·4", c.qkv, memory, bytes], ["weights", `B·h·${met()}·4`, c.weights, memory, bytes],
    ];
  }
  function fill() {
    parts(at()).forEach(([name, formula, amount, all, say], i) => {
      const [label, strip, number] = rows[i].children, part = ui.known() ? amount / all : 0;
      rows[i].hidden = amount === null;
      rows[i].classList.toggle("cw-grows", i === 2 || i === 4);
      // Before, the power of T would answer the question.
      label.textContent = ui.known() ? `${name}: ${formula}` : name;
      strip.style.width = `${part * 100}%`;

      number.textContent = ui.known() ? `${say(amount)} (${fmt(100 * part, 0)} %)` : "–";
    });
  }
  function aboutCrossing() {
    const T = crossing(get("d"), get("mlp"), get("window")), others = get("mlp") ? "4Td² + 8Td² of projections and MLP" : "4Td² of the projections";
    if (T === Infinity) return `A window of ${whole(get("window"))} keeps scores and mixing below the ${others} at every T: both grow like T.`;
    return `Multiply-adds: 2${w()} of scores and mixing equal the ${others} at T = ${get("mlp") ? 6 : 2}d = ${whole(T)}. Here T = ${whole(at())}: ${at() < T ? "the rest costs more" : at() > T ? "scores and mixing cost more" : "equal"}.`;
  }
  function aboutMemory() {
    const c = of(at()), T = memoryCrossing(get("d"), get("heads"), get("window")), sum = c.weights * get("layers");
    const every = get("layers") > 1 ? `, ${bytes(sum)} in ${whole(get("layers"))} layers if all are kept for training` : "";
    return `Memory of the weights: ${whole(get("batch"))} · ${get("heads")} · ${get("window") ? `${whole(at())}·${whole(Math.min(at(), get("window")))}` : `${whole(at())}²`} · 4 bytes = ${bytes(c.weights)} in a layer${every}. ${T === Infinity ? "They never take more than Q, K and V together." : `They take as much as Q, K and V together at T = 3d/h = ${whole(T)}.`}`;
  }
  function aboutTimings() {
    if (!timings.length) return "";
    const scope = `Your timings (d = ${whole(setup.d)}, ${setup.layers} ${setup.layers === 1 ? "layer" : "layers"}, batch ${setup.batch}): ${big(speed)} multiply-adds a second in the median`;
    return slopes ? `${scope}. From T = ${whole(Math.min(...Ts))} to ${whole(Math.max(...Ts))} the time grows like T to the ${fmt(slopes[0], 2)}, the count like T to the ${fmt(slopes[1], 2)}.` : `${scope}.`;
  }
  return {
    nodes: [
      h("p", { class: "cw-muted", text: "Make T larger and watch the bars: which part takes over, and where? Then halve d, add heads, set a window." }),
      h("div", { class: "cw-bar", role: "group", "aria-label": "sizes" }, length.node, d.node, hd.node, layers.node, batch.node, window_.node, mlp),
      h("div", { class: "cw-row" }, list(rows.slice(0, 3), "Multiply-adds: the whole batch, all layers"), list(rows.slice(3), "Memory of one layer, 4 bytes a number")),
      h("p", { class: "cw-muted", text: "Counted are matrix products; softmax, norms and biases are left out. Plain code keeps scores beside the weights, twice as much memory; blockwise code keeps neither." }),
      h("div", { class: "cw-bar", role: "group", "aria-label": "picture" }, show.node),
      map.stage,
    ],
    draw() { fill(); map.draw(); },
    status: () => [`At T = ${whole(at())}: ${parts(at()).filter((p) => p[2] !== null).map(([name, , amount, , say]) => `${name} ${say(amount)}`).join(", ")}.`, aboutCrossing(), aboutMemory(), aboutTimings()],
    table() {
      const names = ["d", "heads", "layers", "batch", "window", "mlp", "T"], seen = [...new Set([...twos(LOW, HIGH, get("T")), ...Ts])].sort((a, b) => a - b);
      const measured = (T) => timings.filter(([t]) => t === T).map(([, s]) => seconds(s)).join(", ") || "–";
      return {
        key: names.map(get).join(), caption: "Multiply-adds of all layers, bytes of one layer",
        head: ["T", "projections", "MLP", "scores and mixing", "Q, K, V", "weights", "your timings"],
        rows: seen.map((T) => { const c = of(T); return [whole(T), whole(c.projections), whole(c.mlp), whole(c.scores), bytes(c.qkv), bytes(c.weights), measured(T)]; }),
      };
    },
  };
}

export default widget({ inputs: ["timings", "measured"], build });
