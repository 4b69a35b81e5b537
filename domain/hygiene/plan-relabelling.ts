import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadSelection } from '../../schemas/workload-selection.js'
import type { ToolContext } from '../call.js'
import { scanEvery } from '../inventory/fetch-every.js'
import { hintAtHostname } from '../inventory/hint-at-hostname.js'
import { NONE_LEFT_OUT, tellLeftOut, type LeftOut } from '../inventory/kubernetes-workloads.js'
import type { LabelIndex, LabelReference } from '../inventory/labels.js'
import { quote } from '../text/escape-text.js'
import { findWorkloads, isFound, shortFormOf, toFound, type FoundWorkload } from './find-workloads.js'
import { planWish, relabel, wishOfValues, type Relabelling, type WishPlan } from './plan-labels.js'
import { labelColumnsOf } from './label-columns.js'
import { IDENTITIES, readLabelCsv, type CsvLine, type CsvReference } from './read-label-csv.js'
import { refuseProblems, type CsvProblem } from './read-table.js'
import { countLeftOut, requireKeys, resolveSelection } from './select-workloads.js'

/** Maximum number of workloads in one call: ten of the PCE's largest bulk updates. */
export const MOST_WORKLOADS = 10_000

/**
 * The arguments that select workloads, in one of three ways, and that say how their labels change. With `csv`, the
 * cells of the table say so.
 */
export interface RelabellingArguments {
  workloads?: string[]
  selection?: WorkloadSelection & { without?: string[] }
  csv?: string
  remove_token?: string
  set?: LabelReference[]
  add?: LabelReference[]
  remove?: string[]
  create_missing_labels?: boolean
}
type Arguments = RelabellingArguments

export interface RelabellingPlan {
  /** All selected workloads, whether their labels change or not. */
  relabellings: Relabelling[]
  /** The labels needed for all requested changes together. */
  labels: WishPlan['labels']
  /** Number of Kubernetes workloads that match the selection too. They are left out of the plan. */
  leftOut: LeftOut
}

type Ctx = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'beforeWriting'>

/**
 * Looks up and checks everything that a call refers to, without writing. Throws label_not_found, not_found,
 * invalid_argument (with all problems of the table), no_workloads, and the errors of the PCE client.
 */
export function planRelabelling(ctx: Ctx, index: LabelIndex, args: RelabellingArguments): Promise<RelabellingPlan> {
  return args.csv === undefined ? planSame(args, ctx, index) : planCsv(args.csv, args, ctx, index)
}

/** Plans the same change for all selected workloads. */
async function planSame(args: Arguments, ctx: Ctx, index: LabelIndex): Promise<RelabellingPlan> {
  const { wish, labels } = planWish(index, args, args.create_missing_labels === true)
  const { found, leftOut } =
    args.workloads === undefined
      ? await select(args.selection ?? {}, ctx, index)
      : { found: await findNamed(args.workloads, ctx), leftOut: NONE_LEFT_OUT }
  return { relabellings: found.map((workload) => relabel(workload, wish, index)), labels, leftOut }
}

