/** A worker of an app whose engine's memory can be asked for, and made to grow: by a channel of the name that it is given. */

import { workerData } from "node:worker_threads";
import { call } from "../../pkg/dist/engine.js";
import { serve } from "../../pkg/dist/entry/worker-thread.js";

const channel = new BroadcastChannel(workerData.channel);
channel.onmessage = ({ data }) => {
  const memory = call((engine) => engine.wasmMemory());
  if (data === "grow") memory.grow(600);
  if (data === "grow" || data === "size") channel.postMessage(memory.buffer.byteLength);
};
channel.unref();
serve({});
