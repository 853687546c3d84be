"use strict";
// The page works without this: it adds a switch of the theme, and sorting by a click on a column's head.
{
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.createElement("button");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const say = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.id = "theme";
  theme.type = "button";
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; say(); });
  dark.addEventListener("change", say);
  say();
  document.querySelector("header").prepend(theme);
}
{
  // What a cell sorts by: the first number in it, or its text; a dash, which stands for no number, comes last.
  const keyOf = (cell) => {
    if (cell.tagName === "TH") return cell.textContent.trim();
    const found = cell.textContent.match(/[\d,]*\.?\d+/);
    return found ? Number(found[0].replaceAll(",", "")) - (cell.textContent.includes("<") ? 1e-9 : 0) : NaN;
  };
  const compare = (a, b) => {
    if (typeof a === "string") return a.localeCompare(b);
    return Number.isNaN(a) - Number.isNaN(b) || (Number.isNaN(a) ? 0 : a - b);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const up = was ? was === "descending" : head.dataset.first !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
        const known = ([key]) => !Number.isNaN(key);
        rows.sort(([a, one], [b, other]) => {
          const by = compare(a, b);
          return known([a, one]) && known([b, other]) && !up ? -by : by;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
}
