// What the cluster is, and how much comes in.
import { h, put, table, column, count, octets, problem } from "../dom.js";
import { get } from "../api.js";
import { Plot } from "../plot.js";

const PAUSE = 2000;

export async function overview(main, parts, query, { isHere }) {
  const cluster = await get("/api/cluster");
  const cards = h("div", { class: "cards" });
  const plots = h("div", { class: "plots" });
  const failed = h("div");
  put(main, 
    h("h1", {}, "Overview"), failed, cards, h("h2", {}, "The last minutes"), plots,
    h("h2", {}, "Brokers"),
    table([column("Number", "number"), column("Address"), column("Controller")],
      cluster.brokers.map((one) => [one.id, `${one.host}:${one.port}`, one.id === cluster.controller ? "yes" : ""])),
    cluster.disks.length ? [h("h2", {}, "Disks"),
      table([column("Folder", "wide"), column("Left", "number"), column("Whole", "number")],
        cluster.disks.map((one) => [one.path, octets(one.usable), octets(one.total)]))] : []);
  const records = new Plot(plots, "Records a second", ["in"]);
  const size = new Plot(plots, "Octets a second on disk", ["growth"]);
  let before = null;
  let timer = null;
  async function sample() {
    let now;
    try {
      now = await get("/api/rates");
      failed.replaceChildren();
    } catch (error) {
      failed.replaceChildren(problem(error));
    }
    if (!isHere()) return;
    if (now) {
      cards.replaceChildren(...[
        ["Topics", count(now.topics)], ["Partitions", count(now.partitions)], ["Groups", count(now.groups)],
        ["Records", count(now.records) + (now.partial ? " +" : "")], ["On disk", octets(now.bytes)],
        now.longest_turn === null ? null : ["Longest turn of the hub", `${(now.longest_turn / 1000).toFixed(1)} ms`],
        ["Cluster", cluster.cluster_id],
      ].filter(Boolean).map(([name, value]) => h("div", { class: "card" }, h("span", { class: "quiet" }, name), h("b", { class: value.length > 12 ? "long" : null }, value))));
      if (before && now.time > before.time) {
        const seconds = now.time - before.time;
        records.add(now.time, [Math.max(now.written - before.written, 0) / seconds]);
        if (now.bytes !== null && before.bytes !== null) size.add(now.time, [Math.max(now.bytes - before.bytes, 0) / seconds]);
      }
      if (!before || now.time > before.time) before = now;
    }
    timer = setTimeout(sample, PAUSE);
  }
  await sample();
  return () => { clearTimeout(timer); records.end(); size.end(); };
}
