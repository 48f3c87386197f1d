// All heads of a model at once: how they differ, one row in each of them, and what the loss says without one.

// By how much the loss rises without each head.
export const changes = (losses, loss) => Float64Array.from(losses, (x) => x - loss);

// Places in order of their values, the smallest first; equals and what is not a number keep their order, the latter last.
export function ascending(values) {
  const x = Array.from(values, (v) => (Number.isNaN(v) ? Infinity : v));
  return x.map((_, i) => i).sort((a, b) => (x[a] < x[b] ? -1 : x[a] > x[b] ? 1 : a - b));
}

// Over how many keys a typical query of each head spreads; queries without any weight do not count.
export function spreads(weights, heads, n, m) {
  return Float64Array.from({ length: heads }, (_, head) => {
    const rows = Array.from({ length: n }, (_, i) => weights.slice((head * n + i) * m, (head * n + i + 1) * m));
    return median(rows.filter((row) => row.some((x) => x > 0)).map(spread));
  });
}

// The row of one query in every head: (heads, m).
export function rowsOf(weights, query, heads, n, m) {
  return Float64Array.from({ length: heads * m }, (_, t) => weights[(Math.floor(t / m) * n + query) * m + (t % m)]);
}

// A head's matrix on at most size x size cells, each the largest weight of its part: thin lines do not get lost.
export function pooled(weights, head, n, m, size) {
  const rows = Math.min(n, size), cols = Math.min(m, size), out = new Float64Array(rows * cols);
  const part = (i, whole, parts) => Math.floor((i * parts) / whole);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < m; j++) {
      const t = part(i, n, rows) * cols + part(j, m, cols);
      out[t] = Math.max(out[t], weights[(head * n + i) * m + j]);
    }
  return out;
}

const MANY = 32, GAP = 10, CAPTION = 36, CELLS = 64;

