// A widget without Jupyter: the same module in a plain page. Stands behind the module's text; the state follows it.
function host(widget, state) {
  const listeners = {};
  const model = {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const f of [...(listeners[`change:${name}`] ?? [])]) f();
    },
    save_changes() {},
    on(event, f) { (listeners[event] ??= []).push(f); },
    off(event, f) { listeners[event] = (listeners[event] ?? []).filter((g) => g !== f); },
  };
  globalThis.courseWidget = { widget, model };
  let frame = null;
  try { frame = window.frameElement; } catch { /* a page of another origin is around it */ }
  const fit = () => { if (frame) frame.style.height = `${document.documentElement.offsetHeight + 4}px`; };
  widget.render({ model, el: document.getElementById("widget") }).then(() => {
    if (!frame) return;
    new ResizeObserver(fit).observe(document.documentElement);
    fit();
    // The still picture has done its work where the widget lives.
    if (frame.previousElementSibling) frame.previousElementSibling.style.display = "none";
  });
}
// Bytes travel as {"$bytes": "…"}.
function revive(key, value) {
  if (value === null || typeof value !== "object" || !("$bytes" in value)) return value;
  return new DataView(Uint8Array.from(atob(value.$bytes), (c) => c.charCodeAt(0)).buffer);
}
