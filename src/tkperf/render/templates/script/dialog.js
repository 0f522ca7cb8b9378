// The dialog that a click on a figure opens. It shows the data from which the figure was computed, and lets the reader
// select other parts of the cell.

const dialog = document.getElementById("cell");
const inDialog = (selector) => dialog.querySelector(selector);
let inUse = false, pushed = false, openedBy = null, turn = 0, returned = Promise.resolve();

async function show(address, by = document.activeElement) {
  const { key, part, mark } = parse(address);
  const mine = ++turn;
  const cell = await open(key);
  await returned;
  if (mine !== turn) return;
  fillCell(key, cell);
  // The Back button of the browser or of a phone closes the dialog, no matter how many parts the reader has looked at.
  if (fromAddress() !== address) {
    history[dialog.open ? "replaceState" : "pushState"](null, "", `#${address}`);
    pushed ||= !dialog.open;
  }
  if (!dialog.open) {
    inUse = true;
    openedBy = by;
    dialog.showModal();
    dialog.scrollTop = 0;
  }
  await showScope(key, cell, scopeOf(cell, part), mark);
}

// Fills in the contents that are the same for every part of the cell.
function fillCell(key, cell) {
  if (dialog.dataset.cell === key) return;
  dialog.dataset.cell = key;
  inDialog("#cell-words").textContent = cell.words;
  inDialog("pre").textContent = cell.job;
  inDialog("#cell-job").hidden = !cell.job;
  fillTable(inDialog("#cell-rounds"), cell.rounds);
  fillTable(inDialog("#cell-host"), cell.host);
  const select = inDialog("#cell-scope");
  select.replaceChildren(...cell.scopes.map((scope) => new Option(scope.words, scope.key)));
  const apart = cell.apart?.numbers ?? [];
  if (apart.length > 1) {
    const each = document.createElement("optgroup");
    each.label = `Each ${cell.apart.name}`;
    each.append(...apart.map((number) => new Option(`${cell.apart.name} ${number.toLocaleString("en")}`, String(number))));
    select.append(each);
  }
  inDialog(".shown").hidden = select.options.length < 2;
}

