import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

const colours = process.stdout.isTTY && process.env.NO_COLOR === undefined
const style = (format: Style, text: string) => (colours ? styleText(format, text) : text)

const WIDTH = 96

/** A chapter of the story: its number, what happens, and why a security engineer would care. */
export function chapter(number: number, title: string, why: string): void {
  console.log(`\n${style('bold', `${number}. ${title}`)}\n${style('dim', wrap(why, '   '))}`)
}

/** What the client asked. */
export function asked(tool: string, args: object): void {
  console.log(`   ${style('cyan', '→')} ${style('cyan', tool)} ${shorten(JSON.stringify(args), WIDTH - tool.length)}`)
}

/** What came back, in a sentence. */
export function answered(text: string): void {
  console.log(wrap(text, '     ').replace(/^ {5}/, `   ${style('green', '←')} `))
}

/** Plain text under a chapter. */
export function say(text: string): void {
  console.log(wrap(text, '     '))
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
  console.log(`     ${style('dim', line(names))}`)
  for (const row of rows) console.log(`     ${emphasise(line(row))}`)
}

/** A block to copy, indented so that it can be selected whole. */
export function block(title: string, text: string): void {
  console.log(`\n   ${style('bold', title)}\n`)
  for (const row of text.split('\n')) console.log(`     ${row}`)
}

const emphasise = (row: string) =>
  row.replace(/\b(potentially_blocked|blocked|allowed|unknown)\b/g, (decision) =>
    style(decision === 'allowed' ? 'green' : 'yellow', decision),
  )

const shorten = (text: string, width: number) => (text.length <= width ? text : `${text.slice(0, width - 1)}…`)

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
