// Transactions: open ones with their age, and what they hold up.
import { h, put, link, table, column, field, count, many, age, ask, say, tag } from "../dom.js";
import { call, get, query as queryOf } from "../api.js";
import { again } from "../again.js";

const PAUSE = 2000;

export async function transactions(main, parts, query, { writes, isHere }) {
  const failed = h("div");
  const list = h("div");
  let last = "";
  const search = h("input", { type: "search", value: query.get("search") ?? "", oninput: () => load() });
  const open = h("input", { type: "checkbox", checked: query.get("state") === "Ongoing", onchange: () => load() });
  let asked = 0;
  put(main, h("h1", {}, "Transactions"),
    h("div", { class: "bar" }, field("Search", search, "grow"), h("label", { class: "check" }, open, "only open ones")), failed, list);

  async function load() {
    const wanted = { search: search.value, state: open.checked ? "Ongoing" : "" };
    history.replaceState(null, "", "/transactions" + queryOf(wanted));
    const number = ++asked;
    const found = await get("/api/transactions" + queryOf(wanted));
    if (number !== asked || !isHere()) return;
    const text = JSON.stringify(found);
    if (text === last) { // whoever reads or selects is not disturbed
      list.querySelectorAll("[data-started]").forEach((one) => { one.textContent = since(Number(one.dataset.started)); });
      return;
    }
    last = text;
    list.replaceChildren(
      h("p", { class: "quiet" }, `${count(found.matching)} of ${count(found.total)} transactional ids`),
      table([column("Transactional id", "wide"), column("State", "narrow-hidden"), column("Open for", "number"), column("Partitions", "wide narrow-hidden"), column("Holds up", "wide"), column("Producer", "number narrow-hidden"), column("")],
        found.transactions.map((one) => [one.id, tag(one.state, one.state === "Ongoing" ? "warn" : ""),
          one.started === null ? "–" : h("span", { "data-started": one.started }, since(one.started)),
          h("span", {}, one.partitions.map(([topic, number]) => [link(`/topics/${encodeURIComponent(topic)}/partitions`, `${topic}-${number}`), " "])),
          holds(one.begun),
          `${one.producer_id}, epoch ${one.epoch}`,
          writes && one.state === "Ongoing" && h("button", { class: "danger", onclick: () => abort(one) }, "Abort")]),
        "There are no transactions."));
  }
  function holds(begun) {
    const some = begun.filter((one) => one.holds);
    return some.length ? h("span", {}, some.map((one) => h("div", { class: "warn" }, `${one.topic}-${one.partition}: ${many(one.end - one.last_stable, "record")} from ${count(one.from)}`))) : null;
  }
  async function abort(one) {
    const sure = await ask(`Abort ${one.id}`, "Its producer is fenced: what it has written in this transaction is not read by readers of committed records, and its program fails with its next call.", [], { done: "Abort", danger: true });
    if (!sure) return;
    await call("POST", "/api/transaction/abort" + queryOf({ id: one.id }));
    say(`The transaction of ${one.id} is aborted.`);
    await load();
  }
  const asking = again(PAUSE, isHere, failed, load);
  await asking.begun;
  return asking.end;
}

function since(started) {
  return age(Date.now() / 1000 - started);
}
