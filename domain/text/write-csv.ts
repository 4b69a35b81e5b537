/** Characters that make spreadsheet programs treat a cell as a formula if it begins with one of them. */
const FORMULA_STARTS = new Set(['=', '+', '-', '@', '\t', '\r'])

/**
 * Writes one line of CSV (RFC 4180), without the line break. A cell that a spreadsheet program would run as a formula
 * gets an apostrophe in front, because anyone may choose the names in a PCE.
 */
export const writeCsvLine = (cells: readonly string[]): string => cells.map(writeCell).join(',')

function writeCell(text: string): string {
  const safe = FORMULA_STARTS.has(text.charAt(0)) ? `'${text}` : text
  return /[",;\r\n]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
