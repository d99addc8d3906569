// The mesh: a drawn graph of towers, nodes and partitions, the same as tables, and one node in detail.
import { h, put, table, column, field, count, many, tag, age } from "../dom.js";
import { get, query as queryOf, path } from "../api.js";
import { again } from "../again.js";
import { drawn, replaceGraph } from "../graph.js";
import { Plot } from "../plot.js";

const PAUSE = 2000;
const DRAWN = 40; // topics
const ALL = 12; // nodes up to which a tower is drawn with a line to each

export async function mesh(main, parts, query, { isHere }) {
  const state = { search: query.get("search") ?? "", node: query.get("node") ?? "" };
  const failed = h("div");
  const words = h("p", { class: "quiet", role: "status" });
  const picture = h("div");
  const one = h("div");
  const nodes = h("div");
  const towers = h("div");
  const partitions = h("div");
  let timer = null;
  let last = "";
  const search = h("input", { type: "search", value: state.search, placeholder: "part of a topic's name", oninput: () => { clearTimeout(timer); timer = setTimeout(() => set({ search: search.value }), 200); } });
  put(main, h("h1", {}, "Mesh"), failed, h("div", { class: "bar" }, field("Search", search, "grow")), words, picture, one,
    h("h2", {}, "Nodes"), nodes, towers, h("h2", {}, "Partitions"), partitions);
  const chosen = new Chosen(one);
  const named = new Named(towers);

  function set(change) {
    Object.assign(state, change);
    history.replaceState(null, "", "/mesh" + queryOf(state));
    last = "";
    return look();
  }

  const choose = (id) => (id.startsWith("node ") ? set({ node: state.node === id.slice(5) ? "" : id.slice(5) }) : null);

  async function look() {
    const found = await get("/api/mesh" + queryOf({ search: state.search }));
    if (!isHere()) return;
    named.look();
    if (!found.connected) {
      words.textContent = "The broker has not joined a mesh. It does when a tower is given to it, or when the program asks for its own (broker.tower).";
      return;
    }
    if (state.node) await chosen.show(state.node);
    else chosen.hide();
    const text = JSON.stringify([state.node, found.nodes.map((node) => ({ ...node, heard: 0, commands: 0 })), found.partitions.map((row) => ({ ...row, heard: 0 })), found.towers]);
    if (text === last || !isHere()) return; // whoever reads or selects is not disturbed
    last = text;
    words.textContent = summary(found);
    const shown = graphOf(found);
    replaceGraph(picture, await drawn("The mesh", shown.nodes, shown.edges, { chosen: `node ${state.node}`, choose }));
    nodes.replaceChildren(table([column("Node", "wide"), column("Kind"), column("Where"), column("There"), column("Partitions", "number narrow-hidden"), column("Behind by", "number"), column("Follows", "wide narrow-hidden")],
      found.nodes.map((node) => [
        h("button", { title: node.address, onclick: () => set({ node: node.address }) }, short(node.address)),
        kindOf(node), node.process ?? "–", node.present ? tag("yes", "good") : tag("away", "bad"),
        node.partitions === null ? "–" : count(node.partitions), behind(node.behind), follows(node)])));
    partitions.replaceChildren(table([column("Topic", "wide"), column("Partition"), column("First", "number narrow-hidden"), column("End", "number"), column("Records a second", "number narrow-hidden"), column("Produced by"), column("Stored", "wide"), column("Followed by", "narrow-hidden"), column("Asked for", "wide narrow-hidden")],
      found.partitions.map((row) => [row.topic, h("span", { title: row.partition }, short(row.partition)), count(row.first), count(row.end), count(Math.round(row.rate)), producer(row),
        row.stores.length ? h("ul", { class: "plain" }, row.stores.map((store) => h("li", {}, `${short(store.store) || "a C store"} to ${count(store.end)} `, store.behind > 0 ? h("span", { class: "warn" }, `(${count(store.behind)} behind)`) : ""))) : row.led_by ? "by its broker" : h("span", { class: "warn" }, "nowhere known"),
        row.followers.map(short).join(", ") || "–",
        row.fetching.length ? h("ul", { class: "plain" }, row.fetching.map((asked) => h("li", {}, wanted(asked)))) : "–"]),
      "No partition is known."));
  }

  const asking = again(PAUSE, isHere, failed, look);
  await asking.begun;
  return () => { clearTimeout(timer); asking.end(); chosen.hide(); };
}

