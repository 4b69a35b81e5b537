import type { TSchema } from '@sinclair/typebox'
import { mostCharacters, mostEntries } from '../../plugins/dispatcher/find-oversized.js'
import { describe, titleOf, TOOLSETS, type AnyTool } from '../../tools/define.js'
import { renderTable } from './markdown.js'

const EFFECTS = { read: 'reads', write: 'writes', destroy: 'destructive' } as const

/** Renders an overview of all tools: one row each, with a link to its section on the same page. */
function renderToolTable(tools: readonly AnyTool[]): string {
  const rows = tools.map((tool) => [
    `[\`${tool.name}\`](#${tool.name})`,
    tool.summary,
    tool.roles.join(', '),
    tool.requiresConfirm ? `${EFFECTS[tool.effect]}; confirmed over authenticated HTTP` : EFFECTS[tool.effect],
  ])
  return renderTable(['Tool', 'What it does', 'Roles', 'Effect'], rows)
}

/**
 * Renders the toolsets with their read-only and their changing tools in separate columns. With MCP_READ_ONLY, only the
 * read-only tools are offered.
 */
export function renderToolsetTable(tools: readonly AnyTool[]): string {
  const rows = Object.entries(TOOLSETS).map(([name, purpose]) => {
    const own = tools.filter(({ toolset }) => toolset === name)
    const listed = (some: readonly AnyTool[]) => some.map((tool) => code(tool.name)).join(', ')
    const reads = own.filter(({ effect }) => effect === 'read')
    const changes = own.filter(({ effect }) => effect !== 'read')
    return [code(name), purpose, listed(reads), listed(changes)]
  })
  return renderTable(['Toolset', 'To', 'Tools that read', 'Tools that change something'], rows)
}

/** Renders the page of all tools: a table, then the arguments, an example and the answer of each tool. */
export function renderToolPage(tools: readonly AnyTool[]): string {
  const source = '<!-- Generated from tools/index.ts by `npm run generate`. -->'
  return `${['# Tools', source, renderToolTable(tools), LIMITS, ...tools.map(renderTool)].join('\n\n')}\n`
}

const LIMITS = [
  'Every text and every list of the arguments has a limit. Where none is given below, a text has at most',
  `${mostCharacters('name')} characters if it is a name, a key, a value or an href, ${mostCharacters('description')} if it is a description,`,
  `${mostCharacters('process_name')} if it names a process or a Windows service, ${mostCharacters('cursor')} if it is a cursor, and`,
  `${mostCharacters('')} otherwise; a list has at most ${mostEntries()} entries. What is longer is refused with \`invalid_argument\`, which`,
  'names the argument and its limit, before anything else looks at it. An escape such as `⟨U+202E⟩` counts as one character.',
  '',
  'Where an argument takes several types, `tools/list` shows the first; the others are taken all the same. Null for an argument that',
  'is not required counts as left out.',
].join('\n')

function describeRequests({ atMost, and }: NonNullable<AnyTool['pceRequests']>): string {
  return `sends at most ${atMost} ${atMost === 1 ? 'request' : 'requests'} to the PCE${and === undefined ? '' : `, and ${and}`}`
}

function renderTool(tool: AnyTool): string {
  const facts = [
    `Toolset: ${tool.toolset}`,
    `roles: ${tool.roles.join(', ')}`,
    tool.requiresPce ? 'needs a PCE' : 'works without a PCE',
    ...(tool.requiresConfirm ? ['needs a confirm token over authenticated HTTP'] : []),
    ...(tool.pceRequests === undefined ? [] : [describeRequests(tool.pceRequests)]),
  ]
  const parameters = describeProperties(tool.input, true)
  const example = { name: tool.name, arguments: tool.example }
  return [
    `## ${tool.name}`,
    `**${titleOf(tool)}.** ${describe(tool)}`,
    `${facts.join('; ')}.`,
    parameters.length === 0
      ? 'No arguments.'
      : renderTable(['Argument', 'Type', 'Required', 'Default', 'Meaning'], parameters.map(parameterCells)),
    `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``,
    renderTable(
      ['Answer', 'Type', 'Always present', 'Meaning'],
      describeProperties(tool.output, false).map((row) => [
        code(row.path),
        code(row.type),
        row.required ? 'yes' : '',
        row.description,
      ]),
    ),
  ].join('\n\n')
}

const parameterCells = (row: PropertyRow) => [
  code(row.path),
  code(row.type),
  row.required ? 'yes' : '',
  row.default === undefined ? '' : code(row.default),
  row.description,
]

const code = (text: string) => `\`${text}\``

/** A row in a table of properties. */
interface PropertyRow {
  /** The path of the property. `[]` in it means "of each element", as in `rules[].providers[].key`. */
  path: string
  type: string
  required: boolean
  default: string | undefined
  description: string
}

/**
 * Lists the properties of an object schema. If `nested` is true, each property is followed by the properties inside its
 * arrays, unions and objects.
 */
function describeProperties(schema: TSchema, nested: boolean, prefix = ''): PropertyRow[] {
  const required = new Set(listOf<string>(schema.required))
  return Object.entries((schema.properties ?? {}) as Record<string, TSchema>).flatMap(([name, property]) => {
    const path = `${prefix}${name}`
    const usual: unknown = property.default ?? property.usual
    const row = {
      path,
      type: typeOf(property),
      required: required.has(name),
      default: usual === undefined ? undefined : JSON.stringify(usual),
      description: [property.description ?? '', limitsOf(property)].filter((text) => text !== '').join('; '),
    }
    return [row, ...(nested ? describeInside(property, path) : [])]
  })
}

function describeInside(schema: TSchema, path: string): PropertyRow[] {
  if (schema.type === 'array') return describeInside(schema.items as TSchema, `${path}[]`)
  if (schema.properties !== undefined) return describeProperties(schema, true, `${path}.`)
  // If a union consists of an object and a list of such objects, the properties are listed only once.
  const rows = listOf<TSchema>(schema.anyOf).flatMap((choice) => describeInside(choice, path))
  const plain = (row: PropertyRow) => row.path.replaceAll('[]', '')
  return rows.filter((row, index) => rows.findIndex((other) => plain(other) === plain(row)) === index)
}

function typeOf(schema: TSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return (schema.enum as unknown[]).map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf !== undefined) return [...new Set(listOf<TSchema>(schema.anyOf).map(typeOf))].join(' | ')
  if (schema.type === 'array') {
    const items = schema.items as TSchema
    return items.anyOf === undefined && items.enum === undefined ? `${typeOf(items)}[]` : `(${typeOf(items)})[]`
  }
  return typeof schema.type === 'string' ? schema.type : 'any'
}

/**
 * Describes the limits in the schema of an argument. Limits that apply to all arguments are described once at the top
 * of the page.
 */
function limitsOf(schema: TSchema): string {
  if (schema.type === 'string') return range(undefined, schema.maxLength, ' characters')
  if (schema.type === 'array') return range(schema.minItems, schema.maxItems, ' entries')
  return range(schema.minimum, schema.maximum, '')
}

function range(least: unknown, most: unknown, unit: string): string {
  if (typeof least === 'number' && typeof most === 'number') return `${least} to ${most}${unit}`
  if (typeof least === 'number') return `at least ${least}${unit}`
  return typeof most === 'number' ? `at most ${most}${unit}` : ''
}

const listOf = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : [])
