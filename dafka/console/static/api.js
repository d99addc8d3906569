// The API, as /api/openapi.json describes it.

// What cannot be done, and why: it is told, and no mistake of a page.
export class Refusal extends Error {}

export class ApiError extends Refusal {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function path(...parts) {
  return "/api/" + parts.map(encodeURIComponent).join("/");
}

export function query(values) {
  const chosen = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return chosen.length ? "?" + new URLSearchParams(chosen) : "";
}

export async function call(method, url, body) {
  const headers = { "X-Dafka-Console": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "unreachable", "The console does not answer.");
  }
  const found = await response.json().catch(() => ({ error: "broken", message: "The answer is broken." }));
  if (!response.ok) {
    if (response.status === 401 && url !== "/api/session") location.reload();
    throw new ApiError(response.status, found.error, found.message);
  }
  return found;
}

export const get = (url) => call("GET", url);
