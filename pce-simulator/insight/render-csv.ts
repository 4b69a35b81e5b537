/** RFC 4180: CRLF, and quotes around what holds a comma, a quote or a line break. Nothing is an empty field. */
export function renderCsv(rows: Iterable<readonly unknown[]>): string {
  let text = ''
  for (const row of rows) text += `${row.map(field).join(',')}\r\n`
  return text
}

function field(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
