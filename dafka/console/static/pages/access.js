// Accounts, and who may do what.
import { h, put, table, column, field, count, tag } from "../dom.js";
import { get, query as queryOf } from "../api.js";

export async function access(main, parts, query, { isHere }) {
  const list = h("div");
  const search = h("input", { type: "search", value: query.get("search") ?? "", oninput: () => load() });
  let asked = 0;
  put(main, h("h1", {}, "Accounts and rights"), h("div", { class: "bar" }, field("Search", search, "grow")), list);

  async function load() {
    history.replaceState(null, "", "/access" + queryOf({ search: search.value }));
    const number = ++asked;
    const found = await get("/api/access" + queryOf({ search: search.value }));
    if (number !== asked || !isHere()) return;
    list.replaceChildren();
    put(list,
      h("h2", {}, "Accounts"),
      found.accounts === null ? h("p", { class: "quiet" }, "This broker does not tell of accounts.")
        : table([column("User", "wide"), column("Mechanisms", "wide")], found.accounts.map((one) => [one.user, one.mechanisms.join(", ")]), "There are none."),
      h("h2", {}, "Access control lists"),
      found.acls === null ? h("p", { class: "quiet" }, "This broker has no access control lists: whoever comes in may do everything.") : [
        found.total_acls > found.acls.length && h("p", { class: "quiet" }, `The first ${count(found.acls.length)} of ${count(found.total_acls)}.`),
        table([column("Principal", "wide"), column("May"), column("Operation"), column("Resource"), column("Name", "wide"), column("Pattern", "narrow-hidden"), column("From host", "narrow-hidden")],
          found.acls.map((one) => [one.principal, tag(one.permission, one.permission === "deny" ? "bad" : "good"), one.operation.replaceAll("_", " "), one.resource.replaceAll("_", " "), one.name, one.pattern, one.host]),
          "There are no entries.")]);
  }
  await load();
}
