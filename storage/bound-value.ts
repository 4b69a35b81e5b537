/**
 * Maximum length, in bytes, of a value that is read from the store. Values written by this server are far shorter. A
 * longer one was written by somebody else, and reading it would cost all callers time and memory.
 */
const LONGEST_BYTES = 1024 * 1024

/**
 * Returns the SQL that reads a column. If the stored value is longer than permitted, the SQL gives an empty value,
 * which is invalid, like any other value that this server did not write. `empty` is the SQL of the empty value; for
 * columns of bytes, it depends on the database engine.
 */
export const bounded = (column: string, empty = `''`): string =>
  `CASE WHEN octet_length(${column}) > ${LONGEST_BYTES} THEN ${empty} ELSE ${column} END AS ${column}`
