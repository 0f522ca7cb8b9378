// The views of a chart, and the switches with which a reader selects a view. Each view is a script element of its
// figure. The element contains the chart, and its data attributes contain the key, the name for each switch, and the
// text.

const selected = new WeakMap();
const viewsOf = (figure) => [...figure.querySelectorAll(":scope > script")];
const viewOf = (figure) => selected.get(figure) ?? viewsOf(figure)[0];
const specOf = async (figure) => JSON.parse(await (await unzip(JSON.parse(viewOf(figure).textContent))).text());
const namesOf = (view) => JSON.parse(view.dataset.choice);

// Returns the view that has this name at this switch, and that agrees with the present view at most other switches.
function findView(figure, at, name) {
  const before = namesOf(viewOf(figure));
  const agreement = (view) => namesOf(view).filter((each, i) => i !== at && each === before[i]).length;
  return viewsOf(figure)
    .filter((view) => namesOf(view)[at] === name)
    .reduce((best, view) => (agreement(view) > agreement(best) ? view : best));
}

// Hides the names of the third and later switches that no view has together with the choices of the preceding
// switches. For example, a chart over block sizes has no choice of a block size. The second switch hides nothing. If
// its choice does not agree with the first switch, the first switch changes.
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

// Selects the view, and returns the figures that must be drawn.
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
  // A chart that uses the time axis of the chart above is hidden if the chart above shows another axis.
  const hidden = !("aligned" in view.dataset);
  let next = figure.nextElementSibling;
  while (next?.classList.contains("below")) {
    if (next.hidden && !hidden && next.matches("[data-chart]")) drawn.push(next);
    next.hidden = hidden;
    next = next.nextElementSibling;
  }
  return drawn;
}

// Returns the figure and the view that an address names, even if a switch hides the view.
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

