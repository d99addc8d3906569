// The list of topics.
import { h, put, link, table, column, field, count, octets, ask, say, tag } from "../dom.js";
import { call, get, query as queryOf } from "../api.js";

const PAGE = 100;

export async function topics(main, parts, query, { go, writes, isHere }) {
  const state = {
    search: query.get("search") ?? "", internal: query.get("internal") === "true",
    sort: query.get("sort") ?? "name", descending: query.get("descending") === "true", skip: Number(query.get("skip") ?? 0),
  };
  const list = h("div");
  const search = h("input", { type: "search", value: state.search, placeholder: "part of a name", oninput: () => later({ search: search.value, skip: 0 }) });
  let timer = null;
  let asked = 0;
  const later = (change) => { clearTimeout(timer); timer = setTimeout(() => set(change), 150); };
  put(main, 
    h("h1", {}, "Topics"),
    h("div", { class: "bar" }, field("Search", search, "grow"),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: state.internal, onchange: (event) => set({ internal: event.target.checked, skip: 0 }) }), "internal"),
      writes && h("button", { class: "main", onclick: create }, "New topic")),
    list);

  function set(change) {
    Object.assign(state, change);
    const shown = { search: state.search, internal: state.internal || "", sort: state.sort === "name" ? "" : state.sort, descending: state.descending || "", skip: state.skip || "" };
    history.replaceState(null, "", "/topics" + queryOf(shown));
    return load();
  }

  function heading(name, sort) {
    const by = state.sort === sort;
    return column(name, sort === "name" ? "wide" : "number", {
      sorted: by ? (state.descending ? "descending" : "ascending") : "none",
      head: h("button", { onclick: () => set({ sort, descending: by && !state.descending, skip: 0 }) }, `${name} ${by ? (state.descending ? "▾" : "▴") : ""}`),
    });
  }

  async function load() {
    const number = ++asked;
    const found = await get("/api/topics" + queryOf({ ...state, limit: PAGE }));
    if (number !== asked || !isHere()) return;
    const rows = found.topics.map((one) => [
      h("span", {}, link(`/topics/${encodeURIComponent(one.name)}`, one.name), " ", one.internal && tag("internal")),
      count(one.partitions), count(one.records), octets(one.bytes)]);
    const last = state.skip + rows.length;
    list.replaceChildren(
      h("p", { class: "quiet" }, `${count(found.matching)} of ${count(found.total)} topics`, rows.length < found.matching ? `, ${state.skip + 1} to ${last}` : ""),
      table([heading("Name", "name"), heading("Partitions", "partitions"), column("Records", "number"), column("On disk", "number")], rows, "No topic has such a name."),
      h("div", { class: "bar" },
        state.skip > 0 && h("button", { onclick: () => set({ skip: Math.max(state.skip - PAGE, 0) }) }, "Back"),
        last < found.matching && h("button", { onclick: () => set({ skip: last }) }, "Next")));
  }

  async function create() {
    const given = await ask("New topic", null, [
      ["Name", h("input", { name: "name", required: true, maxlength: 249, pattern: "[a-zA-Z0-9._\\-]+", title: "letters, digits, ., _ and -" })],
      ["Partitions (empty: the broker's default)", h("input", { name: "partitions", type: "number", min: 1, max: 100000 })],
      ["Settings, a line NAME=VALUE each", h("textarea", { name: "configs" })],
    ], { done: "Create" });
    if (!given) return;
    const configs = Object.fromEntries(given.configs.split("\n").filter((one) => one.includes("="))
      .map((one) => [one.slice(0, one.indexOf("=")).trim(), one.slice(one.indexOf("=") + 1).trim()]));
    await call("POST", "/api/topics", { name: given.name, configs, ...(given.partitions && { partitions: Number(given.partitions) }) });
    say(`Topic ${given.name} is there.`);
    go(`/topics/${encodeURIComponent(given.name)}`);
  }

  await load();
  if (!parts.length) search.focus();
  return () => clearTimeout(timer);
}
