/**
 * Sessions in a simulated world: whoever has them open does what the seed says, while what they stand on fails, is killed,
 * loses its power or goes bad. Behind each life everything is read and held against what was said: what was acknowledged
 * is there, or it was told as lost; nothing else is there, nothing was changed, and it goes on.
 */

import { places } from "./sim-stores.mjs";
import { World } from "./sim-world.mjs";

/** What of a call that failed is open; of all other codes nothing was written. */
const OPEN = new Set(["indeterminate", "timeout", "closed"]);
/** A store that fails for a while, and another handle that was faster. */
const PASSING = new Set(["conflict", "indeterminate", "quota_exceeded", "store_unavailable"]);
/** What damage may end a call with. */
const OF_DAMAGE = new Set(["closed", "data_loss", "diverged", "invalid_message", "not_found", "store_corrupt"]);
/** More is written in more than two pages. */
const PAGES = 8_192;
/** No call takes longer, of time in the world: it has several calls of a store, and each of those has 30 s. */
const LONGEST_MS = 10 * 60_000;

/** What a seed may do: nothing; what a store must survive; nothing but power cuts in the midst of writing what several
 *  sessions say at once; damage of what is at rest; and all of it. */
const KINDS = ["whole", "faults", "faults", "faults", "cuts", "damage", "damage", "all"];

/** Runs one seed of a kind of store. Throws what must not be. `tell` gets counts of what there was; `kind` is one of those
 *  above, for who does not want what the seed would choose. */
export async function simulate(program, store, seed, tell = () => {}, kind) {
  const world = new World(seed * 8 + Object.keys(places).indexOf(store));
  const library = await program.engine(world);
  const simulation = new Simulation(world, program, library, store, tell, kind);
  try {
    await world.run(() => simulation.run());
  } catch (error) {
    if (error instanceof Closed) return tell("closed by damage");
    error.message += `\n${simulation.lines.join("\n")}`;
    throw error;
  }
}

class Simulation {
  constructor(world, program, library, store, tell, kind) {
    this.world = world;
    this.library = library;
    this.place = places[store](world, program);
    this.tell = tell;
    this.kind = kind ?? world.pick(KINDS);
    this.isCut = this.kind === "cuts";
    this.sessions = ["a", "b", "c"].slice(0, this.isCut ? 3 : world.one(3) ? 2 : 1).map((id) => new Log(id, this));
    this.options = {
      preset: world.pick(["balanced", "offload", "layered"]),
      contextWindow: 12_000,
      summarize: { attempts: 1 },
      logger() {},
    };
    this.mayFail = ["faults", "all"].includes(this.kind);
    this.mayRot = ["damage", "all"].includes(this.kind);
    /** Changes of what is at rest so far: bits, and others. */
    this.flips = 0;
    this.damage = [];
    this.cuts = 0;
    this.names = 0;
    this.lines = [];
  }

  note(line) {
    this.lines.push(`${(this.world.now - 1_790_000_000_000).toFixed(1)} ${line}`);
    if (this.lines.length > 60) this.lines.shift();
  }

  async run() {
    const lives = 1 + this.world.random(2);
    for (let life = 1; life <= lives; life++) {
      await this.live(life);
      if (life < lives) await this.look();
    }
    await this.look({ goesOn: true });
    await this.look({ verifies: true });
  }