// One node: what is known of it, its metrics, and how far behind it is.
class Chosen {
  constructor(place) {
    this.place = place;
    this.address = null;
    this.plot = null;
  }

  async show(address) {
    let node;
    try {
      node = await get(path("mesh", "nodes", address));
    } catch (error) {
      this.hide();
      this.place.replaceChildren(h("p", { class: "warn" }, error.message));
      return;
    }
    if (this.address !== address) {
      this.hide();
      this.address = address;
      this.facts = h("div");
      this.curves = h("div", { class: "plots" });
      this.place.replaceChildren(h("section", { class: "box", "aria-label": "The chosen node" },
        h("h2", {}, `${kindOf(node)} ${address}`), this.facts, this.curves));
      if (node.behind !== null) this.plot = new Plot(this.curves, "Behind by, in records", ["behind"]);
    }
    this.facts.replaceChildren(
      h("p", {}, node.present ? tag("there", "good") : tag("away", "bad"), whereIs(node),
        node.heard === null ? "" : `, last heard ${age(node.heard)} ago`, node.behind === null ? "" : `, has ${many(node.partitions, "partition")}, ${many(node.behind, "record")} behind`,
        node.topics.length ? `, follows ${follows(node)}` : "", `. ${many(node.commands, "command")} heard of it.`),
      node.metrics || node.metrics_error ? h("details", { open: this.open ?? false, ontoggle: (event) => { this.open = event.target.open; } },
        h("summary", {}, node.metrics_at ? `Metrics at ${node.metrics_at}` : "Metrics"), metricsOf(node)) : "");
    this.plot?.add(Date.now() / 1000, [node.behind]);
  }

  hide() {
    this.plot?.end();
    this.plot = null;
    this.address = null;
    this.place.replaceChildren();
  }
}

function metricsOf({ metrics, metrics_error: error }) {
  if (!metrics) return h("p", { class: "warn" }, error);
  return table([column("Name"), column("Now", "number")],
    Object.entries(metrics).filter(([, value]) => typeof value === "number").map(([name, value]) => [name, count(value)]));
}

// The servers of metrics that the console was started with. The page does not wait for those that are slow.
class Named {
  constructor(place) {
    this.place = place;
    this.open = new Set();
    this.asking = false;
  }

  async look() {
    if (this.asking) return;
    this.asking = true;
    try {
      this.show((await get("/api/mesh/metrics")).servers);
    } finally {
      this.asking = false;
    }
  }

  show(servers) {
    this.place.replaceChildren(...servers.map((one) => {
      const toggled = (event) => this.open[event.target.open ? "add" : "delete"](one.metrics_at);
      return h("details", { class: "box", open: this.open.has(one.metrics_at), ontoggle: toggled },
        h("summary", {}, `Metrics at ${one.metrics_at}`), metricsOf(one));
    }));
  }
}

function summary(found) {
  const towers = found.towers.map((tower) => `${tower.subscribe_from}${tower.heard ? "" : " (not heard)"}`).join(", ");
  const left = found.matching_partitions - found.partitions.length;
  const some = left > 0 ? `, of which ${count(found.partitions.length)} are shown: those in which most is missing or happens` : "";
  return `Tower ${towers}. ${many(found.total_nodes, "node")}, ${many(found.total_partitions, "partition")}${some}.`;
}