// Returns a latency with the unit that suits the value, like format_latency in units.py.
function sayLatency(us) {
  const [length, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${(us / length).toLocaleString("en", { maximumSignificantDigits: 4 })} ${unit}`;
}

async function showScope(key, cell, scope, mark) {
  const mine = ++turn;
  delete dialog.dataset.shown;
  inDialog("h2").textContent = `${cell.title}: ${scope.words}`;
  inDialog("dl").replaceChildren(...scope.facts.flatMap(([name, value]) => {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    return [term, text];
  }));
  const select = inDialog("#cell-scope");
  select.value = scope.key;
  // The buttons only look disabled. A button that is really disabled would lose the focus of a keyboard user.
  inDialog("#cell-before").ariaDisabled = select.selectedIndex === 0;
  inDialog("#cell-after").ariaDisabled = select.selectedIndex === select.options.length - 1;
  const us = scope.latencies[mark];
  const clicked = us > 0 ? [{ mark, us }] : [];
  inDialog("#cell-clicked").hidden = !clicked.length;
  inDialog("#cell-clicked").textContent = clicked.length ? `Marked in the histogram: ${mark}, ${sayLatency(us)}` : "";
  dialog.dataset.mark = clicked.length ? mark : "";
  // The elements of all charts are created first, because each chart is as wide as its element at this moment.
  const plots = inDialog("#cell-plots");
  plots.replaceChildren();
  const places = [add(plots), add(plots), add(plots), add(plots)];
  await drawSeconds(cell, scope, places.slice(0, 2), () => mine === turn);
  await drawHistograms(cell, scope, clicked, places.slice(2), () => mine === turn);
  if (mine !== turn) return;
  dialog.dataset.part = scope.key;
  dialog.dataset.shown = key;
}

async function drawSeconds(cell, scope, places, wanted) {
  const { first = 0, last = cell.columns.start_s?.length ?? 0 } = scope;
  if (first >= last) {
    places.pop().parentElement.remove();
    places[0].textContent = `No seconds were kept of ${scope.words}.`;
    return;
  }
  const marked = {
    judged: within(cell.window, scope),
    flagged: within(cell.flagged, scope),
    part: cell.parts.filter(({ x }) => x >= (scope.from ?? 0) && x < (scope.to ?? Infinity)),
  };
  for (const name of [cell.rate, "latency"]) {
    if (!wanted()) return;
    const place = places.shift(), spec = cellCharts[name], { series } = spec.usermeta, columns = widthOf(place);
    const datasets = { ...marked, curves: secondsRows(cell, series, columns, scope) };
    const layer = spec.layer.filter(({ data }) => datasets[data.name].length);
    const { view } = await draw(place, { ...spec, datasets, layer }, pictureOf(cell, scope, name));
    await refine(view, cell, series, columns, scope);
  }
}

async function drawHistograms(cell, scope, clicked, places, wanted) {
  const { buckets, marks, words } = scope;
  if (!buckets.length) {
    places.pop().parentElement.remove();
    places[0].textContent = `No latency histogram was kept of ${words}.`;
    return;
  }
  for (const name of ["histogram", "exceedance"]) {
    if (!wanted()) return;
    const spec = cellCharts[name], datasets = { buckets, marks, clicked };
    const layer = spec.layer.filter(({ data }) => data?.name !== "clicked" || clicked.length);
    await draw(places.shift(), { ...spec, datasets, layer }, pictureOf(cell, scope, name));
  }
}

// Returns the file name and the source for the picture of a chart in the dialog.
function pictureOf(cell, scope, name) {
  const { file, source, cell: key } = dialog.dataset;
  const part = scope.key && scope.key !== cell.scopes[0].key ? `-${scope.key}` : "";
  return { file: `${file}-${key}${part}-${name}`, source: [`${cell.title}: ${scope.words}`, source].join(" · ") };
}

function add(plots) {
  const holder = document.createElement("div"), box = document.createElement("div");
  holder.className = "chart";
  box.append(holder);
  plots.append(box);
  return holder;
}

function fillTable(details, shown) {
  details.hidden = !shown?.rows.length;
  if (details.hidden) return;
  details.querySelector("summary").textContent = shown.title;
  const table = details.querySelector("table");
  table.tHead.replaceChildren(rowOf(shown.columns, "col"));
  table.tBodies[0].replaceChildren(...shown.rows.map((row) => rowOf(row, "row")));
  rove(table);
}

// The first text of a row names a round, an area or a slice. A click on this text shows the part.
function rowOf(texts, scope) {
  const row = document.createElement("tr");
  texts.forEach((text, i) => {
    const heads = text && (scope === "col" || i === 0);
    const cell = document.createElement(heads ? "th" : "td");
    if (heads) cell.scope = scope;
    if (heads && scope === "row") cell.append(buttonOf(text));
    else cell.textContent = text;
    row.append(cell);
  });
  return row;
}

function buttonOf(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.dataset.part = parseInt(text, 10);
  return button;
}

// ---- selection of another part of the cell, and return to the page

const showPart = (part) => show(addressOf(dialog.dataset.cell, part, dialog.dataset.mark));

function step(by) {
  const { options, selectedIndex } = inDialog("#cell-scope");
  const option = options[selectedIndex + by];
  if (option) showPart(option.value);
}

// Ends the use of the dialog without a change of the history.
function leave() {
  turn += 1;
  inUse = pushed = false;
  delete dialog.dataset.shown;
  dialog.close();
  openedBy?.focus();
  openedBy = null;
}

// Leaves the entry of the dialog in the history. The browser does this later, and a cell that is opened meanwhile waits
// for it. Otherwise the browser would leave the entry of that cell.
function goBackInHistory() {
  returned = new Promise((done) => {
    addEventListener("popstate", done, { once: true });
    setTimeout(done, 2000);
  });
  history.back();
}

if (dialog) {
  inDialog("#cell-scope").addEventListener("change", ({ target }) => showPart(target.value));
  inDialog("#cell-before").addEventListener("click", () => step(-1));
  inDialog("#cell-after").addEventListener("click", () => step(1));
  dialog.addEventListener("close", () => {
    // The event arrives with the next frame. Until then, the reader may have gone back and forward again.
    if (!inUse || dialog.open) return;
    const goBack = pushed;
    leave();
    if (goBack) goBackInHistory();
    else history.replaceState(null, "", location.pathname + location.search);
  });
  dialog.addEventListener("click", ({ target }) => {
    // A click outside the dialog closes it.
    if (target === dialog) dialog.close();
    const button = target.closest("button[data-part]");
    if (button) showPart(button.dataset.part);
  });
  // The tooltip with the values of a point is moved into the open dialog. Otherwise the dialog would hide the tooltip.
  const bring = () => {
    const tip = document.getElementById("vg-tooltip-element"), place = dialog.open ? dialog : document.body;
    if (tip && tip.parentNode !== place) place.append(tip);
  };
  new MutationObserver(bring).observe(document.body, { childList: true });
  new MutationObserver(bring).observe(dialog, { attributeFilter: ["open"] });
}
