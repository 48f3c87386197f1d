// A matrix of cells on a canvas, one row a query and one column a key, with cursor, pin and keyboard.
// Part of the shared text. options:
//   rows, cols   words beside and above            label     what the matrix is, for a screen reader
//   value(i, j)  0..1 for the colour; null = hidden by a mask, drawn hatched; undefined = not to be shown yet
//   text(i, j)   what is written in a cell, where it is large enough
//   focus        { cell } shared between matrices that move together          pin()     the pinned cell or null
//   act(cell, first)  click, tap, Enter, Space    drag      act again for every cell a pressed mouse enters
//   leave()      Escape                           side      { title, text(i), amount(i) } bars right of the rows
//   min, max     pixels a cell; it scrolls where the smallest cells do not fit
export function heatmap(ui, options) {
  const { rows, cols, focus, act, pin = () => null, min = 2, max = 40, side } = options;
  const n = rows.length, m = cols.length, LETTERS = 12, FONT = `${LETTERS}px system-ui, sans-serif`;
  const base = h("canvas", { "aria-hidden": "true" }), over = h("canvas", { "aria-hidden": "true" });
  const stage = h("div", {
    class: "cw-stage", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`,
    "aria-label": `${options.label}: ${n} queries in rows, ${m} keys in columns. Arrow keys, Home and End move; Enter or Space ${options.does}.`,
  }, base, over);
  const node = h("div", { class: "cw-scroll" }, stage);
  const small = document.createElement("canvas");
  let g = null, ratio = 1, drawn;
  const map = { node, stage, draw };

  function layout() {
    const c = base.getContext("2d");
    c.font = FONT;
    const wide = (words) => Math.min(92, Math.max(...words.map((w) => c.measureText(w).width)));
    const left = Math.ceil(wide(rows)) + 10, right = side ? 84 : 6;
    const room = node.clientWidth - left - right;
    const cell = Math.max(min, Math.min(max, Math.floor(room / m)));
    const flat = wide(cols) <= cell - 4;
    const top = flat ? LETTERS + 10 : Math.ceil(wide(cols)) + 10;
    g = { left, top: side ? Math.max(top, LETTERS + 10) : top, cell, rows: n, cols: m, flat, width: left + m * cell + right };
    g.height = g.top + n * cell + 6;
    ratio = Math.min(window.devicePixelRatio || 1, 3);
    stage.style.width = `${g.width}px`;
    stage.style.height = `${g.height}px`;
    for (const canvas of [base, over]) {
      canvas.width = Math.round(g.width * ratio);
      canvas.height = Math.round(g.height * ratio);
      canvas.style.width = stage.style.width;
      canvas.style.height = stage.style.height;
    }
  }
  function context(canvas) {
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, g.width, g.height);
    c.font = FONT;
    c.textBaseline = "middle";
    return c;
  }
  const box = (i, j) => [g.left + j * g.cell, g.top + i * g.cell, g.cell, g.cell];
  function clip(c, word) {
    let text = word;
    while (text.length > 1 && c.measureText(text).width > 92) text = text.slice(0, -2) + "…";
    return text;
  }
  function word(c, axis, at, colour, erase) {
    const middle = (axis ? g.left : g.top) + (at + 0.5) * g.cell, turned = axis && !g.flat;
    const text = clip(c, (axis ? cols : rows)[at]);
    c.save();
    c.translate(axis ? middle : g.left - 5, axis ? g.top - (turned ? 5 : 10) : middle);
    if (turned) c.rotate(-Math.PI / 2);
    c.textAlign = !axis ? "right" : turned ? "left" : "center";
    if (erase) {
      const w = c.measureText(text).width, x = c.textAlign === "right" ? -w : c.textAlign === "left" ? 0 : -w / 2;
      c.fillStyle = ui.ink.bg;
      c.fillRect(x - 3, -LETTERS / 2 - 2, w + 6, LETTERS + 4);
    }
    c.fillStyle = colour;
    c.fillText(text, 0, 0);
    c.restore();
  }
  function hatching(c) {
    const tile = document.createElement("canvas"), s = Math.round(8 * ratio);
    tile.width = tile.height = s;
    const t = tile.getContext("2d");
    t.fillStyle = ui.ink.hatch;
    t.fillRect(0, 0, s, s);
    t.strokeStyle = ui.ink.rule;
    t.lineWidth = ratio * 1.2;
    for (const shift of [-s, 0, s]) { t.beginPath(); t.moveTo(shift, s); t.lineTo(shift + s, 0); t.stroke(); }
    const pattern = c.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    return pattern;
  }
  function drawBase() {
    const c = context(base), values = new Array(n * m);
    small.width = m;
    small.height = n;
    const s = small.getContext("2d"), image = s.createImageData(m, n);
    const colours = Array.from({ length: 256 }, (_, x) => ramp(x / 255, ui.theme));
    for (let i = 0, t = 0; i < n; i++)
      for (let j = 0; j < m; j++, t++) {
        const x = (values[t] = options.value(i, j));
        image.data.set(colours[x > 0 ? Math.min(255, Math.round(255 * x)) : 0], 4 * t);
        image.data[4 * t + 3] = 255;
      }
    s.putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(small, g.left, g.top, m * g.cell, n * g.cell);
    c.fillStyle = hatching(c);
    for (let i = 0; i < n; i++)
      for (let j = 0, end; j < m; j = end + 1) {
        for (end = j; end < m && values[i * m + end] === null; ) end++;
        if (end > j) c.fillRect(g.left + j * g.cell, g.top + i * g.cell, (end - j) * g.cell, g.cell);
      }
    if (g.cell >= 8) {
      c.fillStyle = g.cell < 20 ? ui.ink.bg : ui.ink.line;
      for (let j = 1; j < m; j++) c.fillRect(g.left + j * g.cell, g.top, 1, n * g.cell);
      for (let i = 1; i < n; i++) c.fillRect(g.left, g.top + i * g.cell, m * g.cell, 1);
    }
    c.lineWidth = 1;
    c.strokeStyle = ui.ink.line;
    c.strokeRect(g.left - 0.5, g.top - 0.5, m * g.cell + 1, n * g.cell + 1);
    if (options.text && g.cell >= 30) {
      c.textAlign = "center";
      values.forEach((x, t) => {
        const text = x === undefined ? "" : options.text(Math.floor(t / m), t % m);
        const [left, top] = box(Math.floor(t / m), t % m);
        // Black or white, whichever stands out more: they meet at a luminance of 0.179.
        c.fillStyle = x === null ? ui.ink.ink : luminance(ramp(x || 0, ui.theme)) > 0.179 ? "#000" : "#fff";
        if (x !== null) c.fillText(text, left + g.cell / 2, top + g.cell / 2);
      });
    }
    const every = Math.ceil((LETTERS + 1) / g.cell);
    for (let i = 0; i < n; i += every) word(c, 0, i, ui.ink.ink);
    for (let j = 0; j < m; j += g.flat ? 1 : every) word(c, 1, j, ui.ink.ink);
    if (side) drawSide(c);
  }
  function drawSide(c) {
    const x = g.left + m * g.cell + 8;
    c.textAlign = "left";
    c.fillStyle = ui.ink.muted;
    c.fillText(side.title, x, g.top - 10);
    for (let i = 0; i < n; i++) {
      const y = g.top + (i + 0.5) * g.cell, share = side.amount(i);
      c.fillStyle = ui.ink.bar;
      if (share > 0) c.fillRect(x, y - 5, 28 * share, 10);
      c.fillStyle = ui.ink.ink;
      c.fillText(side.text(i), x + 32, y);
    }
  }
  function outline(c, [x, y, w, height], dashed) {
    for (const [colour, width] of [[ui.ink.bg, 5], [ui.ink.accent, 2.5]]) {
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.setLineDash(dashed ? [4, 3] : []);
      c.strokeRect(x, y, Math.max(w, 3), Math.max(height, 3));
    }
    c.setLineDash([]);
  }
  function drawOver() {
    const c = context(over), pinned = pin(), at = focus.cell ?? pinned;
    if (pinned) outline(c, [g.left, g.top + pinned.i * g.cell, m * g.cell, g.cell], true);
    if (!at) return;
    outline(c, box(at.i, at.j));
    word(c, 0, at.i, ui.ink.accent, true);
    word(c, 1, at.j, ui.ink.accent, true);
  }
  function draw(all) {
    const key = `${node.clientWidth} ${window.devicePixelRatio}`;
    if (key !== drawn) { layout(); all = true; }
    drawn = key;
    if (all) drawBase();
    drawOver();
  }

  const same = (a, b) => a === b || (a && b && a.i === b.i && a.j === b.j);
  function move(cell) {
    if (same(cell, focus.cell)) return false;
    focus.cell = cell;
    ui.paint(false);
    return true;
  }
  const under = (e) => { const r = stage.getBoundingClientRect(); return g && cellAt(e.clientX - r.left, e.clientY - r.top, g); };
  let pointer = "mouse";
  stage.addEventListener("pointermove", (e) => {
    const cell = under(e);
    if (move(cell) && cell && options.drag && e.buttons === 1 && e.pointerType !== "touch") act(cell, false);
  });
  stage.addEventListener("pointerdown", (e) => {
    pointer = e.pointerType;
    const cell = under(e);
    if (options.drag && cell && pointer !== "touch" && e.button === 0) act(cell, true);
  });
  // A finger acts when it is lifted without having scrolled; a mouse that paints has acted already.
  stage.addEventListener("click", (e) => {
    const cell = under(e);
    if (cell && (!options.drag || pointer === "touch")) act(cell, true);
  });
  stage.addEventListener("pointerleave", () => move(null));
  // Who comes back by keyboard goes on where they were.
  let left = null;
  stage.addEventListener("focus", () => stage.matches(":focus-visible") && move(focus.cell ?? left ?? pin() ?? { i: 0, j: 0 }));
  stage.addEventListener("blur", () => { left = focus.cell; move(null); });
  ui.keys(stage, (e) => {
    const at = focus.cell ?? pin() ?? { i: 0, j: 0 }, to = moveCell(at, e.key, n, m, e.ctrlKey);
    if (to) { move(to); follow(to); }
    else if (e.key === "Enter" || e.key === " ") { move(at); act(at, true); }
    else if (e.key === "Escape" && options.leave) options.leave();
    else return;
    e.preventDefault();
  });
  // Keep the cursor in view where the matrix is wider than its box.
  function follow({ j }) {
    const [x] = box(0, j);
    if (x < node.scrollLeft + g.left) node.scrollLeft = x - g.left;
    else if (x + g.cell > node.scrollLeft + node.clientWidth) node.scrollLeft = x + g.cell - node.clientWidth + 6;
  }
  return map;
}
