// Draws a chart with Vega, as wide as its element. Vega's bundle runs before this script and defines vegaEmbed as a
// global function. The style sheet sets the colours on light pages, on dark pages and on paper.

// On a narrow screen, a long title and a long subtitle are broken into lines, and a legend at the top has fewer
// columns. Otherwise the edge of the screen would cut them off.
const TITLE_LETTER_PX = 8.5, SUBTITLE_LETTER_PX = 7, LEGEND_LETTER_PX = 7, LEGEND_PX = 30, AXIS_PX = 60, NARROW_PX = 480;

function inColumns(channel, width) {
  const names = channel.scale?.domain ?? [];
  const widest = Math.max(1, ...names.map((name) => `${name}`.length)) * LEGEND_LETTER_PX + LEGEND_PX;
  const fitting = Math.max(1, Math.floor((width - AXIS_PX) / widest));
  return { ...channel, legend: { ...channel.legend, columns: Math.min(channel.legend.columns ?? fitting, fitting) } };
}

function inLines(text, width, letterPx) {
  const most = Math.max(12, Math.floor(width / letterPx) - 4);
  const lines = [];
  for (const word of text.toString().split(" ")) {
    const joined = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length && joined.length <= most) lines[lines.length - 1] = joined;
    else lines.push(word);
  }
  return lines;
}

function fit(spec, width) {
  const lines = inLines(spec.title?.text ?? "", width, TITLE_LETTER_PX);
  const below = [spec.title?.subtitle ?? []].flat().flatMap((line) => inLines(line, width, SUBTITLE_LETTER_PX));
  const title = { ...spec.title, text: lines.length > 1 ? lines : lines[0] ?? "" };
  const fitted = { ...spec, title: below.length ? { ...title, subtitle: below } : title };
  return { ...fitted, layer: width < NARROW_PX ? withLegend(spec.layer, width) : withColumns(spec.layer, width) };
}

const NAMED = ["color", "strokeDash"];

function mapNamed(layers, change) {
  return layers.map((layer) => {
    const changed = NAMED.filter((key) => layer.encoding[key]?.field).map((key) => [key, change(layer.encoding[key])]);
    return { ...layer, encoding: { ...layer.encoding, ...Object.fromEntries(changed) } };
  });
}

const withColumns = (layers, width) => mapNamed(layers, (channel) =>
  channel.legend?.columns || channel.legend?.orient === "bottom" ? inColumns(channel, width) : channel);

// On a phone, a legend at the top replaces the names or the legend next to the plot.
function withLegend(layers, width) {
  const isName = ({ name }) => name?.startsWith("end-");
  const hasNames = layers.some(isName);
  return mapNamed(layers.filter((one) => !isName(one)), (channel) => {
    if (channel.field !== "series") return channel.legend?.columns ? inColumns(channel, width) : channel;
    if (channel.legend === null && !hasNames) return channel;
    return inColumns({ ...channel, legend: { ...channel.legend, orient: "top" } }, width);
  });
}

// ``saved`` contains the file name and the source for the picture that a reader can save.
async function draw(element, unfitted, saved) {
  const spec = fit(unfitted, element.clientWidth || 600);
  // The marks of a chart have no texts for screen readers, because the table of the data contains the values.
  const drawn = await vegaEmbed(element, { ...spec, config: { ...spec.config, aria: false } }, {
    actions: false, // pictures.js saves them
    renderer: "svg",
    ast: true, // Vega interprets expressions, so that pages need no eval
  });
  const picture = element.querySelector("svg.marks");
  picture?.setAttribute("role", "img");
  picture?.firstElementChild?.setAttribute("aria-hidden", "true");
  picture?.setAttribute("aria-label", [spec.title.text].flat().join(" "));
  offerPicture(element, unfitted, drawn.view, saved);
  return drawn;
}
