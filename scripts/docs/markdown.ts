/** Renders a GitHub table. Cells are Markdown; a `|` or a line break inside one is escaped here. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s*\n\s*/g, ' ')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/**
 * Replaces the text between the two markers of `name`. Throws Error if the markers are missing, occur twice or are in
 * the wrong order.
 */
export function replaceSection(text: string, name: string, content: string): string {
  const begin = `<!-- BEGIN generated:${name} -->`
  const end = `<!-- END generated:${name} -->`
  const [before, ...afterBegin] = text.split(begin)
  const [, ...afterEnd] = (afterBegin[0] ?? '').split(end)
  if (afterBegin.length !== 1 || afterEnd.length !== 1)
    throw new Error(`one ${begin} and after it one ${end} are needed`)
  return `${before}${begin}\n${content}\n${end}${afterEnd[0]}`
}
