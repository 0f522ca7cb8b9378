// Draws the charts of a report, their data as tables, and what lies behind a cell when it is clicked.
// Runs after the Vega bundle, which makes vegaEmbed global.

const ink = "#d0d7de", line = "#3d444d";
const dark = {
  background: "transparent",
  title: { color: ink },
  axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
  legend: { labelColor: ink, titleColor: ink },
};
const scheme = matchMedia("(prefers-color-scheme: dark)");
// More columns than a screen has pixels across would only take time.
const MOST_COLUMNS = 1200;

const read = (id) => {
  const script = document.getElementById(id);
  return script ? JSON.parse(script.textContent) : {};
};
const cells = read("cells"), cellCharts = read("cell-charts");

// What a narrow screen would cut off: a long title gets lines, a legend on top fewer columns.
const TITLE_LETTER_PX = 8.5, LEGEND_LETTER_PX = 7, LEGEND_PX = 30, AXIS_PX = 60;
function inColumns(channel, width) {
  const names = channel.scale?.domain ?? [];
  const widest = Math.max(1, ...names.map((name) => `${name}`.length)) * LEGEND_LETTER_PX + LEGEND_PX;
  const fitting = Math.max(1, Math.floor((width - AXIS_PX) / widest));
  return { ...channel, legend: { ...channel.legend, columns: Math.min(channel.legend.columns ?? fitting, fitting) } };
}

function fit(spec, width) {
  const most = Math.max(12, Math.floor(width / TITLE_LETTER_PX) - 4);
  const lines = [];
  for (const word of (spec.title?.text ?? "").toString().split(" ")) {
    const joined = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length && joined.length <= most) lines[lines.length - 1] = joined;
    else lines.push(word);
  }
  const fitted = { ...spec, title: { ...spec.title, text: lines.length > 1 ? lines : lines[0] ?? "" } };
  const { color } = spec.encoding ?? {};
  if (color?.legend?.columns) fitted.encoding = { ...spec.encoding, color: inColumns(color, width) };
  fitted.layer = spec.layer?.map((layer) => layer.encoding?.strokeDash?.legend?.orient
    ? { ...layer, encoding: { ...layer.encoding, strokeDash: inColumns(layer.encoding.strokeDash, width) } }
    : layer) ?? spec.layer;
  if (!fitted.layer) delete fitted.layer;
  return fitted;
}

async function draw(element, unfitted) {
  const spec = fit(unfitted, element.clientWidth || 600);
  const config = { ...spec.config, ...(scheme.matches && !matchMedia("print").matches ? dark : {}) };
  const drawn = await vegaEmbed(element, { ...spec, config }, {
    actions: { export: true, source: false, compiled: false, editor: false },
    renderer: "svg",
  });
  element.querySelector("summary")?.setAttribute("aria-label", "Save this chart");
  return drawn;
}

// ---- every second of a cell, reduced to what the width can show

async function unpack(text, Numbers) {
  if (!text) return new Numbers();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Numbers(await new Response(stream).arrayBuffer());
}

const opened = {};
function open(key) {
  opened[key] ??= (async () => {
    const cell = cells[key], columns = {};
    for (const [name, text] of Object.entries(cell.seconds)) {
      columns[name] = await unpack(text, Float32Array);
    }
    const buckets = {};
    for (const [name, text] of Object.entries(cell.buckets)) {
      buckets[name] = await unpack(text, Float64Array);
    }
    const parts = {};
    for (const [name, text] of Object.entries(cell.part_buckets)) {
      parts[name] = await unpack(text, Float64Array);
    }
    return { ...cell, columns, buckets, part: parts };
  })();
  return opened[key];
}

// As reduce_to_columns in seconds.py: minimum, mean and maximum of each part of the time, so that
// no spike is lost. Times in ms.
function reduceToColumns(start_s, values, from, to, columns) {
  const known = [];
  for (let i = 0; i < start_s.length; i++) {
    const at = start_s[i] * 1000;
    if (at >= from && at <= to && !Number.isNaN(values[i])) known.push(i);
  }
  if (known.length <= columns) {
    return known.map((i) => ({ t: start_s[i] * 1000, low: values[i], mean: values[i], high: values[i] }));
  }
  const first = start_s[known[0]], span = start_s[known.at(-1)] - first || 1, parts = [];
  let last = -1;
  for (const i of known) {
    const part = Math.min(Math.floor(((start_s[i] - first) / span) * columns), columns - 1);
    if (part !== last) parts.push({ t: start_s[i] * 1000, low: Infinity, high: -Infinity, sum: 0, count: 0 });
    last = part;
    const here = parts.at(-1);
    here.low = Math.min(here.low, values[i]);
    here.high = Math.max(here.high, values[i]);
    here.sum += values[i];
    here.count += 1;
  }
  return parts.map(({ sum, count, ...part }) => ({ ...part, mean: sum / count }));
}

