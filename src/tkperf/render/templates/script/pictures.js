// Saves a chart as a picture for a publication. The picture has the format 16:9, a white background, and drive, load
// and date below its title. A PNG has twice the resolution. The picture shows the same data and the same zoomed part
// as the chart on the page.

const PICTURE_WIDTH_PX = 960, PICTURE_HEIGHT_PX = 540, PICTURE_SCALE = 2, PICTURE_PADDING_PX = 16;

function offerPicture(element, spec, view, picture) {
  const row = document.createElement("p");
  row.className = "save";
  row.append("Save as ");
  for (const kind of ["PNG", "SVG"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = kind;
    button.setAttribute("aria-label", `Save as ${kind}: ${[spec.title.text].flat().join(" ")}`);
    button.addEventListener("click", () => savePicture(kind, spec, view, picture).catch(reportError));
    row.append(button, " ");
  }
  // The buttons of the previous view are replaced.
  const before = element.nextElementSibling;
  if (before?.classList.contains("save")) before.replaceWith(row);
  else element.after(row);
}

async function drawPicture(spec, shown, { source }) {
  const title = { ...spec.title, subtitle: [...[spec.title.subtitle ?? []].flat(), source].filter(Boolean) };
  const sized = { ...spec, title, width: PICTURE_WIDTH_PX, height: PICTURE_HEIGHT_PX, padding: PICTURE_PADDING_PX,
                  autosize: { type: "fit", contains: "padding" } };
  const fitted = fit(sized, PICTURE_WIDTH_PX);
  const { view } = await vegaEmbed(document.createElement("div"), fitted, { actions: false, renderer: "none", ast: true });
  // The seconds depend on the zoom of the page, so they are copied from the chart on the page. The specification
  // contains all other data.
  for (const name of Object.keys(spec.datasets ?? {})) {
    try { view.data(name, shown.data(name)); } catch { /* a layer that this width leaves out */ }
  }
  try { view.signal("zoom_x", shown.signal("zoom_x")); } catch { /* this chart does not zoom */ }
  return view.runAsync();
}

async function savePicture(kind, spec, shown, picture) {
  const view = await drawPicture(spec, shown, picture);
  const isPng = kind === "PNG";
  const address = isPng
    ? await view.toImageURL("png", PICTURE_SCALE)
    : URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${picture.file}.${kind.toLowerCase()}`;
  link.click();
  if (!isPng) setTimeout(() => URL.revokeObjectURL(address), 10_000);
  view.finalize();
}