// Partitions of one topic and one source are drawn as one.
function graphOf(found) {
  const known = new Map(found.nodes.map((node) => [node.address, node]));
  const nodes = new Map();
  const edges = [];
  const add = (id, value) => { if (!nodes.has(id)) nodes.set(id, { id, ...value }); return id; };
  const node = (address) => {
    const one = known.get(address);
    return add(`node ${address}`, {
      title: `${one ? kindOf(one) : "store"} ${short(address)}`, kind: one?.kind ?? "store", away: one ? !one.present : false,
      detail: !one ? "" : !one.present ? "away" : one.behind > 0 ? `${count(one.behind)} behind` : one.process ?? "",
    });
  };
  const groups = new Map();
  for (const row of byWeight(found.partitions)) {
    const source = row.led_by ?? (row.producer ? row.process ?? "" : null);
    const key = JSON.stringify([row.topic, source]);
    if (groups.has(key)) groups.get(key).rows.push(row);
    else if (groups.size < DRAWN) groups.set(key, { topic: row.topic, source, rows: [row] });
  }
  const sources = new Set();
  for (const [key, { topic, source, rows }] of groups) {
    const [first] = rows;
    const sum = (of) => rows.reduce((total, row) => total + of(row), 0);
    const id = add(`partition ${key}`, { title: topic, kind: "partition", choose: false,
      detail: rows.length > 1 ? `${count(rows.length)} partitions` : `${first.first ? `${count(first.first)} to ` : "to "}${count(first.end)}` });
    const rate = sum((row) => row.rate);
    if (source !== null) {
      const from = first.led_by ? node(source) : rows.length === 1 && known.has(first.partition) ? node(first.partition) : add(`producers ${source}`, { title: "producer", detail: source, kind: "producer", choose: false });
      sources.add(from);
      edges.push({ from, to: id, label: rate >= 0.5 ? `${count(Math.round(rate))}/s` : "" });
    }
    for (const address of new Set(rows.flatMap((row) => row.stores.map((store) => store.store)))) {
      const missing = sum((row) => row.stores.find((store) => store.store === address)?.behind ?? 0);
      if (address) edges.push({ from: id, to: node(address), label: missing > 0 ? `−${count(missing)}` : "", kind: missing > 0 ? "late" : "good" });
    }
    for (const follower of new Set(rows.flatMap((row) => row.followers))) edges.push({ from: id, to: node(follower), kind: "follows" });
  }
  for (const one of found.nodes) if (one.present || one.heard !== null) node(one.address);
  for (const tower of found.towers) {
    const id = add(`tower ${tower.subscribe_from}`, { title: "tower", detail: tower.subscribe_from.replace("tcp://", ""), kind: "tower", away: !tower.heard, choose: false });
    const met = nodes.size <= ALL ? [...nodes.keys()].filter((other) => other.startsWith("node ") || other.startsWith("producers ")) : [...sources];
    for (const other of met) edges.push({ from: id, to: other, kind: "beacon" });
  }
  return { nodes: [...nodes.values()], edges };
}

function byWeight(rows) {
  const missing = (row) => Math.max(0, ...row.stores.map((store) => store.behind));
  return [...rows].sort((one, other) => missing(other) - missing(one) || other.rate - one.rate || other.end - one.end);
}

function kindOf(node) {
  return node.name ?? node.kind;
}

function whereIs({ process }) {
  if (!process) return "in a process that has said nothing yet";
  return process === "here" ? "in this process" : `in ${process}`;
}

// The empty topic is the beginning of all of them.
function follows({ topics }) {
  return topics.map((topic) => topic || "all topics").join(", ") || "–";
}

function producer(row) {
  if (row.led_by) return h("span", {}, "broker ", h("span", { title: row.led_by }, short(row.led_by)));
  return row.producer ? `itself, ${row.process ?? "nothing heard yet"}` : h("span", { class: "quiet" }, "away");
}

function behind(records) {
  if (records === null) return "–";
  return records > 0 ? h("span", { class: "warn" }, count(records)) : "0";
}

function wanted(asked) {
  const often = asked.times > 3 ? h("span", { class: "warn" }, ` (${count(asked.times)} times: nobody sends it)`) : "";
  return [`${short(asked.node)} from ${count(asked.from)}`, often];
}

function short(address) {
  return address.slice(0, 8);
}
