// Put words into another order, and compare attention of the shuffled words with shuffled attention.

// Rows of a (n, width) in another order: row i of the result is row order[i].
export function shuffled(a, order, width) {
  const out = new Float64Array(a.length);
  order.forEach((from, i) => out.set(a.slice(from * width, from * width + width), i * width));
  return out;
}

// x (n, d), W_q and W_k (d, dk), W_v (d, dv): the outputs (n, dv) of self-attention.
export function selfAttention(x, W_q, W_k, W_v, n, d, dk, dv) {
  return attention(matmul(x, W_q, n, d, dk), matmul(x, W_k, n, d, dk), matmul(x, W_v, n, d, dv), null, n, n, dk, dv).out;
}

// f(Px) and P f(x). positions (n, d): added to the words at their places, so after P; null for none.
// rows: the largest difference in each row; most: the largest of all.
export function compare(x, W_q, W_k, W_v, positions, order, n, d, dk, dv) {
  const f = (words) => selfAttention(positions ? words.map((value, t) => value + positions[t]) : words, W_q, W_k, W_v, n, d, dk, dv);
  const left = f(shuffled(x, order, d)), right = shuffled(f(x), order, dv);
  const rows = order.map((_, i) => {
    let most = 0;
    for (let t = i * dv; t < i * dv + dv; t++) most = Math.max(most, Math.abs(left[t] - right[t]));
    return most;
  });
  return { left, right, rows, most: Math.max(...rows) };
}

// Orders after one move: the word at place `from` goes to place `to`, or the two change places.
export function moved(order, from, to) {
  const out = [...order];
  out.splice(to, 0, ...out.splice(from, 1));
  return out;
}
export function swapped(order, a, b) {
  const out = [...order];
  [out[a], out[b]] = [out[b], out[a]];
  return out;
}

const ROUNDING = 1e-12;

