/**
 * The IndexedDB of one browser in memory, as several tabs have it: `indexedDB`, `localStorage`, locks and
 * `BroadcastChannel`. What of the standard `js/store` uses: transactions in the order of their making, those that write
 * alone on their tables; requests one after the other; errors that bubble and abort; a commit that counts with `complete`.
 * A strict commit is on the disk then, with those before it; a power cut takes back some of the relaxed ones behind it.
 */

/** Numbers before texts before arrays, as the standard has it. */
function compare(a, b) {
  const rank = (key) => (typeof key === "number" ? 0 : typeof key === "string" ? 1 : 2);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (!Array.isArray(a)) return a < b ? -1 : a > b ? 1 : 0;
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const order = compare(a[at], b[at]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const exception = (name, message = "simulated") => Object.assign(new Error(message), { name });
const copyOf = (value) => structuredClone(value);

const IDBKeyRange = {
  bound: (lower, upper, isLowerOpen = false, isUpperOpen = false) => ({
    has(key) {
      const [low, high] = [compare(key, lower), compare(key, upper)];
      return (isLowerOpen ? low > 0 : low >= 0) && (isUpperOpen ? high < 0 : high <= 0);
    },
  }),
};

/** A database at rest. */
class Data {
  version = 0;
  tables = new Map();
  /** What takes back each commit that is not on the disk yet. */
  unsynced = [];
  /** Transactions that have not ended, in order. */
  transactions = [];
  connections = new Set();
}

export class Browser {
  #world;
  #databases = new Map();
  #channels = new Set();
  #locks = new Map();
  storage = new Map();
  /** What `localStorage` had before, newest last. */
  #earlier = [];
  full = false;
  /** One in so many transactions, or connections, fails in some way; 0 for none. */
  fails = 0;
  failsToSync = 0;

  constructor(world) {
    this.#world = world;
  }

  /** From now on the row is found where its key is, and says another one: bits of it flipped. */
  mislabel(table, key, says) {
    for (const { tables } of this.#databases.values()) {
      for (const row of tables.get(table) ?? []) if (compare(row.key, key) === 0) row.says = says;
    }
  }

  /** What a tab has. */
  globals = (owner) => ({
    indexedDB: { open: (name, version) => this.#open(owner, name, version) },
    IDBKeyRange,
    localStorage: {
      getItem: (name) => this.storage.get(name) ?? null,
      setItem: (name, value) => this.#store(owner, () => this.storage.set(name, String(value))),
      removeItem: (name) => this.#store(owner, () => this.storage.delete(name)),
    },
    locks: { request: (...args) => this.#request(owner, ...args) },
    BroadcastChannel: this.#channelClass(owner),
  });

  #store(owner, change) {
    if (owner.dead) return;
    this.#earlier.push(new Map(this.storage));
    if (this.#earlier.length > 3) this.#earlier.shift();
    change();
  }

  /** Runs `call` later, as a task of its own. */
  #task(owner, call, ms = this.#world.random(100) / 50) {
    this.#world.later(owner, call, ms).catch((error) => this.#world.fail(error));
  }

  #open(owner, name, version) {
    const request = { error: null, transaction: null };
    const one = (n) => this.fails > 0 && this.#world.one(n);
    // Chromium forgets some requests.
    if (one(8 * this.fails)) return request;
    const open = () => {
      // Who opens a database waits for an upgrade of it to end.
      if (this.#databases.get(name)?.transactions.some(({ mode }) => mode === "versionchange")) return this.#task(owner, open);
      if (one(2 * this.fails)) {
        request.error = exception("UnknownError");
        request.onerror?.({ target: request });
        return;
      }
      if (!this.#databases.has(name)) this.#databases.set(name, new Data());
      const data = this.#databases.get(name);
      const wanted = version ?? (data.version || 1);
      if (wanted < data.version) {
        request.error = exception("VersionError");
        request.onerror?.({ target: request });
        return;
      }
      const db = (request.result = new Database(this, owner, data));
      const opened = () => {
        if (!owner.dead) request.onsuccess?.({ target: request });
      };
      if (wanted === data.version) return opened();
      const oldVersion = data.version;
      const tx = (request.transaction = db.begin([], "versionchange", "strict"));
      tx.undo.push(() => (data.version = oldVersion));
      data.version = wanted;
      tx.oncomplete = opened;
      tx.onabort = () => {
        request.error = exception("AbortError");
        request.onerror?.({ target: request });
      };
      request.onupgradeneeded?.({ oldVersion, target: request });
    };
    this.#task(owner, open);
    return request;
  }

  /** Starts what may run, of the transactions of a database. */
  schedule(data) {
    for (const [at, tx] of data.transactions.entries()) {
      if (tx.started) continue;
      const isBlocked = data.transactions.slice(0, at).some((other) => {
        const shares = tx.mode === "versionchange" || other.mode === "versionchange" || tx.tables.some((name) => other.tables.includes(name));
        return shares && (tx.mode !== "readonly" || other.mode !== "readonly");
      });
      if (isBlocked) continue;
      tx.started = true;
      this.#task(tx.owner, () => this.#step(tx));
    }
  }

  #step(tx) {
    if (tx.ended || tx.hangs) return;
    const request = tx.requests.shift();
    if (!request) return this.#commit(tx);
    try {
      request.result = request.perform();
      request.onsuccess?.({ target: request });
    } catch (error) {
      request.error = error;
      this.#failRequest(tx, request, true);
    }
    if (!tx.ended) this.#task(tx.owner, () => this.#step(tx));
  }

  /** An error event at a request, which bubbles, and aborts unless somebody prevents it. */
  #failRequest(tx, request, aborts) {
    const event = {
      target: request,
      preventDefault: () => (aborts = false),
      stopPropagation: () => (event.isStopped = true),
    };
    request.onerror?.(event);
    if (!event.isStopped) tx.onerror?.(event);
    if (aborts && !tx.ended) this.abort(tx, request.error);
  }

  #commit(tx) {
    tx.committing = true;
    const { data, owner } = tx;
    if (tx.undo.length > 0 && this.full) return this.abort(tx, exception("QuotaExceededError"));
    if (tx.mode !== "readonly" && this.failsToSync && this.#world.one(this.failsToSync)) {
      return this.abort(tx, exception("UnknownError", "the disk failed"));
    }
    if (tx.undo.length > 0) {
      data.unsynced.push(tx.undo);
      if (tx.durability === "strict") data.unsynced = [];
    }
    this.#ended(tx);
    // It is committed; that is told when it is told.
    this.#task(owner, () => !tx.isMute && tx.oncomplete?.({ target: tx }));
  }

  /** Takes back what `tx` did; its events follow. */
  abort(tx, error = null) {
    if (tx.ended) throw exception("InvalidStateError");
    tx.undo.reverse().forEach((back) => back());
    tx.error = error;
    this.#ended(tx);
    if (tx.isMute) return;
    this.#task(tx.owner, () => {
      for (const request of tx.requests.splice(0)) {
        request.error = exception("AbortError");
        this.#failRequest(tx, request, false);
      }
      tx.onabort?.({ target: tx });
    });
  }

  #ended(tx) {
    tx.ended = true;
    tx.data.transactions.splice(tx.data.transactions.indexOf(tx), 1);
    this.schedule(tx.data);
  }

  /** What may go wrong with a transaction that is made now. */
  trouble(tx) {
    if (!this.fails || tx.mode === "versionchange" || !this.#world.one(this.fails)) return;
    switch (this.#world.random(4)) {
      case 0:
        this.#task(tx.owner, () => !tx.ended && this.abort(tx, exception("UnknownError")));
        break;
      case 1:
        // The tab is stopped in it, or for ever.
        this.#task(tx.owner, () => (tx.hangs = true), 0);
        if (this.#world.one(2)) this.#task(tx.owner, () => this.#awake(tx), 1_000 * this.#world.random(20));
        break;
      case 2:
        tx.isMute = true;
        this.#task(tx.owner, () => tx.db.lose());
        break;
      case 3:
        this.#task(tx.owner, () => tx.db.lose());
    }
  }

  #awake(tx) {
    tx.hangs = false;
    if (!tx.ended && tx.started) this.#step(tx);
  }

  /** A tab, or all of them, are gone: their transactions are aborted, and locks are free. */
  leave(owner) {
    for (const data of this.#databases.values()) {
      for (const tx of data.transactions.filter((tx) => tx.owner === owner)) this.abort(tx);
      for (const db of data.connections) if (db.owner === owner) data.connections.delete(db);
    }
    for (const channel of this.#channels) if (channel.owner === owner) this.#channels.delete(channel);
  }

  cut() {
    for (const data of this.#databases.values()) {
      for (let left = this.#world.random(data.unsynced.length + 1); left > 0; left--) {
        data.unsynced.pop().reverse().forEach((back) => back());
      }
      data.unsynced = [];
    }
    // It is written now and then.
    if (this.#earlier.length > 0 && this.#world.one(2)) this.storage = this.#world.pick(this.#earlier);
    this.#earlier = [];
  }

  #values() {
    const found = [];
    for (const { tables } of this.#databases.values()) {
      for (const [table, rows] of tables) for (const row of rows) if (row.value.bytes instanceof Uint8Array) found.push({ table, row });
    }
    return found;
  }

  flip() {
    const rows = this.#values();
    if (rows.length === 0) return undefined;
    const { table, row } = this.#world.pick(rows);
    const value = copyOf(row.value);
    value.bytes[this.#world.random(value.bytes.length)] ^= 1 << this.#world.random(8);
    row.value = value;
    return `${JSON.stringify(row.key)} of ${table}`;
  }

  misdirect() {
    const rows = this.#values();
    if (rows.length < 2) return undefined;
    const [{ row: from }, { row: to }] = [this.#world.pick(rows), this.#world.pick(rows)];
    if (from === to) return undefined;
    to.value = { ...to.value, bytes: this.#world.one(4) ? "no bytes" : from.value.bytes.slice() };
    return `${JSON.stringify(from.key)} at ${JSON.stringify(to.key)}`;
  }

  async #request(owner, name, { signal } = {}, work) {
    const lock = { owner, signal };
    const queue = this.#locks.get(name) ?? [];
    this.#locks.set(name, queue);
    const free = () => {
      const at = queue.indexOf(lock);
      if (at >= 0) queue.splice(at, 1);
      if (at === 0) queue[0]?.go();
    };
    owner.ends.push(free);
    const turn = new Promise((resolve, reject) => {
      lock.go = () => this.#task(lock.owner, resolve, 0);
      signal?.addEventListener("abort", () => {
        if (queue[0] === lock) return;
        free();
        reject(exception("AbortError"));
      });
    });
    if (queue.push(lock) === 1) lock.go();
    await turn;
    try {
      return await work();
    } finally {
      free();
    }
  }

  #channelClass(owner) {
    const browser = this;
    return class {
      owner = owner;
      constructor(name) {
        this.name = name;
        browser.#channels.add(this);
      }
      postMessage(data) {
        for (const other of browser.#channels) {
          if (other === this || other.name !== this.name) continue;
          browser.#task(other.owner, () => browser.#channels.has(other) && other.onmessage?.({ data }));
        }
      }
      close() {
        browser.#channels.delete(this);
      }
    };
  }

  get one() {
    return (n) => this.#world.one(n);
  }

  task(owner, call) {
    this.#task(owner, call);
  }
}

/** A connection. */
class Database {
  #isClosed = false;
  #listeners = new Set();
  onclose = null;
  onversionchange = null;

  constructor(browser, owner, data) {
    Object.assign(this, { browser, owner, data });
    data.connections.add(this);
  }

  get version() {
    return this.data.version;
  }

  /** There is one kind of event that is listened to. */
  addEventListener(_, listener) {
    this.#listeners.add(listener);
  }

  removeEventListener(_, listener) {
    this.#listeners.delete(listener);
  }

  dispatchEvent(event) {
    for (const listener of [...this.#listeners]) listener(event);
  }

  get objectStoreNames() {
    return { contains: (name) => this.data.tables.has(name) };
  }

  createObjectStore(name) {
    this.data.tables.set(name, []);
    this.upgrade.undo.push(() => this.data.tables.delete(name));
  }

  transaction(tables, mode, { durability = "relaxed" } = {}) {
    if (this.#isClosed) throw exception("InvalidStateError", "The database connection is closing");
    return this.begin([tables].flat(), mode, durability);
  }

  begin(tables, mode, durability) {
    const { browser, owner, data } = this;
    const tx = { db: this, owner, data, tables, mode, durability, undo: [], requests: [], error: null };
    tx.objectStore = (name) => new ObjectStore(browser, tx, name);
    tx.abort = () => {
      if (tx.committing) throw exception("InvalidStateError");
      browser.abort(tx);
    };
    if (mode === "versionchange") this.upgrade = tx;
    data.transactions.push(tx);
    // What is asked of it is asked before it starts.
    queueMicrotask(() => !tx.ended && browser.schedule(data));
    browser.trouble(tx);
    return tx;
  }

  close() {
    this.#isClosed = true;
    this.data.connections.delete(this);
  }

  /** The browser takes it away. */
  lose() {
    if (this.#isClosed) return;
    this.close();
    for (const tx of this.data.transactions.filter(({ db }) => db === this)) this.browser.abort(tx);
    this.onclose?.(new Event("close"));
    this.dispatchEvent(new Event("close"));
  }
}

class ObjectStore {
  constructor(browser, tx, name) {
    Object.assign(this, { browser, tx, name });
  }

  get #rows() {
    return this.tx.data.tables.get(this.name);
  }

  /** Where `key` is among the rows, or belongs. */
  #at(key) {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#rows[middle].key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return { at: low, row: this.#rows[low] && compare(this.#rows[low].key, key) === 0 ? this.#rows[low] : undefined };
  }

  #ask(perform) {
    const { tx } = this;
    if (tx.ended || tx.committing) throw exception("TransactionInactiveError");
    const request = { error: null, perform };
    tx.requests.push(request);
    return request;
  }

  #set(key, value) {
    const { at, row } = this.#at(key);
    const rows = this.#rows;
    // A row is never changed where it is: what takes it back puts the one before there.
    rows.splice(at, row ? 1 : 0, { key, value });
    this.tx.undo.push(() => {
      const { at } = this.#at(key);
      rows.splice(at, 1, ...(row ? [row] : []));
    });
  }

  get(key) {
    return this.#ask(() => copyOf(this.#at(key).row?.value));
  }

  put(value, key) {
    const copy = copyOf(value);
    return this.#ask(() => this.#set(key, copy));
  }

  add(value, key) {
    const copy = copyOf(value);
    return this.#ask(() => {
      if (this.#at(key).row) throw exception("ConstraintError");
      this.#set(key, copy);
    });
  }

  delete(key) {
    return this.#ask(() => {
      const { at, row } = this.#at(key);
      if (!row) return;
      const rows = this.#rows;
      rows.splice(at, 1);
      this.tx.undo.push(() => rows.splice(this.#at(key).at, 0, row));
    });
  }

  #within(range, count = Infinity) {
    return this.#rows.filter(({ key }) => range.has(key)).slice(0, count);
  }

  getAll(range, count) {
    return this.#ask(() => this.#within(range, count).map(({ value }) => copyOf(value)));
  }

  getAllKeys(range, count) {
    return this.#ask(() => this.#within(range, count).map(({ key, says = key }) => copyOf(says)));
  }

  openCursor(range) {
    return this.#cursor(range);
  }

  openKeyCursor(range) {
    return this.#cursor(range);
  }

  /** From the last one back, as the store has it. */
  #cursor(range) {
    const rows = () => this.#within(range).reverse();
    let nth = 0;
    const request = this.#ask(() => {
      const row = rows()[nth++];
      if (!row) return null;
      return { key: copyOf(row.says ?? row.key), value: copyOf(row.value), continue: () => void this.tx.requests.push(request) };
    });
    return request;
  }
}
