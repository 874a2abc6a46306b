// SPDX-License-Identifier: Apache-2.0
// A page of the server that one view needs, fetched again and again while the view is shown.

import { Refusal, get } from "./api.js";
import { live } from "./live.js";

export class Fetched {
  /* `address` is a text, or a function of the data so far that returns one. `period` in ms; 0: fetch once. `onData` may
   * change the data before it is kept. */
  constructor(address, period, redraw, onData) {
    this.data = null;
    this.error = null;
    this.stopped = false;
    this.address = typeof address === "function" ? address : () => address;
    this.period = period;
    this.redraw = redraw;
    this.onData = onData || ((data) => data);
    this.wake = () => {};
    this.run();
  }

  async run() {
    while (!this.stopped) {
      const start = performance.now();
      if (!document.hidden && live.status !== "token") await this.fetch();
      if (this.stopped || (this.period === 0 && this.data)) return;
      const rest = (this.period || 2000) - (performance.now() - start);
      await new Promise((resolve) => { this.wake = resolve; setTimeout(resolve, Math.max(200, rest)); });
    }
  }

  async fetch() {
    try {
      const data = await get(this.address(this.data));
      if (this.stopped) return;
      this.data = this.onData(data, this.data);
      this.error = null;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (this.stopped) return;
      this.error = error;
    }
    this.redraw();
  }

  now() {
    this.wake();
  }

  stop() {
    this.stopped = true;
    this.wake();
  }
}
