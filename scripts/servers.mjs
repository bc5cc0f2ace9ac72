/** Where the servers of databases are that the tests start. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "./browsers.mjs";

/** Debian keeps each version of PostgreSQL in a folder of its own, and none of its programs in the path. */
const VERSIONS = "/usr/lib/postgresql";

const known = {
  postgres: {
    variable: "POSTGRES_BIN",
    names: ["postgres"],
    places: (existsSync(VERSIONS) ? readdirSync(VERSIONS) : [])
      .sort((one, other) => Number(other) - Number(one))
      .map((version) => join(VERSIONS, version, "bin/postgres")),
    package: "postgresql",
  },
  redis: { variable: "REDIS_BIN", names: ["redis-server", "valkey-server"], places: [], package: "redis-server" },
};

/** Those that stores are tested on. */
export const servers = Object.keys(known);

/** Path of a server's program: the one that the environment names, else one of the system; or undefined. */
export function findServer(server) {
  return findProgram(known[server]);
}

/** The Debian package of a server. */
export function serverPackage(server) {
  return known[server].package;
}
