// A picture of a widget's own on a canvas, as wide as the widget. Part of the shared text. options:
//   label                what it is and what the keys do, for a screen reader
//   height(width)        in pixels
//   draw(c, width, height)   c: the context, cleared, in pixels of the page
//   hover(x, y)          the pointer is there; hover(null) when it leaves
//   act(x, y)            click or tap                    key(event)   true for keys that it takes
export function picture(ui, { label, height, draw, hover = () => {}, act = () => {}, key = () => false }) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const stage = h("div", { class: "cw-stage", tabindex: "0", role: "application", "aria-describedby": `${ui.id}-status`, "aria-label": label }, canvas);
  const at = (f) => (e) => { const r = stage.getBoundingClientRect(); f(e.clientX - r.left, e.clientY - r.top); };
  stage.addEventListener("pointermove", at(hover));
  stage.addEventListener("pointerdown", at(hover));
  stage.addEventListener("pointerleave", () => hover(null));
  stage.addEventListener("click", at(act));
  ui.keys(stage, (e) => key(e) && e.preventDefault());
  return {
    stage,
    draw() {
      const width = stage.clientWidth, tall = Math.round(height(width)), ratio = Math.min(window.devicePixelRatio || 1, 3);
      stage.style.height = canvas.style.height = `${tall}px`;
      canvas.style.width = `${width}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tall * ratio);
      const c = canvas.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.font = "12px system-ui, sans-serif";
      c.textBaseline = "middle";
      draw(c, width, tall);
    },
  };
}

// A text on the canvas; cut to `most` pixels.
export function write(c, text, x, y, colour, align = "left", most = Infinity) {
  let shown = text;
  while (shown.length > 1 && c.measureText(shown).width > most) shown = `${shown.slice(0, shown.endsWith("…") ? -2 : -1)}…`;
  c.fillStyle = colour;
  c.textAlign = align;
  c.fillText(shown, x, y);
}

// A stroke through points [[x, y], …].
export function stroke(c, points, colour, width = 1, dash = []) {
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.setLineDash(dash);
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.stroke();
  c.setLineDash([]);
}
