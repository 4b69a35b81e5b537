import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { findApplicationLabels, type ApplicationReference } from '../inventory/find-application.js'
import {
  describeReference,
  isUnresolved,
  resolveLabel,
  splitLabel,
  type LabelIndex,
  type LabelReference,
} from '../inventory/labels.js'
import { nearNames } from '../text/compare-texts.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import type { Application } from '../traffic/applications.js'

/** Which sources of traffic a ringfence should let in, as the caller gave it. */
export interface SourcesAsked {
  /**
   * Sources to leave out: single applications, or an app or env label, which leaves out every application that has it.
   */
  exclude_sources?: readonly ApplicationReference[]
  /**
   * Env labels of the sources to let in; a source must have one of them. Each is given as its value, `env=VALUE`,
   * `{key, value}` or an href.
   */
  environments?: readonly LabelReference[]
}

/** Which sources a ringfence should let in, after all labels have been looked up. */
export interface SourceChoice {
  /** Returns true if the given source application gets no allow rule. */
  leavesOut(source: Application): boolean
  /** Returns the caller's exclusions that match none of the given sources. */
  unused(sources: readonly Application[]): string[]
  /** All labels that the choice names. */
  labels: readonly Label[]
}

/**
 * Looks up the labels by which a caller chooses sources. Names are compared exactly and case-sensitively (D94). Throws
 * the errors of `findApplicationLabels`: not_found and invalid_argument.
 */
export function chooseSources(
  labels: LabelIndex,
  { exclude_sources: excluded = [], environments }: SourcesAsked,
): SourceChoice {
  const exclusions = excluded.map((one) => findApplicationLabels(labels, one, 'exclude_sources'))
  const allowed = environments?.map((one) => findEnvironment(labels, one))
  const holds = (named: readonly Label[], source: Application) =>
    named.every(({ key, value }) => source[key as keyof Application] === value)
  return {
    leavesOut: (source) =>
      exclusions.some((one) => holds(one, source)) ||
      (allowed !== undefined && !allowed.some((label) => holds([label], source))),
    unused: (sources) =>
      exclusions.flatMap((one) => (sources.some((source) => holds(one, source)) ? [] : [nameOf(one)])),
    labels: [...exclusions.flat(), ...(allowed ?? [])],
  }
}

function nameOf(labels: readonly Label[]): string {
  const [app, env] = ['app', 'env'].map((key) => labels.find((label) => label.key === key)?.value)
  if (app !== undefined && env !== undefined) return `${app} (${env})`
  return labels.map(({ key, value }) => `${key}=${value}`).join(' ')
}

function findEnvironment(labels: LabelIndex, asked: LabelReference): Label {
  const direct = typeof asked === 'string' ? labels.find('env', trimBlanks(asked)) : undefined
  if (direct !== undefined) return direct
  const label = resolveLabel(labels, asked)
  if (!isUnresolved(label) && label.key === 'env') return label
  const [argument, value] = ['environments', trimBlanks(describeReference(asked))]
  const near = nearNames(splitLabel(value)?.value ?? value, labels.values('env'))
  throw new ToolError('not_found', `${argument}: no env label is exactly ${quote(value)}.`, {
    argument,
    value,
    near_names: near,
  })
}
