/** The engine of this thread. */

import { drive, driveSync, run } from "./driver.js";
import { call, isOutdated, started } from "./engine.js";
import type { Log, Quarters, Seat } from "./seat.js";
import { loadStage } from "./stages.js";
import { choosePlace } from "./store/place.js";
import { bringTable } from "./table.js";
import type { Session as Handle } from "./wasm/core.js";

export const HERE: Quarters = {
  started,
  async ready(values) {
    await bringTable(values);
    return run((engine) => engine.assumesWindow(values));
  },
  place: choosePlace,
  drive,
  seat: seatOf,
};

function seatOf(handle: Handle): Seat {
  return {
    log: logOf(handle),
    drive: (begin, host, seal) =>
      drive(
        () => begin(handle),
        host,
        (_, thrown) => seal?.(thrown),
      ),
    look: <T>(at: (handle: Handle) => unknown) => run(() => at(handle)) as T,
    ask: (at, host) => driveSync(() => at(handle), host),
    count: (fixed, host) => driveSync<void>(() => handle.countFixed(fixed), host),
    bring: loadStage,
    isOutdated: () => isOutdated(handle),
    end: () =>
      call(() => {
        handle.close();
        handle.free();
      }),
  };
}

function logOf(handle: Handle): Log {
  return {
    body: (seq) => run(() => handle.body(seq)),
    bodies: () => run(() => handle.bodies()) as ReturnType<Log["bodies"]>,
    branch: () => run(() => handle.branch()) as ReturnType<Log["branch"]>,
  };
}
