// Attention over the patches of an image: raw weights and rollout side by side, and how far they agree.

// The row of a query in one layer, of one head or (head = -1) the mean of all; weights (layers, heads, n, n), flat.
export function rawRow(weights, layer, head, query, heads, n) {
  const row = new Float64Array(n), few = head < 0 ? heads : 1;
  for (let x = Math.max(head, 0); x < Math.max(head, 0) + few; x++)
    for (let j = 0; j < n; j++) row[j] += weights[((layer * heads + x) * n + query) * n + j] / few;
  return row;
}

// Patches to compare: all but the query's own. Token 0 is the class token.
const compared = (row, query) => Float64Array.from(row).filter((_, j) => j > 0 && j !== query);

// Pearson's correlation of two rows over the patches, the query's own left out; NaN where a map is constant.
export function agreement(a, b, query) {
  const centred = [a, b].map((row) => {
    const x = compared(row, query), mean = x.reduce((s, v) => s + v, 0) / x.length;
    return x.length < 2 || Math.max(...x) - Math.min(...x) < 1e-12 ? x.fill(NaN) : x.map((v) => v - mean);
  });
  const dot = (x, y) => x.reduce((s, v, i) => s + v * y[i], 0), [x, y] = centred;
  return x.length ? dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y)) : NaN;
}

// Shares of the largest weight among the patches that are compared.
export function amounts(row, query) {
  const top = Math.max(0, ...compared(row, query));
  return Float64Array.from(row.slice(1), (x) => (top > 0 ? Math.min(1, Math.max(0, x / top)) : 0));
}

// A pixel (red, green, blue) under a map: the more, the brighter and yellower. The picture turns grey and darker as
// the map gets stronger, so that more weight is brighter on every pixel.
export function tint(pixel, amount, strength) {
  const grey = 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2], a = 0.85 * strength * amount;
  return [1, 0.83, 0.3].map((glow, c) => (pixel[c] * (1 - strength) + grey * strength) * (1 - 0.5 * strength) * (1 - a) + glow * a);
}

