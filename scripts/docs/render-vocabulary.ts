import type { TSchema } from '@sinclair/typebox'
import { DIMENSIONS } from '../../domain/traffic/dimensions.js'
import { INSTRUCTIONS } from '../../plugins/mcp/instructions.js'
import { EFFECT_MEANINGS, RISKS, RISK_MEANINGS } from '../../schemas/policy-changes.js'
import { DECISION_MEANINGS } from '../../schemas/pce/policy-decisions.js'
import { FIELD_SYNONYMS, VALUE_SYNONYMS } from '../../schemas/synonyms.js'
import type { AnyTool } from '../../tools/define.js'
import { renderTable } from './markdown.js'

/**
 * The fields of answers that are easily confused, by subject. Their meanings are taken from the schemas of the tools.
 */
const SUBJECTS: Readonly<Record<string, readonly string[]>> = {
  'How much there is': (
    'total_count pce_total pce_truncated returned truncated next_cursor section_totals truncated_sections ' +
    'truncation_note flows_truncated'
  ).split(' '),
  'What was read of traffic': (
    'window data_span pce_flows total_pce_flows rows rows_analysed total_flows_analyzed flows_analysed unparseable ' +
    'raw_observations row_limit truncated_at coverage_note'
  ).split(' '),
  'What was counted in it': (
    'total_flows total_connections total_rows returned_rows connections bytes_in bytes_out flows policy policy_decision ' +
    'policy_decisions by_decision ' +
    'coverage_percentage connection_coverage_percentage was_permitted allowed_by_default_possible'
  ).split(' '),
  Provisioning: 'impact workloads_affected total_pending_changes total_unfiltered update_type object_counts'.split(' '),
}

/** Renders the page of terms in arguments and answers. Each term is taken from the place where it is defined. */
export function renderVocabulary(tools: readonly AnyTool[]): string {
  const dimensions = Object.entries(DIMENSIONS).map(([name, { columns, meaning, synonyms }]) => [
    code(name),
    columns.length === 1 && columns[0] === name ? '' : columns.map(code).join(', '),
    synonyms.map(code).join(', '),
    meaning,
  ])
  const fields = fieldsOf(tools)
  return (
    [
      '# Vocabulary',
      '<!-- Generated from the schemas of the tools by `npm run generate`. -->',
      'Names of arguments and answers mean the same in every tool. [tools.md](tools.md) has them all; here are those that several tools share,\nand those that are easily taken for one another.',
      '## What every conversation is told',
      'A client shows its model these lines once (the `instructions` of MCP), so that no tool has to repeat them.',
      INSTRUCTIONS.map((line) => `> ${line}`).join('\n>\n'),
      '## What traffic is grouped by',
      'A column goes by the name that it has in answers. `src_KEY` and `dst_KEY` are the label of that key at one end, and the key alone is\nboth.',
      renderTable(['Name', 'Stands for', 'Also taken', 'Meaning'], dimensions),
      '## Arguments by other names',
      'A tool that has an argument of the second name takes it by the first as well, unless it has several of those; the same holds inside rules\nand services. Values of enumerations may be written in any case, with spaces or hyphens.',
      renderTable(
        ['Also taken', 'For'],
        [
          ...Object.entries(FIELD_SYNONYMS),
          ...Object.entries(VALUE_SYNONYMS).map(([word, value]) => [word, [value]] as const),
        ].map(([word, names]) => [code(word), names.map(code).join(', ')]),
      ),
      '## Policy decisions',
      renderTable(
        ['Decision', 'Meaning'],
        Object.entries(DECISION_MEANINGS).map(([decision, meaning]) => [code(decision), meaning]),
      ),
      '## What a policy change does',
      'compare-draft-active and the preview of provision-policy judge a change by itself, whatever other rules there are.',
      renderTable(
        ['Effect', 'Meaning'],
        Object.entries(EFFECT_MEANINGS).map(([effect, meaning]) => [code(effect), meaning]),
      ),
      'A mixed change, and one whose effect is undecided, has `effect_note` in place of `effect`.',
      renderTable(
        ['Risk, the worst first', 'Meaning'],
        RISKS.map((risk) => [code(risk), RISK_MEANINGS[risk]]),
      ),
      '## Fields of answers',
      ...Object.entries(SUBJECTS).flatMap(([subject, names]) => [
        `### ${subject}`,
        renderTable(
          ['Field', 'Meaning', 'In'],
          names.flatMap((name) => renderField(name, fields)),
        ),
      ]),
    ].join('\n\n') + '\n'
  )
}

interface Field {
  name: string
  path: string
  meaning: string
  tool: string
}

/** Renders a row for each meaning of a field. Throws if no tool describes the field. */
function renderField(name: string, fields: readonly Field[]): string[][] {
  const found = fields.filter((field) => field.name === name)
  if (found.length === 0) throw new Error(`no tool answers ${name}, or none says what it is`)
  return [...new Set(found.map(({ meaning }) => meaning))].map((meaning) => {
    const places = found.filter((field) => field.meaning === meaning)
    const paths = [...new Set(places.map(({ path }) => code(path)))]
    const names = [...new Set(places.map(({ tool }) => `[${tool}](tools.md#${tool})`))]
    return [
      paths.length > MOST_PATHS ? `${code(name)} in ${paths.length} places` : paths.join(', '),
      meaning,
      names.length > MOST_TOOLS ? `${names.length} tools` : names.join(', '),
    ]
  })
}

const MOST_PATHS = 3
const MOST_TOOLS = 4

const fieldsOf = (tools: readonly AnyTool[]): Field[] =>
  tools.flatMap((tool) =>
    [...fieldsIn(tool.output, '')].flatMap(([path, meaning]) =>
      meaning === undefined ? [] : [{ name: path.split('.').at(-1) ?? '', path, meaning, tool: tool.name }],
    ),
  )

function* fieldsIn(schema: TSchema, path: string): Generator<[string, string | undefined]> {
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, TSchema>)) {
    const inner = path === '' ? name : `${path}.${name}`
    yield [inner, property.description]
    yield* fieldsIn(property, inner)
  }
  if (schema.items !== undefined) yield* fieldsIn(schema.items as TSchema, `${path}[]`)
  for (const choice of (schema.anyOf ?? []) as TSchema[]) yield* fieldsIn(choice, path)
}

const code = (text: string) => `\`${text}\``
