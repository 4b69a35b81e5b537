import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/**
 * Applies a text style, such as bold. `styleText` leaves the string unstyled if standard output is not a terminal or
 * NO_COLOR is set.
 */
const style = (format: Style, text: string) => styleText(format, text)
const print = (text: string) => void process.stdout.write(`${text}\n`)

/** The width of the narrowest terminals that are still in use. */
const WIDTH = 80

/** Prints the heading of a chapter: its number, what happens in it, and why this matters to a security engineer. */
export function chapter(number: number, title: string, why: string): void {
  print(`\n${style('bold', `${number}. ${title}`)}\n${style('dim', wrap(why, '   '))}`)
}

/** Prints a call of the client: on one line if it fits, otherwise as JSON on several lines. */
export function asked(tool: string, args: object): void {
  const short = Object.keys(args).length === 0 ? '' : ` ${inline(args)}`
  const fits = `   → ${tool}${short}`.length <= WIDTH
  print(`   ${style('cyan', `→ ${tool}`)}${fits ? short : `\n     ${layOut(args, 5)}`}`)
}

/** Prints a sentence that sums up the answer to a call. */
export function answered(text: string): void {
  print(wrap(text, '     ').replace(/^ {5}/, `   ${style('green', '←')} `))
}

/** Prints a line of plain text below a chapter's heading. */
export function say(text: string): void {
  print(wrap(text, '     '))
}

/**
 * Prints each string wrapped at WIDTH columns, with its continuation lines indented. Returns the number of printed
 * lines.
 */
export function lines(texts: readonly string[]): number {
  const shown = texts.map((text) => wrap(text, '       ').replace(/^ {7}/, '     '))
  for (const text of shown) print(text)
  return shown.join('\n').split('\n').length
}

/** Prints the separator between two parts of the story. */
export const blankLine = () => print('')

/** Prints a line outside any chapter, such as progress before the story starts. */
export function tell(text: string): void {
  print(wrap(text, ''))
}

/**
 * Prints rows below a header. Each column is as wide as its widest cell. A column whose header starts with `#` is
 * right-aligned.
 */
export function table(header: string[], rows: string[][]): void {
  const names = header.map((name) => name.replace(/^#/, ''))
  const widths = names.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: string[]) =>
    cells
      .map((cell, column) =>
        header[column]?.startsWith('#') === true ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd()
  print(`     ${style('dim', line(names))}`)
  for (const row of rows) print(`     ${emphasise(line(row))}`)
}

/** Prints a titled block that can be copied: a string unchanged, or an object as JSON. */
export function block(title: string, content: string | object): void {
  const text = typeof content === 'string' ? content : layOut(content, 3)
  print(`\n${style('bold', title)}\n   ${text}`)
}

const emphasise = (row: string) =>
  row.replace(/\b(potentially_blocked|blocked|allowed|unknown)\b/g, (decision) =>
    style(decision === 'allowed' ? 'green' : 'yellow', decision),
  )

/** Formats JSON on one line, with a space after each comma and colon. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${inline(field)}`)
  return `{${fields.join(', ')}}`
}

/**
 * Formats JSON so that it fits the width of the terminal. `column` is the column at which the text begins. A value that
 * is too long is broken after its commas.
 */
function layOut(value: unknown, column: number, indent = column): string {
  const whole = inline(value)
  // One column is reserved for the comma that may follow.
  if (column + whole.length < WIDTH) return whole
  const pad = ' '.repeat(indent)
  if (typeof value !== 'object' || value === null) return `\n${pad}${whole}`
  const parts = Array.isArray(value)
    ? value.map((item) => layOut(item, indent + 2))
    : Object.entries(value).map(([key, field]) => {
        const name = `${JSON.stringify(key)}:`
        const rest = layOut(field, indent + 3 + name.length, indent + 2)
        return rest.startsWith('\n') ? name + rest : `${name} ${rest}`
      })
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  return `${open}\n${parts.map((part) => `${pad}  ${part}`).join(',\n')}\n${pad}${close}`
}

function wrap(text: string, indent: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + word.length >= WIDTH) {
      lines.push(indent + line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, indent + line].join('\n')
}