function build(ui) {
  const words = ui.get("words"), n = words.length, { x, W_q, W_k, W_v, positions } = ui.data;
  const d = x.length / n, dk = W_q.length / d, dv = W_v.length / d;
  let now, drawn, picked = -1, said = "", dragged = null;
  const order = () => ui.get("order"), on = () => ui.get("with_positions");
  const compute = () => { now = compare(x, W_q, W_k, W_v, on() ? positions : null, order(), n, d, dk, dv); };
  compute();
  const tell = (next, text) => {
    ui.set({ order: next });
    said = text; // after the change, which clears what was said of the order before
  };
  const name = (w) => `“${words[w]}”`;
  function move(w, to) {
    const from = order().indexOf(w), place = Math.max(0, Math.min(n - 1, to));
    if (place !== from) tell(moved(order(), from, place), `${name(w)} is now at place ${place + 1} of ${n}.`);
  }
  function pick(w) {
    if (picked < 0) picked = w;
    else {
      const a = order().indexOf(picked), b = order().indexOf(w);
      if (a !== b) tell(swapped(order(), a, b), `${name(picked)} and ${name(w)} have changed places.`);
      picked = -1;
    }
    ui.paint();
  }
  const same = (p) => p.every((w, i) => w === i);

  // ---- The words: drag them, move them by Alt and arrows, or choose two that change places ----
  const place = words.map(() => h("small")), added = words.map(() => h("small"));
  const chips = words.map((word, w) => {
    const chip = button("", () => !dragged && pick(w), { class: "cw-chip" });
    chip.append(place[w], h("span", { text: word }), added[w]);
    ui.keys(chip, (e) => {
      const at = order().indexOf(w), step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[e.key];
      const to = step ? at + step : e.key === "Home" ? 0 : e.key === "End" ? n - 1 : null;
      if (e.key === "Escape") { picked = -1; ui.paint(); }
      if (to === null) return;
      e.preventDefault(); // Alt and an arrow would leave the page
      if (e.altKey) move(w, to);
      else chips[order()[Math.max(0, Math.min(n - 1, to))]].focus();
    });
    return chip;
  });
  const row = h("div", { class: "cw-bar cw-chips", role: "group", "aria-label": "words in their order" });
  // In the order of the page, so that Tab follows what is seen; a chip that is moved keeps the focus.
  function arrange() {
    const here = chips.find((chip) => chip === document.activeElement), wanted = order().map((w) => chips[w]);
    if (wanted.every((chip, i) => row.children[i] === chip)) return;
    row.replaceChildren(...wanted);
    here?.focus();
  }
  row.addEventListener("pointerdown", (e) => {
    const w = chips.indexOf(e.target.closest(".cw-chip"));
    dragged = null;
    if (w < 0 || e.button) return;
    const from = [e.clientX, e.clientY];
    const follow = (to) => {
      if (!dragged && Math.hypot(to.clientX - from[0], to.clientY - from[1]) < 5) return;
      if (!dragged) row.setPointerCapture(e.pointerId);
      dragged = chips[w];
      dragged.classList.add("cw-dragged");
      const at = order().indexOf(w);
      order().forEach((other, i) => {
        const box = chips[other].getBoundingClientRect(), middle = box.left + box.width / 2;
        // Beyond its middle only: else two words of different width would change places again and again.
        const beyond = i > at ? to.clientX > middle || box.top > chips[w].getBoundingClientRect().bottom : to.clientX < middle || box.bottom < chips[w].getBoundingClientRect().top;
        if (other !== w && to.clientY > box.top && to.clientY < box.bottom && to.clientX > box.left - 8 && to.clientX < box.right + 8 && beyond) { move(w, i); arrange(); }
      });
    };
    const end = () => {
      row.removeEventListener("pointermove", follow);
      dragged?.classList.remove("cw-dragged");
      setTimeout(() => { dragged = null; }); // after the click that ends a drag
    };
    row.addEventListener("pointermove", follow);
    for (const kind of ["pointerup", "pointercancel"]) row.addEventListener(kind, end, { once: true });
  });

  const toggle = button("Positions", () => ui.set({ with_positions: !on() }));
  const tools = h("div", { class: "cw-bar", role: "group", "aria-label": "order and positions" }, toggle,
    button("Reverse", () => tell([...order()].reverse(), "The order is reversed.")),
    button("Original order", () => tell(words.map((_, i) => i), "The words stand in their original order.")));

  // ---- f(Px) beside P f(x) ----
  const claim = h("p", { class: "cw-claim" });
  function matrix(values, low, high, mark) {
    const cells = order().flatMap((w, i) => [
      h("span", { class: "cw-name", text: words[w] }),
      ...Array.from({ length: dv }, (_, c) => {
        const t = i * dv + c, cell = h("span", { class: "cw-cell" });
        if (ui.known()) {
          const colour = ramp((values[t] - low) / (high - low || 1), ui.theme);
          cell.textContent = fmt(values[t]);
          cell.style.background = `rgb(${colour})`;
          cell.style.color = luminance(colour) > 0.179 ? "#000" : "#fff";
        }
        return cell;
      }),
      h("span", { class: "cw-mark", text: !mark || !ui.known() ? "" : now.rows[i] < ROUNDING ? "=" : "≠" }),
    ]);
    return h("div", { class: "cw-cells", style: `grid-template-columns: minmax(3em, auto) repeat(${dv}, minmax(3.4em, 5em)) 1.4em` }, ...cells);
  }
  const panel = (title, text) => {
    const holder = h("div", { class: "cw-scroll", tabindex: "0", role: "group", "aria-label": title });
    return { holder, node: h("div", {}, h("b", { text: title }), h("p", { class: "cw-muted", text }), holder) };
  };
  const first = panel("f(Px)", "first shuffle the words, then attention"), second = panel("P f(x)", "first attention, then shuffle its rows");
  const verdict = () => (same(order()) ? "nothing is shuffled yet" : now.most < ROUNDING ? "equal, but for rounding" : "not equal");
  ui.on(["order", "with_positions", "prediction"], () => { said = ""; compute(); ui.paint(); });
  return {
    nodes: [
      h("p", { class: "cw-muted", text: "Drag a word to another place, or choose two words to swap them. By keyboard: Alt + arrow moves a word, arrows go from word to word." }),
      row, tools, claim, h("div", { class: "cw-row" }, first.node, second.node),
    ],
    draw() {
      // Elements that are made anew for nothing are painted anew, and not always to the same pixels.
      const next = `${order()} ${on()} ${picked} ${ui.known()} ${ui.theme}`;
      if (next === drawn) return;
      drawn = next;
      arrange();
      order().forEach((w, i) => {
        place[w].textContent = `${i + 1}`;
        added[w].textContent = on() ? `+ p${i + 1}` : "";
        chips[w].setAttribute("aria-pressed", String(picked === w));
        chips[w].setAttribute("aria-label", `${words[w]}, place ${i + 1} of ${n}, originally ${w + 1}`);
      });
      toggle.textContent = `Positions: ${on() ? "on" : "off"}`;
      toggle.setAttribute("aria-pressed", String(on()));
      claim.textContent = ui.known() ? `max |f(Px) − P f(x)| = ${now.most === 0 ? "0.0" : fmt(now.most)}: ${verdict()}` : "max |f(Px) − P f(x)| = ?";
      claim.classList.toggle("cw-differs", ui.known() && now.most >= ROUNDING);
      const both = [...now.left, ...now.right], low = Math.min(...both), high = Math.max(...both);
      first.holder.replaceChildren(matrix(now.left, low, high, true));
      second.holder.replaceChildren(matrix(now.right, low, high));
    },
    status() {
      const differ = order().filter((_, i) => now.rows[i] >= ROUNDING).map(name);
      return [
        said || (picked < 0 ? "" : `${name(picked)} is chosen: choose the word that it changes places with.`),
        `Order: ${order().map((w) => words[w]).join(" ")}. Positions ${on() ? "on: each place adds its own vector" : "off"}. Largest difference between f(Px) and P f(x): ${fmt(now.most)}, ${verdict()}.`,
        differ.length ? `The outputs of ${differ.join(", ")} depend on the order.` : same(order()) ? "" : "Each output row has moved with its word and is otherwise the same.",
      ];
    },
    table: () => {
      const names = (of) => Array.from({ length: dv }, (_, c) => `${of}, column ${c + 1}`);
      const cells = (values, i) => Array.from(values.subarray(i * dv, i * dv + dv), (value) => fmt(value, 4));
      return {
        key: `${order()} ${on()}`, caption: `Outputs, row by row, positions ${on() ? "on" : "off"}`,
        head: ["word", "place", "originally", ...names("f(Px)"), ...names("P f(x)"), "largest difference"],
        rows: order().map((w, i) => [words[w], `${i + 1}`, `${w + 1}`, ...cells(now.left, i), ...cells(now.right, i), fmt(now.rows[i])]),
      };
    },
  };
}

export default widget({ packed: ["x", "W_q", "W_k", "W_v", "positions"], inputs: ["words"], build });
