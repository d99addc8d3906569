// ZPER's servers: who writes, who reads, which replicas and other nodes there are.
import { h, put, table, column, count, octets, tag, age } from "../dom.js";
import { get } from "../api.js";
import { again } from "../again.js";
import { drawn, replaceGraph } from "../graph.js";

const PAUSE = 2000;
const DRAWN = 30; // topics of writers, or of readers

export async function zper(main, parts, query, { isHere }) {
  const failed = h("div");
  const place = h("div");
  const picture = h("div");
  let last = "";
  put(main, h("h1", {}, "ZPER"), failed, picture, place);

  async function look() {
    const found = await get("/api/zper");
    const text = JSON.stringify(found);
    if (!isHere() || text === last) return;
    last = text;
    if (!found.connected) { place.replaceChildren(h("p", { class: "quiet" }, "This console is not connected with ZPER's servers.")); return; }
    if (found.own) {
      const shown = graphOf(found.own);
      replaceGraph(picture, await drawn("ZPER's clients", shown.nodes, shown.edges));
    }
    place.replaceChildren(...(found.own ? own(found.own) : []), ...found.controllers.flatMap(controller));
  }

  const asking = again(PAUSE, isHere, failed, look);
  await asking.begun;
  return () => asking.end();
}

function graphOf(own) {
  const nodes = [{ id: "here", title: "ZPER", detail: "of this broker", kind: "store" }];
  const edges = [];
  const groups = new Map();
  for (const one of own.clients) {
    const id = `${one.server} ${one.topic} ${one.copies}`;
    groups.set(id, [...(groups.get(id) ?? []), one]);
  }
  for (const [id, some] of [...groups].slice(0, DRAWN)) {
    const [{ server, topic, copies }] = some;
    const what = copies ? "node that copies" : server === "writer" ? "writer" : server === "relay" ? "relayed" : "reader";
    nodes.push({ id, title: topic, detail: some.length === 1 ? `1 ${what}` : `${some.length} ${what}s`, kind: server === "writer" ? "producer" : "consumer" });
    edges.push(server === "writer" ? { from: id, to: "here" } : { from: "here", to: id });
  }
  for (const one of own.replicas) {
    nodes.push({ id: `replica ${one.address}`, title: "replica", detail: one.address.replace("tcp://", ""), kind: "store" });
    edges.push({ from: "here", to: `replica ${one.address}`, label: one.behind ? `−${count(one.behind)}` : "", kind: one.behind ? "late" : "good" });
  }
  return { nodes, edges };
}

function own(one) {
  const cards = [
    ["Connections", count(one.metrics.zper_connections)], ["Messages written", count(one.metrics.zper_messages_in)],
    ["Not committed yet", count(one.metrics.zper_unflushed_messages)], ["Streams", count(one.metrics.zper_streams)],
    ["Messages streamed", count(one.metrics.zper_messages_streamed)], ["Waiting to be read", octets(one.metrics.zper_queued_bytes)],
  ];
  return [
    h("h2", {}, "Of this broker"),
    h("div", { class: "cards" }, cards.map(([name, value]) => h("div", { class: "card" }, h("span", { class: "quiet" }, name), h("b", {}, value)))),
    h("h2", {}, "Clients"),
    table([column("Server"), column("Topic", "wide"), column("From"), column("Answers", "narrow-hidden"), column("Reads at", "number"), column("Unread answers", "number narrow-hidden")],
      one.clients.map((client) => [client.server, client.topic, client.address, client.mode?.replaceAll("_", " ") ?? "–", count(client.position), client.server === "writer" ? octets(client.waiting) : "–"]), "Nobody is connected."),
    h("h2", {}, "Replicas"),
    table([column("Address", "wide"), column("Behind by", "number")], one.replicas.map((replica) => [replica.address, h("span", { class: replica.behind ? "warn" : "" }, count(replica.behind))]), "It has none."),
    h("h2", {}, "Nodes"), nodesOf(one.nodes),
    h("h2", {}, "Addresses"), table([column("Server"), column("Address", "wide")], Object.entries(one.servers)),
  ];
}

function controller(one) {
  if (one.error) return [h("h2", {}, one.address), h("p", { class: "warn" }, one.error)];
  return [
    h("h2", {}, `ZPController ${one.address}`), nodesOf(one.nodes),
    one.peers.length ? table([column("Other controller", "wide"), column("Connected")], one.peers.map((peer) => [peer.address, peer.connected ? "yes" : "no"])) : "",
    table([column("Topic", "wide"), column("Node"), column("First position", "number"), column("End", "number")], one.topics.map((topic) => [topic.topic, topic.node.slice(0, 8), count(topic.first), count(topic.end)]), "There are no topics."),
  ];
}

function nodesOf(nodes) {
  return table([column("Node", "wide"), column("State"), column("Silent", "narrow-hidden"), column("Topics", "number"), column("Connections", "number"), column("Replicas behind", "number")],
    nodes.map((node) => [node.id, node.state === "up" ? tag("up", "good") : tag(node.state, "bad"), age(node.silent_ms / 1000), count(node.topics), count(node.health.connections), count(node.health.replica_lag)]));
}
