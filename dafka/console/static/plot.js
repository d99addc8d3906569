// A curve of the last minutes.
import { h } from "./dom.js";

const POINTS = 300;

export class Plot {
  constructor(parent, title, names) {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 0.5 }, ticks: { stroke: color("--line") } };
    const colors = ["--accent", "--warn", "--good", "--bad"];
    this.data = [[], ...names.map(() => [])];
    this.latest = h("span", { class: "quiet" });
    this.box = h("figure", { class: "card plot" }, h("figcaption", {}, `${title} `, this.latest));
    parent.append(this.box);
    const width = () => Math.max(this.box.clientWidth - 30, 200);
    this.plot = new uPlot({
      width: width(), height: 170, legend: { show: false }, cursor: { drag: { x: false } },
      series: [{}, ...names.map((name, index) => ({ label: name, stroke: color(colors[index]), width: 2 }))],
      axes: [axis, { ...axis, size: 60 }], scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
    }, this.data, this.box);
    this.watch = new ResizeObserver(() => this.plot.setSize({ width: width(), height: 170 }));
    this.watch.observe(this.box);
  }

  add(time, values) {
    this.data[0].push(time);
    values.forEach((value, index) => this.data[index + 1].push(value));
    if (this.data[0].length > POINTS) this.data.forEach((one) => one.shift());
    this.latest.textContent = values.map((one) => Math.round(one).toLocaleString("en")).join(", ");
    this.plot.setData(this.data);
  }

  end() {
    this.watch.disconnect();
    this.plot.destroy();
  }
}
