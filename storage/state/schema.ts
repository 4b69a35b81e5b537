/** 'SVMC': says in bytes 68 to 71 of the file whose it is. */
export const APPLICATION_ID = 0x53564d43

/** Rises with every change of the tables; a file of a higher number is left alone. */
export const SCHEMA_VERSION = 1

/**
 * A whole new file, in one transaction. WAL mode stays with the file. Ids of callers are TEXT, compared byte by byte, so that an operator
 * can see who is registered; everything that is to be kept from readers of the file is in `wrapped_key` and `sealed`.
 */
export const CREATE_FILE = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  BEGIN IMMEDIATE;
  CREATE TABLE credentials (
    iss TEXT NOT NULL, sub TEXT NOT NULL, version TEXT NOT NULL, kek_id TEXT NOT NULL, wrapped_key BLOB NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (iss, sub)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE used_tokens (id TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX used_tokens_by_expiry ON used_tokens (expires_at);
  CREATE TABLE challenges (key TEXT PRIMARY KEY NOT NULL, bound_to TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX challenges_by_expiry ON challenges (expires_at);
  CREATE TABLE notes (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
  COMMIT;
`

/**
 * Of every connection. A busy file is waited for outside SQLite (`run-queries.ts`), whose own wait would stop the event loop.
 * Overwritten and deleted rows are zeroed; code in a foreign schema is not trusted; the write-ahead log shrinks again after a burst.
 */
export const SET_UP_CONNECTION = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA secure_delete = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;
  PRAGMA journal_size_limit = 4194304;
`
