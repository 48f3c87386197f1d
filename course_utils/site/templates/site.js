// The theme, at once, so that nothing flashes: the reader's choice, else that of the system.
const dark = matchMedia("(prefers-color-scheme: dark)");
const stored = { // pages opened from a disk may have no storage
  get() { try { return localStorage.getItem("course-theme"); } catch { return null; } },
  set(theme) { try { theme ? localStorage.setItem("course-theme", theme) : localStorage.removeItem("course-theme"); } catch { /* for this page only */ } },
};
let chosen = stored.get();
const system = () => (dark.matches ? "dark" : "light");

function showTheme() {
  const theme = chosen ?? system();
  document.documentElement.dataset.theme = theme;
  // A widget looks at the page around its frame when something about its own page changes.
  for (const frame of document.querySelectorAll("iframe")) {
    frame.contentDocument?.documentElement?.setAttribute("data-theme", theme);
  }
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
}

// What is wider than the page scrolls in its own box, and must then be reachable by keyboard.
function markWide() {
  for (const box of document.querySelectorAll(".wide")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    if (scrolls === box.hasAttribute("tabindex")) continue;
    box.toggleAttribute("tabindex", scrolls);
    if (scrolls) box.tabIndex = 0;
  }
}

showTheme();
dark.addEventListener("change", showTheme);
addEventListener("storage", () => { chosen = stored.get(); showTheme(); });
addEventListener("DOMContentLoaded", () => {
  showTheme();
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    chosen = theme === system() ? null : theme;
    stored.set(chosen);
    showTheme();
  });
  for (const frame of document.querySelectorAll("iframe")) frame.addEventListener("load", showTheme);
});
addEventListener("load", () => {
  showTheme();
  markWide();
  new ResizeObserver(markWide).observe(document.body);
  document.addEventListener("toggle", markWide, true);
});
