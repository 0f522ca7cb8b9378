// The views of a chart: which of them is shown, and the switches that choose it.
// Each is a script of its figure: its chart, and as data its key, its name for each switch, and its text.

const selected = new WeakMap();
const viewsOf = (figure) => [...figure.querySelectorAll(":scope > script")];
const viewOf = (figure) => selected.get(figure) ?? viewsOf(figure)[0];
const specOf = async (figure) => JSON.parse(await (await unzip(JSON.parse(viewOf(figure).textContent))).text());
const namesOf = (view) => JSON.parse(view.dataset.choice);

// The position of a switch, and of the views that have it the one that agrees most with the others.
function findView(figure, at, name) {
  const before = namesOf(viewOf(figure));
  const agreement = (view) => namesOf(view).filter((each, i) => i !== at && each === before[i]).length;
  return viewsOf(figure)
    .filter((view) => namesOf(view)[at] === name)
    .reduce((best, view) => (agreement(view) > agreement(best) ? view : best));
}

// From the third switch on hides the names that no view has together with the choices before them: block sizes are no
// choice of a chart over block sizes. The second switch changes the first one instead, if they do not agree.
function hideImpossible(figure) {
  const now = namesOf(viewOf(figure));
  const all = viewsOf(figure).map(namesOf);
  for (let at = 2; at < now.length; at++) {
    const possible = all.filter((names) => names.slice(0, at).every((name, i) => name === now[i])).map((names) => names[at]);
    for (const input of figure.querySelectorAll(`[data-switch="${at}"] input`)) {
      input.parentElement.hidden = !possible.includes(input.value);
    }
  }
}

// Shows and marks the selected view; returns the figures to draw.
function choose(figure, view) {
  selected.set(figure, view);
  namesOf(view).forEach((name, at) => {
    for (const input of figure.querySelectorAll(`[data-switch="${at}"] input`)) {
      input.checked = input.value === name;
    }
  });
  hideImpossible(figure);
  const { text, caption } = view.dataset;
  figure.querySelector("figcaption").textContent = caption;
  figure.querySelector(":scope > details > div").setAttribute("aria-label", `Data of: ${text}`);
  const drawn = [figure];
  if (figure.classList.contains("below")) return drawn;
  // What has the time axis of the chart above it would be below another axis.
  const hidden = !("aligned" in view.dataset);
  let next = figure.nextElementSibling;
  while (next?.classList.contains("below")) {
    if (next.hidden && !hidden && next.matches("[data-chart]")) drawn.push(next);
    next.hidden = hidden;
    next = next.nextElementSibling;
  }
  return drawn;
}

// The figure and the view that an address names, also of one that a switch hides.
function findLinked(key) {
  const view = document.querySelector(`figure > script[data-key="${CSS.escape(key)}"]`);
  return view && { figure: view.parentElement, view };
}

function listenToSwitches(figure, redraw) {
  if (!figure.querySelector(".switches")) return;
  hideImpossible(figure);
  figure.querySelector(".switches").addEventListener("change", ({ target }) => {
    const at = Number(target.closest("fieldset").dataset.switch);
    choose(figure, findView(figure, at, target.value)).forEach(redraw);
  });
}

