// One topic: records, partitions, settings, producers.
import { h, put, link, table, column, age, count, many, octets, moment, ask, say, tag } from "../dom.js";
import { call, get, path, query as queryOf } from "../api.js";
import { records } from "./records.js";

const TABS = [["", "Records"], ["partitions", "Partitions"], ["settings", "Settings"], ["producers", "Producers"]];

export async function topic(main, [name, tab = ""], query, context) {
  const here = `/topics/${encodeURIComponent(name)}`;
  const body = h("div");
  put(main, 
    h("h1", {}, link("/topics", "Topics"), " / ", name),
    h("nav", { class: "tabs", "aria-label": "Of the topic" },
      TABS.map(([path, title]) => h("a", { href: path ? `${here}/${path}` : here, "aria-current": path === tab ? "page" : null }, title))),
    body);
  const pages = { "": records, partitions, settings, producers };
  if (!pages[tab]) throw new Error(`A topic has no page ${tab}.`);
  return pages[tab](body, name, query, context);
}

async function partitions(main, name, query, { go, writes }) {
  const found = await get(path("topics", name));
  const again = () => go(location.href, true);
  put(main, 
    writes && h("div", { class: "bar" },
      h("button", { onclick: add }, "Add partitions"), h("button", { class: "danger", onclick: empty }, "Empty"),
      h("button", { class: "danger", onclick: remove }, "Delete the topic")),
    table([column("Partition", "number"), column("First", "number"), column("End", "number"), column("Records", "number narrow-hidden"), column("Last stable", "number"), column("On disk", "number narrow-hidden"), column("Leader", "number narrow-hidden"), column("Leader epoch", "number narrow-hidden")],
      found.partitions.map((one) => [
        link(`/topics/${encodeURIComponent(name)}?partitions=${one.partition}`, String(one.partition)),
        count(one.first), count(one.end), one.first === null ? "–" : count(one.end - one.first),
        one.last_stable !== null && one.last_stable < one.end ? h("span", { class: "warn", title: "An open transaction holds it" }, count(one.last_stable)) : count(one.last_stable),
        octets(one.bytes), one.leader, count(one.leader_epoch)])),
    h("p", { class: "quiet" }, `Topic id ${found.id}`), await open());

  async function open() {
    if (!found.partitions.some((one) => one.last_stable !== null && one.last_stable < one.end)) return null;
    const { transactions } = await get(path("topics", name, "transactions"));
    return [h("h2", {}, "Open transactions"), table(
      [column("Partition", "number"), column("Transactional id", "wide"), column("Producer", "number"), column("From", "number"), column("Last write"), column("Open for", "number"), column("", "wide")],
      transactions.map((one) => [one.partition,
        one.id === null ? h("span", { class: "warn" }, "no transaction has it: it hangs") : link(`/transactions${queryOf({ search: one.id })}`, one.id),
        `${one.producer_id}, epoch ${one.epoch}`, count(one.from), moment(one.last_write), one.started === null ? "–" : age(Date.now() / 1000 - one.started),
        h("span", {}, one.holds && tag(`holds up ${many(one.end - one.last_stable, "record")}`, "warn"), " ",
          writes && one.id === null && h("button", { class: "danger", onclick: () => end(one) }, "Abort"))]))];
  }
  async function end(one) {
    const sure = await ask("Abort what hangs", `What producer ${one.producer_id} has written to partition ${one.partition} from ${one.from} on is not read by readers of committed records. Do it only if its program has ended.`, [], { done: "Abort", danger: true });
    if (!sure) return;
    await call("POST", path("topics", name, "abort"), { partition: one.partition, producer_id: one.producer_id, epoch: one.epoch });
    again();
  }

  async function add() {
    const given = await ask("Add partitions", "Keys that are hashed go to other partitions from then on.", [
      ["How many it is to have", h("input", { name: "total", type: "number", min: found.partitions.length + 1, max: 100000, value: found.partitions.length + 1, required: true })]]);
    if (!given) return;
    await call("POST", path("topics", name, "partitions"), { total: Number(given.total) });
    again();
  }
  async function empty() {
    const given = await ask("Empty the topic", "Records before this place are deleted for good.", [
      ["Before: latest, an offset, -1000, 2h, 7d, a time", h("input", { name: "before", value: "latest", required: true })]], { done: "Delete records", danger: true });
    if (!given) return;
    await call("POST", path("topics", name, "empty"), { before: given.before });
    again();
  }
  async function remove() {
    const given = await ask(`Delete ${name}`, "The topic goes with all its records. Write its name to do it.", [
      ["Name", h("input", { name: "name", required: true, autocomplete: "off" })]], { done: "Delete", danger: true });
    if (!given) return;
    if (given.name !== name) { say("That is not its name: nothing was deleted."); return; }
    await call("DELETE", path("topics", name));
    say(`Topic ${name} is deleted.`);
    go("/topics");
  }
}