  /** Some processes write, until they end. */
  async live(life) {
    const { world, place } = this;
    const count = this.isCut ? 3 : 1 + world.random(2);
    const processes = [place.start()];
    while (processes.length < count) processes.push(this.isCut || place.isAlone || world.one(3) ? processes[0] : place.start());
    this.note(`life ${life}: ${this.kind}, ${count} writers, ${this.options.preset}`);
    this.isAlone = count === 1;
    this.isQuiet = true;
    this.quietFrom = world.now;
    const own = new Set(processes.map(({ owner }) => owner));
    const god = { dead: false, ends: [] };
    for (const process of processes) process.users = processes.filter((other) => other === process).length;
    const work = Promise.all(processes.map((process, nth) => this.write(process, `${life}.${nth}`)));
    let isKilled = false;
    const kills = this.kind === "whole" ? 0 : this.isCut ? 1 : world.random(3);
    const dead = new Promise((resolve) => {
      if (kills === 0) return;
      const kill = () => {
        if (isKilled) return;
        isKilled = true;
        this.note("killed");
        for (const owner of own) world.kill(owner);
        resolve();
      };
      world.timer(god, kill, world.random(this.isCut ? 2 * place.pace : place.pace));
      // Or in the midst of something that takes several pages.
      place.medium.written = (bytes) => bytes > PAGES && world.one(this.isCut ? 6 : 3) && world.timer(god, kill, world.random(100) / 100);
      // One of two may go first.
      if (own.size > 1 && world.one(2)) world.timer(god, () => world.kill(processes[1].owner), world.random(place.pace));
    });
    this.disturb(god);
    const ended = new Promise((resolve) => world.timer(god, resolve, LONGEST_MS * 40));
    const isOver = await Promise.race([work.then(() => "over"), dead.then(() => "killed"), own.size > 1 && kills > 0 ? dead : new Promise(() => {}), ended.then(() => "late")]);
    if (isOver === "late") throw new Error("a life that never ends");
    if (!isKilled) for (const owner of own) world.kill(owner);
    world.kill(god);
    this.heal();
    this.tell(isKilled ? "kills" : "lives ended well");
    if (this.isCut || (this.mayFail && world.one(2))) {
      this.note("the power is cut");
      place.cut();
      this.cuts++;
      this.tell("power cuts");
    }
    // What a failed sync left can be read as long as there is power. Who closes a store writes it anew.
    if (place.medium.isForgetful && !processes.every(({ isClosed }) => isClosed)) this.damage.push("what a failed sync forgot");
    if (this.mayRot && world.one(2)) this.rot();
  }

  /** What goes wrong while they write. */
  disturb(god) {
    const { world, place } = this;
    const { medium } = place;
    const during = (set, unset) => {
      const from = world.random(place.pace);
      const to = from + world.random(place.pace);
      world.timer(god, () => (set(), (this.isQuiet = false)), from);
      world.timer(god, unset, to);
      this.quietFrom = Math.max(this.quietFrom, world.now + to);
    };
    if (this.mayFail) {
      if (world.one(3)) during(() => (medium.full = true, this.note("full"), this.tell("full")), () => (medium.full = false));
      if (world.one(3)) during(() => (medium.fails = 5 + world.random(40), this.note("fails"), this.tell("failing")), () => (medium.fails = 0));
      if (world.one(3)) during(() => (medium.failsToSync = 1 + world.random(5), this.note("fails to sync"), this.tell("failing syncs")), () => (medium.failsToSync = 0));
    }
    if (world.one(3)) world.timer(god, () => (world.jump(world.pick([-1, 1]) * world.random(7_200_000)), this.tell("clock jumps")), world.random(place.pace));
    if (this.mayRot && world.one(3)) world.timer(god, () => this.rot(), world.random(place.pace));
  }

  heal() {
    Object.assign(this.place.medium, { full: false, fails: 0, failsToSync: 0, written: undefined });
  }

  rot() {
    const { world, place } = this;
    this.isQuiet = false;
    for (let times = 1 + (world.one(4) ? world.random(3) : 0); times > 0; times--) {
      const isFlip = !world.one(4);
      const what = isFlip ? place.medium.flip() : place.medium.misdirect();
      if (!what) continue;
      this.note(`${isFlip ? "flipped" : "misdirected"}: ${what}`);
      if (isFlip) this.flips++;
      this.damage.push(what);
      this.tell(isFlip ? "flips" : "misdirected");
    }
  }

  get isSound() {
    return this.damage.length === 0;
  }

  /** Two bits are flipped where one stands in for the other: rows that say whose others are, or how to open them, and what
   *  says where the values of one record are. */
  get isDoubled() {
    const [names, heads] = [/ of (meta|sessions)$/, /around the values/].map((of) => this.damage.filter((what) => of.test(what)));
    const isUnknown = heads.length > 1 && heads.some((what) => what.endsWith("another record"));
    return names.length > 1 || isUnknown || new Set(heads.map((what) => what.split(", ")[1])).size < heads.length;
  }

