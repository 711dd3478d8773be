"use strict";
// Filter and sort for tables that are in the page already: nothing is loaded, and no text becomes markup.
for (const box of document.querySelectorAll("[data-table]")) {
  const table = box.querySelector("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const input = box.querySelector("input");
  const said = box.querySelector("[role=status]");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    rows.forEach((row, number) => {
      row.hidden = !words.every((word) => texts[number].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    said.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  };
  if (input) {
    input.addEventListener("input", filter);
    filter();
  }
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
      };
      const compare = (a, b) => {
        const left = value(a), right = value(b);
        const isNumber = typeof left === "number" && typeof right === "number";
        const order = isNumber ? left - right : typeof left === "number" ? -1 : typeof right === "number" ? 1
          : left.localeCompare(right, "en", { numeric: true });
        return (down ? -order : order) || rows.indexOf(a) - rows.indexOf(b);
      };
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      Array.from(body.rows).sort(compare).forEach((row) => body.append(row));
    });
  });
}
