// Elements. Text only ever becomes a text node or an attribute's value, never markup; signs in it that would not be
// seen, or that turn its direction, are shown by their numbers, whatever it is the name of.

const READ = new Set(["title", "aria-label", "placeholder"]); // attributes that people read

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : READ.has(name) ? visible(String(value), true) : String(value));
  }
  return put(element, ...children);
}

// What is not there (null, undefined, false) is left out.
export function put(element, ...children) {
  const there = children.flat(3).filter((one) => one !== null && one !== undefined && one !== false);
  element.append(...there.map((one) => (one instanceof Node ? one : visible(String(one), true))));
  return element;
}

// Control characters as pictures, and what turns the direction of text as its number.
export function visible(text, lines = false) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (one) => {
    if (lines && (one === "\n" || one === "\t")) return one;
    const code = one.codePointAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

export function link(path, ...children) {
  return h("a", { href: path }, ...children);
}

export function table(headings, rows, empty = "Nothing is here.") {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const cell = (one, index) =>
    h("td", { class: headings[index].class }, one === false || one instanceof Node ? one : String(one ?? "–"));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    h("table", {},
      h("thead", {}, h("tr", {}, headings.map((one) => h("th", { class: one.class, scope: "col", "aria-sort": one.sorted }, one.head ?? one.name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

export function column(name, kind, more = {}) {
  return { name, class: kind, ...more };
}

export function field(name, input, kind = "") {
  return h("label", { class: kind }, name, input);
}

export function tag(text, kind = "") {
  return h("span", { class: `tag ${kind}` }, text);
}

export function problem(error) {
  return h("div", { class: "message", role: "alert" }, error.message);
}

export function count(number) {
  return number === null || number === undefined ? "–" : number.toLocaleString("en");
}

export function many(number, name) {
  return `${count(number)} ${name}${number === 1 ? "" : "s"}`;
}

export function octets(number) {
  if (number === null || number === undefined || number < 0) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) { number /= 1000; unit += 1; }
  return `${number.toLocaleString("en", { maximumFractionDigits: unit ? 1 : 0 })} ${units[unit]}`;
}

// A time in UTC, which can be copied to where one is asked for; the local one is its title.
export function moment(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const text = date.toISOString();
  return h("time", { datetime: text, title: date.toString() }, text.replace("T", " "));
}

export function age(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export function say(text) {
  const one = h("div", {}, text);
  document.getElementById("said").append(one);
  setTimeout(() => one.remove(), 6000);
}

// Asks in a dialog. `inputs` are elements with a name; resolves to their values, or null.
export function ask(title, text, inputs, { done = "Do it", danger = false } = {}) {
  return new Promise((resolve) => {
    const close = (values) => { dialog.close(); dialog.remove(); resolve(values); };
    const form = h("form", { method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      close(Object.fromEntries(new FormData(form)));
    } },
      h("h2", {}, title), text && h("p", {}, text),
      inputs.map(([label, input]) => h("label", { class: "field" }, label, input)),
      h("div", { class: "bar" },
        h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
        h("button", { class: danger ? "danger" : "main" }, done)));
    const dialog = h("dialog", { "aria-label": title, oncancel: () => close(null) }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
}
