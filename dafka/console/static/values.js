// What a record holds, as text, as folded JSON or in hexadecimal.
import { h, visible } from "./dom.js";

const MANY = 200; // members of one object or list that are shown

export function short(content, nothing) {
  if (content === null) return h("i", { class: "quiet" }, nothing);
  if (content.size === 0) return h("i", { class: "quiet" }, "empty");
  const text = content.decoded?.text ?? (content.note ? null : content.text) ?? hexLine(bytes(content)); // a note: it is no text
  return h("span", { class: "value" }, visible(text.slice(0, 300)) + ((content.decoded ?? content).cut || text.length > 300 ? " …" : ""));
}

export function whole(content, as = "auto") {
  if (content === null) return h("p", { class: "quiet" }, "null (a tombstone, if the topic is compacted)");
  if (content.size === 0) return h("p", { class: "quiet" }, "empty");
  if (content.decoded && (as === "auto" || as === "json")) return decoded(content.decoded);
  const found = octetsAs(content, content.note && as === "auto" ? "hex" : as);
  return content.note ? h("div", {}, h("p", { class: "warn" }, visible(content.note)), found) : found;
}

// What a record was before it was decoded, in words.
export function origin({ as, schema, name }) {
  return [as, schema !== null && `schema ${schema}`, name && visible(name)].filter(Boolean).join(", ");
}

function decoded(one) {
  const json = one.cut ? undefined : JSON.parse(one.text, exact);
  return h("div", {}, h("p", { class: "quiet" }, origin(one)),
    json === undefined ? h("pre", { class: "value" }, `${visible(one.text)} …`) : h("div", { class: "value json" }, tree(json)));
}

function octetsAs(content, as) {
  const json = as === "auto" || as === "json" ? parsed(content) : undefined;
  if (json !== undefined) return h("div", { class: "value json" }, tree(json));
  if (as === "json") return h("p", { class: "warn" }, content.cut ? "It is cut: load it whole to read it as JSON." : "It is not JSON.");
  if (as === "hex" || content.text === undefined) return h("pre", { class: "value" }, hexDump(bytes(content)));
  return h("pre", { class: "value" }, visible(content.text, true));
}

export function parsed(content) {
  if (content === null || content.cut || content.text === undefined) return undefined;
  if (!/^\s*[[{]/.test(content.text)) return undefined;
  try {
    return JSON.parse(content.text, exact);
  } catch {
    return undefined;
  }
}

function exact(name, value, context) {
  return typeof value === "number" && context && context.source !== String(value) ? new Exact(context.source) : value;
}

// A number as it was written: JavaScript's own would be another one (1.0, 12345678901234567890).
class Exact {
  constructor(text) { this.text = text; }
}

export function bytes(content) {
  if (content.text !== undefined) return new TextEncoder().encode(content.text);
  return Uint8Array.from(atob(content.base64), (one) => one.charCodeAt(0));
}

function hexLine(octets) {
  return Array.from(octets.slice(0, 64), (one) => one.toString(16).padStart(2, "0")).join(" ");
}

function hexDump(octets) {
  const lines = [];
  for (let start = 0; start < Math.min(octets.length, 65536); start += 16) {
    const row = Array.from(octets.slice(start, start + 16));
    const hex = row.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    const text = row.map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : ".")).join("");
    lines.push(`${start.toString(16).padStart(6, "0")}  ${hex} ${text}`);
  }
  return lines.join("\n");
}

function tree(value, depth = 0) {
  if (value instanceof Exact) return h("span", { class: "number" }, value.text);
  if (value === null || typeof value !== "object") {
    const kind = typeof value === "string" ? "string" : "number";
    return h("span", { class: kind }, typeof value === "string" ? JSON.stringify(visible(value, true)) : String(value));
  }
  const isList = Array.isArray(value);
  const members = isList ? value.map((one, index) => [index, one]) : Object.entries(value);
  const [open, close] = isList ? "[]" : "{}";
  if (!members.length) return h("span", {}, open + close);
  const rows = members.slice(0, MANY).map(([name, one]) =>
    h("div", { class: "member" }, !isList && [h("span", { class: "name" }, JSON.stringify(visible(name))), ": "],
      depth < 100 ? tree(one, depth + 1) : "…"));
  if (members.length > MANY) rows.push(h("div", { class: "member quiet" }, `… ${members.length - MANY} more`));
  return h("details", { open: depth < 3 }, h("summary", {}, `${open} ${members.length} ${close}`), rows);
}
