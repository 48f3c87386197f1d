// A labelled slider. Part of the shared text. say(value): the value in words, shown beside it. Give it new values by put(value, max).
export function slider(text, min, max, step, say, onchange) {
  const input = h("input", { type: "range", min, max, step, "aria-label": text, style: "flex:1 1 130px;min-width:0;min-height:28px;margin:0;accent-color:var(--cw-accent)" });
  const shown = h("b", { style: "flex:0 0 auto;min-width:4.5em" });
  const put = (value, most = max) => {
    input.max = most;
    input.value = value;
    shown.textContent = say(value);
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.addEventListener("input", () => onchange(+input.value));
  const name = h("span", { text, style: "flex:0 0 auto;min-width:7.5em" });
  return { put, input, node: h("label", { style: "display:flex;flex-wrap:wrap;flex:1 1 320px" }, name, input, shown) };
}
