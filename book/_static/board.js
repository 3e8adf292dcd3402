// A table of class "board" can be searched, filtered and sorted; without scripts it is a table.

const FEW = 12; // different cells of a column that still make a choice of filters
const LONG = 45; // letters of a column's longest cell from which on it counts as a detail and is folded

/** What a cell sorts by: the number it starts with, else its text. */
function sortKey(cell) {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replaceAll(",", "").replace("\u2212", "-"));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function compare(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1; // numbers before what is missing
}

function board(table) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  const texts = heads.map((_, column) => rows.map((row) => row.cells[column].textContent.trim()));
  const controls = make("div", { className: "board-controls" });
  const search = make("input", { type: "search", placeholder: "Search", className: "board-search" });
  search.setAttribute("aria-label", "Search this table");
  const count = make("output", {});
  const filters = heads.map((head, column) => {
    const kinds = [...new Set(texts[column])].filter(Boolean);
    const words = kinds.some((text) => Number.isNaN(parseFloat(text.replace("\u2212", "-"))));
    const short = kinds.every((text) => text.length <= LONG);
    if (!words || !short || kinds.length < 2 || kinds.length > Math.min(FEW, rows.length / 2)) return null;
    const select = make("select", {}, new Option(`${head.textContent}: all`, ""), ...kinds.map((kind) => new Option(kind, kind)));
    select.setAttribute("aria-label", head.textContent);
    return select;
  });

  function show() {
    let shown = 0;
    rows.forEach((row, place) => {
      const found = row.textContent.toLowerCase().includes(search.value.toLowerCase())
        && filters.every((filter, column) => !filter?.value || filter.value === texts[column][place]);
      row.hidden = !found;
      shown += found;
    });
    count.textContent = `${shown} of ${rows.length}`;
  }

  heads.forEach((head, column) => {
    const button = make("button", { type: "button", className: "board-sort" }, ...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...rows].sort((a, b) => compare(sortKey(a.cells[column]), sortKey(b.cells[column])));
      table.tBodies[0].append(...(down ? sorted.reverse() : sorted));
    };
  });

  const details = heads.filter((_, column) => column > 1 && texts[column].some((text) => text.length > LONG));
  if (details.length) {
    const folded = details.map((head) => heads.indexOf(head));
    rows.forEach((row) => folded.forEach((column) => {
      const cell = row.cells[column];
      const text = [...cell.childNodes];
      if (text.length) cell.append(make("details", {}, make("summary", {}, "show"), ...text));
    }));
    const all = make("button", { type: "button" }, "Unfold all");
    all.onclick = () => {
      const open = all.textContent === "Unfold all";
      table.querySelectorAll("td details").forEach((cell) => { cell.open = open; });
      all.textContent = open ? "Fold all" : "Unfold all";
    };
    controls.append(all);
  }
  search.oninput = show;
  filters.forEach((filter) => { if (filter) filter.onchange = show; });
  controls.prepend(search, ...filters.filter(Boolean), count);
  (table.closest(".pst-scrollable-table-container") ?? table).before(controls);
  show();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.board").forEach(board));
