// Shared by every widget of the course. This text stands before the widget's own text in one module: no imports.
// Whole-line comments and indentation are dropped on delivery, so no template literal may run over several lines.

// ---- Numbers: pure functions, compared with torch in float64 by tests/widgets ----

// Over how many keys a row of weights spreads: e to the power of its entropy in nats.
export function spread(row) {
  let nats = 0;
  for (const p of row) if (p > 0) nats -= p * Math.log(p);
  return Math.exp(nats);
}

export function median(values) {
  const sorted = Float64Array.from(values).sort(), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : NaN;
}

// A number for reading: zero is written without decimals, so that exactly nothing can be told from very little.
export function fmt(x, digits = 3) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const small = Math.abs(x) < 0.5 * 10 ** -digits;
  const text = x === 0 ? "0" : small || Math.abs(x) >= 1e6 ? x.toExponential(1) : x.toFixed(digits);
  return text.replace("-", "−");
}

// What Python packed (packing.py): {kind, low, high, bytes} to numbers. "u2": 16 bits between low and high,
// first all low bytes, then all high bytes, deflated. "f8": little-endian doubles as they are.
export async function decode({ kind, low, high, bytes }) {
  let raw = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (kind === "f8") return new Float64Array(raw.slice().buffer);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const n = raw.length / 2, step = (high - low) / 65535;
  return Float64Array.from({ length: n }, (_, t) => low + (raw[t] + 256 * raw[n + t]) * step);
}

// ---- Geometry and colour: pure as well ----

// The cell below the point (x, y) of a grid {left, top, cell, rows, cols}; null outside.
export function cellAt(x, y, g) {
  const i = Math.floor((y - g.top) / g.cell), j = Math.floor((x - g.left) / g.cell);
  return i >= 0 && j >= 0 && i < g.rows && j < g.cols ? { i, j } : null;
}

// Where a key moves the cursor; null for keys that do not move it. Control takes Home and End to the corners.
export function moveCell({ i, j }, key, rows, cols, control = false) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
  if (step) return { i: Math.max(0, Math.min(rows - 1, i + step[0])), j: Math.max(0, Math.min(cols - 1, j + step[1])) };
  if (key === "Home") return { i: control ? 0 : i, j: 0 };
  if (key === "End") return { i: control ? rows - 1 : i, j: cols - 1 };
  return null;
}

