/**
 * The maximum length in bytes of a value that is read from the store. This server writes only far shorter values, so a
 * longer one was written by somebody else, and reading it would cost all callers time and memory.
 */
const LONGEST_BYTES = 1024 * 1024

/**
 * Returns the SQL that reads a column, or an empty value if the stored value is too long. An empty value is treated
 * like any other value that this server did not write: it is invalid. `empty` is the SQL of the empty value; for
 * columns of bytes, it depends on the database engine.
 */
export const bounded = (column: string, empty = `''`): string =>
  `CASE WHEN octet_length(${column}) > ${LONGEST_BYTES} THEN ${empty} ELSE ${column} END AS ${column}`
