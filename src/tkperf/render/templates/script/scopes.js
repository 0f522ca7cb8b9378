// What of a cell is shown: the window, all of it, reads or writes, or one round, area or slice.
// Each has facts, the seconds from first to last, buckets of its histogram, and what is marked in it.

// KEY, KEY/PART, KEY/PART/MARK or KEY//MARK, as address in naming.py makes it.
function parse(address) {
  const [key, part = "", mark = ""] = address.split("/");
  return { key, part, mark };
}

const addressOf = (key, part = "", mark = "") => [key, part, mark].join("/").replace(/\/+$/, "");

const fromAddress = () => decodeURIComponent(location.hash.slice(1));

function scopeOf(cell, part) {
  const place = cell.apart?.numbers.indexOf(Number(part)) ?? -1;
  return part !== "" && place >= 0 ? partScope(cell, place) : wholeScope(cell, part);
}

function wholeScope(cell, part) {
  const scope = cell.scopes.find(({ key }) => key === part) ?? cell.scopes[0];
  const fine = scope.key === cell.buckets_of && cell.buckets.count?.length;
  return {
    ...scope,
    ...stretch(cell, scope.parts[0][0], scope.parts.at(-1)[1]),
    facts: scope.facts,
    marks: scope.marks.map(([mark, us, label]) => ({ mark, us, label })),
    buckets: fine ? asRows(cell.buckets) : addUp(cell.apart, scope.rows),
  };
}

function partScope(cell, place) {
  const { apart } = cell, width = apart.latency_names.length;
  const us = apart.latencies.subarray(place * width, (place + 1) * width);
  return {
    key: String(apart.numbers[place]),
    words: `${apart.name} ${apart.numbers[place].toLocaleString("en")}`,
    facts: apart.fact_names.map((name, i) => [name, apart.facts[place][i]]),
    latencies: Object.fromEntries(apart.latency_names.map((name, i) => [name, us[i]])),
    ...stretch(cell, place, place + 1),
    buckets: addUp(apart, [[place, place + 1]]),
    marks: marksOf(apart, place),
  };
}

// Seconds by their places, which are exact, and times in ms: of parts that lie apart from the first to the last.
function stretch({ apart }, from, to) {
  if (!apart) return {};
  return {
    first: apart.seconds[from],
    last: apart.seconds[to],
    from: 1000 * apart.start_s[from],
    to: 1000 * apart.end_s[to - 1],
  };
}

const asRows = (columns) =>
  Array.from(columns.count, (_, i) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[i]])));

// The histograms of these rows, stretch by stretch, as one.
function addUp(apart, stretches) {
  if (!apart?.counts.length) return [];
  const { lower, upper, counts } = apart, width = lower.length;
  const sums = new Float64Array(width);
  for (const [from, to] of stretches) {
    for (let i = from * width; i < to * width; i++) sums[i % width] += counts[i];
  }
  return Array.from(sums, (count, i) => ({ lower: lower[i], upper: upper[i], count }))
    .filter(({ count }) => count);
}

function marksOf({ marks, mark_names: names }, row) {
  const found = names.map((mark, i) => ({ mark, us: marks[row * names.length + i], label: mark }))
    .filter(({ us }) => us > 0).sort((one, other) => one.us - other.us);
  // Marks too close to distinguish share one label, at the last of them, as in page/figures/curves.py.
  for (let i = 0; i + 1 < found.length; i++) {
    if (found[i + 1].us > found[i].us * 1.05) continue;
    found[i + 1].label = `${found[i].label.split(" ... ")[0]} ... ${found[i + 1].mark}`;
    found[i].label = "";
  }
  return found;
}

// What of a stretched mark, such as the window, lies within the scope.
const within = (shades, { from = -Infinity, to = Infinity }) =>
  shades.filter(({ begin, end }) => end > from && begin < to)
    .map(({ begin, end, text }) => ({ from: Math.max(begin, from), to: Math.min(end, to), flag: text }));
