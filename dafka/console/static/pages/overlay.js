// The overlay: who is peered with whom, what each wants, and the paths to it.
import { h, put, table, column, many, tag } from "../dom.js";
import { get, query as queryOf } from "../api.js";
import { again } from "../again.js";
import { drawn, replaceGraph } from "../graph.js";

const PAUSE = 3000;

export async function overlay(main, parts, query, { isHere }) {
  let chosen = query.get("node") ?? "";
  const failed = h("div");
  const words = h("p", { class: "quiet", role: "status" });
  const picture = h("div");
  const one = h("div");
  const nodes = h("div");
  let last = "";
  put(main, h("h1", {}, "Overlay"), failed, words, picture, one, h("h2", {}, "Nodes"), nodes);

  function choose(id) {
    chosen = chosen === id ? "" : id;
    history.replaceState(null, "", "/overlay" + queryOf({ node: chosen }));
    last = "";
    return look();
  }

  async function look() {
    const found = await get("/api/overlay");
    const text = JSON.stringify([chosen, found]);
    if (!isHere() || text === last) return;
    last = text;
    if (!found.connected) { words.textContent = "This console is not connected with an overlay."; return; }
    words.textContent = `${many(found.total_nodes, "node")}, ${many(found.links.length, "link")}. The console is ${short(found.id)} and is left out.`
      + (found.connecting.length ? ` Not reached: ${found.connecting.join(", ")}.` : "");
    const way = new Set((found.nodes.find((node) => node.id === chosen)?.paths[0] ?? []).flatMap((hop, at, hops) => (at ? [[hops[at - 1], hop].sort().join()] : [])));
    replaceGraph(picture, await drawn("The overlay", found.nodes.map((node) => ({
      id: node.id, title: short(node.id), detail: node.wants === null ? "libbroker" : node.address ?? "", kind: node.direct ? "store" : "consumer",
    })), found.links.map(([from, to]) => ({ from, to, kind: way.has([from, to].sort().join()) ? "way" : "" })), { chosen, choose, directed: false }));
    one.replaceChildren(...detail(found.nodes.find((node) => node.id === chosen)));
    nodes.replaceChildren(table([column("Node", "wide"), column("Address", "narrow-hidden"), column("Direct"), column("Peers", "number"), column("Wants", "wide"), column("Paths", "number")],
      found.nodes.map((node) => [
        h("button", { title: node.id, onclick: () => choose(node.id) }, short(node.id)), node.address ?? "–",
        node.direct ? tag("yes", "good") : "no", found.links.filter((link) => link.includes(node.id)).length,
        node.wants === null ? "not told" : node.wants.join(", ") || "nothing", node.paths.length]), "Nobody is reached."));
  }

  const asking = again(PAUSE, isHere, failed, look);
  await asking.begun;
  return () => asking.end();
}

function detail(node) {
  if (!node) return [];
  return [h("section", { class: "box", "aria-label": "The chosen node" }, h("h2", {}, node.id),
    h("p", {}, node.wants === null ? "It has not told what it wants, as peers of libbroker do not." : `It wants ${node.wants.join(", ") || "nothing"}.`),
    node.paths.length ? h("ol", {}, node.paths.map((hops) => h("li", {}, ["console", ...hops.map(short)].join(" → ")))) : h("p", { class: "quiet" }, "No path of this console leads there."))];
}

function short(id) {
  return id.slice(0, 8);
}