function build(ui) {
  const [queries, keys] = [ui.get("query_words"), ui.get("key_words")], n = queries.length, m = keys.length;
  const { weights, hidden, losses } = ui.data, [layers, heads] = ui.get("grid"), count = layers * heads;
  const loss = ui.get("loss"), worth = loss === null ? null : changes(losses, loss), typical = spreads(weights, count, n, m);
  const most = worth && Math.max(...worth, 1e-300), shade = (x) => (m > MANY ? Math.sqrt(x) : x);
  const name = (k) => `layer ${Math.floor(k / heads)}, head ${k % heads}`, brief = (k) => `L${Math.floor(k / heads)} H${k % heads}`;
  const signed = (x, digits = 3) => (x > 0 ? "+" : "") + x.toFixed(digits).replace("-", "−");
  const out = () => { const [layer, head] = ui.get("ablated"); return layer === undefined ? -1 : layer * heads + head; };
  const ablate = (k) => worth && ui.set({ ablated: k < 0 || k === out() ? [] : [Math.floor(k / heads), k % heads] });
  const hiddenSmall = pooled(hidden.map((x) => 1 - x), 0, n, m, CELLS).map((x) => 1 - x);
  ui.root.classList.add("cw-lead");
  let order, rows, at = null; // at: the head under the pointer or cursor, {place, row}
  const query = () => at?.row ?? ui.get("query");

  const sorts = [["place", "layer and head"], ...(worth ? [["loss", "rise of the loss without them"]] : []), ["spread", "spread (entropy)"]];
  const sort = choose("Sort heads by", sorts, (value) => ui.set({ order: value }));
  const pin = choose("Mark query", queries.map((w, i) => [i, `${i} ${w}`]), (value) => ui.set({ query: +value }));
  const taken = choose("Take out", [[-1, "no head"], ...Array.from({ length: count }, (_, k) => [k, name(k)])], (value) => ui.set({ ablated: +value < 0 ? [] : [Math.floor(value / heads), value % heads] }));

  // ---- The overview: one canvas with a small matrix for each head ----
  const base = h("canvas", { "aria-hidden": "true" }), over = h("canvas", { "aria-hidden": "true" });
  const stage = h("div", {
    class: "cw-stage", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`,
    "aria-label": `${layers} layers of ${heads} heads, each a small matrix with queries in rows and keys in columns. Arrow keys, Home and End move from head to head${worth ? "; Enter or Space takes a head out or puts it back" : ""}.`,
  }, base, over);
  const box = h("div", { class: "cw-scroll" }, stage), small = document.createElement("canvas");
  let wide = 0, high = 0, ratio = 1, drawn;
  const left = (place) => 4 + (place % heads) * (wide + GAP), top = (place) => 4 + Math.floor(place / heads) * (high + CAPTION + GAP);
  function layout() {
    wide = Math.max(44, Math.min(140, Math.floor((box.clientWidth - 8 - (heads - 1) * GAP) / heads)));
    high = Math.max(24, Math.min(160, Math.round((wide * n) / m)));
    ratio = Math.min(window.devicePixelRatio || 1, 3);
    const size = { width: heads * (wide + GAP) - GAP + 8, height: layers * (high + CAPTION + GAP) };
    for (const e of [stage, base, over]) for (const side in size) e.style[side] = `${size[side]}px`;
    for (const e of [base, over]) for (const side in size) e[side] = Math.round(size[side] * ratio);
  }
  function context(canvas) {
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, canvas.width, canvas.height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.imageSmoothingEnabled = false;
    return c;
  }
  // Hidden cells are hatched, so that they cannot be taken for weights of zero.
  function hatching(c) {
    const tile = document.createElement("canvas"), t = tile.getContext("2d"), s = (tile.width = tile.height = 6);
    t.fillStyle = ui.ink.hatch;
    t.fillRect(0, 0, s, s);
    t.strokeStyle = ui.ink.rule;
    for (const x of [-s, 0, s]) { t.moveTo(x, s); t.lineTo(x + s, 0); }
    t.stroke();
    return c.createPattern(tile, "repeat");
  }
  function drawBase() {
    const c = context(base), s = small.getContext("2d"), known = ui.known(), hatch = hatching(c);
    small.width = Math.min(m, CELLS);
    small.height = Math.min(n, CELLS);
    order.forEach((k, place) => {
      const image = s.createImageData(small.width, small.height), x = left(place), y = top(place);
      pooled(weights, k, n, m, CELLS).forEach((value, t) => {
        image.data.set([...ramp(known ? shade(value) : 0, ui.theme), hiddenSmall[t] > 0.5 ? 0 : 255], 4 * t);
      });
      s.putImageData(image, 0, 0);
      c.fillStyle = hatch;
      c.fillRect(x, y, wide, high);
      c.drawImage(small, x, y, wide, high);
      c.strokeStyle = ui.ink.rule;
      c.lineWidth = 1;
      c.strokeRect(x - 0.5, y - 0.5, wide + 1, high + 1);
      c.fillStyle = ui.ink.ink;
      c.fillText(brief(k), x, y + high + 10);
      const told = worth && ui.get("order") !== "spread" ? signed(worth[k], 2) : `${fmt(typical[k], 1)} keys`;
      if (known) c.fillText(wide < 52 ? told.replace(" keys", "") : told, x, y + high + 25);
    });
  }
  function drawOver() {
    const c = context(over);
    order.forEach((k, place) => {
      const x = left(place), y = top(place), line = Math.max(3, high / n);
      c.strokeStyle = ui.ink.accent;
      c.lineWidth = 1.5;
      c.strokeRect(x - 1.5, Math.min(y + (query() * high) / n, y + high - line), wide + 3, line);
      if (k === out()) {
        for (const [colour, width] of [[ui.ink.bg, 5], [ui.ink.accent, 2.5]]) {
          c.strokeStyle = colour;
          c.lineWidth = width;
          c.beginPath();
          c.rect(x - 1, y - 1, wide + 2, high + 2);
          for (const [a, b] of [[y, y + high], [y + high, y]]) { c.moveTo(x, a); c.lineTo(x + wide, b); }
          c.stroke();
        }
      }
      if (place === at?.place) {
        c.strokeStyle = ui.ink.accent;
        c.lineWidth = 2;
        c.setLineDash([4, 3]);
        c.strokeRect(x - 3, y - 3, wide + 6, high + 6);
        c.setLineDash([]);
      }
    });
  }
  const move = (next) => {
    if (next?.place === at?.place && next?.row === at?.row) return;
    const before = query();
    at = next;
    if (query() !== before) rows = rowsOf(weights, query(), count, n, m);
    ui.paint(false);
  };
  function under(e) {
    const r = stage.getBoundingClientRect(), x = e.clientX - r.left - 4, y = e.clientY - r.top - 4;
    const j = Math.floor(x / (wide + GAP)), i = Math.floor(y / (high + CAPTION + GAP)), inside = y - i * (high + CAPTION + GAP);
    if (i < 0 || j < 0 || i >= layers || j >= heads || x - j * (wide + GAP) > wide) return null;
    return { place: i * heads + j, row: inside >= 0 && inside < high && e.pointerType !== "touch" ? Math.floor((inside * n) / high) : undefined };
  }
  stage.addEventListener("pointermove", (e) => e.pointerType !== "touch" && move(under(e)));
  stage.addEventListener("pointerleave", () => move(null));
  stage.addEventListener("click", (e) => {
    const cell = under(e);
    if (!cell) return;
    if (cell.row !== undefined) ui.set({ query: cell.row });
    ablate(order[cell.place]);
  });
  let last = 0;
  stage.addEventListener("focus", () => stage.matches(":focus-visible") && move({ place: last }));
  stage.addEventListener("blur", () => move(null));
  ui.keys(stage, (e) => {
    const place = at?.place ?? last, to = moveCell({ i: Math.floor(place / heads), j: place % heads }, e.key, layers, heads, e.ctrlKey);
    if (to) {
      last = to.i * heads + to.j;
      move({ place: last });
      box.scrollLeft = Math.max(Math.min(box.scrollLeft, left(last) - 4), left(last) + wide + 4 - box.clientWidth);
    } else if (e.key === "Enter" || e.key === " ") ablate(order[place]);
    else if (e.key === "Escape") ablate(-1);
    else return;
    e.preventDefault();
  });

  // ---- The marked row of every head, and what the head is worth ----
  const about = h("p", { class: "cw-muted" }), strip = h("canvas", { "aria-hidden": "true", style: "position:static" });
  const stripBox = h("div", { class: "cw-scroll", tabindex: "0", role: "group", "aria-label": "the marked query in every head; its numbers are in the table" }, strip);
  const LEFT = 56, RIGHT = 96, LINE = 22;
  function drawStrip() {
    const cell = Math.max(3, Math.min(46, Math.floor((stripBox.clientWidth - LEFT - RIGHT) / m))), i = query(), known = ui.known();
    const flat = cell > 40, above = flat ? 20 : 16 + 7 * Math.min(11, Math.max(...keys.map((w) => w.length))), W = LEFT + m * cell + RIGHT, H = above + count * LINE + 4;
    strip.width = Math.round(W * ratio);
    strip.height = Math.round(H * ratio);
    strip.style.width = `${W}px`;
    strip.style.height = `${H}px`;
    const c = context(strip), x = LEFT + m * cell + 8;
    // Pixel by pixel into a small picture, which is then enlarged: thousands of cells follow the pointer.
    const s = small.getContext("2d"), image = ((small.width = m), (small.height = count), s.createImageData(m, count));
    const colours = Array.from({ length: 256 }, (_, level) => [...ramp(level / 255, ui.theme), 255]);
    order.forEach((k, place) => {
      for (let j = 0; j < m; j++) if (!hidden[i * m + j]) image.data.set(colours[known ? Math.min(255, Math.round(255 * shade(rows[k * m + j]))) : 0], 4 * (place * m + j));
    });
    s.putImageData(image, 0, 0);
    c.fillStyle = hatching(c);
    c.fillRect(LEFT, above, m * cell, count * LINE);
    c.drawImage(small, LEFT, above, m * cell, count * LINE);
    const say = (text, left, y, colour = ui.ink.ink) => { c.fillStyle = colour; c.fillText(text, left, y); };
    keys.forEach((word, j) => {
      if (j % Math.ceil(13 / cell)) return;
      const text = word.length > 11 ? `${word.slice(0, 10)}…` : word;
      c.save();
      c.translate(LEFT + (j + 0.5) * cell, above - (flat ? 8 : 4));
      if (!flat) c.rotate(-Math.PI / 2);
      c.textAlign = flat ? "center" : "left";
      say(text, 0, 0);
      c.restore();
    });
    say(worth ? "loss rises by" : "spread, keys", x, above - 8, ui.ink.muted);
    order.forEach((k, place) => {
      const y = above + place * LINE, middle = y + LINE / 2, here = place === at?.place || k === out();
      say(brief(k), 0, middle, here ? ui.ink.accent : ui.ink.ink);
      for (let j = 0; j < m && cell >= 34 && known; j++) {
        if (hidden[i * m + j]) continue;
        const value = rows[k * m + j];
        c.textAlign = "center";
        say(value.toFixed(2), LEFT + (j + 0.5) * cell, middle, luminance(ramp(shade(value), ui.theme)) > 0.179 ? "#000" : "#fff");
        c.textAlign = "left";
      }
      c.strokeStyle = here ? ui.ink.accent : ui.ink.line;
      c.lineWidth = here ? 2 : 1;
      c.strokeRect(LEFT, y, m * cell, LINE);
      if (!known) return;
      c.fillStyle = ui.ink.bar;
      c.fillRect(x, middle - 5, 32 * (worth ? Math.max(0, worth[k] / most) : typical[k] / m), 10);
      say(worth ? signed(worth[k]) : fmt(typical[k], 1), x + 38, middle);
    });
  }
  const bars = [0, 1].map(() => h("li", {}, h("span"), h("i"), h("span")));
  const list = h("ol", { class: "cw-losses", "aria-hidden": "true" }, ...bars);
  function drawLosses() {
    const k = out();
    list.hidden = !worth || !ui.known();
    if (list.hidden) return;
    [["all heads", loss], [k < 0 ? "no head is out" : `without ${brief(k)}`, k < 0 ? null : losses[k]]].forEach(([text, x], i) => {
      const [word, bar, number] = bars[i].children;
      word.textContent = text;
      bar.style.width = x === null ? "0" : `${(Math.max(0, x) / Math.max(loss, ...losses)) * 40}%`;
      number.textContent = x === null ? "" : i ? `${fmt(x)} (${signed(x - loss)})` : fmt(x);
    });
  }
  function changed() {
    order = ui.get("order") === "spread" ? ascending(typical) : ui.get("order") === "loss" ? ascending(worth.map((x) => -x)) : Array.from(typical.keys());
    rows = rowsOf(weights, query(), count, n, m);
    sort.list.value = ui.get("order");
    pin.list.value = ui.get("query");
    taken.list.value = out();
    ui.paint();
  }
  ui.on(["order", "query", "ablated"], changed);
  changed();

  function aboutLoss() {
    if (!worth) return "";
    const k = out(), by = ascending(worth);
    if (k >= 0) return `Without ${name(k)} the loss is ${fmt(losses[k], 4)} instead of ${fmt(loss, 4)}: a change of ${signed(worth[k], 4)}.`;
    return `Loss with all heads: ${fmt(loss, 4)}. Without one head it changes by ${signed(worth[by[0]])} (${name(by[0])}) to ${signed(worth[by.at(-1)])} (${name(by.at(-1))}).`;
  }
  function aboutRow() {
    const i = query(), k = at ? order[at.place] : out();
    if (k < 0) return `Query “${queries[i]}” is marked in every head. Point at a head.`;
    const row = rows.slice(k * m, k * m + m), j = row.indexOf(Math.max(...row));
    const text = `${name(k)[0].toUpperCase()}${name(k).slice(1)}. Query “${queries[i]}”: most weight on key “${keys[j]}”, ${fmt(row[j], 4)}.`;
    return `${text} It spreads over ${fmt(spread(row), 1)} keys, a typical query of this head over ${fmt(typical[k], 1)}${worth ? `; without this head the loss changes by ${signed(worth[k], 4)}` : ""}.`;
  }
  const hint = worth
    ? "Each square is a head (L0 H1: layer 0, head 1): queries in rows, keys in columns, and below how much the loss rises without it. Click one to take it out; the row you click is marked in all of them."
    : "Each square is a head (L0 H1: layer 0, head 1): queries in rows, keys in columns. The row you click is marked in all of them.";
  return {
    nodes: [
      h("div", { class: "cw-bar", role: "group", "aria-label": "heads" }, sort.node, pin.node, ...(worth ? [taken.node] : [])),
      h("p", { class: "cw-muted", text: hint + (m > MANY ? " Colour: square root of the weight." : "") }), box, list, about, stripBox,
    ],
    draw(all) {
      const key = `${box.clientWidth} ${window.devicePixelRatio}`;
      if (key !== drawn) { layout(); all = true; }
      drawn = key;
      if (all) drawBase();
      drawOver();
      drawLosses();
      about.textContent = `Query “${queries[query()]}” in every head:`;
      drawStrip();
    },
    status: () => (worth ? [aboutLoss(), aboutRow()] : [aboutRow()]),
    table: () => ({
      key: `${ui.get("query")} ${ui.get("order")}`, caption: `Heads, and what query “${queries[ui.get("query")]}” reads`,
      head: ["head", "spread, keys", ...(worth ? ["loss without", "change"] : []), ...keys.map((w) => `key ${w}`)],
      rows: order.map((k) => [name(k), fmt(typical[k], 2), ...(worth ? [fmt(losses[k], 4), signed(worth[k], 4)] : []),
        ...keys.map((_, j) => (hidden[ui.get("query") * m + j] ? "hidden" : fmt(weights[(k * n + ui.get("query")) * m + j], 4)))]),
    }),
  };
}

export default widget({ packed: ["weights", "hidden", "losses"], inputs: ["query_words", "key_words", "grid", "loss"], build });