// One hue that only grows darker (lighter on a dark page): safe for every kind of colour blindness, and in print.
const STOPS = {
  light: [[255, 255, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]],
  dark: [[24, 27, 33], [20, 56, 96], [33, 113, 181], [120, 190, 225], [255, 250, 205]],
};
export function ramp(t, theme) {
  const stops = STOPS[theme], x = Math.max(0, Math.min(1, t)) * (stops.length - 1), at = Math.min(Math.floor(x), stops.length - 2);
  return stops[at].map((a, c) => Math.round(a + (stops[at + 1][c] - a) * (x - at)));
}
export function luminance(rgb) {
  const [r, g, b] = Array.from(rgb, (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const INKS = {
  light: { bg: "#fcfcfb", ink: "#22262b", muted: "#5a6068", line: "#c3c8ce", accent: "#b34700", bar: "#2171b5", hatch: "#d3d7dc", rule: "#767d86" },
  dark: { bg: "#181b21", ink: "#e9ebee", muted: "#a9b0b8", line: "#4a515a", accent: "#ffb454", bar: "#78bee1", hatch: "#2c3138", rule: "#7d8590" },
};

// ---- The page ----

// An element: h("button", { type: "button", text: "Reset", onclick: f }, …children).
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") e.textContent = value;
    else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true || value === false) e.toggleAttribute(name, value);
    else e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}
export const button = (text, onclick, more = {}) => h("button", { type: "button", text, onclick, ...more });
// A labelled list to choose from. options: [value, text] pairs; the value comes back as a string.
export function choose(text, options, onchange) {
  const list = h("select", {}, ...options.map(([value, words]) => h("option", { value, text: words })));
  list.addEventListener("change", () => onchange(list.value));
  return { list, node: h("label", {}, h("span", { text }), list) };
}

// What Jupyter says of its theme, else the first opaque background around; through the frame of an exported page as well.
function darkAround(element) {
  for (let e = element; e; ) {
    const said = e.ownerDocument.body.dataset.jpThemeLight, m = getComputedStyle(e).backgroundColor.match(/[\d.]+/g);
    if (said) return said === "false";
    if (m && (m.length < 4 || +m[3] > 0.5)) return luminance(m.slice(0, 3).map(Number)) < 0.2;
    try { e = e.parentElement ?? e.ownerDocument.defaultView.frameElement; } catch { e = null; }
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// The widget that `export default` of each module gives. packed: traits to decode before anything is drawn;
// inputs: traits whose change starts anew; build(ui): see docs/widgets.md.
export function widget({ packed = [], inputs = [], build }) {
  return {
    async render({ model, el }) {
      const root = h("div", { class: "course-widget" });
      el.replaceChildren(root);
      let stop = () => {}, run = 0;
      const start = async () => {
        const mine = ++run;
        const data = {};
        for (const name of packed) data[name] = await decode(model.get(name));
        if (mine !== run) return;
        stop();
        stop = mount(model, root, data, build);
      };
      const watched = [...packed, ...inputs, "question", "choices"];
      for (const name of watched) model.on(`change:${name}`, start);
      await start();
      return () => {
        run = -1;
        for (const name of watched) model.off(`change:${name}`, start);
        stop();
        el.replaceChildren();
      };
    },
  };
}

let count = 0; // names of radio groups must differ between the widgets of a page
function mount(model, root, data, build) {
  const undo = [], handlers = new Map(), id = `course-widget-${++count}`;
  let frame = 0, full = true, tableKey;
  const ui = {
    root, data, id, get: (name) => model.get(name),
    set(values) {
      for (const [name, value] of Object.entries(values)) model.set(name, value);
      model.save_changes();
    },
    on(names, f) {
      for (const name of names) { model.on(`change:${name}`, f); undo.push(() => model.off(`change:${name}`, f)); }
    },
    // The only way to hear keys: f(event) for those pressed on this element.
    keys: (element, f) => handlers.set(element, f),
    // Values stay hidden until the learner has marked a prediction.
    known: () => !ui.get("choices").length || ui.get("prediction") !== null,
    // Draw in the next frame; all: also what does not depend on the cursor.
    paint(all = true) {
      full ||= all;
      frame ||= requestAnimationFrame(draw);
    },
  };
  const lines = h("div", { class: "cw-status", "aria-live": "polite", id: `${id}-status` });
  const cells = h("div", { class: "cw-scroll", tabindex: "0", role: "region" });
  const details = h("details", { ontoggle: () => { tableKey = null; fillTable(); } }, h("summary", { text: "The numbers as a table" }), cells);
  const form = h("div", { class: "cw-predict" });
  const title = h("p", { class: "cw-title", text: ui.get("title") });
  const view = build(ui);
  root.replaceChildren(title, form, ...view.nodes, lines, details);

  function theme() {
    const next = darkAround(root.parentElement) ? "dark" : "light";
    if (next === ui.theme) return;
    ui.theme = root.dataset.theme = next;
    ui.ink = INKS[next];
    for (const [name, colour] of Object.entries(ui.ink)) root.style.setProperty(`--cw-${name}`, colour);
    ui.paint();
  }
  function fillForm() {
    if (!ui.get("choices").length) return form.replaceChildren();
    const letters = ui.get("choices").map((text, i) => [String.fromCharCode(97 + i), text]);
    const mark = ui.get("prediction");
    if (mark !== null) {
      const text = letters.find(([letter]) => letter === mark)?.[1];
      return form.replaceChildren(h("p", {}, h("b", { text: "Your prediction: " }), `${mark}) ${text}`));
    }
    const done = button("Mark my answer", () => {
      ui.set({ prediction: form.querySelector("input:checked").value });
      (root.querySelector(".cw-stage") ?? root.querySelector("button, select, input, summary")).focus();
    }, { disabled: true });
    const options = letters.map(([value, text]) =>
      h("label", {}, h("input", { type: "radio", name: id, value, onchange: () => (done.disabled = false) }), h("span", { text: `${value}) ${text}` })));
    form.replaceChildren(h("fieldset", {}, h("legend", { text: ui.get("question") }), ...options, done));
  }
  function fillTable() {
    details.hidden = !ui.known();
    if (details.hidden || !details.open) return;
    const { key, caption, head, rows } = view.table();
    if (key === tableKey) return;
    tableKey = key;
    cells.setAttribute("aria-label", caption);
    const row = ([first, ...rest]) => h("tr", {}, h("th", { scope: "row", text: first }), ...rest.map((text) => h("td", { text })));
    const top = h("tr", {}, ...head.map((text) => h("th", { scope: "col", text })));
    cells.replaceChildren(h("table", {}, h("caption", { text: caption }), h("thead", {}, top), h("tbody", {}, ...rows.map(row))));
  }
  function draw() {
    const all = full;
    frame = 0;
    full = false;
    view.draw(all);
    const texts = ui.known() ? view.status() : ["Mark your prediction above: then the numbers appear."];
    while (lines.children.length < texts.length) lines.append(h("p"));
    // Only what changed is written, so that a screen reader says only that.
    [...lines.children].forEach((p, i) => p.textContent !== (texts[i] ?? "") && (p.textContent = texts[i] ?? ""));
    fillTable();
    root.dataset.frames = +(root.dataset.frames ?? 0) + 1;
    root.dataset.ready = "1";
  }
  // Jupyter would take arrow keys and letters for its own, Notebook on the way down already: so keys are caught at
  // the window. Saving and the like, and Shift+Enter, stay with Jupyter.
  const keys = (e) => {
    const target = e.composedPath()[0];
    if (!root.contains(target) || ((e.ctrlKey || e.metaKey) && e.key.length === 1) || (e.shiftKey && e.key === "Enter")) return;
    e.stopPropagation();
    handlers.get(target)?.(e);
  };
  window.addEventListener("keydown", keys, true);
  let width = 0; // text that wraps changes the height alone, and nothing has to be drawn anew
  const sizes = new ResizeObserver(() => { if (width !== root.clientWidth) { width = root.clientWidth; ui.paint(); } });
  sizes.observe(root);
  const themes = new MutationObserver(theme), scheme = matchMedia("(prefers-color-scheme: dark)");
  for (const e of [document.body, document.documentElement]) themes.observe(e, { attributes: true });
  scheme.addEventListener("change", theme);
  ui.on(["prediction"], () => { fillForm(); ui.paint(); });
  fillForm();
  theme();
  ui.paint();
  return () => {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    themes.disconnect();
    scheme.removeEventListener("change", theme);
    window.removeEventListener("keydown", keys, true);
    undo.forEach((f) => f());
    root.replaceChildren();
  };
}
