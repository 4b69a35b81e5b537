import { html } from 'ghtml'
import { leftOutMark } from './fit.js'
import { renderSentence } from './render-sentence.js'
import { showStored } from './show-stored.js'

const LONGEST_TEXT = 4000
const DEEPEST = 6
const MOST_MEMBERS = 40

const SENTENCE = /^(?:message|hint|(?:.*_)?note)$/u

const PROTOCOLS: Readonly<Record<string, string>> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6' }

/** Maximum length of a value's JSON, in characters. A longer value is shown as shortened JSON instead of in words. */
const LARGEST_VALUE = 4000

/**
 * Renders a JSON value in words, in at most about 20 KB of HTML. An object with an href is shown by its name, with the
 * href beside it.
 */
export function renderValue(value: unknown): string {
  const json = JSON.stringify(value) ?? ''
  // A plain string of any length is accepted here, because `text` shortens it.
  return typeof value === 'string' || json.length <= LARGEST_VALUE ? render(value, DEEPEST) : text(json)
}

function render(value: unknown, depth: number): string {
  if (value === null || value === undefined) return '<i>none</i>'
  if (typeof value === 'string') return value === '' ? '<i>empty</i>' : text(value)
  if (typeof value !== 'object') return text(JSON.stringify(value))
  if (depth === 0) return text(JSON.stringify(value))
  if (Array.isArray(value)) return renderList(value as unknown[], depth)
  return renderObject(value as Record<string, unknown>, depth)
}

function text(value: string): string {
  const shown = showStored(value, LONGEST_TEXT)
  const isWhole = value.length <= LONGEST_TEXT || shown === showStored(value)
  return html`<bdi>${shown}</bdi>!${isWhole ? '' : ` ${leftOutMark('(the rest is not shown)')}`}`
}

function renderList(list: readonly unknown[], depth: number): string {
  if (list.length === 0) return '<i>none</i>'
  const shown = list.slice(0, MOST_MEMBERS).map((item) => render(item, depth - 1))
  return shown.join(', ') + andMore(list.length - shown.length)
}

function renderObject(object: Record<string, unknown>, depth: number): string {
  const { href, name, key, value, ...rest } = object
  const isNamed = typeof href === 'string'
  // A label has no name, so its key and value identify it.
  const title = typeof key === 'string' && typeof value === 'string' ? `${key}: ${value}` : name
  const others = Object.entries(isNamed ? rest : object)
  if (!isNamed && others.length === 1) return renderOnly(others[0] as [string, unknown], depth)
  const members = others.slice(0, MOST_MEMBERS).map(([member, inner]) => renderMember(member, inner, depth))
  const more = andMore(others.length - members.length)
  if (!isNamed) return (members.join(', ') || '<i>empty</i>') + more
  const named = typeof title === 'string' && title !== '' ? `${text(title)} ` : ''
  const detail = members.length === 0 ? '' : ` (${members.join(', ')}${more})`
  return `${named}${html`<code class="href">${showStored(href, LONGEST_TEXT)}</code>`}${detail}`
}

/** Renders an object with a single member, such as `{"label": {…}}`. */
function renderOnly([member, inner]: [string, unknown], depth: number): string {
  if (member === 'actors' && inner === 'ams') return 'all workloads <bdi>(ams)</bdi>'
  return typeof inner === 'object' && inner !== null
    ? `${html`<span class="kind">${showStored(member, LONGEST_TEXT)}</span>`} ${render(inner, depth - 1)}`
    : renderMember(member, inner, depth)
}

function renderMember(member: string, inner: unknown, depth: number): string {
  const protocol = member === 'proto' ? PROTOCOLS[String(inner)] : undefined
  const rendered = isSentence(member, inner) ? renderSentence(inner, LONGEST_TEXT) : render(inner, depth - 1)
  const shown = typeof inner === 'object' && inner !== null ? `(${rendered})` : rendered
  return `${html`<span class="kind">${showStored(member, LONGEST_TEXT)}</span>`} ${shown}${protocol === undefined ? '' : ` (${protocol})`}`
}

/** Returns true if the name of the field shows that its value is a sentence that this server wrote. */
export const isSentence = (field: string, value: unknown): value is string =>
  typeof value === 'string' && SENTENCE.test(field)

const andMore = (omitted: number) => (omitted > 0 ? ` ${leftOutMark(`… and ${omitted} more`)}` : '')
