// Unpacks the data of a cell, and reduces its seconds to as many points as the width can show.

// With more columns than a screen has pixels across, drawing would only become slower.
const MOST_COLUMNS = 1200;

const read = (id) => {
  const script = document.getElementById(id);
  return script ? JSON.parse(script.textContent) : {};
};
// The cells of a run that lasted days are megabytes of text, so they are parsed only when a reader opens a cell.
let parsed;
const allCells = () => parsed ??= read("cells");
const cellCharts = read("cell-charts");

async function unzip(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream);
}

// Unpacks numbers that pack, pack_single or pack_integers in cell_dialog.py packed.
async function unpack(text) {
  if (!text) return new Float64Array();
  const [, kind, stride, divisor, packed] = text.match(/^(?:([fsi])(?:,(\d+),(\d+))?:)?(.*)$/);
  const buffer = await (await unzip(packed)).arrayBuffer();
  if (!kind) return new Float64Array(buffer);
  if (kind === "f") return new Float32Array(buffer);
  const bytes = new Uint8Array(buffer), length = bytes.length / 4, words = new Uint32Array(length);
  for (let i = 0; i < bytes.length; i++) words[i % length] |= bytes[i] << (8 * Math.floor(i / length));
  if (kind === "s") return new Float32Array(words.buffer);
  const numbers = new Float64Array(length);
  for (let i = 0; i < length; i++) numbers[i] = ((words[i] >>> 1) ^ -(words[i] & 1)) + (i < stride ? 0 : numbers[i - stride]);
  return numbers.map((number) => number / divisor);
}

async function unpackTexts(text) {
  return (await (await unzip(text)).text()).split("\n").map((row) => row.split("\t"));
}

async function unpackAll(columns) {
  const unpacked = Object.entries(columns).map(async ([name, text]) => [name, await unpack(text)]);
  return Object.fromEntries(await Promise.all(unpacked));
}

async function unpackParts({ facts, ...apart }) {
  const { start_s, end_s, seconds, latencies, lower, upper, counts, marks } = apart;
  const numbers = { start_s, end_s, seconds, latencies, lower, upper, counts, marks };
  return { ...apart, ...await unpackAll(numbers), facts: await unpackTexts(facts) };
}

const opened = {};
function open(key) {
  opened[key] ??= (async () => {
    const cell = allCells()[key];
    return {
      ...cell,
      columns: await unpackAll(cell.seconds),
      buckets: await unpackAll(cell.buckets),
      apart: cell.apart && await unpackParts(cell.apart),
    };
  })();
  return opened[key];
}

// Returns minimum, mean and maximum for each part of the time, like reduce_to_columns in seconds.py. No spike is lost.
// Times are in ms.
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

// Returns the seconds of a scope, which is a stretch of the cell's columns. Without a scope, returns all seconds.
function secondsRows({ columns }, series, width, { first = 0, last = columns.start_s.length } = {}, from = -Infinity, to = Infinity) {
  const start_s = columns.start_s.subarray(first, last);
  return series.flatMap(([name, column]) =>
    reduceToColumns(start_s, columns[column].subarray(first, last), from, to, width).map(
      ({ t, low, mean, high }) =>
        ({ x: t, series: name, low, high, value: column === "latency_max_us" ? high : mean })));
}

// First draws as many columns as the chart is wide. When the reader zooms in, a column covers less time, down to a
// single second.
async function refine(view, cell, series, width, scope) {
  await view.data("curves", secondsRows(cell, series, width, scope)).runAsync();
  let waiting = false;
  view.addSignalListener("zoom", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const range = Object.values(view.signal("zoom"))[0];
      // The data cover slightly more than the visible range, so that the curve reaches both edges.
      const margin = range ? (range[1] - range[0]) / 20 : 0;
      const [from, to] = range ? [range[0] - margin, range[1] - margin * -1] : [-Infinity, Infinity];
      view.data("curves", secondsRows(cell, series, width, scope, from, to)).runAsync();
    });
  });
}

const widthOf = (element) => Math.max(100, Math.min(MOST_COLUMNS, Math.round(element.clientWidth)));
