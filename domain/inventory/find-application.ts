import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { nearNames } from '../text/compare-texts.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import {
  describeReference,
  isUnresolved,
  loadLabels,
  resolveLabel,
  splitLabel,
  type LabelIndex,
  type LabelReference,
} from './labels.js'

/**
 * A reference to one application, or to all applications with a certain app or env label. One application is written
 * `app|env`, `app (env)` or `{app, env}`, as in answers. A label may be written in any form of a label reference.
 */
export type ApplicationReference = LabelReference | { app: string; env: string }

/**
 * Finds the labels that a reference names: an app and an env label, or only one of them. The comparison is exact and
 * case-sensitive. If `bareApp` is true, a string without a key may also be the value of an app label.
 *
 * @throws {ToolError} not_found with similar values; invalid_argument if the label has another key or the string is
 * ambiguous. The details of both errors contain `argument`.
 */
export function findApplicationLabels(
  labels: LabelIndex,
  asked: ApplicationReference,
  argument: string,
  { bareApp = false } = {},
): Label[] {
  const reference = isPair(asked) ? `${asked.app}|${asked.env}` : asked
  const text = trimBlanks(describeReference(reference))
  const label = resolveLabel(labels, reference)
  const pairs = isPair(asked) ? [[asked.app, asked.env] as const] : typeof asked === 'string' ? splitPairs(asked) : []
  const app = bareApp && typeof asked === 'string' ? labels.find('app', text) : undefined
  const found = [
    ...(isUnresolved(label) ? [] : [[label]]),
    ...(app === undefined || app === label ? [] : [[app]]),
    ...pairs.flatMap(([app, env]) => {
      const both = [labels.find('app', trimBlanks(app)), labels.find('env', trimBlanks(env))]
      return both.includes(undefined) ? [] : [both as Label[]]
    }),
  ]
  const [first, ...others] = found
  if (first === undefined) {
    const { key, value } = splitLabel(text) ?? { key: 'app', value: pairs[0]?.[0] ?? text }
    const near = nearNames(trimBlanks(value), labels.values(key))
    throw new ToolError(
      'not_found',
      `${argument}: nothing is exactly ${quote(text)}.`,
      { argument, value: text, near_names: near },
      { hint: 'Name an application as app|env, or all with one label as app=VALUE or env=VALUE.' },
    )
  }
  if (others.length > 0) {
    const candidates = found.map((one) => one.map(({ key, value }) => `${key}=${value}`))
    const why = `${argument}: ${quote(text)} can be read in several ways.`
    throw new ToolError('invalid_argument', why, { argument, candidates }, { hint: 'Give {app, env}.' })
  }
  const other = first.find(({ key }) => key !== 'app' && key !== 'env')
  if (other === undefined) return first
  const why = 'an application is an app and an env label'
  throw new ToolError('invalid_argument', `${argument}: ${quote(`${other.key}=${other.value}`)} names none: ${why}.`, {
    argument,
  })
}

/**
 * Works like `findApplicationLabels`, but loads the labels itself and also accepts the bare value of an app label. If
 * no cached label matches, the labels are read from the PCE again before the function fails.
 */
export async function resolveApplicationReference(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  asked: ApplicationReference,
  argument: string,
): Promise<Label[]> {
  const recent = await loadLabels(ctx.pce, ctx)
  try {
    return findApplicationLabels(recent, asked, argument, { bareApp: true })
  } catch (error) {
    if (!(error instanceof ToolError) || error.code !== 'not_found') throw error
    return findApplicationLabels(await loadLabels(ctx.pce, ctx, 'fresh'), asked, argument, { bareApp: true })
  }
}

const isPair = (reference: ApplicationReference): reference is { app: string; env: string } =>
  typeof reference === 'object' &&
  'app' in reference &&
  'env' in reference &&
  typeof reference.app === 'string' &&
  typeof reference.env === 'string'

/**
 * Splits `app|env` or `app (env)` at every possible position, because the values themselves may contain `|` or
 * parentheses.
 */
function splitPairs(asked: string): (readonly [string, string])[] {
  const text = trimBlanks(asked)
  const pairs: [string, string][] = []
  for (let at = text.indexOf('|'); at !== -1; at = text.indexOf('|', at + 1))
    pairs.push([text.slice(0, at), text.slice(at + 1)])
  if (text.endsWith(')'))
    for (let at = text.indexOf(' ('); at !== -1; at = text.indexOf(' (', at + 1))
      pairs.push([text.slice(0, at), text.slice(at + 2, -1)])
  return pairs
}
