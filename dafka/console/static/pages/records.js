// Records of a topic: pages, a search, what comes now; and new ones.
import { h, put, field, count, many, octets, moment, ask, tag, problem } from "../dom.js";
import { get, path, query as queryOf } from "../api.js";
import { writeMany, writeOne } from "./writing.js";
import { origin, short, whole } from "../values.js";

const LONGEST_KEY = 1000; // characters of one that a search may name
const SHOWN = 500; // records in the page, whatever comes

export async function records(main, name, query, { writes, isHere }) {
  const state = {
    from: query.get("from") ?? "latest", to: query.get("to") ?? "", partitions: query.get("partitions") ?? "", expression: query.get("expression") ?? "",
    decode: query.get("decode") ?? "auto", "decode-key": query.get("decode-key") ?? "auto",
    limit: query.get("limit") ?? "50", after: query.get("after"), before: query.get("before"), live: query.get("live") ?? "",
  };
  let source = null;
  const input = (key, more) => h("input", { value: state[key], ...more });
  const from = input("from", { list: "places", size: 14, title: "latest, earliest, an offset, -100, a time in UTC as 2026-01-31 12:00, 2h" });
  const to = input("to", { list: "places", size: 10, placeholder: "the end", title: "where a search and a download end: an offset, a time in UTC, 2h" });
  const numbers = input("partitions", { placeholder: "all", size: 8, pattern: "[0-9]+(,[0-9]+)*", title: "as 0,2,5" });
  const expression = input("expression", { placeholder: 'text, or value.amount > 100 and key == "k"', spellcheck: false });
  const forms = { list: "forms", size: 9, pattern: "auto|none|msgpack|schema:[0-9]+(:[A-Za-z0-9_.]*)?", title: "auto, none, msgpack, schema:ID or schema:ID:MESSAGE of the schema registry" };
  const decode = input("decode", forms);
  const decodeKey = input("decode-key", forms);
  const limit = h("select", {}, ["20", "50", "100", "200", "500"].map((one) => h("option", { selected: one === state.limit }, one)));
  const as = h("select", { onchange: () => show(shown) }, ["auto", "text", "json", "hex"].map((one) => h("option", {}, one)));
  const list = h("div", { class: "rows", id: "records" });
  const status = h("div", { role: "status", class: "bar" });
  const more = h("div", { class: "bar" });
  let shown = [];
  const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); read({ after: null, before: null, live: "" }); } },
    field("From", from), h("datalist", { id: "places" }, ["latest", "earliest", "-100", "15m", "2h", "7d"].map((one) => h("option", { value: one }))),
    field("Partitions", numbers), field("Search", expression, "grow"), field("Search up to", to), field("Page", limit), field("Show as", as),
    field("Decode values", decode), field("Decode keys", decodeKey),
    h("datalist", { id: "forms" }, ["auto", "none", "msgpack", "schema:1"].map((one) => h("option", { value: one }))),
    h("button", { class: "main" }, "Read"), h("button", { type: "button", onclick: follow }, "Follow live"),
    writes && [h("button", { type: "button", onclick: () => write(writeOne) }, "Write"), " ", h("button", { type: "button", onclick: () => write(writeMany) }, "Write many")], h("button", { type: "button", onclick: download }, "Download"));
  const words = [
    ["error", "the word is in the key or the value, as it is written"],
    ['key == "user-7"', "also !=, <, <=, >, >=, contains, starts, ends"],
    ["value.items.0.sku", "a field of JSON, or of what was decoded; key.FIELD too"],
    ["header.type", "a header"], ["partition, offset, size", "numbers"],
    ['timestamp >= "2026-01-31 12:00" and timestamp < "2h"', "times: in UTC, or so long ago"],
    ["… and …, … or …, not …, ( … )", "several of them"],
  ];
  const syntax = h("details", { class: "syntax" }, h("summary", {}, "What a search may say"),
    h("dl", {}, words.map(([code, meaning]) => [h("dt", {}, h("code", {}, code)), h("dd", {}, meaning)])));
  put(main, form, syntax, status, list, more);

  function stop() {
    source?.close();
    source = null;
  }

  function remember(change) {
    Object.assign(state, { from: from.value || "latest", to: to.value, partitions: numbers.value, expression: expression.value, limit: limit.value, decode: decode.value || "auto", "decode-key": decodeKey.value || "auto" }, change);
    const usual = { from: "latest", limit: "50", decode: "auto", "decode-key": "auto" };
    history.replaceState(null, "", location.pathname + queryOf(Object.fromEntries(Object.entries(state).filter(([key, value]) => usual[key] !== value))));
  }

  async function read(change = {}) {
    stop();
    remember(change);
    if (state.expression.trim()) { search(); return; }
    status.replaceChildren();
    try {
      const { from: start, after, before, limit: most } = state;
      const page = await get(path("topics", name, "records") + queryOf({ from: start, partitions: state.partitions, limit: most, after, before, ...decoding() }));
      if (!isHere()) return;
      show(page.records.reverse());
      more.replaceChildren(...[
        page.next && h("button", { onclick: () => read({ after: page.next, before: null }) }, "Newer"),
        page.previous && h("button", { onclick: () => read({ before: page.previous, after: null }) }, "Older")].filter(Boolean));
    } catch (error) {
      list.replaceChildren(problem(error));
      more.replaceChildren();
    }
  }

  function decoding() {
    return { decode: state.decode, "decode-key": state["decode-key"] };
  }

  function listen(url, handlers) {
    stop();
    const own = (source = new EventSource(url));
    for (const [event, handler] of Object.entries(handlers)) own.addEventListener(event, (one) => own === source && handler(JSON.parse(one.data)));
    own.onerror = async () => {
      if (own !== source) return;
      stop();
      try { // a stream tells no reason, the same question without one does
        const response = await fetch(url, { signal: AbortSignal.timeout(3000) });
        const reason = response.ok ? { message: "The connection ended." } : await response.json();
        response.body?.cancel().catch(() => {});
        status.replaceChildren(problem(reason.error === "ExpressionError" ? { message: `The search is not understood: ${reason.message}.` } : reason));
      } catch {
        status.replaceChildren(problem({ message: "The connection ended." }));
      }
    };
  }

  function search() {
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress of the search" });
    const words = h("span", {}, "Searching …");
    const button = h("button", { onclick: () => { stop(); words.textContent += " Stopped."; button.remove(); } }, "Stop");
    status.replaceChildren(bar, words, button);
    more.replaceChildren();
    show([]);
    const tell = ({ scanned, total, found }) => {
      bar.max = Math.max(total, 1);
      bar.value = scanned;
      words.textContent = `${count(found)} found in ${count(scanned)} of ${many(total, "record")}.`;
    };
    const start = state.from === "latest" ? "earliest" : state.from;
    listen(path("topics", name, "search") + queryOf({ from: start, to: state.to, partitions: state.partitions, expression: state.expression, limit: state.limit, ...decoding() }), {
      found: (event) => add(event.records),
      progress: tell,
      trouble: (event) => list.prepend(problem(event)),
      end: (event) => { tell(event); stop(); button.remove(); if (event.full) words.textContent += " There may be more: raise the page."; },
    });
  }

  function follow() {
    remember({ after: null, before: null, live: "true" });
    let passed = 0;
    let came = 0;
    const words = h("span", {}, "Following: what comes shows here.");
    const button = h("button", { onclick: () => { stop(); remember({ live: "" }); words.textContent += " Stopped."; button.remove(); } }, "Stop");
    status.replaceChildren(tag("live", "good"), words, button);
    more.replaceChildren();
    show([]);
    listen(path("topics", name, "follow") + queryOf({ partitions: state.partitions, expression: state.expression, ...decoding() }), {
      trouble: (event) => { stop(); button.remove(); status.append(problem(event)); },
      records: (event) => {
        came += event.records.length;
        passed += event.skipped;
        words.textContent = `${count(came)} shown${passed ? `, ${count(passed)} passed over` : ""}.`;
        add(event.records.reverse(), true);
      },
    });
  }

  function add(some, newest = false) {
    if (!shown.length) list.replaceChildren();
    const rows = some.map(row);
    if (newest) list.prepend(...rows);
    else list.append(...rows);
    shown = newest ? [...some, ...shown] : [...shown, ...some];
    while (shown.length > SHOWN) { shown.pop(); list.lastElementChild.remove(); }
  }

  function show(some) {
    shown = some;
    list.replaceChildren(...(some.length ? some.map(row) : [h("p", { class: "quiet" }, "No records here.")]));
  }

  function row(one) {
    const marks = [
      one.value === null && tag("tombstone", "warn"), one.transaction && tag(`transaction ${one.transaction}`, one.transaction === "committed" ? "" : "warn"),
      one.value?.decoded && tag(origin(one.value.decoded)), one.value?.note && tag("not decoded", "warn"), one.batch.compression && tag(one.batch.compression), one.total_headers > 0 && tag(many(one.total_headers, "header")), one.value?.cut && tag(octets(one.value.size))];
    const details = h("details", { ontoggle: () => { if (details.open && details.childElementCount === 1) details.append(inside(one)); } },
      h("summary", {}, h("span", { class: "head" },
        h("span", {}, `${one.partition}:${one.offset}`), moment(one.timestamp),
        h("span", { class: "key" }, short(one.key, "no key")), marks),
      h("div", { class: "line" }, short(one.value, "null"))));
    return h("article", { "aria-label": `Record ${one.offset} of partition ${one.partition}` }, details);
  }

  function inside(one) {
    const value = h("div", {}, whole(one.value, as.value));
    const here = path("topics", name, "records", one.partition, one.offset);
    const fact = (label, ...text) => h("div", {}, h("span", { class: "quiet" }, `${label} `), text);
    return h("div", { class: "box inside" },
      one.key && [h("b", {}, "Key"), whole(one.key, as.value)], h("b", {}, "Value"), value,
      one.headers.length > 0 && [h("b", {}, "Headers"), one.headers.map((header) => fact(header.name, short(header.value, "null")))],
      h("div", { class: "bar" },
        (one.value?.cut || one.value?.decoded?.cut) && h("button", { onclick: async () => { value.replaceChildren(whole((await get(here + queryOf(decoding()))).value, as.value)); } }, `Load up to 4 MB of ${octets(one.value.size)}`),
        one.value && h("a", { class: "button", href: here + "/value", download: `${name}-${one.partition}-${one.offset}` }, "Download the value"),
        h("a", { class: "button", href: location.pathname + queryOf({ partitions: one.partition, from: one.offset }) }, "Link to here"),
        one.key?.text && !one.key.decoded && one.key.text.length < LONGEST_KEY && h("a", { class: "button", href: location.pathname + queryOf({ partitions: one.partition, expression: `key == ${JSON.stringify(one.key.text)}` }) }, "All with this key"),
        writes && h("button", { onclick: () => write(writeOne, one) }, "Write it again")),
      fact("Time", moment(one.timestamp), ` (${one.timestamp_type})`),
      fact("Batch", `${many(one.batch.records, "record")} from ${one.batch.base_offset}, ${octets(one.batch.bytes)}, ${one.batch.compression ?? "not compressed"}, leader epoch ${one.batch.leader_epoch}`),
      one.producer && fact("Producer", `${one.producer.id}, epoch ${one.producer.epoch}, sequence ${one.producer.sequence}`));
  }

  async function write(writing, ...what) {
    if ((await writing(name, ...what)) && !source) read();
  }

  async function download() {
    const given = await ask("Download records", null, [
      ["From", h("input", { name: "from", value: state.from === "latest" ? "earliest" : state.from, required: true })],
      ["To", h("input", { name: "to", value: state.to || "latest", required: true })],
      ["As", h("select", { name: "format" }, h("option", { value: "jsonl" }, "JSON lines"), h("option", { value: "csv" }, "CSV"))],
      ["With what is decoded", h("select", { name: "decoded" }, h("option", { value: "false" }, "no"), h("option", { value: "true" }, "yes"))],
    ], { done: "Download" });
    if (!given) return;
    const href = path("topics", name, "download") + queryOf({ ...given, partitions: numbers.value, expression: expression.value, ...decoding() });
    h("a", { href, download: `${name}.${given.format}` }).click();
  }

  if (state.live === "true") follow();
  else await read();
  return stop;
}
