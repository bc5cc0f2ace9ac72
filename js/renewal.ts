/** A session goes on in a fresh engine: memory of WebAssembly never shrinks, and a large message leaves much that is not used. */

import type { Host } from "./effects.js";
import { quietly } from "./quietly.js";
import type { Opened, Quarters, Seat } from "./seat.js";

interface Renewing {
  host: Host;
  values: Record<string, unknown>;
  /** Opens the session again. */
  open(): Promise<Opened>;
  /** Whether it is still the one that it was, by its messages, and nothing else is under way in it. */
  isSame(messages: number): boolean;
}

/** The session there; nothing where it stays as it is: the next call meets what is wrong. */
export async function renewed(quarters: Quarters, before: Seat, { host, values, open, isSame }: Renewing): Promise<Seat | undefined> {
  const log = (line: string) => quietly(() => host.logger?.("info", line));
  try {
    await before.drive<void>((handle) => handle.keepUsage(), host);
    const passed = await before.ask<string>((handle) => handle.passedOn(), host);
    await quarters.started();
    await quarters.ready(values);
    const { handle, messages } = await open();
    const seat = quarters.seat(handle);
    await seat.ask<void>((handle) => handle.takeOver(passed), host);
    if (isSame(messages)) {
      log("The session goes on in a fresh engine: most of the memory of the other one was not used any more.");
      return seat;
    }
    seat.end();
  } catch (error) {
    log(`The session could not be opened in a fresh engine, and goes on in this one: ${(error as Error).message}`);
  }
  return undefined;
}