async function settings(main, name, query, { writes }) {
  const list = h("div");
  const own = h("input", { type: "checkbox", checked: query.get("own") === "true", onchange: () => show() });
  const search = h("input", { type: "search", oninput: () => show(), placeholder: "part of a name" });
  put(main, h("div", { class: "bar" }, h("label", { class: "grow" }, "Search", search), h("label", { class: "check" }, own, "only what is set")), list);
  const url = "/api/configs" + queryOf({ kind: "topic", name });
  let rows = [];
  async function load() {
    rows = (await get(url)).configs.sort((one, other) => other.own - one.own); // what is set comes first
    show();
  }
  async function change(body, text) {
    await call("PATCH", url, body);
    say(text);
    await load();
  }
  async function edit(one) {
    const given = await ask(one.name, one.documentation, [["Value", h("input", { name: "value", value: one.value ?? "" })]], { done: "Set" });
    if (given) await change({ set: { [one.name]: given.value } }, `${one.name} is ${given.value} now.`);
  }
  function show() {
    const wanted = rows.filter((one) => one.name.includes(search.value) && (one.own || !own.checked));
    list.replaceChildren(table([column("Setting", "wide dotted"), column("Value", "wide"), column("From", "narrow-hidden"), column("")],
      wanted.map((one) => [
        h("span", { title: one.documentation ?? "" }, one.own ? h("b", {}, dotted(one.name)) : dotted(one.name)),
        one.sensitive ? tag("secret") : h("span", {}, h("span", { class: "value" }, one.value ?? ""), meaning(one)), one.source.replaceAll("_", " "),
        writes && !one.read_only && h("span", {},
          h("button", { onclick: () => edit(one), "aria-label": `Change ${one.name}` }, "Change"), " ",
          one.own && h("button", { onclick: () => change({ unset: [one.name] }, `${one.name} has its default again.`), "aria-label": `Unset ${one.name}` }, "Unset"))]),
      "No setting is like that."));
  }
  await load();
}

// A name that may be broken behind each of its dots.
function dotted(name) {
  return name.split(/(?<=\.)/).flatMap((part, index) => (index ? [h("wbr"), part] : [part]));
}

// What a number of milliseconds or octets is in words.
function meaning({ name, value }) {
  const number = Number(value);
  if (!(number >= 1000) || number > 1e15) return null;
  if (name.endsWith(".ms")) return h("span", { class: "quiet" }, ` (${age(number / 1000)})`);
  return name.endsWith(".bytes") ? h("span", { class: "quiet" }, ` (${octets(number)})`) : null;
}

async function producers(main, name) {
  const found = await get(path("topics", name, "producers"));
  put(main, table([column("Partition", "number"), column("Producer", "number"), column("Epoch", "number narrow-hidden"), column("Last sequence", "number narrow-hidden"), column("Last write"), column("Open transaction from", "number")],
    found.producers.map((one) => [one.partition, one.producer_id, one.epoch, one.last_sequence, moment(one.last_timestamp), count(one.transaction_start)]),
    "No idempotent producer has written here lately."));
}
