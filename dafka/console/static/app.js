// The pages, by their addresses. Each page is a function (main, parts, query, context) that may return what ends it.
import { h, problem, say, visible } from "./dom.js";
import { Refusal, call, get } from "./api.js";
import { overview } from "./pages/overview.js";
import { topics } from "./pages/topics.js";
import { topic } from "./pages/topic.js";
import { groups } from "./pages/groups.js";
import { group } from "./pages/group.js";
import { access } from "./pages/access.js";
import { transactions } from "./pages/transactions.js";
import { mesh } from "./pages/mesh.js";
import { overlay } from "./pages/overlay.js";
import { zper } from "./pages/zper.js";

const NAV = [["/", "Overview"], ["/topics", "Topics"], ["/groups", "Groups"], ["/transactions", "Transactions"], ["/access", "Rights"]];
const NETWORKS = [["/mesh", "Mesh"], ["/overlay", "Overlay"], ["/zper", "ZPER"]]; // those that are connected
const PAGES = { "": overview, topics: (...all) => (all[1].length ? topic(...all) : topics(...all)), groups, group, transactions, access, mesh, overlay, zper };

const main = document.getElementById("main");
let session = { writes: false, user: null };
let nav = NAV;
let hasKafka = true;
let end = null;

export function go(url, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  return show();
}

async function show() {
  if (end) end();
  end = null;
  if (!hasKafka && location.pathname === "/") history.replaceState(null, "", nav[0][0]);
  const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  const page = PAGES[parts[0] ?? ""];
  document.getElementById("nav").replaceChildren(...nav.map(([path, name]) => {
    const here = path === "/" ? !parts.length : path === `/${parts[0]}` || (path === "/groups" && parts[0] === "group");
    return h("a", { href: path, "aria-current": here ? "page" : null }, name);
  }));
  main.setAttribute("aria-busy", "true");
  const place = h("div");
  main.replaceChildren(place);
  document.title = visible(`${parts.slice(-1)[0] ?? "Overview"} – Dafka console`);
  const context = { go, writes: session.writes, isHere: () => place.isConnected };
  try {
    if (!page) throw new Error(`There is no page ${location.pathname}.`);
    const ended = await page(place, parts.slice(1), new URLSearchParams(location.search), context);
    if (place.isConnected) end = ended ?? null;
    else ended?.();
  } catch (error) {
    if (place.isConnected) place.replaceChildren(problem(error));
  }
  if (place.isConnected) main.removeAttribute("aria-busy");
}

function logIn() {
  const failed = h("div");
  const form = h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await call("POST", "/api/session", Object.fromEntries(new FormData(form)));
      location.reload();
    } catch (error) {
      failed.replaceChildren(problem(error));
    }
  } },
    h("h1", {}, "Log in"), h("p", {}, "With an account of the broker."),
    h("label", { class: "field" }, "Name", h("input", { name: "user", required: true, autocomplete: "username" })),
    h("label", { class: "field" }, "Password", h("input", { name: "password", type: "password", required: true, autocomplete: "current-password" })),
    h("p", {}, h("button", { class: "main" }, "Log in")), failed);
  main.replaceChildren(form);
  form.querySelector("input").focus();
}

async function logOut(session) {
  await call("DELETE", session);
  location.href = "/";
}

async function start() {
  try {
    session = await get("/api/session");
  } catch (error) {
    main.replaceChildren(problem(error));
    return;
  }
  if (session.login) {
    logIn();
    return;
  }
  const connected = await get("/api/networks").catch(() => ({}));
  const networks = NETWORKS.filter(([path]) => connected[path.slice(1)]);
  hasKafka = connected.kafka ?? true;
  nav = hasKafka ? [...NAV.slice(0, -1), ...networks, NAV.at(-1)] : networks;
  document.getElementById("who").replaceChildren(...[
    hasKafka && !session.writes && h("span", { class: "tag" }, "read-only"),
    session.user && h("span", {}, session.user),
    session.user && h("button", { onclick: () => logOut("/api/session") }, "Log out"),
    session.user && h("button", { title: "End all sessions of this account", onclick: () => logOut("/api/session?everywhere=true") }, "Log out everywhere"),
  ].filter(Boolean));
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a");
    if (!anchor || anchor.origin !== location.origin || anchor.hasAttribute("download") || anchor.target) return;
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (anchor.getAttribute("href").startsWith("#") || anchor.pathname.startsWith("/api/")) return;
    event.preventDefault();
    go(anchor.href).then(() => main.focus({ preventScroll: true }));
  });
  addEventListener("popstate", show);
  addEventListener("unhandledrejection", (event) => {
    if (event.reason instanceof Refusal) event.preventDefault();
    say(event.reason?.message ?? "Something failed.");
  });
  await show();
}

start();
