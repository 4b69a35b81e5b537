import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Plain where standard output is no terminal or NO_COLOR is set: styleText looks. */
const style = (format: Style, text: string) => styleText(format, text)
const print = (text: string) => void process.stdout.write(`${text}\n`)

/** Of the narrowest terminal that people still use. */
const WIDTH = 80

/** A chapter of the story: its number, what happens, and why a security engineer would care. */
export function chapter(number: number, title: string, why: string): void {
  print(`\n${style('bold', `${number}. ${title}`)}\n${style('dim', wrap(why, '   '))}`)
}

/** What the client asked: on one line where it fits, otherwise as JSON over several. */
export function asked(tool: string, args: object): void {
  const short = Object.keys(args).length === 0 ? '' : ` ${inline(args)}`
  const fits = `   → ${tool}${short}`.length <= WIDTH
  print(`   ${style('cyan', `→ ${tool}`)}${fits ? short : `\n     ${layOut(args, 5)}`}`)
}

/** What came back, in a sentence. */
export function answered(text: string): void {
  print(wrap(text, '     ').replace(/^ {5}/, `   ${style('green', '←')} `))
}

/** Plain text under a chapter. */
export function say(text: string): void {
  print(wrap(text, '     '))
}

/** Texts below each other, what does not fit indented; how many lines they take. */
export function lines(texts: readonly string[]): number {
  const shown = texts.map((text) => wrap(text, '       ').replace(/^ {7}/, '     '))
  for (const text of shown) print(text)
  return shown.join('\n').split('\n').length
}

/** Between one part and the next. */
export const blankLine = () => print('')

/** A line of its own: how far things are before there is a story, and what it has shown. */
export function tell(text: string): void {
  print(wrap(text, ''))
}

/** Rows under a header, columns as wide as their widest cell; a column whose header starts with `#` is right-aligned. */
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

/** A block to copy under its title: a text as it is, or an object as JSON. */
export function block(title: string, content: string | object): void {
  const text = typeof content === 'string' ? content : layOut(content, 3)
  print(`\n${style('bold', title)}\n   ${text}`)
}

const emphasise = (row: string) =>
  row.replace(/\b(potentially_blocked|blocked|allowed|unknown)\b/g, (decision) =>
    style(decision === 'allowed' ? 'green' : 'yellow', decision),
  )

/** JSON on one line, with a space after each comma and colon. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${inline(field)}`)
  return `{${fields.join(', ')}}`
}

/** JSON in lines that fit, for a place `column` characters into a line; what does not fit is broken at its own commas. */
function layOut(value: unknown, column: number, indent = column): string {
  const whole = inline(value)
  // One column is for the comma that may follow.
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
