// A curve of the last minutes.
import { h } from "./dom.js";

const POINTS = 300;
const MINUTE = 60; // seconds, that the axis shows at least
const HEIGHT = 150;
const COLORS = ["--accent", "--warn", "--good", "--bad"];

function clock(time) {
  return new Date(time * 1000).toISOString().slice(11, 19); // in UTC, as all times of the pages
}

export class Plot {
  constructor(parent, title, names, shown = (one) => Math.round(one).toLocaleString("en")) {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 0.5 }, ticks: { stroke: color("--line") } };
    this.data = [[], ...names.map(() => [])];
    this.shown = shown;
    this.latest = names.map((name, index) => h("span", { class: "latest" },
      names.length > 1 && [h("i", { class: `swatch swatch-${index}`, "aria-hidden": "true" }), `${name} `], h("span", { class: "quiet" })));
    this.box = h("figure", { class: "card plot" }, h("figcaption", {}, `${title} `, this.latest));
    parent.append(this.box);
    const width = () => Math.max(this.box.clientWidth - 30, 200);
    this.plot = new uPlot({
      width: width(), height: HEIGHT, legend: { show: false }, cursor: { drag: { x: false } },
      series: [{}, ...names.map((name, index) => ({ label: name, stroke: color(COLORS[index]), width: 2, spanGaps: true }))],
      axes: [{ ...axis, size: 32, space: 80, values: (_, times) => times.map(clock) }, { ...axis, size: 68, values: (_, values) => values.map(shown) }],
      scales: { x: { range: () => this.times() }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
    }, this.data, this.box);
    this.watch = new ResizeObserver(() => this.plot.setSize({ width: width(), height: HEIGHT }));
    this.watch.observe(this.box);
  }

  // From the first to the last one; uPlot's own choice for a single one is a day.
  times() {
    const [times] = this.data;
    const last = times.at(-1) ?? MINUTE;
    return [Math.min(times[0] ?? 0, last - MINUTE), last];
  }

  add(time, values) {
    this.data[0].push(time);
    values.forEach((value, index) => this.data[index + 1].push(value));
    if (this.data[0].length > POINTS) this.data.forEach((one) => one.shift());
    this.latest.forEach((one, index) => { one.lastChild.textContent = values[index] === null ? "–" : this.shown(values[index]); });
    this.plot.setData(this.data);
  }

  end() {
    this.watch.disconnect();
    this.plot.destroy();
  }
}
