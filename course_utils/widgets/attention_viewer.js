// Attention weights of trained heads: look at a cell, pin a query, compare two heads.

// The weights of one query of one head: weights (heads, n, m) in one flat array.
export const rowOf = (weights, head, i, n, m) => weights.slice((head * n + i) * m, (head * n + i + 1) * m);

// The keys with the largest weights, the first of equals first.
export const topKeys = (row, count) => Array.from(row.keys()).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);

// Over how many keys the queries of a head spread, in the median; queries without any weight do not count.
export function typicalSpread(weights, head, n, m) {
  const rows = Array.from({ length: n }, (_, i) => rowOf(weights, head, i, n, m));
  return median(rows.filter((row) => row.some((x) => x > 0)).map(spread));
}

// The share of the weight that lies elsewhere: half the sum of the differences.
export const distance = (a, b) => a.reduce((sum, x, j) => sum + Math.abs(x - b[j]), 0) / 2;

const BARS = 6, MANY = 32; // among many keys each weight is small: then the colour shows its square root

function build(ui) {
  const [rows, cols] = [ui.get("query_words"), ui.get("key_words")], n = rows.length, m = cols.length;
  const { weights, hidden } = ui.data, heads = weights.length / (n * m), focus = { cell: null };
  const names = Array.from({ length: heads }, (_, head) => [head, `head ${head}`]);
  const row = (head, i) => rowOf(weights, head, i, n, m), spreads = [];
  const pinned = () => (ui.get("query") < 0 ? null : { i: ui.get("query"), j: ui.get("key") });
  const pin = (cell) => ui.set({ query: cell?.i ?? -1, key: cell?.j ?? -1 });
  const shade = (x) => (m > MANY ? Math.sqrt(x) : x);
  const shown = () => [ui.get("head"), ui.get("other")].filter((head) => head >= 0);
  const at = () => focus.cell ?? pinned();

  const head = choose("Show", names, (value) => ui.set({ head: +value }));
  const other = choose("compare with", [[-1, "no other head"], ...names], (value) => ui.set({ other: +value }));
  const numbered = (words) => words.map((w, i) => [i, `${i} ${w}`]);
  const query = choose("Query", [[-1, "none pinned"], ...numbered(rows)], (value) => pin(+value < 0 ? null : { i: +value, j: Math.max(0, ui.get("key")) }));
  const key = choose("key", numbered(cols), (value) => pin({ i: Math.max(0, ui.get("query")), j: +value }));

  // One panel a head: its name, its matrix, bars for the largest weights of the row.
  const panels = [0, 1].map((which) => {
    const mine = () => shown()[which], name = h("p", { class: "cw-muted" });
    const map = heatmap(ui, {
      rows, cols, label: which ? "Weights of the other head" : "Attention weights", does: "pins a query and a key; Escape lets go",
      focus, pin: pinned, min: 2, max: 40,
      value: (i, j) => (hidden[i * m + j] ? null : ui.known() ? shade(weights[(mine() * n + i) * m + j]) : undefined),
      text: (i, j) => fmt(weights[(mine() * n + i) * m + j], 2),
      act: (cell) => pin(cell.i === ui.get("query") && cell.j === ui.get("key") ? null : cell),
      leave: () => pin(null),
    });
    const bars = Array.from({ length: Math.min(BARS, m) }, () => h("li", {}, h("span"), h("i"), h("span")));
    const list = h("ol", { class: "cw-top", "aria-hidden": "true" }, ...bars);
    const node = h("div", { style: `flex-basis:${Math.max(260, 2 * m + 110)}px` }, name, map.node, list); // side by side if it fits
    function draw(all) {
      node.hidden = mine() === undefined;
      if (node.hidden) return;
      name.textContent = `head ${mine()}${m > MANY ? " (colour: square root of the weight)" : ""}`;
      map.draw(all);
      list.hidden = !at() || !ui.known();
      if (list.hidden) return;
      const values = row(mine(), at().i);
      topKeys(values, BARS).forEach((j, place) => {
        const [word, bar, number] = bars[place].children;
        word.textContent = cols[j];
        bar.style.width = `${values[j] * 45}%`;
        number.textContent = fmt(values[j]);
        bars[place].classList.toggle("cw-here", j === at().j);
      });
    }
    return { node, draw };
  });
  function lists() {
    head.list.value = ui.get("head");
    other.list.value = ui.get("other");
    query.list.value = ui.get("query");
    key.list.value = Math.max(0, ui.get("key"));
  }
  ui.on(["head", "other"], () => { lists(); ui.paint(); });
  ui.on(["query", "key"], () => { lists(); ui.paint(false); });
  lists();

  function aboutCell() {
    if (!at()) return "Point at a cell, or choose a query.";
    const { i, j } = at(), values = shown().map((hd) => `${fmt(row(hd, i)[j], 4)} in head ${hd}`).join(", ");
    return `Query “${rows[i]}”, key “${cols[j]}”: ${hidden[i * m + j] ? "hidden by the mask, " : ""}weight ${values}.`;
  }
  function aboutRow() {
    const typical = shown().map((hd) => `${fmt((spreads[hd] ??= typicalSpread(weights, hd, n, m)), 1)} (head ${hd})`).join(", ");
    const general = `A typical query spreads over ${typical} of ${m} keys`;
    if (!at()) return `${general}.`;
    const two = shown().map((hd) => row(hd, at().i));
    const here = shown().map((hd, which) => `${fmt(spread(two[which]), 1)} (head ${hd})`).join(", ");
    return `${general}; this one over ${here}.${two[1] ? ` The two heads put ${fmt(100 * distance(...two), 0)} % of its weight elsewhere.` : ""}`;
  }
  return {
    nodes: [
      h("div", { class: "cw-bar", role: "group", "aria-label": "heads" }, head.node, other.node),
      h("div", { class: "cw-bar", role: "group", "aria-label": "pinned cell" }, query.node, key.node),
      h("div", { class: "cw-row" }, ...panels.map((p) => p.node)),
    ],
    draw: (all) => panels.forEach((p) => p.draw(all)),
    status: () => [aboutCell(), aboutRow()],
    table() {
      const i = Math.max(0, ui.get("query")), values = names.map(([hd]) => row(hd, i));
      return {
        key: i, caption: `Weights of query “${rows[i]}” in every head`,
        head: ["key", ...names.map(([, name]) => name)],
        rows: cols.map((word, j) => [word, ...values.map((r) => (hidden[i * m + j] ? "hidden" : fmt(r[j], 4)))]),
      };
    },
  };
}

export default widget({ packed: ["weights", "hidden"], inputs: ["query_words", "key_words"], build });