function build(ui) {
  const [height, width] = ui.get("pixels"), p = ui.get("patch"), rows = height / p, cols = width / p, n = 1 + rows * cols;
  const { image, weights, rollout } = ui.data, layers = ui.get("layers"), heads = weights.length / (layers * n * n);
  const channels = image.length / (height * width), focus = { cell: null };
  const token = (j) => (j ? `patch row ${Math.floor((j - 1) / cols)}, column ${(j - 1) % cols}` : "class token");
  const cellOf = (j) => (j ? { i: Math.floor((j - 1) / cols), j: (j - 1) % cols } : null);
  const pick = (j) => ui.set({ query: j === ui.get("query") ? 0 : j });
  let now;
  ui.root.classList.add("cw-lead");
  function compute() {
    const query = ui.get("query"), raw = rawRow(weights, ui.get("layer"), ui.get("head"), query, heads, n);
    const rolled = rollout.slice(query * n, query * n + n);
    now = { query, maps: [raw, rolled], same: agreement(raw, rolled, query), n: compared(raw, query).length };
  }
  const names = () => [`Raw, layer ${ui.get("layer")}, ${ui.get("head") < 0 ? `mean of ${heads} heads` : `head ${ui.get("head")}`}`, "Rollout, all layers"];

  const count = (size, word) => Array.from({ length: size }, (_, i) => [i, `${word} ${i}`]);
  const query = choose("Query", Array.from({ length: n }, (_, j) => [j, token(j)]), (value) => ui.set({ query: +value }));
  const layer = choose("Raw attention of", count(layers, "layer"), (value) => ui.set({ layer: +value }));
  const head = choose("head", [[-1, "mean of all"], ...count(heads, "head")], (value) => ui.set({ head: +value }));
  const show = choose("Show", [["both", "both maps"], ["raw", "raw attention"], ["rollout", "rollout"]], (value) => ui.set({ show: value }));
  const strength = h("input", { type: "range", min: "0", max: "1", step: "0.05", "aria-label": "strength of the map" });
  strength.addEventListener("input", () => ui.set({ overlay: +strength.value }));
  const toClass = button("Class token", () => ui.set({ query: 0 }));

  const panels = [0, 1].map((which) => {
    const name = h("p", { class: "cw-mapname" }), base = h("canvas", { "aria-hidden": "true" }), over = h("canvas", { "aria-hidden": "true" });
    const stage = h("div", {
      class: "cw-stage", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`,
      "aria-label": `${which ? "Rollout" : "Raw attention"} over ${rows} rows and ${cols} columns of patches. Arrow keys, Home and End move; Enter or Space makes a patch the query, Escape the class token.`,
    }, base, over);
    const box = h("div", { class: "cw-scroll" }, stage), node = h("div", {}, name, box), small = document.createElement("canvas");
    let cell = 0, ratio = 1, drawn;
    small.width = width;
    small.height = height;
    function layout() {
      cell = Math.max(24, Math.min(Math.floor((box.clientWidth - 4) / cols), Math.floor(340 / rows), 85));
      ratio = Math.min(window.devicePixelRatio || 1, 3);
      const size = { width: cols * cell, height: rows * cell };
      for (const e of [stage, base, over]) for (const side in size) e.style[side] = `${size[side]}px`;
      for (const e of [base, over]) for (const side in size) e[side] = Math.round(size[side] * ratio);
    }
    function context(canvas) {
      const c = canvas.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, cols * cell, rows * cell);
      return c;
    }
    function drawBase() {
      const c = context(base), s = small.getContext("2d"), data = s.createImageData(width, height), known = ui.known();
      const share = known ? amounts(now.maps[which], now.query) : new Float64Array(n - 1), strong = known ? ui.get("overlay") : 0;
      for (let t = 0; t < height * width; t++) {
        const pixel = [0, 1, 2].map((x) => image[t * channels + (channels === 3 ? x : 0)]);
        const at = Math.floor(t / width / p) * cols + Math.floor((t % width) / p);
        data.data.set([...tint(pixel, share[at], strong).map((x) => Math.round(255 * x)), 255], 4 * t);
      }
      s.putImageData(data, 0, 0);
      c.imageSmoothingEnabled = false;
      c.drawImage(small, 0, 0, cols * cell, rows * cell);
      c.fillStyle = "#7d8590";
      for (let j = 1; j < cols; j++) c.fillRect(j * cell, 0, 1, rows * cell);
      for (let i = 1; i < rows; i++) c.fillRect(0, i * cell, cols * cell, 1);
      if (!known || cell < 44 || !strong) return;
      c.font = "12px system-ui, sans-serif";
      c.textAlign = "center";
      c.textBaseline = "alphabetic";
      c.lineJoin = "round";
      for (let j = 1; j < n; j++) {
        const at = cellOf(j), x = now.maps[which][j], text = [x > 0 && x < 0.005 ? "<.01" : fmt(x, 2), (at.j + 0.5) * cell, (at.i + 1) * cell - 5];
        c.lineWidth = 3;
        c.strokeStyle = "#000";
        c.strokeText(...text);
        c.fillStyle = "#fff";
        c.fillText(...text);
      }
    }
    function outline(c, at, dashed) {
      for (const [colour, wide] of [["#000", 6], ["#fff", 3]]) {
        c.strokeStyle = colour;
        c.lineWidth = wide;
        c.setLineDash(dashed && colour === "#fff" ? [5, 4] : []);
        c.strokeRect(at.j * cell + 3, at.i * cell + 3, cell - 6, cell - 6);
      }
    }
    function draw(all) {
      node.hidden = ui.get("show") === ["rollout", "raw"][which];
      if (node.hidden) return;
      const key = `${box.clientWidth} ${window.devicePixelRatio}`;
      if (key !== drawn) { layout(); all = true; }
      drawn = key;
      name.textContent = names()[which];
      if (all) drawBase();
      const c = context(over), own = cellOf(now.query);
      if (own) outline(c, own);
      if (focus.cell && (focus.cell.i !== own?.i || focus.cell.j !== own?.j)) outline(c, focus.cell, true);
    }
    const under = (e) => { const r = stage.getBoundingClientRect(); return cellAt(e.clientX - r.left, e.clientY - r.top, { left: 0, top: 0, cell, rows, cols }); };
    const act = ({ i, j }) => pick(1 + i * cols + j);
    const move = (at) => { focus.cell = at; ui.paint(false); };
    stage.addEventListener("pointermove", (e) => move(under(e)));
    stage.addEventListener("pointerleave", () => move(null));
    stage.addEventListener("click", (e) => { const at = under(e); if (at) act(at); });
    let left = null;
    stage.addEventListener("focus", () => stage.matches(":focus-visible") && move(left ?? cellOf(now.query) ?? { i: 0, j: 0 }));
    stage.addEventListener("blur", () => { left = focus.cell; move(null); });
    ui.keys(stage, (e) => {
      const at = focus.cell ?? cellOf(now.query) ?? { i: 0, j: 0 }, to = moveCell(at, e.key, rows, cols, e.ctrlKey);
      if (to) {
        move(to);
        box.scrollLeft = Math.max(Math.min(box.scrollLeft, to.j * cell), (to.j + 1) * cell - box.clientWidth);
      } else if (e.key === "Enter" || e.key === " ") { move(at); act(at); }
      else if (e.key === "Escape") ui.set({ query: 0 });
      else return;
      e.preventDefault();
    });
    return { node, draw };
  });
  function changed() {
    compute();
    query.list.value = now.query;
    layer.list.value = ui.get("layer");
    head.list.value = ui.get("head");
    show.list.value = ui.get("show");
    strength.value = ui.get("overlay");
    toClass.setAttribute("aria-pressed", String(now.query === 0));
    ui.paint();
  }
  ui.on(["query", "layer", "head", "show", "overlay"], changed);
  changed();

  const told = (j) => `raw attention ${fmt(now.maps[0][j], 4)}, rollout ${fmt(now.maps[1][j], 4)}`;
  const best = (row) => {
    let top = -1;
    for (let j = 1; j < n; j++) if (j !== now.query && (top < 0 || row[j] > row[top])) top = j;
    return top;
  };
  function aboutCell() {
    if (focus.cell) return `Query: ${token(now.query)}. It reads ${token(1 + focus.cell.i * cols + focus.cell.j)} with: ${told(1 + focus.cell.i * cols + focus.cell.j)}.`;
    return `Query: ${token(now.query)}. It reads the class token with: ${told(0)}. Point at a patch for its numbers.`;
  }
  function aboutMaps() {
    if (!now.n) return "There is only one patch: nothing to compare.";
    const [a, b] = now.maps.map(best), r = Number.isNaN(now.same) ? "none, as one map is constant" : fmt(now.same, 2);
    const most = a === b ? `Both name ${token(a)} as the most important one` : `They name different patches as the most important one: ${token(a)} (raw), ${token(b)} (rollout)`;
    return `Correlation of the two maps over ${now.n} patches${now.query ? " (without its own)" : ""}: ${r}. ${most}.`;
  }
  return {
    nodes: [
      h("div", { class: "cw-bar", role: "group", "aria-label": "query" }, query.node, toClass),
      h("div", { class: "cw-bar", role: "group", "aria-label": "maps" }, layer.node, head.node, show.node,
        h("label", { class: "cw-strength" }, h("span", { text: "picture" }), strength, h("span", { text: "map" }))),
      h("p", { class: "cw-muted", text: "Click a patch to make it the query. The brighter and yellower a patch, the more the query reads of it; each map has a scale of its own." }),
      h("div", { class: "cw-row" }, ...panels.map((x) => x.node)),
    ],
    draw: (all) => panels.forEach((x) => x.draw(all)),
    status: () => [aboutMaps(), aboutCell(), "Neither map is an explanation: a map shows where information came from, not what it was used for. Take a patch away and measure."],
    table: () => ({
      key: `${now.query} ${ui.get("layer")} ${ui.get("head")}`, caption: `What the ${token(now.query)} reads`,
      head: ["token", ...names()],
      rows: Array.from({ length: n }, (_, j) => [token(j), fmt(now.maps[0][j], 4), fmt(now.maps[1][j], 4)]),
    }),
  };
}

export default widget({ packed: ["image", "weights", "rollout"], inputs: ["pixels", "patch", "layers"], build });
