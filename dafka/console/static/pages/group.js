// One group: members, offsets and lags, with a curve while it is looked at.
import { h, put, link, table, column, count, many, ask, say, problem } from "../dom.js";
import { call, get, query as queryOf } from "../api.js";
import { Plot } from "../plot.js";
import { stateTag } from "./groups.js";

const PAUSE = 2000;

// A member's partitions, as "orders 0-3, 7; payments 1".
function assigned(partitions) {
  const topics = new Map();
  for (const [topic, number] of partitions) topics.set(topic, [...(topics.get(topic) ?? []), number]);
  return [...topics].map(([topic, numbers]) => `${topic} ${ranges(numbers)}`).join("; ") || "none";
}

function ranges(numbers) {
  const found = [];
  for (const one of numbers.sort((left, right) => left - right)) {
    if (found.length && found.at(-1)[1] === one - 1) found.at(-1)[1] = one;
    else found.push([one, one]);
  }
  return found.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ");
}

export async function group(main, parts, query, { go, writes, isHere }) {
  const name = query.get("name") ?? "";
  const where = queryOf({ name });
  const head = h("p");
  const members = h("div");
  const partitions = h("div");
  const failed = h("div");
  const place = h("div", { class: "plots" });
  const kind = h("div");
  put(main, 
    h("h1", {}, link("/groups", "Groups"), " / ", name), failed, head,
    writes && h("div", { class: "bar" }, h("button", { onclick: reset }, "Reset offsets"), h("button", { class: "danger", onclick: remove }, "Delete")),
    place, h("h2", {}, "Partitions"), partitions, kind, h("h2", {}, "Members"), members);
  const found = await get("/api/group" + where);
  const plot = new Plot(place, "Lag in records", ["lag"]);
  let timer = null;
  let last = "";

  function show(one) {
    plot.add(Date.now() / 1000, [one.lag]);
    const text = JSON.stringify(one);
    if (text === last) return; // whoever reads or selects is not disturbed
    last = text;
    head.replaceChildren(stateTag(one.state), ` ${one.type} group, ${many(one.total_members, "member")}, lag ${count(one.lag)}`,
      one.epoch === null ? "" : `, epoch ${one.epoch}`, one.assignor ? `, assigned by ${one.assignor}` : "");
    partitions.replaceChildren(table(
      [column("Topic", "wide"), column("Partition", "number"), column("Offset", "number"), column("End", "number narrow-hidden"), column("Lag", "number"), column("Member", "wide narrow-hidden")],
      one.partitions.map((row) => [
        link(`/topics/${encodeURIComponent(row.topic)}`, row.topic),
        row.offset === null ? row.partition : link(`/topics/${encodeURIComponent(row.topic)}${queryOf({ partitions: row.partition, from: row.offset })}`, String(row.partition)),
        count(row.offset), count(row.end), h("span", { class: row.lag > 0 ? "warn" : "" }, count(row.lag)), row.client ?? "–"]),
      "It has no offsets yet."));
    kind.replaceChildren(...deliveries(one), ...topology(one));
    members.replaceChildren(table([column("Member", "wide narrow-hidden"), column("Client", "wide"), column("Host", "narrow-hidden"), column("Partitions", "wide"), column("")],
      one.members.map((row) => [row.instance ?? row.member, row.client, row.host,
        assigned(row.partitions),
        writes && h("button", { onclick: () => takeOut(row), "aria-label": `Take out ${row.client}` }, "Take out")]),
      "It has no members now."));
  }

  function deliveries({ deliveries: rows }) {
    if (!rows) return [];
    const times = (row) => Object.entries(row.deliveries).map(([often, many]) => `${many} × ${often}`).join(", ");
    return [h("h2", {}, "States of delivery"), table(
      [column("Topic", "wide"), column("Partition", "number"), column("From", "number"), column(rows.every((row) => row.acquired === null) ? "Available or acquired" : "Available", "number"), column("Acquired", "number"),
        column("Acknowledged", "number"), column("Archived", "number"), column("Not looked at", "number"), column("Records × deliveries", "wide")],
      rows.map((row) => [row.topic, row.partition, row.start < 0 ? "–" : link(`/topics/${encodeURIComponent(row.topic)}${queryOf({ partitions: row.partition, from: row.start })}`, count(row.start)),
        count(row.available), h("span", { title: Object.entries(row.holders).map(([member, many]) => `${member}: ${many}`).join("\n") }, count(row.acquired)),
        count(row.acknowledged), count(row.archived), count(row.ahead), times(row)]),
      "No record was delivered yet.")];
  }

  function topology({ topology: one, tasks }) {
    if (!tasks) return [];
    const share = (some) => ["active", "standby", "warmup"].filter((role) => some[role].length).map((role) => `${role} ${some[role].join(" ")}`).join("; ") || "none";
    return [h("h2", {}, "Topology"), one === null ? h("p", { class: "quiet" }, "It has no topology yet.") : h("div", {},
      h("p", { class: "quiet" }, `Epoch ${one.epoch}`),
      table([column("Subtopology", "wide"), column("Reads", "wide"), column("Writes", "wide"), column("Keeps its state in", "wide")],
        one.subtopologies.map((row) => [row.name, [...row.sources, ...row.repartition_sources].join(", "), row.repartition_sinks.join(", "), row.changelogs.join(", ")]))),
      h("h2", {}, "Tasks"), table(
        [column("Member", "wide"), column("Process", "wide"), column("Endpoint"), column("Runs", "wide"), column("Is to run", "wide")],
        tasks.map((row) => [row.client || row.member, row.process, row.endpoint, share(row.assigned),
          JSON.stringify(row.assigned) === JSON.stringify(row.target) ? "the same" : share(row.target)]), "It has no members now.")];
  }

  async function again() {
    try {
      const one = await get("/api/group" + where);
      if (!isHere()) return;
      failed.replaceChildren();
      show(one);
    } catch (error) {
      failed.replaceChildren(problem(error));
    }
    if (isHere()) timer = setTimeout(again, PAUSE);
  }

  async function reset() {
    const now = await get("/api/group" + where);
    const topics = [...new Set(now.partitions.map((one) => one.topic))];
    const busy = now.total_members ? ` It has ${many(now.total_members, "member")}: nothing can be changed before they have left.` : "";
    const given = await ask("Reset offsets", `What would change is shown first.${busy}`, [
      ["Topic (empty: all that it has read)", [h("input", { name: "topic", list: "its-topics" }), h("datalist", { id: "its-topics" }, topics.map((one) => h("option", { value: one })))]],
      ["To: earliest, latest, an offset, -10, a time, 2h; or by +N or by -N", h("input", { name: "to", value: "earliest", required: true })],
    ], { done: "Show" });
    if (!given) return;
    const by = /^by ([+-]?\d+)$/.exec(given.to.trim());
    const body = { ...(given.topic && { topic: given.topic }), ...(by ? { by: Number(by[1]) } : { to: given.to.trim() }) };
    const preview = await call("POST", "/api/group/reset" + where, body);
    const changed = preview.partitions.filter((one) => one.offset !== one.new_offset);
    const rows = h("div", {}, table([column("Topic", "wide"), column("Partition", "number"), column("Now", "number"), column("Then", "number")],
      changed.map((one) => [one.topic, one.partition, count(one.offset), count(one.new_offset)]), "Nothing would change."));
    const sure = await ask("These offsets change", null, [["", rows]], { done: "Change them", danger: true });
    if (!sure) return;
    await call("POST", "/api/group/reset" + where, { ...body, execute: true });
    say(`${count(changed.length)} offsets are changed${topics.length ? "" : " of a new group"}.`);
    show(await get("/api/group" + where));
  }

  async function remove() {
    if (!(await ask(`Delete ${name}`, "The group goes with its offsets.", [], { done: "Delete", danger: true }))) return;
    await call("DELETE", "/api/group" + where);
    say(`Group ${name} is deleted.`);
    go("/groups");
  }

  async function takeOut(row) {
    if (!(await ask("Take out a member", `${row.client} on ${row.host} rebalances, and may join again.`, [], { done: "Take out", danger: true }))) return;
    await call("POST", "/api/group/remove-member" + where, { member: row.member, instance: row.instance });
    show(await get("/api/group" + where));
  }

  show(found);
  timer = setTimeout(again, PAUSE);
  return () => { clearTimeout(timer); plot.end(); };
}
