// The list of groups.
import { h, put, link, table, column, field, count, tag } from "../dom.js";
import { get, query as queryOf } from "../api.js";

const PAGE = 100;

export function stateTag(state) {
  return tag(state, { Stable: "good", Empty: "", Dead: "bad" }[state] ?? "warn");
}

export async function groups(main, parts, query, { isHere }) {
  const state = { search: query.get("search") ?? "", type: query.get("type") ?? "", skip: Number(query.get("skip") ?? 0) };
  const list = h("div");
  let timer = null;
  let asked = 0;
  const search = h("input", { type: "search", value: state.search, placeholder: "part of a name", oninput: () => { clearTimeout(timer); timer = setTimeout(() => set({ search: search.value, skip: 0 }), 150); } });
  const type = h("select", { onchange: () => set({ type: type.value, skip: 0 }) }, ["", "classic", "consumer", "share", "streams"].map((one) => h("option", { value: one, selected: one === state.type }, one || "all")));
  put(main, h("h1", {}, "Groups"), h("div", { class: "bar" }, field("Search", search, "grow"), field("Type", type)), list);

  function set(change) {
    Object.assign(state, change);
    history.replaceState(null, "", "/groups" + queryOf({ ...state, skip: state.skip || "" }));
    return load();
  }
  async function load() {
    const number = ++asked;
    const found = await get("/api/groups" + queryOf({ ...state, limit: PAGE }));
    if (number !== asked || !isHere()) return;
    const last = state.skip + found.groups.length;
    list.replaceChildren(
      h("p", { class: "quiet" }, `${count(found.matching)} of ${count(found.total)} groups`),
      table([column("Name", "wide"), column("Type"), column("State"), column("Protocol", "narrow-hidden")],
        found.groups.map((one) => [link(`/group?name=${encodeURIComponent(one.name)}`, one.name || "(no name)"), one.type, stateTag(one.state), one.protocol]),
        "There is no such group."),
      h("div", { class: "bar" },
        state.skip > 0 && h("button", { onclick: () => set({ skip: Math.max(state.skip - PAGE, 0) }) }, "Back"),
        last < found.matching && h("button", { onclick: () => set({ skip: last }) }, "Next")));
  }
  await load();
  return () => clearTimeout(timer);
}
