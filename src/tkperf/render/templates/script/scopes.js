// Scopes: the parts of a cell that the dialog can show. A scope is the window, the whole cell, the reads, the writes,
// or a single round, area or slice. Each scope has facts, a first and a last second, the buckets of its histogram, and
// marks.

// An address has the form KEY, KEY/PART, KEY/PART/MARK or KEY//MARK. The function address in naming.py creates it.
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

// Returns the indexes of the seconds, which are exact, and the times in ms. If the parts do not follow each other
// directly, the result extends from the first part to the last part.
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

// Returns the sum of the histograms in these stretches of rows.
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
  // Marks that are too close to distinguish share one label, at the last of these marks, like in
  // page/figures/curves.py.
  for (let i = 0; i + 1 < found.length; i++) {
    if (found[i + 1].us > found[i].us * 1.05) continue;
    found[i + 1].label = `${found[i].label.split(" ... ")[0]} ... ${found[i + 1].mark}`;
    found[i].label = "";
  }
  return found;
}

// Returns the parts of shades, such as the window, that lie within the scope.
const within = (shades, { from = -Infinity, to = Infinity }) =>
  shades.filter(({ begin, end }) => end > from && begin < to)
    .map(({ begin, end, text }) => ({ from: Math.max(begin, from), to: Math.min(end, to), flag: text }));