function secondsRows(cell, series, columns, from = -Infinity, to = Infinity) {
  return series.flatMap(([name, column]) =>
    reduceToColumns(cell.columns.start_s, cell.columns[column], from, to, columns).map(
      ({ t, low, mean, high }) =>
        ({ t, series: name, low, high, value: column === "latency_max_us" ? high : mean })));
}

// The columns of the page's own width first; zooming in makes them finer, down to single seconds.
async function refine(view, cell, series, width) {
  await view.data("seconds", secondsRows(cell, series, width)).runAsync();
  let waiting = false;
  view.addSignalListener("zoom", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const range = Object.values(view.signal("zoom"))[0];
      // A little more than is seen, so that the curve reaches the edges.
      const margin = range ? (range[1] - range[0]) / 20 : 0;
      const [from, to] = range ? [range[0] - margin, range[1] - margin * -1] : [-Infinity, Infinity];
      view.data("seconds", secondsRows(cell, series, width, from, to)).runAsync();
    });
  });
}

const widthOf = (element) => Math.max(100, Math.min(MOST_COLUMNS, Math.round(element.clientWidth)));

// ---- figures of the page

async function drawFigure(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const chart = figure.querySelector(".chart");
  const { view } = await draw(chart, spec);
  // A point of a chart opens the level or slice that it is.
  view.addEventListener("click", (_, item) => {
    const { cell, slice = null } = item?.datum ?? {};
    if (cells[cell]) showCell(cell, slice);
  });
  const key = figure.dataset.cell;
  if (key) {
    await refine(view, await open(key), spec.usermeta.series, widthOf(chart));
  }
}

// The data behind a chart, as tables: made when they are asked for.
function fillTables(figure, holder) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const layers = (spec.layer ?? [spec]).flatMap((one) =>
    one.layer?.map((inner) => ({ data: one.data, ...inner })) ?? [one]);
  const seen = new Set();
  let titles = "", body;
  for (const layer of layers) {
    const rows = rowsOf(spec, layer);
    const columns = (layer.encoding.tooltip ?? []).filter(({ field }) => rows.length && field in rows[0]);
    if (!columns.length) continue;
    if (titles !== columns.map(({ title }) => title).join("|")) {
      titles = columns.map(({ title }) => title).join("|");
      body = addTable(holder, columns);
    }
    for (const row of rows) {
      const texts = columns.map(({ field }) => format(row[field]));
      // Layers share data, and the corners of a 3-D bar all tell the same.
      const text = titles + texts.join("|");
      if (seen.has(text)) continue;
      seen.add(text);
      const to = body.insertRow();
      for (const each of texts) to.insertCell().textContent = each;
    }
  }
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

function rowsOf(spec, layer) {
  const data = layer.data ?? spec.data ?? {};
  return data.values ?? spec.datasets?.[data.name] ?? [];
}

const format = (value) =>
  typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : value ?? "-";

// ---- a cell's dialog

const dialog = document.getElementById("cell");
let pushed = false;

async function showCell(key, number = null) {
  const cell = await open(key);
  dialog.querySelector("h2").textContent = cell.title;
  dialog.querySelector("dl").replaceChildren(...cell.facts.flatMap(([name, value]) => {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    return [term, text];
  }));
  dialog.querySelector("#cell-words").textContent = cell.words;
  dialog.querySelector("pre").textContent = cell.job;
  dialog.querySelector("#cell-job").hidden = !cell.job;
  fillTable(dialog.querySelector("#cell-rounds"), cell.rounds);
  fillTable(dialog.querySelector("#cell-host"), cell.host);
  const plots = dialog.querySelector("#cell-plots");
  plots.replaceChildren();
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  // The browser's way back closes the dialog, also a phone's button.
  if (location.hash.slice(1) !== key) {
    history.pushState(null, "", `#${key}`);
    pushed = true;
  }
  const seconds = { window: cell.window, parts: cell.parts, flagged: cell.flagged };
  if (cell.columns.start_s?.length) {
    // Both places first: a chart takes the width that it finds.
    for (const [name, holder] of [[cell.rate, add(plots)], ["latency", add(plots)]]) {
      const spec = cellCharts[name], { series } = spec.usermeta, columns = widthOf(holder);
      const rows = secondsRows(cell, series, columns);
      const datasets = { ...seconds, seconds: rows };
      const layer = spec.layer.filter(({ data }) => datasets[data.name].length);
      const { view } = await draw(holder, { ...spec, datasets, layer });
      await refine(view, cell, series, columns);
    }
  } else {
    add(plots).textContent = "No seconds were kept of this cell.";
  }
  if (cell.buckets.count?.length) {
    const choice = cell.part.counts?.length ? addChoice(plots, cell) : null;
    const holders = { histogram: add(plots), exceedance: add(plots) };
    const drawPart = async (part) => {
      const datasets = part === null ? wholeHistogram(cell) : partHistogram(cell, part);
      for (const [name, holder] of Object.entries(holders)) {
        await draw(holder, { ...cellCharts[name], datasets });
      }
      dialog.dataset.part = part ?? "all";
    };
    const place = number === null ? -1 : cell.part_numbers.indexOf(number);
    if (choice) {
      choice.value = place < 0 ? "" : String(place);
      choice.addEventListener("change", () => drawPart(choice.value === "" ? null : Number(choice.value)));
    }
    await drawPart(choice && place >= 0 ? place : null);
    if (choice && place >= 0) choice.scrollIntoView();
  } else {
    add(plots).textContent = "No latency histogram was kept of this cell.";
  }
  dialog.dataset.shown = key;
}

