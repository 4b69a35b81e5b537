import type { SourceFile } from 'typescript'
import type { BulkVerb, Kind } from '../../pce-client/kinds.js'
import { renderTable } from './markdown.js'
import {
  readBullets,
  readInterface,
  readParts,
  type InterfaceDoc,
  type MethodDoc,
  type PropertyDoc,
} from './read-interfaces.js'

/** The methods that the specification (S9) does not name. It names all others in snake case. */
const ADDITIONS = new Set(['close', 'getInParts', 'getPage', 'scan', 'streamTrafficFlows'])

/** The last argument of all calls, which is explained only once, above the tables. */
const COMMON_ARGUMENT = 'RequestOptions'

/** Renders the generated sections of the page, by the names of their markers. */
export function renderClientSections(
  kinds: Readonly<Record<string, Kind>>,
  sources: readonly SourceFile[],
): Record<string, string> {
  return {
    'client-options': renderOptions(readInterface(sources, 'PceClientOptions').properties),
    'client-objects': renderMethods(readInterface(sources, 'ObjectApi').methods),
    'client-kinds': renderKindTable(kinds),
    'client-operations': renderOperations(readParts(sources, 'NamedOperations')),
    'client-errors': renderErrorCodes(readBullets(sources, 'PceErrorCode')),
    'client-transport': renderMethods(readInterface(sources, 'PceTransport').methods),
  }
}

/** Renders a table with one row for each kind of object: its path and its operations. */
export function renderKindTable(kinds: Readonly<Record<string, Kind>>): string {
  const head = ['Attribute', 'Specification', 'Path below `/api/v2`', 'On the path', 'On an object', 'Bulk', 'Parent']
  const rows = Object.entries(kinds).map(([attribute, kind]) => [
    code(attribute),
    code(kind.specName),
    code(kind.path),
    kind.collectionVerbs.join(' '),
    kind.itemVerbs.join(' '),
    (kind.bulk ?? []).map(bulkMethod).join(' '),
    kind.parent === undefined ? '' : code(kind.parent),
    natureOf(kind),
    nameSearchOf(kind),
  ])
  return renderTable([...head, 'Nature', '`getByName`'], rows)
}

/** Renders a heading and a table of methods for each interface. */
export function renderOperations(groups: readonly InterfaceDoc[]): string {
  return groups.map((group) => `### ${titleOf(group)}\n\n${renderMethods(group.methods)}`).join('\n\n')
}

/** Renders the methods. Throws Error for a method without a docstring, because the page has no other text about it. */
export function renderMethods(methods: readonly MethodDoc[]): string {
  const rows = methods.map((method) => {
    if (method.summary === '') throw new Error(`${method.name} has no docstring`)
    return [
      code(method.name),
      ADDITIONS.has(method.name) ? 'added here' : code(toSpecName(method.name)),
      argumentsOf(method),
      code(method.result),
      `${method.deprecated ? 'Deprecated. ' : ''}${method.summary}`,
    ]
  })
  return renderTable(['Method', 'Specification', 'Arguments', 'Result', 'What it does'], rows)
}

/** Renders the options. Throws Error for an option without a docstring. */
function renderOptions(options: readonly PropertyDoc[]): string {
  const rows = options.map(({ name, type, optional, text }) => {
    if (text === '') throw new Error(`the option ${name} has no docstring`)
    return [code(name), code(type), optional ? '' : 'yes', text]
  })
  return renderTable(['Option', 'Type', 'Required', 'Meaning'], rows)
}

function renderErrorCodes(bullets: readonly { terms: string[]; text: string }[]): string {
  return renderTable(
    ['`code`', 'Meaning'],
    bullets.map(({ terms, text }) => [terms.map(code).join(', '), text]),
  )
}

function toSpecName(method: string): string {
  return method.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function argumentsOf({ parameters }: MethodDoc): string {
  return parameters
    .filter(({ type }) => type !== COMMON_ARGUMENT)
    .map(({ name, type, optional }) => code(`${name}${optional ? '?' : ''}: ${type}`))
    .join(', ')
}

function natureOf(kind: Kind): string {
  const traits = [
    kind.versioned ? 'draft and active' : '',
    kind.single === true ? 'single' : '',
    kind.arrayCreate === true ? 'created in lists' : '',
  ]
  return traits.filter((trait) => trait !== '').join(', ')
}

function nameSearchOf({ name, parent }: Kind): string {
  if (name === undefined || parent !== undefined) return ''
  return name === 'filter' ? 'yes, narrowed by the PCE' : 'yes, from the whole list'
}

/** Returns the heading of an interface: `VenReleaseOperations` becomes "VEN release operations". */
function titleOf({ name }: InterfaceDoc): string {
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z][a-z])/g, ' ').toLowerCase()
  return (words.charAt(0).toUpperCase() + words.slice(1)).replace(/^(?:Ven|Api)\b/, (word) => word.toUpperCase())
}

const bulkMethod = (verb: BulkVerb) => code(`bulk${verb.charAt(0).toUpperCase()}${verb.slice(1)}`)
const code = (text: string) => `\`${text}\``
