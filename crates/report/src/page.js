// What the page can do beyond being read. Without this script it is whole.
"use strict";
(() => {
  const one = (selector, under = document) => under.querySelector(selector);
  const all = (selector, under = document) => [...under.querySelectorAll(selector)];
  const made = (name, set = {}, ...children) => {
    const element = Object.assign(document.createElement(name), set);
    element.append(...children);
    return element;
  };
  const parts = all("details.part");

  // A part that a link leads to is unfolded; a fold is no link.
  const show = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = target && target.closest("details.part");
    if (part && !part.open) {
      part.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", show);
  show();
  const fold = open => () => parts.forEach(part => { part.open = open; });

  const contents = one("nav");
  if (contents) {
    all("[hidden]", contents).forEach(element => { element.hidden = false; });
    one("#_fold").onclick = fold(false);
    one("#_unfold").onclick = fold(true);
    const field = one("#_search");
    const texts = parts.map(part => part.textContent.toLowerCase());
    const entries = all("li", contents);
    const search = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = texts.map(text => words.every(word => text.includes(word)));
      parts.forEach((part, n) => { part.hidden = !found[n]; });
      entries.forEach((entry, n) => { entry.hidden = !found[n]; });
      const count = found.filter(Boolean).length;
      one("#_found").textContent = words.length ? `${count} of ${parts.length}` : "";
    };
    field.oninput = search;
    field.onkeydown = event => {
      if (event.key === "Escape") field.value = "";
      if (event.key === "Enter") parts.find(part => !part.hidden)?.scrollIntoView();
      search();
    };
    addEventListener("keydown", event => {
      if (event.key !== "/" || event.target.matches("input")) return;
      event.preventDefault();
      field.focus();
    });
    // Where the reader is.
    const seen = new IntersectionObserver(changes => changes.forEach(change => {
      entries[parts.indexOf(change.target)].classList.toggle("here", change.isIntersecting);
    }), { rootMargin: "0px 0px -60% 0px" });
    parts.forEach(part => seen.observe(part));
  }

  const box = made("div", { id: "_values", hidden: true });
  box.setAttribute("role", "status");
  document.body.append(box);
  const hide = () => { box.hidden = true; all(".guide").forEach(line => line.remove()); };

  const save = (name, type, data) => {
    const link = made("a", { download: name, href: URL.createObjectURL(new Blob([data], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // A chart: its series by index, the marks of each category, and what the text of a mark says between.
  const chart = svg => {
    const [left, top, right, bottom, ...middles] = svg.dataset.plot.split(" ").map(Number);
    const legend = all("[data-l]", svg);
    const names = {};
    legend.forEach(entry => { names[entry.dataset.l] = entry.dataset.n; });
    const marks = all("[data-c]", svg);
    const label = mark => {
      const [text, name] = [one("title", mark).textContent, names[mark.dataset.s]];
      return text.slice(name.length + 2, text.lastIndexOf(": "));
    };
    const at = category => marks.filter(mark => +mark.dataset.c === category && !mark.classList.contains("off"));
    return { left, top, right, bottom, middles, legend, names, marks, label, at };
  };

  const values = (svg, c, category, x, y) => {
    const here = c.at(category);
    hide();
    if (!here.length) return;
    const guide = document.createElementNS(svg.namespaceURI, "line");
    Object.entries({ x1: c.middles[category], x2: c.middles[category], y1: c.top, y2: c.bottom, class: "guide" })
      .forEach(([key, value]) => guide.setAttribute(key, value));
    svg.append(guide);
    const rows = c.legend.flatMap(entry => here.filter(mark => mark.dataset.s === entry.dataset.l).map(mark => {
      const fill = mark.getAttribute("fill") || mark.parentNode.getAttribute("fill");
      const edge = mark.getAttribute("stroke") || mark.parentNode.getAttribute("stroke");
      const swatch = made("i");
      swatch.style.background = fill.startsWith("#") ? fill : edge;
      return made("tr", {}, made("td", {}, swatch), made("td", { textContent: entry.dataset.n }), made("td", { className: "n", textContent: mark.dataset.v }));
    }));
    box.replaceChildren(made("b", { textContent: c.label(here[0]) }), made("table", {}, ...rows));
    box.hidden = false;
    const size = box.getBoundingClientRect();
    const place = (at, length, room) => Math.max(4, at + 16 + length > room ? at - 16 - length : at + 16);
    box.style.left = `${place(x, size.width, document.documentElement.clientWidth)}px`;
    box.style.top = `${Math.max(4, Math.min(y - size.height / 2, innerHeight - size.height - 4))}px`;
  };

  const table = c => {
    const quoted = text => `"${String(text).replaceAll('"', '""')}"`;
    const series = c.legend.map(entry => entry.dataset.l);
    const rows = c.middles.map((_, category) => {
      const here = c.marks.filter(mark => +mark.dataset.c === category);
      const cells = series.map(s => here.find(mark => mark.dataset.s === s)?.dataset.v ?? "");
      return here.length ? [quoted(c.label(here[0])), ...cells.map(v => isNaN(v) ? quoted(v) : v)].join(",") : null;
    });
    return [["", ...series.map(s => c.names[s])].map(quoted).join(","), ...rows.filter(Boolean)].join("\n") + "\n";
  };

  const picture = svg => {
    const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
    const canvas = made("canvas", { width: 3 * width, height: 3 * height });
    const image = new Image();
    return new Promise((done, failed) => {
      image.onload = () => {
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(done, "image/png");
      };
      image.onerror = failed;
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
    });
  };

  const dialog = made("dialog", { id: "_large" });
  const sheet = made("div", { className: "sheet" });
  let scale = 1;
  const zoom = by => {
    scale = Math.min(8, Math.max(1, scale * by));
    sheet.firstElementChild.style.width = `${100 * scale}%`;
  };
  const button = (text, label, onclick) => {
    const element = made("button", { type: "button", textContent: text, onclick, title: label });
    element.setAttribute("aria-label", label);
    return element;
  };
  dialog.append(made("p", {}, button("+", "Larger", () => zoom(1.5)), " ", button("−", "Smaller", () => zoom(1 / 1.5)), " ",
    button("Close", "Close", () => dialog.close())), sheet);
  document.body.append(dialog);
  const enlarge = svg => {
    const copy = svg.cloneNode(true);
    sheet.replaceChildren(copy);
    scale = 1;
    zoom(1);
    serve(copy);
    dialog.showModal();
    dialog.append(box);
  };
  dialog.onclose = () => { hide(); document.body.append(box); };

  const serve = svg => {
    const c = chart(svg);
    let category = 0;
    svg.tabIndex = 0;
    svg.onpointermove = event => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      if (point.x < c.left || point.x > c.right || point.y < c.top - 8 || point.y > c.bottom + 24) return hide();
      const away = c.middles.map(middle => Math.abs(middle - point.x));
      category = away.indexOf(Math.min(...away));
      values(svg, c, category, event.clientX, event.clientY);
    };
    svg.onpointerleave = hide;
    svg.onblur = hide;
    svg.onkeydown = event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape" && !box.hidden) { hide(); event.preventDefault(); }
      if (!step || event.target !== svg) return;
      event.preventDefault();
      category = box.hidden ? category : Math.max(0, Math.min(c.middles.length - 1, category + step));
      const middle = new DOMPoint(c.middles[category], (c.top + c.bottom) / 2).matrixTransform(svg.getScreenCTM());
      values(svg, c, category, middle.x, middle.y);
    };
    c.legend.forEach(entry => {
      const toggle = () => {
        const off = entry.classList.toggle("off");
        entry.setAttribute("aria-pressed", String(!off));
        all(`[data-s="${entry.dataset.l}"]`, svg).forEach(mark => mark.classList.toggle("off", off));
        hide();
      };
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-pressed", String(!entry.classList.contains("off")));
      entry.setAttribute("aria-label", entry.dataset.n);
      entry.tabIndex = 0;
      entry.onclick = toggle;
      entry.onkeydown = event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      };
    });
    return c;
  };

  all("figure").forEach(figure => {
    const svg = one("svg[data-plot]", figure);
    const c = serve(svg);
    const name = figure.id.replace(/--figure$/, "");
    one("figcaption", figure).append(
      " ", button("PNG", `Picture of ${name}`, () => picture(svg).then(blob => save(`${name}.png`, "image/png", blob))),
      " ", button("CSV", `Values of ${name}`, () => save(`${name}.csv`, "text/csv", table(c))),
      " ", button("Enlarge", `Enlarge ${name}`, () => enlarge(svg)));
  });
})();