// ---- histograms of all I/Os of a cell, or of one of its parts

function wholeHistogram({ buckets: { lower, upper, count }, marks }) {
  const rows = Array.from(lower, (from, i) => ({ lower: from, upper: upper[i], count: count[i] }));
  return { buckets: rows, marks };
}

function partHistogram({ part: { lower, upper, counts, marks }, part_marks: names }, place) {
  const buckets = Array.from(lower, (from, i) =>
    ({ lower: from, upper: upper[i], count: counts[place * lower.length + i] })).filter(({ count }) => count);
  const found = names.map((mark, i) => ({ mark, us: marks[place * names.length + i], label: mark }))
    .filter(({ us }) => us > 0).sort((one, other) => one.us - other.us);
  // Marks too close to be told apart share one label, at the last of them, as mark_rows in latency.py.
  for (let i = 0; i + 1 < found.length; i++) {
    if (found[i + 1].us > found[i].us * 1.05) continue;
    found[i + 1].label = `${found[i].label.split(" ... ")[0]} ... ${found[i + 1].mark}`;
    found[i].label = "";
  }
  return { buckets, marks: found };
}

function addChoice(plots, cell) {
  const label = document.createElement("label"), select = document.createElement("select");
  label.className = "choice";
  label.append("Histogram of ", select);
  select.add(new Option("all", ""));
  cell.part_numbers.forEach((number, i) => select.add(new Option(`${cell.part_name} ${number}`, String(i))));
  plots.append(label);
  return select;
}

function add(plots) {
  const holder = document.createElement("div");
  holder.className = "chart";
  plots.append(holder);
  return holder;
}

function fillTable(details, shown) {
  details.hidden = !shown?.rows.length;
  if (details.hidden) return;
  details.querySelector("summary").textContent = shown.title;
  const table = details.querySelector("table");
  const rowOf = (tag, texts) => {
    const row = document.createElement("tr");
    texts.forEach((text, i) => {
      const cell = document.createElement(tag === "th" || i === 0 ? "th" : "td");
      cell.scope = tag === "th" ? "col" : i === 0 ? "row" : "";
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  };
  table.tHead.replaceChildren(rowOf("th", shown.columns));
  table.tBodies[0].replaceChildren(...shown.rows.map((row) => rowOf("td", row)));
}

// ---- begin

const figures = [...document.querySelectorAll("figure[data-chart]")];
// One after the other, so that the first are there and the page answers while others are drawn.
async function drawAll() {
  for (const figure of figures) {
    await drawFigure(figure).catch(reportError);
    await new Promise((done) => { setTimeout(done); });
  }
  document.body.dataset.drawn = "yes";
}
drawAll();
for (const figure of figures) {
  const details = figure.querySelector("details");
  details?.addEventListener("toggle", () => fillTables(figure, details.querySelector("div")), { once: true });
}
document.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-cell]");
  if (button) showCell(button.dataset.cell);
});
dialog?.addEventListener("close", () => {
  const key = dialog.dataset.shown;
  delete dialog.dataset.shown;
  if (pushed) {
    pushed = false;
    history.back();
  } else {
    history.replaceState(null, "", location.pathname + location.search);
  }
  document.querySelector(`button[data-cell="${CSS.escape(key ?? "")}"]`)?.focus();
});
addEventListener("popstate", () => {
  const key = location.hash.slice(1);
  if (cells[key]) showCell(key);
  else if (dialog?.open) {
    pushed = false;
    dialog.close();
  }
});
// A click beside the dialog closes it.
dialog?.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
// Colours follow the system, and paper is white.
scheme.addEventListener("change", () => figures.forEach(drawFigure));
addEventListener("beforeprint", () => figures.forEach(drawFigure));
addEventListener("afterprint", () => figures.forEach(drawFigure));
if (cells[location.hash.slice(1)]) showCell(location.hash.slice(1));
