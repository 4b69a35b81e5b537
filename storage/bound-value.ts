/**
 * Maximum length, in bytes, of a value that is read from the store. Values that this server writes are far shorter. A
 * longer value was written by another program, and reading it would cost all callers time and memory.
 */
const LONGEST_BYTES = 1024 * 1024

/**
 * Returns the SQL that reads a column. If the stored value is too long, the result of the SQL is an empty value, which
 * is treated as invalid, like every value that this server did not write. `empty` is the SQL of that empty value; for
 * columns of bytes, it depends on the database engine.
 */
export const bounded = (column: string, empty = `''`): string =>
  `CASE WHEN octet_length(${column}) > ${LONGEST_BYTES} THEN ${empty} ELSE ${column} END AS ${column}`