  /** A call, whose failure is typed and one that there may be; resolves to its value, or to the error's code. */
  async attempt({ owner }, what, work, { allowed = [] } = {}) {
    const from = this.world.now;
    let code, value;
    try {
      value = await work();
    } catch (error) {
      // Nobody is there any more to see it.
      if (owner.dead) return new Promise(() => {});
      code = error?.code;
      const isKnown = error?.name === "CompactionError" && typeof code === "string";
      // Both rows of the root key may be damaged: then no key opens the store.
      const isShut = /encryption/.test(error?.message) && (this.damage.length > 1 || this.damage.length > this.flips);
      const isFit = isShut || allowed.includes(code) || (PASSING.has(code) && !(this.isQuiet && this.isAlone)) || (OF_DAMAGE.has(code) && !this.isSound);
      if (!isKnown || !isFit) throw new Error(`${what} failed: ${error?.stack ?? error}`, { cause: error });
      this.tell(`failed with ${code}`);
      this.note(`${what}: ${code} ${error.message.slice(0, 150)}`);
    }
    if (owner.dead) return new Promise(() => {});
    const took = this.world.now - from;
    if (took > LONGEST_MS) throw new Error(`${what} took ${Math.round(took / 1000)} s`);
    return { code, value };
  }

  /** Opens a session, without what is known to be lost. */
  async open(process, log, options = {}) {
    const { owner } = process;
    process.opened ??= process.store();
    const open = (more) =>
      this.library.openSession({ id: log.id, store: process.opened, ...this.options, ...process.options, ...options, ...more });
    // What somebody else says meanwhile it need not have seen.
    const { isBegun } = log;
    const first = await this.attempt(process, `open ${log.id}`, () => open(), { allowed: ["data_loss"] });
    let session = first.value;
    if (first.code === "data_loss") {
      if (this.isSound && isBegun) throw new Error(`session ${log.id} is said to be lost`);
      log.told("session", Infinity);
      session = (await this.attempt(process, `begin ${log.id} anew`, () => open({ acceptDataLoss: true }))).value;
    }
    session?.on("data-loss", (loss) => !owner.dead && this.heard(log, loss));
    session?.on("warning", () => {});
    return session;
  }

  heard(log, { kind, lostRecords, reason }) {
    this.note(`${log.id} is told: ${kind} ${lostRecords ?? ""} ${reason.slice(0, 120)}`);
    this.tell(`told: ${kind}`);
    if (this.isSound) {
      // What nobody acknowledged may have been read by others, who say now that it is gone.
      const open = log.calls.filter(({ state }) => state === "open" || state === "lost").flatMap(({ messages }) => messages);
      const isOfOthers = kind === "records" ? (lostRecords ?? 1) <= open.length || log.unsure > 0 : kind === "session" && !log.isBegun;
      // A mark that a power cut took back to before the session was deleted knows of no other one.
      const isOfDeleted = kind === "session" && this.place.losesMarks && this.cuts > 0 && log.isForgotten;
      if (isOfOthers || isOfDeleted) return this.tell("told of what was not acknowledged");
      this.world.fail(new Error(`nothing is damaged, and ${log.id} is told: ${kind}, ${reason}`));
    }
    const all = kind === "platform" ? this.sessions : [log];
    if (kind !== "repaired" && kind !== "context") for (const one of all) one.told(kind, lostRecords ?? Infinity);
  }

  /** One writer: a session, and calls that the seed chooses. */
  async write(process, who) {
    const { world } = this;
    // Sessions that write at once are written in one piece.
    const log = this.isCut ? this.sessions[Number(who.at(-1))] : world.pick(this.sessions);
    let session;
    for (let left = 3 + world.random(5); left > 0; left--) {
      session ??= await this.open(process, log);
      if (!session) continue;
      switch (world.random(16)) {
        case 0:
        case 1:
        case 2:
          await log.unsurely(() => this.attempt(process, "prepare", () => session.prepare()));
          break;
        case 3:
          await log.unsurely(() => this.attempt(process, "compact", () => session.compact()));
          break;
        case 4:
          await log.unsurely(() => this.attempt(process, "snapshot", () => session.snapshots.take()));
          break;
        case 5:
          if (world.one(2)) await log.unsurely(() => this.attempt(process, "undo", () => session.snapshots.undo(), { allowed: ["not_found"] }));
          else await log.unsurely(() => this.attempt(process, "rewind", () => session.snapshots.rewind(world.random(8)), { allowed: ["invalid_option"] }));
          break;
        case 6:
          await this.attempt(process, "verify", () => session.archive.verify());
          break;
        case 7: {
          const open = session;
          session = undefined;
          await this.attempt(process, "close", () => open.close());
          break;
        }
        case 8:
          if (!this.isAlone || !world.one(3)) break;
          await this.remove(process, session, log);
          session = undefined;
          break;
        case 9:
          await Promise.all([this.append(process, session, log, who), this.append(process, session, log, who)]);
          break;
        default:
          await this.append(process, session, log, who);
      }
    }
    if (session) {
      await this.goOn(process, session, log, who);
      await this.attempt(process, "close", () => session.close());
    }
    process.users--;
    if (process.users === 0 && world.one(2)) {
      await process.opened?.close?.();
      process.isClosed = true;
    }
  }

