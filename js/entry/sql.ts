/** Entry `context-compactor/sql`: sessions in SQL databases. It brings no client: that is the app's. */

export { d1Driver, libsqlDriver, neonDriver, pgDriver, postgresDriver, sqliteDriver } from "../store/sql/drivers.js";
export { sqlStore, type SqlStoreOptions } from "../store/sql/store.js";
export type {
  D1Binding,
  LibsqlClient,
  NeonSql,
  PgClient,
  PgPool,
  PostgresSql,
  SqlBatchDriver,
  SqlDriver,
  SqlDriverBase,
  SqliteDatabase,
  SqliteStatement,
  SqlQuery,
  SqlRow,
  SqlStatement,
  SqlTransactionDriver,
} from "../store/sql/platform.js";
