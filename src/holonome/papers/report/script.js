(() => {
  const root = document.documentElement, theme = document.getElementById("theme"), only = document.getElementById("only");
  const stored = () => { try { return localStorage.getItem("holonome-theme"); } catch { return null; } };
  const show = dark => { root.dataset.theme = dark ? "dark" : "light"; theme.setAttribute("aria-pressed", dark); };
  show((stored() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark");
  theme.addEventListener("click", () => {
    show(root.dataset.theme !== "dark");
    try { localStorage.setItem("holonome-theme", root.dataset.theme); } catch { /* from disk, some browsers keep nothing */ }
  });
  only.addEventListener("click", () => only.setAttribute("aria-pressed", root.toggleAttribute("data-only")));
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector("nav details").open = false;

  const number = text => { const value = parseFloat(text); return Number.isNaN(value) ? null : value; };
  for (const table of document.querySelectorAll("table.data")) {
    const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.querySelectorAll("[data-sort]")];
    const column = head => {                       // two lines of headings: count the cells to the left of this one
      const [first, second] = table.tHead.rows;
      if (second && head.parentNode === second) {
        const pair = [...second.cells].indexOf(head), group = [...first.cells].filter(cell => cell.colSpan === 2)[Math.floor(pair / 2)];
        return column(group) + pair % 2;
      }
      return [...first.cells].slice(0, [...first.cells].indexOf(head)).reduce((sum, cell) => sum + cell.colSpan, 0);
    };
    for (const head of heads) {
      head.tabIndex = 0;
      const sort = () => {
        const order = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending", at = column(head), sign = order === "descending" ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        const value = row => row.cells[at].dataset.value ?? "";
        const sorted = order === "none" ? rows : [...rows].sort((a, b) => {
          const [x, y] = [value(a), value(b)], [p, q] = [number(x), number(y)];
          return sign * (p !== null && q !== null ? p - q : x.localeCompare(y));
        });
        if (order !== "none") head.setAttribute("aria-sort", order);
        body.append(...sorted);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
    }
  }
})();
