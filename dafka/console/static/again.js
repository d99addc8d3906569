// Asks again and again while a page is shown, and says so when the answer fails.
import { problem } from "./dom.js";

export function again(pause, isHere, failed, look) {
  let timer = null;
  let ended = false;
  async function once() {
    try {
      await look();
      failed.replaceChildren();
    } catch (error) {
      failed.replaceChildren(problem(error));
    }
    if (!ended && isHere()) timer = setTimeout(once, pause);
  }
  return { begun: once(), end: () => { ended = true; clearTimeout(timer); } };
}
