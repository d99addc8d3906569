// What the cluster is, how much comes and goes, how long it takes, and what it has warned of.
import { h, put, table, column, count, octets, tag } from "../dom.js";
import { get } from "../api.js";
import { again } from "../again.js";
import { Plot } from "../plot.js";

const PAUSE = 2000;

export async function overview(main, parts, query, { isHere }) {
  const cluster = await get("/api/cluster");
  const cards = h("div", { class: "cards" });
  const plots = h("div", { class: "plots" });
  const warnings = h("div", { role: "status" });
  const failed = h("div");
  put(main,
    h("h1", {}, "Overview"), failed, warnings, cards, h("h2", {}, "The last minutes"), plots,
    h("h2", {}, "Brokers"),
    table([column("Number", "number"), column("Address"), column("Controller")],
      cluster.brokers.map((one) => [one.id, `${one.host}:${one.port}`, one.id === cluster.controller ? "yes" : ""])),
    cluster.disks.length ? [h("h2", {}, "Disks"),
      table([column("Folder", "wide"), column("Left", "number"), column("Whole", "number")],
        cluster.disks.map((one) => [one.path, octets(one.usable), octets(one.total)]))] : []);
  const drawn = new Map();
  const plot = (title, names, unit) => {
    if (!drawn.has(title)) drawn.set(title, new Plot(plots, title, names, unit));
    return drawn.get(title);
  };
  let before = null;
  let told = "";

  async function sample() {
    const [now, { notices }] = await Promise.all([get("/api/rates"), get("/api/notices").catch(() => ({ notices: [] }))]);
    if (!isHere()) return;
    showCards(now);
    const text = JSON.stringify(notices.map((one) => [one.text, one.times]));
    if (text !== told) warnings.replaceChildren(...warned(notices));
    told = text;
    if (before && now.time > before.time) draw(now, before);
    if (!before || now.time > before.time) before = now;
  }

  function showCards(now) {
    const times = (some) => some && some.map(ms).join(" / ");
    cards.replaceChildren(...[
      ["Topics", count(now.topics)], ["Partitions", count(now.partitions)], ["Groups", count(now.groups)],
      ["Records", count(now.records) + (now.partial ? " +" : "")],
      now.bytes !== null && ["On disk", octets(now.bytes)],
      now.disk_left !== null && ["Disk left", octets(now.disk_left)],
      now.connections !== null && ["Connections", count(now.connections)],
      now.longest_turn !== null && ["Longest turn of the hub", ms(now.longest_turn / 1e6)],
      now.latencies && ["Produce p50 / p99", times(now.latencies.produce) ?? "–"],
      now.latencies && ["Fetch p50 / p99", times(now.latencies.fetch) ?? "–"],
      ["Cluster", cluster.cluster_id],
    ].filter(Boolean).map(([name, value]) => h("div", { class: "card" }, h("span", { class: "quiet" }, name), h("b", { class: value.length > 11 ? "long" : null }, value))));
  }

  function draw(now, last) {
    const seconds = now.time - last.time;
    const rate = (name) => Math.max(now[name] - last[name], 0) / seconds;
    const own = now.records_in !== null && last.records_in !== null;
    const inside = own ? rate("records_in") : rate("written");
    plot("Records a second", own ? ["in", "out"] : ["in"], whole).add(now.time, own ? [inside, rate("records_out")] : [inside]);
    if (own) plot("Octets a second", ["in", "out"], octets).add(now.time, [rate("octets_in"), rate("octets_out")]);
    else if (now.bytes !== null && last.bytes !== null) plot("Octets a second on disk", ["growth"], octets).add(now.time, [rate("bytes")]);
    if (!now.latencies) return;
    const { produce, fetch } = now.latencies;
    const names = ["produce p50", "p99", "fetch p50", "p99"];
    plot("Latency in milliseconds", names, (value) => value.toFixed(1)).add(now.time, [...(produce ?? [null, null]), ...(fetch ?? [null, null])].map((one) => one === null ? null : one * 1000));
  }

  const asking = again(PAUSE, isHere, failed, sample);
  await asking.begun;
  return () => { asking.end(); drawn.forEach((one) => one.end()); };
}

function whole(number) {
  return count(Math.round(number));
}

function ms(seconds) {
  const value = seconds * 1000;
  return `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })} ms`;
}

function warned(notices) {
  if (!notices.length) return [];
  const rows = notices.map((one) => h("li", {}, tag(one.level, one.level === "warning" ? "warn" : "bad"), one.text,
    one.times > 1 && h("span", { class: "quiet" }, ` (${count(one.times)} times)`),
    h("span", { class: "quiet" }, ` ${new Date(one.time * 1000).toISOString().slice(11, 19)}`)));
  return [h("details", { class: "box", open: notices.length < 4 }, h("summary", {}, notices.length === 1 ? "1 warning" : `${notices.length} warnings`), h("ul", { class: "notices" }, rows))];
}
