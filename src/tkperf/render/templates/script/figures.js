// Draws each figure of the page, shows its data as a table, and opens the cell of a point after a click.

const figures = [...document.querySelectorAll("figure[data-chart]")];

// A figure is drawn only once at a time. If a reader selects two views quickly, the last selected view is drawn last.
const drawings = new WeakMap();
function redraw(figure) {
  const before = drawings.get(figure) ?? Promise.resolve();
  const done = before.then(() => drawFigure(figure)).catch(reportError);
  drawings.set(figure, done);
  return done;
}

const finish = new WeakMap();
async function drawFigure(figure) {
  const shown = viewOf(figure), spec = await specOf(figure);
  const chart = figure.querySelector(".chart");
  finish.get(figure)?.();
  chart.style.minHeight = `${spec.height}px`;
  const { view, finalize } = await draw(chart, spec, shown.dataset);
  finish.set(figure, finalize);
  // A click on a point opens the level, the round or the slice of the point.
  view.addEventListener("click", (_, item) => {
    const address = behind(item?.datum ?? {});
    if (address) show(address);
  });
  const key = shown.dataset.cell;
  if (key) {
    await refine(view, await open(key), spec.usermeta.series, widthOf(chart));
  }
  figure.dataset.shown = shown.dataset.key;
  showData(figure);
}

// Returns the address of the data from which a point was computed. If the name of the curve is the name of a latency,
// such as p99.9, the address also contains this latency, and the histogram shows it as a mark.
function behind({ cell, series }) {
  const { key, part } = parse(cell ?? ""), found = key && allCells()[key];
  if (!found) return "";
  const mark = series in found.scopes[0].latencies ? series : "";
  return addressOf(key, part, mark);
}

// Shows the data of the selected view as a table if the reader has opened the table.
async function showData(figure) {
  const details = figure.querySelector(":scope > details"), { key } = viewOf(figure).dataset;
  if (!details?.open || details.dataset.of === key) return;
  details.dataset.of = key;
  const holder = details.querySelector("div");
  const spec = await specOf(figure);
  // The reader may have selected another view while the data were unpacked.
  if (details.dataset.of !== key) return;
  holder.replaceChildren();
  fillTables(spec, holder);
}

function fillTables(spec, holder) {
  const seen = new Set();
  let titles = "", body;
  for (const layer of spec.layer) {
    const rows = rowsOf(spec, layer.data.name);
    const tooltips = [layer.encoding.tooltip ?? []].flat();
    const columns = tooltips.filter(({ field }) => rows.length && field in rows[0]);
    if (!columns.length) continue;
    if (titles !== columns.map(({ title }) => title).join("|")) {
      titles = columns.map(({ title }) => title).join("|");
      body = addTable(holder, columns);
    }
    for (const row of rows) {
      const texts = columns.map(({ field }) => format(row[field]));
      // Rows that were already seen are skipped, because layers share data, and all corners of a 3-D bar have the same
      // texts.
      const text = titles + texts.join("|");
      if (seen.has(text)) continue;
      seen.add(text);
      const to = body.insertRow();
      for (const each of texts) to.insertCell().textContent = each;
    }
  }
}

// The data of a heat map have a row for each time slice, with the I/Os of all bands. The table has a row for each
// band.
function rowsOf({ datasets, usermeta }, name) {
  const edges = usermeta?.edges_us;
  if (!edges) return datasets[name];
  return datasets[name].flatMap((slice) => {
    const all = slice.n.reduce((sum, ios) => sum + ios, 0);
    return slice.n.map((n, i) => {
      const took = `${format(edges[slice.first + i])} to ${format(edges[slice.first + i + 1])} µs`;
      return { ...slice, took, n, share: 100 * n / all };
    }).filter(({ n }) => n);
  });
}

function addTable(holder, columns) {
  const table = document.createElement("table"), head = table.createTHead().insertRow();
  for (const { title } of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    head.append(cell);
  }
  holder.append(table);
  return table.createTBody();
}

const format = (value) =>
  typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : value ?? "-";

// Figures are drawn one after the other, and visible figures are drawn first. The page therefore remains responsive
// while other figures are drawn.
async function drawAll() {
  // Vega measures texts before it draws them, so the fonts must be loaded first.
  await Promise.allSettled(["12px Inter", "bold 12px Inter"].map((font) => document.fonts.load(font)));
  const waiting = new Set(figures), seen = new Set();
  const watch = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    seen[isIntersecting ? "add" : "delete"](target);
  }));
  figures.forEach((figure) => watch.observe(figure));
  while (waiting.size) {
    await new Promise((done) => { setTimeout(done); });
    const figure = [...seen].find((each) => waiting.has(each)) ?? waiting.values().next().value;
    waiting.delete(figure);
    await redraw(figure);
  }
  watch.disconnect();
  document.body.dataset.drawn = "yes";
}

function showLinked() {
  const linked = findLinked(location.hash.slice(1));
  if (!linked || viewOf(linked.figure) === linked.view) return;
  showChapterOf(linked.figure);
  choose(linked.figure, linked.view);
  if (linked.figure.dataset.shown) redraw(linked.figure);
  linked.figure.scrollIntoView();
}

for (const figure of figures) {
  listenToSwitches(figure, redraw);
  figure.querySelector(":scope > details")?.addEventListener("toggle", () => showData(figure));
}