async function select(
  { without = [], ...filters }: NonNullable<Arguments['selection']>,
  ctx: Ctx,
  index: LabelIndex,
): Promise<{ found: FoundWorkload[]; leftOut: LeftOut }> {
  requireKeys(index, without, 'without')
  const { params, ownFilter, selectsPod } = await resolveSelection(ctx.pce, filters, ctx)
  const found: FoundWorkload[] = []
  let matched = 0
  const lacks = ({ labels }: Workload) => {
    const keys = new Set((labels ?? []).flatMap((label) => (index.get(label.href) ?? label).key ?? []))
    return without.length === 0 || without.some((key) => !keys.has(key))
  }
  const { isWhole } = await scanEvery(
    { api: ctx.pce.workloads, params, signal: ctx.beforeWriting },
    {
      onBegin: () => void ((found.length = 0), (matched = 0)),
      onItems(items) {
        for (const workload of items) {
          if (ownFilter?.(workload) === false || !lacks(workload)) continue
          matched += 1
          if (matched <= MOST_WORKLOADS) found.push(toFound(workload))
        }
      },
    },
  )
  if (!isWhole) {
    const text = 'The PCE did not give the whole list of workloads, so what the selection matches is not known.'
    throw new ToolError('invalid_response', text, {})
  }
  if (matched > MOST_WORKLOADS) {
    const text = `The selection matches ${matched} workloads; a call labels ${MOST_WORKLOADS} at most. Narrow it.`
    throw new ToolError('invalid_argument', text, { argument: 'selection', matched })
  }
  const missesKey = (workload: Workload) => selectsPod(workload) && lacks(workload)
  const leftOut = await countLeftOut(ctx.pce, { selectsPod: missesKey }, ctx.beforeWriting)
  if (matched === 0) {
    const isNarrowed = ownFilter !== undefined || without.length > 0
    const query = { api: ctx.pce.workloads, params, signal: ctx.beforeWriting, isNarrowed }
    const others = await hintAtHostname(query)
    const text = [
      'The selection matches no workload.',
      ...(others === null ? [] : [others]),
      ...tellLeftOut(leftOut),
    ].join(' ')
    const hint = 'get-workloads takes the same filters: widen them until they find what you mean.'
    throw new ToolError('no_workloads', text, { argument: 'selection' }, { hint })
  }
  return { found, leftOut }
}

/** Maximum number of workloads named in a list of problems. */
const MOST_PROBLEMS = 20

async function findNamed(names: readonly string[], { pce, beforeWriting }: Ctx): Promise<FoundWorkload[]> {
  const references = names.map((text) => (text.startsWith('/') ? { href: text.trim() } : { name: text }))
  const lookups = await findWorkloads(pce, references, beforeWriting)
  const problems = lookups.flatMap((lookup) => (isFound(lookup) ? [] : [lookup.problem]))
  const ambiguous = lookups.flatMap((lookup) => (isFound(lookup) ? [] : (lookup.candidates ?? [])))
  if (problems.length > 0) {
    const named = problems.slice(0, MOST_PROBLEMS)
    const more = problems.length > named.length ? `; and ${problems.length - named.length} more` : ''
    const text = `workloads: ${named.join('; ')}${more}`
    const details = {
      argument: 'workloads',
      problems_total: problems.length,
      ...(ambiguous.length > 0 && { candidates: ambiguous.slice(0, MOST_PROBLEMS) }),
    }
    const isMissing = lookups.some((lookup) => !isFound(lookup) && lookup.candidates === undefined)
    throw new ToolError(
      isMissing ? 'not_found' : 'ambiguous_name',
      `${text}${text.endsWith('?') ? '' : '.'} Nothing was written.`,
      details,
    )
  }
  // A workload that is named twice counts once, because all workloads get the same change.
  return [...new Map(lookups.filter(isFound).map((found) => [found.href, found])).values()]
}

/**
 * Plans an individual change for each line of the table. All problems in the table are found before anything is
 * written.
 */
