import { describe, titleOf, type AnyTool } from '../../tools/define.js'
import { describeProperties, type PropertyRow } from './describe-schema.js'
import { renderTable } from './markdown.js'

const EFFECTS = { read: 'reads', write: 'writes', destroy: 'destructive' } as const

/** The table of README: one row a tool, linked to its section on the page of all tools. */
export function renderToolTable(tools: readonly AnyTool[], pagePath: string): string {
  const rows = tools.map((tool) => [
    `[\`${tool.name}\`](${pagePath}#${tool.name})`,
    tool.summary,
    tool.roles.join(', '),
    tool.requiresConfirm ? `${EFFECTS[tool.effect]}; confirmed over authenticated HTTP` : EFFECTS[tool.effect],
  ])
  return renderTable(['Tool', 'What it does', 'Roles', 'Effect'], rows)
}

/** The page with the arguments, an example and the answer of every tool. */
export function renderToolPage(tools: readonly AnyTool[]): string {
  const sections = tools.map(renderTool)
  return `# Tools\n\n<!-- Generated from tools/index.ts by \`npm run docs\`. -->\n\n${sections.join('\n\n')}\n`
}

function renderTool(tool: AnyTool): string {
  const facts = [
    `Roles: ${tool.roles.join(', ')}`,
    tool.requiresPce ? 'needs a PCE' : 'works without a PCE',
    ...(tool.requiresConfirm ? ['needs a confirm token over authenticated HTTP'] : []),
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
      ['Answer', 'Type', 'Always there', 'Meaning'],
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
