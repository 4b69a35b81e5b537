/** The words of wrong configurations, such as `$PCE` and `$DIR`, which stand for what differs from run to run. */
import { TOOLSETS } from '../../../tools/define.js'
import { tools } from '../../../tools/index.js'
import type { Settings } from './starts.js'

export type Words = Readonly<Record<string, string>>

const TOOLS = tools
  .map(({ name }) => name)
  .toSorted()
  .join(', ')

/** A line of the log, as far as a person reads it. */
export interface Line {
  msg: string
  remedy?: unknown
}

/** The text with every word replaced. */
export const fill = (words: Words) => (text: string) => text.replaceAll(/\$[A-Z_]+/g, (word) => words[word] ?? word)

/** The variables that are set, with every word replaced. */
export function fillSettings(settings: Settings, words: Words): Record<string, string> {
  const set = Object.entries(settings).filter((entry): entry is [string, string] => entry[1] !== null)
  return Object.fromEntries(set.map(([name, value]) => [name, fill(words)(value)]))
}

/** Writes a line as `problem → remedy` and puts the words back, those of ports only where a number stands alone. */
export function createReader({ $DIR: folder, $UID: user, ...others }: Words): (line: Line) => string {
  const ports = Object.entries(others).filter(([, value]) => /^\d+$/.test(value))
  return ({ msg, remedy }) =>
    ports
      .reduce(
        (said, [word, port]) => said.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), () => word),
        typeof remedy === 'string' ? `${msg} → ${remedy}` : msg,
      )
      .replaceAll(folder!, () => '$DIR')
      .replaceAll(new RegExp(`\\buser ${user}\\b`, 'g'), 'user $UID')
      .replaceAll(Object.keys(TOOLSETS).join(', '), '$TOOLSETS')
      .replaceAll(TOOLS, '$TOOLS')
}
