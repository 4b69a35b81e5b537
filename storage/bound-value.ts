/**
 * The longest value in bytes that is read from the store. Nothing that this server writes comes near it, so a longer
 * one was written by somebody else, and reading it would take the time and the memory of everybody.
 */
const LONGEST_BYTES = 1024 * 1024

/**
 * Returns the SQL that reads a column, or an empty value if it is too long. An empty value is as invalid as any other
 * that this server did not write. `empty` is the SQL of one, which depends on the engine for columns of bytes.
 */
export const bounded = (column: string, empty = `''`): string =>
  `CASE WHEN octet_length(${column}) > ${LONGEST_BYTES} THEN ${empty} ELSE ${column} END AS ${column}`
