// A drawn graph: dagre says where things are, this draws them as SVG that can be reached with the keyboard.
import { h, visible } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const LETTER = 7.4; // pixels of one, about
const MOST = 30; // letters of a line
const LEAST = 0.7; // of its size that a wide graph is drawn with; then it is scrolled

// `nodes`: {id, title, detail, kind, away}; `edges`: {from, to, label, kind}. `choose(id)` is called for a node that
// is chosen; kinds and `away` become classes. Resolves to an element.
export async function drawn(name, nodes, edges, { chosen = null, choose = null, directed = true } = {}) {
  if (!nodes.length) return h("p", { class: "quiet" }, "There is nothing to be drawn.");
  const { Graph, layout } = await import("/static/vendor/dagre.esm.js");
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 70, edgesep: 10, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const one of nodes) {
    const letters = Math.max(cut(one.title).length, cut(one.detail ?? "").length, 6);
    graph.setNode(one.id, { ...one, width: letters * LETTER + 24, height: one.detail ? 46 : 30 });
  }
  edges.forEach((one, index) => {
    if (!graph.hasNode(one.from) || !graph.hasNode(one.to)) return;
    graph.setEdge(one.from, one.to, { ...one, width: one.label ? one.label.length * LETTER : 1, height: one.label ? 16 : 1, labelpos: "c" }, String(index));
  });
  layout(graph);
  const { width, height } = graph.graph();
  const svg = element("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "group", class: "graph", "aria-label": name,
  });
  svg.style.minWidth = `${Math.min(width, Math.max(width * LEAST, 600))}px`;
  if (directed) {
    const marker = element("marker", { id: "arrow", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" });
    marker.append(element("path", { d: "M 0 0 L 10 5 L 0 10 z", class: "arrow" }));
    svg.append(marker);
  }
  for (const edge of graph.edges()) {
    const one = graph.edge(edge);
    svg.append(element("path", { d: curve(one.points), class: `edge ${one.kind ?? ""}`, "marker-end": directed ? "url(#arrow)" : null }));
    if (one.label) svg.append(text(one.x, one.y + 4, one.label, `label ${one.kind ?? ""}`));
  }
  for (const id of graph.nodes()) {
    const one = graph.node(id);
    const group = element("g", { class: `node ${one.kind ?? ""} ${one.away ? "away" : ""} ${id === chosen ? "chosen" : ""}`, "data-id": id });
    group.append(element("rect", { x: one.x - one.width / 2, y: one.y - one.height / 2, width: one.width, height: one.height, rx: one.kind === "partition" ? 2 : 12 }));
    group.append(text(one.x, one.detail ? one.y - 4 : one.y + 5, cut(one.title), "title"));
    if (one.detail) group.append(" ", text(one.x, one.y + 14, cut(one.detail), "detail"));
    if (choose && one.choose !== false) {
      for (const [key, value] of [["tabindex", 0], ["role", "button"], ["aria-pressed", id === chosen]]) group.setAttribute(key, value);
      group.addEventListener("click", () => choose(id));
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(id);
      });
    } else {
      const hint = element("title", {});
      hint.textContent = visible(`${one.title} ${one.detail ?? ""}`); // what is cut
      group.prepend(hint);
    }
    svg.append(group);
  }
  return h("div", { class: "scroll graph-box", tabindex: "0", role: "region", "aria-label": `${name}, drawn` }, svg);
}

// Puts a graph in place of another one, and the focus where it was.
export function replaceGraph(place, made) {
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("data-id") : null;
  const [left, top] = [place.firstChild?.scrollLeft ?? 0, place.firstChild?.scrollTop ?? 0];
  place.replaceChildren(made);
  made.scrollLeft = left;
  made.scrollTop = top;
  if (focused) [...place.querySelectorAll("[data-id]")].find((one) => one.getAttribute("data-id") === focused)?.focus({ preventScroll: true });
}

function cut(words) {
  return words.length > MOST ? `${words.slice(0, MOST - 1)}…` : words;
}

function curve(points) {
  const [first, ...rest] = points;
  let d = `M ${first.x} ${first.y}`;
  for (let at = 0; at < rest.length - 1; at += 1) {
    const end = at === rest.length - 2 ? rest[at + 1] : { x: (rest[at].x + rest[at + 1].x) / 2, y: (rest[at].y + rest[at + 1].y) / 2 };
    d += ` Q ${rest[at].x} ${rest[at].y} ${end.x} ${end.y}`;
  }
  return rest.length === 1 ? `${d} L ${rest[0].x} ${rest[0].y}` : d;
}

function text(x, y, words, kind) {
  const one = element("text", { x, y, class: kind });
  one.textContent = visible(words);
  return one;
}

function element(tag, attributes) {
  const one = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) one.setAttribute(name, value);
  }
  return one;
}