async function planCsv(csv: string, args: Arguments, ctx: Ctx, index: LabelIndex): Promise<RelabellingPlan> {
  const lines = readLabelCsv(csv, await labelColumnsOf(csv, IDENTITIES, ctx, index), args.remove_token)
  if (lines.length > MOST_WORKLOADS) {
    const text = `csv has ${lines.length} lines; a call labels ${MOST_WORKLOADS} workloads at most. Divide it.`
    throw new ToolError('invalid_argument', text, { argument: 'csv' })
  }
  const problems: CsvProblem[] = []
  const lookups = await findWorkloads(
    ctx.pce,
    lines.map(({ workload }) => referenceOf(workload)),
    ctx.beforeWriting,
  )
  const wishes = planLines(lines, args, index, problems)
  const seen = new Map<string, number>()
  const relabellings: Relabelling[] = []
  for (const [at, { line, workload }] of lines.entries()) {
    const lookup = lookups[at] as (typeof lookups)[number]
    if (!isFound(lookup)) {
      problems.push({ line, column: Object.keys(referenceOf(workload))[0], problem: lookup.problem })
      continue
    }
    const contradiction = contradictionOf(workload, lookup)
    if (contradiction !== null) problems.push({ line, ...contradiction })
    const earlier = seen.get(lookup.href)
    if (earlier !== undefined) problems.push({ line, problem: `it names the same workload as line ${earlier}` })
    seen.set(lookup.href, line)
    const wish = wishes[at]
    if (wish !== undefined) relabellings.push(relabel(lookup, wish.wish, index))
  }
  refuseProblems(
    problems.sort((a, b) => a.line - b.line),
    lookups.flatMap((lookup) => (isFound(lookup) ? [] : (lookup.candidates ?? []))),
  )
  return { relabellings, labels: joinLabels(wishes), leftOut: NONE_LEFT_OUT }
}

const referenceOf = ({ href, name, hostname = '' }: CsvReference) =>
  href !== undefined ? { href } : name !== undefined ? { name, ...(hostname !== '' && { hostname }) } : { hostname }

/**
 * Returns a problem if the identifiers in a line belong to different workloads. `found` is the workload that the line's
 * first identifier names.
 */
function contradictionOf(
  { href, name, hostname }: CsvReference,
  found: FoundWorkload,
): Omit<CsvProblem, 'line'> | null {
  const by = href === undefined ? 'name' : 'href'
  const names = [found.ownName, found.hostname, shortFormOf(found.hostname ?? '')]
  if (href !== undefined && name !== undefined && !names.includes(name))
    return { column: 'name', problem: `the workload of its ${by} is named ${quote(found.name)}` }
  if ((href !== undefined || name !== undefined) && hostname !== undefined && found.hostname !== hostname)
    return { column: 'hostname', problem: `the workload of its ${by} has the host name ${quote(found.hostname ?? '')}` }
  return null
}

/** Plans the change of each line of the table. Equal lines share one plan. */
function planLines(lines: readonly CsvLine[], args: Arguments, index: LabelIndex, problems: CsvProblem[]) {
  const known = new Map<string, WishPlan | Map<string, string>>()
  return lines.map(({ line, values }): WishPlan | undefined => {
    const id = JSON.stringify([...values])
    const plan = known.get(id) ?? planValues(values, args, index)
    known.set(id, plan)
    if (!(plan instanceof Map)) return plan
    for (const [column, problem] of plan) problems.push({ line, column, problem })
    return undefined
  })
}

/** Plans the change that the cells of a line describe, or returns the problems, each with its column. */
function planValues(
  values: ReadonlyMap<string, string | null>,
  args: Arguments,
  index: LabelIndex,
): WishPlan | Map<string, string> {
  const wrong = new Map<string, string>()
  for (const cell of values) {
    try {
      planWish(index, wishOfValues(new Map([cell])), args.create_missing_labels === true)
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      wrong.set(cell[0], error.message.replace(/^(?:set|remove): /, '').replace(/\.$/, ''))
    }
  }
  return wrong.size > 0 ? wrong : planWish(index, wishOfValues(values), args.create_missing_labels === true)
}

/** Merges the labels of several plans, listing each label once. */
function joinLabels(plans: readonly (WishPlan | undefined)[]): WishPlan['labels'] {
  const entries = new Map<string, WishPlan['labels']['entries'][number]>()
  const warnings = new Set<string>()
  for (const plan of new Set(plans)) {
    for (const entry of plan?.labels.entries ?? []) {
      const { key, value } = 'missing' in entry ? entry.missing : entry.existing
      entries.set(JSON.stringify([key, value]), entry)
    }
    for (const warning of plan?.labels.warnings ?? []) warnings.add(warning)
  }
  return { entries: [...entries.values()], warnings: [...warnings] }
}
