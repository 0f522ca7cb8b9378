// Keyboard control of tables. Each table is one tab stop. Arrow keys, Home and End move from figure to figure.

const MOVES = {
  ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
};

const buttonsOf = (table) => [...table.querySelectorAll("button")];

function rove(table) {
  buttonsOf(table).forEach((button, i) => { button.tabIndex = i ? -1 : 0; });
}

function goTo(table, button) {
  for (const other of table.querySelectorAll("button[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
  // The fixed first column must not cover the figure.
  const scroll = table.closest(".scroll"), pinned = button.closest("tr").querySelector("th");
  const hidden = (pinned?.getBoundingClientRect().right ?? 0) - button.getBoundingClientRect().left;
  if (scroll && button.closest("td") && hidden > 0) scroll.scrollLeft -= hidden;
}

// Returns the next figure in this direction. Cells without a figure and hidden rows are skipped.
function next(button, [down, right]) {
  const rows = [...button.closest("table").rows];
  let y = rows.indexOf(button.closest("tr")), x = button.closest("td, th").cellIndex;
  do {
    y += down;
    x += right;
    const found = rows[y]?.cells[x]?.querySelector("button");
    if (found?.offsetParent) return found;
  } while (rows[y]?.cells[x]);
  return null;
}

function ends(button, { key, ctrlKey }) {
  const all = buttonsOf(ctrlKey ? button.closest("table") : button.closest("tr"));
  return key === "Home" ? all[0] : all.at(-1);
}

document.addEventListener("keydown", (event) => {
  const button = event.target.closest?.("table[role='grid'] button");
  if (!button || event.altKey || event.metaKey) return;
  const found = MOVES[event.key] ? next(button, MOVES[event.key])
    : ["Home", "End"].includes(event.key) ? ends(button, event) : null;
  if (MOVES[event.key] || found) event.preventDefault();
  if (found) goTo(button.closest("table"), found);
});
// After a click on a figure, the Tab key returns to this figure.
document.addEventListener("focusin", ({ target }) => {
  const table = target.closest?.("table[role='grid']");
  if (!table || target.tabIndex === 0) return;
  for (const other of table.querySelectorAll("button[tabindex='0']")) other.tabIndex = -1;
  target.tabIndex = 0;
});

document.querySelectorAll("table[role='grid']").forEach(rove);

// A table without figures that can be opened is a tab stop only if it can be scrolled.
const scrolled = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
document.querySelectorAll(".scroll[tabindex]").forEach((each) => scrolled.observe(each));