  /** When nothing fails any more, what was open all the time goes on; one transaction may hang still. */
  async goOn(process, session, log, who) {
    const { world } = this;
    await new Promise((go) => world.timer(process.owner, go, this.quietFrom - world.now));
    let code = "conflict";
    for (let tries = 0; tries < 4 && PASSING.has(code); tries++) code = (await this.append(process, session, log, who)).code;
    if (PASSING.has(code)) throw new Error(`${log.id} does not go on: ${code}`);
  }

  async append(process, session, log, who) {
    const name = `${log.id}/${who}/${this.names++}`;
    const call = log.begin(name, who, who === "last" ? [{ role: "user", content: name }] : messagesOf(name, this.world));
    const { code } = await this.attempt(process, `append ${name}`, () => session.append(...call.messages));
    call.code = code;
    log.end(call, code === undefined ? "acknowledged" : OPEN.has(code) || OF_DAMAGE.has(code) ? "open" : "refused");
    if (code === undefined) {
      this.tell("acknowledged");
      this.note(`append ${name} is acknowledged`);
    }
    return call;
  }

  async remove(process, session, log) {
    const deleted = log.calls.filter(({ state }) => state !== "refused");
    log.isForgotten = true;
    this.note(`delete ${log.id}`);
    for (const call of deleted) call.state = "maybe deleted";
    // By the handle, or by its name.
    const byName = () => this.library.deleteSession(log.id, { store: process.opened, watermark: process.options?.advanced?.watermark });
    const { code } = await this.attempt(process, "delete", deleted.length % 2 === 0 ? byName : () => session.close({ delete: true }));
    this.note(`deleted ${log.id} ${code ?? ""}`);
    for (const call of deleted) call.state = code === undefined ? "deleted" : code === "indeterminate" ? "maybe deleted" : "open";
    this.tell("deletions");
    await this.attempt(process, "close", () => session.close(), { allowed: ["closed"] });
  }

  /** Reads every session in a process of its own, and holds it against what was said. Those that open go on. */
  async look({ goesOn = false, verifies = false } = {}) {
    this.isAlone = this.isQuiet = true;
    const process = this.place.start();
    for (const log of this.sessions) {
      const session = (await this.open(process, log)) ?? this.closed(log);
      await log.check(process, session);
      if (goesOn) {
        const call = await this.append(process, session, log, "last");
        if (call.state !== "acknowledged") throw new Error(`${log.id} does not go on`);
        const { value } = await this.attempt(process, "prepare", () => session.prepare());
        if (!value || value.messages.length === 0) throw new Error(`${log.id} cannot be prepared`);
      }
      if (verifies) await this.verify(process, session, log);
      await session.close();
    }
    await process.opened?.close?.();
    this.world.kill(process.owner);
  }

  /** One flipped bit closes no session. More than that may, and says so. */
  closed(log) {
    if (this.damage.length === 1 && this.flips === 1) throw new Error(`session ${log.id} does not open`);
    throw new Closed();
  }

  async verify(process, session, log) {
    const { value } = await this.attempt(process, "verify", () => session.archive.verify());
    if (!value) throw new Error(`${log.id} cannot be verified`);
    if (this.isSound && !value.ok) throw new Error(`${log.id}: ${value.problems.join("; ")}`);
    this.tell(value.ok ? "verified" : "found by verify");
  }
}

/** What is stored is damaged so that nothing opens, which was told: the seed ends here. */
class Closed extends Error {}

/** What was said in a session, and what of it must be there. */
class Log {
  calls = [];
  #known = new Map();
  /** So many messages may be missing without a word of the history: that was told. */
  #told = 0;
  lost = 0;
  /** Changes of the context, and snapshots, that nobody acknowledged. */
  unsure = 0;
  /** It was deleted once. */
  isForgotten = false;

  constructor(id, simulation) {
    this.id = id;
    this.simulation = simulation;
  }

