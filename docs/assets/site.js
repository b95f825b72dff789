// Tables that sort and filter, and formulas; everything is in this folder, nothing is fetched.
"use strict";

const SORTABLE_ROWS = 4;
const FILTERABLE_ROWS = 12;
const folder = document.currentScript.src.replace(/[^/]*$/, "");

// First number of a cell: 1,234.5, −0.3(0.1), .05, 1e-9; NaN without one.
function readNumber(text) {
  const match = text.trim().match(/^[<>≤≥±~]?\s*([-−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-−]?\d+)?)/i);
  return match ? Number(match[1].replace(/−/g, "-").replace(/,/g, "")) : NaN;
}

function sortText(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("sub, sup, br").forEach((part) => part.remove());
  return copy.textContent.trim();
}

// A column is numeric if most of its filled cells begin with a number; others of it go last.
function markColumns(table) {
  const rows = [...table.tBodies[0].rows];
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const cells = rows.map((row) => row.cells[column]).filter(Boolean);
    const texts = cells.map(sortText);
    const filled = texts.filter((text) => text && text !== "–" && text !== "not run");
    const numbers = filled.filter((text) => !Number.isNaN(readNumber(text)));
    const isNumeric = filled.length > 0 && numbers.length * 2 > filled.length;
    header.dataset.sortMethod = isNumeric ? "amount" : "text";
    cells.forEach((cell, i) => { cell.dataset.sort = texts[i] || " "; });
  });
}

function addFilter(table) {
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter rows";
  input.setAttribute("aria-label", "Filter the rows of the table");
  input.className = "table-filter";
  const rows = [...table.tBodies[0].rows];
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  const wrapper = table.closest(".md-typeset__scrollwrap") || table;
  wrapper.parentNode.insertBefore(input, wrapper);
}

function prepareTable(table) {
  if (!table.tHead || !table.tBodies.length) return;
  const count = table.tBodies[0].rows.length;
  if (count >= SORTABLE_ROWS) {
    markColumns(table);
    new Tablesort(table);
    table.dataset.sortable = "";
  }
  if (count >= FILTERABLE_ROWS) addFilter(table);
}

function setFormulas() {
  if (!document.querySelector(".arithmatex")) return;
  window.MathJax = {
    tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
    options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex", enableMenu: false },
  };
  const script = document.createElement("script");
  script.src = `${folder}vendor/mathjax.js`;
  document.head.append(script);
}

Tablesort.extend("amount", () => false, (a, b) => {
  const first = readNumber(a);
  const second = readNumber(b);
  if (Number.isNaN(first) || Number.isNaN(second)) {
    return Number(Number.isNaN(first)) - Number(Number.isNaN(second));
  }
  return second - first;
});
Tablesort.extend("text", () => false, (a, b) => b.localeCompare(a, undefined, { numeric: true }));

document.querySelectorAll(".md-typeset table:not([class])").forEach(prepareTable);
setFormulas();
