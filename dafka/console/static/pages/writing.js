// New records: one, one like another, or many as JSON lines.
import { h, count, ask, say } from "../dom.js";
import { Refusal, call, get, path, query as queryOf } from "../api.js";

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"];
const MOST = 5000; // records of one request
const MOST_CHARACTERS = 2000000;

// Resolves to whether anything was written.
export async function writeOne(topic, like = null) {
  if (like) like = await whole(topic, like);
  const text = (content) => content?.text ?? "";
  const isText = !like || [like.key, like.value].every((one) => one === null || one.text !== undefined);
  const field = (content) => (isText ? text(content) : content?.base64 ?? encoded(text(content)));
  const given = await ask("Write a record", isText ? null : "Octets that are no text are written as Base64 here.", [
    ["Key (empty: none)", h("input", { name: "key", value: field(like?.key) })],
    ["Value", h("textarea", { name: "value", value: field(like?.value) })],
    ["What an empty value is", h("select", { name: "empty" }, h("option", { value: "text" }, "an empty text"),
      h("option", { value: "null", selected: like !== null && like.value === null }, "null: a tombstone"))],
    ["Headers, a line NAME=VALUE each, or a JSON list", h("textarea", { name: "headers", value: headerLines(like?.headers ?? []) })],
    ["Partition (empty: by the key)", h("input", { name: "partition", type: "number", min: 0, value: like ? like.partition : "" })],
    ["Compression", codecs()],
  ], { done: "Write" });
  if (!given) return false;
  const suffix = isText ? "" : "_base64";
  const record = { headers: headers(given.headers) };
  if (given.key || like?.key?.size === 0) record[`key${suffix}`] = given.key;
  if (given.value || given.empty === "text") record[`value${suffix}`] = given.value;
  if (given.partition !== "") record.partition = Number(given.partition);
  const done = await call("POST", path("topics", topic, "records"), { records: [record], compression: codec(given) });
  say(`Written at ${done.written.map((one) => `${one.partition}:${one.offset}`).join(", ")}.`);
  return true;
}

export async function writeMany(topic) {
  const file = h("input", { type: "file", accept: ".jsonl,.json,.txt" });
  const given = await ask("Write many records", "A line for each: a JSON object with key, value, headers, partition and timestamp, each of which may be missing. What is downloaded as JSON lines can be written again.", [
    ["Lines", h("textarea", { name: "lines", placeholder: '{"key": "k", "value": {"amount": 5}}' })], ["Or a file", file], ["Compression", codecs()],
  ], { done: "Write" });
  if (!given) return false;
  const lines = (file.files.length ? await file.files[0].text() : given.lines).split("\n");
  const rows = lines.map((line, index) => line.trim() && { line, record: parsed(line, `Line ${index + 1}`) }).filter(Boolean);
  let written = 0;
  for (const some of groups(rows)) {
    try {
      await call("POST", path("topics", topic, "records"), { records: some, compression: codec(given) });
    } catch (error) {
      error.message = `${count(written)} records are written. ${error.message}`;
      throw error;
    }
    written += some.length;
  }
  say(`${count(written)} records are written.`);
  return written > 0;
}

// All of a record of which the page has a part. What is still cut cannot be written again here.
async function whole(topic, like) {
  const parts = (one) => [one.key, one.value, ...one.headers.map((header) => header.value)];
  if (!parts(like).some((one) => one?.cut)) return complete(like);
  const found = await get(path("topics", topic, "records", like.partition, like.offset) + queryOf({ decode: "none", "decode-key": "none" }));
  if (parts(found).some((one) => one?.cut)) throw new Refusal("It has more than 4 MB: download the value, and write it with dafka kafka produce.");
  return complete(found);
}

function complete(like) {
  if (like.total_headers > like.headers.length) throw new Refusal(`It has ${count(like.total_headers)} headers: too many for this page.`);
  return like;
}

function headerLines(some) {
  if (some.every(({ name, value }) => value?.text !== undefined && /^[^=\n[]+$/.test(name) && !value.text.includes("\n"))) {
    return some.map((one) => `${one.name}=${one.value.text}`).join("\n");
  }
  return JSON.stringify(some.map(({ name, value }) => ({ name, ...(value === null ? { value: null } : value.text !== undefined ? { value: value.text } : { value_base64: value.base64 }) })), null, 1);
}

function headers(text) {
  if (text.trim().startsWith("[")) return parsed(text, "The headers");
  return text.split("\n").filter((one) => one.trim()).map((one) => {
    if (!one.includes("=")) throw new Refusal(`The header ${one} is not NAME=VALUE.`);
    return { name: one.slice(0, one.indexOf("=")), value: one.slice(one.indexOf("=") + 1) };
  });
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal(`${what}: ${error.message}. Nothing was written.`);
  }
}

function* groups(rows) {
  let some = [];
  let size = 0;
  for (const { line, record } of rows) {
    if (some.length === MOST || (some.length && size + line.length > MOST_CHARACTERS)) {
      yield some;
      some = [];
      size = 0;
    }
    some.push(record);
    size += line.length;
  }
  if (some.length) yield some;
}

function encoded(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function codecs() {
  return h("select", { name: "compression" }, CODECS.map((one) => h("option", {}, one)));
}

function codec(given) {
  return given.compression === "none" ? null : given.compression;
}
