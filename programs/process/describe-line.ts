const NAMES: Record<number, string> = { 10: 'TRACE', 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' }

interface LogLine {
  level: number
  time: string
  msg?: string
  remedy?: string
  err?: { message?: string; stack?: string }
  [fact: string]: unknown
}

/**
 * Formats a log line for a terminal: time, level and message, then the fields as `name=value`; the remedy and the stack
 * of an error follow on lines below. Further lines of a message are indented, so that a text from elsewhere cannot look
 * like a line of the log. Characters that affect the terminal, reverse the text or are invisible are replaced. A text
 * that is not a JSON line of the log is returned unchanged.
 */
export function describeLine(line: string): string {
  let read: LogLine
  try {
    read = JSON.parse(line) as LogLine
  } catch {
    return line
  }
  const { level, time, msg = '', remedy, err, ...facts } = read
  const told = Object.entries(facts).map(([name, value]) => ` ${name}=${show(value)}`)
  const cause = err === undefined ? '' : `\n    ${indent(err.stack ?? err.message ?? show(err))}`
  const advice = remedy === undefined ? '' : `\n    ${indent(remedy)}`
  const text = `${time.slice(11, 19)} ${(NAMES[level] ?? String(level)).padEnd(5)} ${indent(msg)}${told.join('')}${advice}${cause}\n`
  return text.replace(UNSEEN, '\uFFFD')
}

/**
 * Matches every character that a terminal would not show as it is, except for the line breaks of the formatted log line
 * itself.
 */
const UNSEEN = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const indent = (text: string) => text.replaceAll('\n', '\n    ')

const show = (value: unknown) =>
  typeof value === 'string' && /^[\w.:/@-]+$/.test(value) ? value : JSON.stringify(value)
