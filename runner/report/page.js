// The page of a report: tables that sort and filter, cells that open their runs, figures drawn by plotly.  No network, no
// other library; words of records are set as text, never as HTML.
(() => {
  "use strict";
  const parsed = (id) => JSON.parse(document.getElementById(id).textContent);
  const make = (tag, text, more) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    return Object.assign(element, more || {});
  };

  // ---- tables
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    const given = cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent.trim();
    const number = Number(given.replace("−", "-").replace(/\(.*$/, ""));
    return given !== "" && Number.isFinite(number) ? number : given;
  };
  const before = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1; // what is empty comes last
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return typeof a === "number" ? a - b : a.localeCompare(b);
  };
  for (const table of document.querySelectorAll("table.sorts")) {
    const body = table.tBodies[0];
    const first = [...body.rows];
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", heading.textContent.trim() || "row", { className: "sort", title: "sort" });
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const now = heading.getAttribute("aria-sort");
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        if (now === "descending") {
          body.append(...first);
          table.classList.remove("sorted");
          return;
        }
        const sign = now === "ascending" ? -1 : 1;
        heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        table.classList.add("sorted");
        const keyed = first.map((row) => [valueOf(row, column), row]);
        keyed.sort(([a], [b]) => (a === "" || b === "" ? before(a, b) : sign * before(a, b)));
        body.append(...keyed.map(([, row]) => row));
      });
    });
    if (first.length < 4) continue;
    const filter = make("input", undefined, { type: "search", placeholder: "filter rows", className: "filter" });
    filter.setAttribute("aria-label", "filter rows");
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of first) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    table.parentElement.before(filter);
  }

  // ---- cells
  const dialog = document.getElementById("cell");
  const inside = document.getElementById("inside");
  const copy = (name) => document.getElementById(name).content.cloneNode(true);
  const show = (name, open) => {
    inside.replaceChildren(copy(name));
    for (const place of inside.querySelectorAll("[data-runs]")) {
      const runs = place.dataset.runs.split(" ").filter(Boolean);
      place.append(...runs.map((run) => copy(`run-${run}`)));
      open = open || runs.length === 1;
    }
    for (const place of inside.querySelectorAll("[data-shared]")) place.append(copy("shared"));
    for (const run of inside.querySelectorAll("[data-runs] > details, #inside > details:only-child")) run.open = Boolean(open);
    for (const image of inside.querySelectorAll("img")) {
      image.addEventListener("error", () => image.replaceWith(make("p", "lies in the record, which is not here")));
    }
    dialog.showModal();
    dialog.scrollTop = 0;
  };
  for (const cell of document.querySelectorAll("button[data-cell]")) {
    cell.addEventListener("click", () => show(`cell-${cell.dataset.cell}`));
  }
  for (const run of document.querySelectorAll("button[data-run]")) {
    run.addEventListener("click", () => show(`run-${run.dataset.run}`, true));
  }
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("main details")) fold.open = true;
  });

  // ---- figures
  const charts = parsed("charts");
  const packed = document.getElementById("plotly");
  const buttons = ["toImage", "zoom2d", "pan2d", "autoScale2d", "resetScale2d"];
  const options = { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtons: [buttons] };
  const draw = async () => {
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    document.head.append(make("script", await new Response(stream).text()));
    for (const place of document.querySelectorAll("div.chart")) {
      const { data, layout } = charts[Number(place.dataset.chart)];
      if (!data) continue;
      place.closest("figure").classList.add("drawn");
      await window.Plotly.newPlot(place, data, layout, options);
    }
    document.body.dataset.drawn = "yes";
  };
  // A browser that cannot unpack the library keeps the still figures.
  if (packed) draw().catch((error) => { document.body.dataset.drawn = `no: ${error}`; });
})();