  begin(name, who, messages) {
    const call = { name, who, messages, state: "open" };
    this.calls.push(call);
    messages.forEach((message, nth) => this.#known.set(JSON.stringify(message), { call, nth }));
    return call;
  }

  /** Makes a change of the context, which writes rows of the log, too. */
  async unsurely(change) {
    this.unsure++;
    if ((await change()).code === undefined) this.unsure--;
  }

  /** Something was acknowledged that must be there. */
  get isBegun() {
    return this.calls.some(({ state }) => state === "acknowledged");
  }

  end(call, state) {
    call.state = state;
  }

  told(_, records) {
    this.#told += records;
  }

  async check(process, session) {
    const { simulation } = this;
    const gaps = [];
    const found = [];
    const reading = await simulation.attempt(process, "history", async () => {
      for await (const message of session.archive.history({ onGap: (gap) => gaps.push(gap) })) found.push(message);
      // Listeners are called when the calls that found something have ended.
      await Promise.resolve();
    });
    if (reading.code) throw new Error(`the history of ${this.id} cannot be read: ${reading.code}`);
    const seen = new Map();
    const last = new Map();
    for (const message of found) {
      const known = this.#known.get(JSON.stringify(message));
      if (!known) throw new Error(`${this.id} has what nobody said: ${JSON.stringify(message).slice(0, 200)}`);
      const { call, nth } = known;
      const there = seen.get(call) ?? [];
      if (there.includes(nth)) throw new Error(`${this.id} has ${call.name} twice`);
      if (there.length > 0 && nth < there.at(-1)) throw new Error(`${this.id} has ${call.name} in another order`);
      if (call.state === "refused") throw new Error(`${this.id} has ${call.name}, which was refused`);
      if (call.state === "deleted" && simulation.isSound) throw new Error(`${this.id} has ${call.name}, which was deleted`);
      const at = this.calls.indexOf(call);
      if ((last.get(call.who) ?? -1) > at) throw new Error(`${this.id} has ${call.name} in another order`);
      last.set(call.who, at);
      seen.set(call, [...there, nth]);
    }
    const maybe = this.calls.filter(({ state }) => state === "maybe deleted");
    const isDeleted = maybe.length > 0 && !maybe.some((call) => seen.has(call));
    let missing = 0;
    for (const call of this.calls) {
      const there = seen.get(call)?.length ?? 0;
      if (call.state === "maybe deleted") call.state = isDeleted ? "deleted" : there > 0 ? "acknowledged" : "lost";
      if (call.state === "open" && there > 0) call.state = "acknowledged";
      if (call.state === "open") call.state = "lost";
      if (call.state !== "acknowledged") continue;
      const lost = call.messages.length - there - (call.lost ?? 0);
      if (lost > 0) {
        simulation.note(`${call.name}: ${lost} of ${call.messages.length} missing`);
        missing += lost;
        call.lost = call.messages.length - there;
      }
    }
    const told = this.#told + gaps.reduce((sum, { count }) => sum + count, 0);
    if (missing > 0) {
      simulation.tell("messages lost", missing);
      if (simulation.isSound) throw new Error(`${this.id} has lost ${missing} messages that were acknowledged`);
      this.lost += missing;
      // A flipped bit costs what it is part of, and that is one row; that of the note may cost what it vouched for.
      const isBounded = simulation.kind === "damage" && simulation.damage.length === simulation.flips && !simulation.isDoubled;
      if (isBounded && this.lost > simulation.flips && !simulation.damage.some((what) => what.startsWith("acknowledged"))) {
        throw new Error(`${this.id} has lost ${this.lost} messages to ${simulation.flips} flipped bits`);
      }
      if (missing > told) throw new Error(`${this.id} has lost ${missing} messages, and told of ${told}`);
      this.#told -= Math.max(0, missing - gaps.length);
    }
    simulation.tell("readings");
  }
}

/** What one call of `append` says: one message, or a call of a tool with what came of it. */
function messagesOf(name, world) {
  const times = world.random(world.one(4) ? 400 : 20);
  const text = `[${name}] ${world.pick(["問題 ", "question 😀 ", "never push to main; "]).repeat(1 + times)}`;
  if (!world.one(3)) return [{ role: world.pick(["user", "assistant"]), content: text }];
  const id = `call_${name.replaceAll(/\W/g, "_")}`;
  return [
    { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name: "read", arguments: `{"path":"${id}"}` } }] },
    { role: "tool", tool_call_id: id, content: `[${name}] ${"line of the file\n".repeat(times)}` },
  ];
}
