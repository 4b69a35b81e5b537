import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { isUnresolved, resolveLabel, splitLabel, type LabelIndex } from '../inventory/labels.js'
import { nearNames } from '../text/compare-texts.js'
import { trimBlanks } from '../text/escape-text.js'
import type { Application } from '../traffic/applications.js'

/** Which sources of traffic a caller wants to let in. */
export interface SourcesAsked {
  /** Applications, as `app|env` or `app (env)`, and app and env labels as `key=value` or href. */
  exclude_sources?: readonly string[]
  /** Env labels: the value, `env=VALUE` or href. */
  environments?: readonly string[]
}

/** The same with its labels found. */
export interface SourceChoice {
  /** Whether a source application gets no allow rule. */
  leavesOut(source: Application): boolean
  /** Exclusions that hold for none of these, as the caller wrote them. */
  unused(sources: readonly Application[]): string[]
  /** Every label that the choice names. */
  labels: readonly Label[]
}

/** Lets every application in. */
export const EVERY_SOURCE: SourceChoice = { leavesOut: () => false, unused: () => [], labels: [] }

/**
 * Finds the labels of a choice of sources, exact and case-sensitive. Throws not_found for what names nothing, and invalid_argument
 * for a label of another key (rules of a ringfence name sources by app and env alone) and for what can be read in two ways: a
 * reference that is dropped would let in what was to be left out.
 */
export function chooseSources(
  labels: LabelIndex,
  { exclude_sources: excluded = [], environments }: SourcesAsked,
): SourceChoice {
  const exclusions = excluded.map((text) => ({ text, labels: findSource(labels, text) }))
  const allowed = environments?.map((text) => findEnvironment(labels, text))
  const holds = (named: readonly Label[], source: Application) =>
    named.every(({ key, value }) => source[key as keyof Application] === value)
  return {
    leavesOut: (source) =>
      exclusions.some((one) => holds(one.labels, source)) ||
      (allowed !== undefined && !allowed.some((label) => holds([label], source))),
    unused: (sources) =>
      exclusions.flatMap((one) => (sources.some((source) => holds(one.labels, source)) ? [] : [one.text])),
    labels: [...exclusions.flatMap((one) => one.labels), ...(allowed ?? [])],
  }
}

function findSource(labels: LabelIndex, asked: string): Label[] {
  const argument = 'exclude_sources'
  const text = trimBlanks(asked)
  const label = resolveLabel(labels, text)
  const found = [...(isUnresolved(label) ? [] : [[label]]), ...splitApplication(text, labels)]
  const [first, ...others] = found
  if (first === undefined) {
    const { key, value } = splitLabel(text) ?? { key: 'app', value: text.split(/\||\s\(/u)[0] ?? '' }
    const hint = 'Name an application as app|env, or all with one label as app=VALUE or env=VALUE.'
    throw notFound(argument, text, nearNames(trimBlanks(value), labels.values(key)), hint)
  }
  if (others.length > 0)
    throw new ToolError('invalid_argument', `${argument}: "${text}" can be read in several ways.`, {
      argument,
      candidates: found.map((one) => one.map(({ key, value }) => `${key}=${value}`)),
    })
  const other = first.find(({ key }) => key !== 'app' && key !== 'env')
  if (other === undefined) return first
  const why = 'a ringfence names its sources by app and env labels alone'
  throw new ToolError('invalid_argument', `${argument}: ${other.key}=${other.value} cannot be left out: ${why}.`, {
    argument,
  })
}

/** `app|env` and `app (env)`, at every place where a value may end, since values may hold these signs themselves. */
function splitApplication(text: string, labels: LabelIndex): Label[][] {
  const pairs: [string, string][] = []
  for (let at = text.indexOf('|'); at !== -1; at = text.indexOf('|', at + 1))
    pairs.push([text.slice(0, at), text.slice(at + 1)])
  if (text.endsWith(')'))
    for (let at = text.indexOf(' ('); at !== -1; at = text.indexOf(' (', at + 1))
      pairs.push([text.slice(0, at), text.slice(at + 2, -1)])
  return pairs.flatMap(([app, env]) => {
    const found = [labels.find('app', trimBlanks(app)), labels.find('env', trimBlanks(env))]
    return found.includes(undefined) ? [] : [found as Label[]]
  })
}

function findEnvironment(labels: LabelIndex, asked: string): Label {
  const text = trimBlanks(asked)
  const direct = labels.find('env', text)
  if (direct !== undefined) return direct
  const label = resolveLabel(labels, text)
  if (!isUnresolved(label) && label.key === 'env') return label
  throw notFound('environments', text, nearNames(splitLabel(text)?.value ?? text, labels.values('env')))
}

function notFound(argument: string, value: string, near: string[], hint?: string): ToolError {
  const text = `${argument}: nothing is named exactly "${value}". Nothing was written.`
  return new ToolError('not_found', text, { argument, value, near_names: near }, hint === undefined ? {} : { hint })
}
